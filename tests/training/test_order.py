from __future__ import annotations

from collections import Counter

from tasks.training.order import batch_at, seed_of


def test_an_epoch_takes_every_row_once():
    taken = [i for step in range(10) for i in batch_at(step, rows=20, batch=4, seed=0)]
    assert sorted(taken[:20]) == list(range(20))
    assert sorted(taken[20:]) == list(range(20))
    assert taken[:20] != taken[20:]


def test_a_step_may_reach_into_the_next_epoch():
    taken = Counter(i for step in range(3) for i in batch_at(step, rows=5, batch=5 * 4 // 2, seed=0))
    assert set(taken.values()) == {6}


def test_a_step_depends_on_nothing_but_its_number_and_the_seed():
    forwards = [batch_at(step, rows=7, batch=3, seed=1) for step in range(20)]
    backwards = [batch_at(step, rows=7, batch=3, seed=1) for step in reversed(range(20))]
    assert forwards == backwards[::-1]
    assert forwards != [batch_at(step, rows=7, batch=3, seed=2) for step in range(20)]


def test_streams_under_a_seed_differ():
    assert (
        len({seed_of(seed, stream, step) for seed in range(3) for stream in range(3) for step in range(3)})
        == 27
    )
