import pytest

from tasks.training.schedule import ScheduleParams, learning_rate_ratio


def test_warm_up_rises_by_equal_amounts_and_reaches_the_peak_at_its_last_step():
    schedule = ScheduleParams(warmup_steps=4)
    assert [learning_rate_ratio(schedule, step, 100) for step in range(1, 5)] == [0.25, 0.5, 0.75, 1.0]


@pytest.mark.parametrize(
    ("kind", "half", "last"), [("cosine", 0.6, 0.2), ("linear", 0.6, 0.2), ("constant", 1.0, 1.0)]
)
def test_value_half_way_and_at_the_last_step(kind, half, last):
    schedule = ScheduleParams(kind=kind, warmup_steps=10, min_ratio=0.2)
    assert learning_rate_ratio(schedule, 60, 110) == pytest.approx(half)
    assert learning_rate_ratio(schedule, 110, 110) == pytest.approx(last)


def test_wsd_stays_at_the_peak_and_falls_over_the_last_share_of_all_steps():
    schedule = ScheduleParams(kind="wsd", warmup_steps=10, decay_ratio=0.2, min_ratio=0.5)
    found = [learning_rate_ratio(schedule, step, 100) for step in (5, 10, 80, 90, 100)]
    assert found == pytest.approx([0.5, 1.0, 1.0, 0.75, 0.5])


def test_a_fall_of_wsd_that_would_begin_in_the_warm_up_begins_after_it():
    schedule = ScheduleParams(kind="wsd", warmup_steps=6, decay_ratio=1.0, min_ratio=0.0)
    found = [learning_rate_ratio(schedule, step, 10) for step in (3, 6, 8, 10)]
    assert found == pytest.approx([0.5, 1.0, 0.5, 0.0])


def test_cosine_at_a_quarter():
    # 0.5 · (1 + cos(π/4)) = 0.853553…
    schedule = ScheduleParams(kind="cosine", min_ratio=0.0)
    assert learning_rate_ratio(schedule, 25, 100) == pytest.approx(0.8535533906)


def test_no_warm_up_begins_just_below_the_peak():
    assert learning_rate_ratio(ScheduleParams(kind="linear", min_ratio=0.0), 1, 10) == pytest.approx(0.9)


def test_a_warm_up_longer_than_the_run_is_a_rise_cut_short():
    assert learning_rate_ratio(ScheduleParams(warmup_steps=20), 10, 10) == 0.5


@pytest.mark.parametrize("step", [0, 11])
def test_a_step_outside_the_run_is_an_error(step):
    with pytest.raises(ValueError, match=f"step {step} is not one of 1 … 10"):
        learning_rate_ratio(ScheduleParams(), step, 10)
