from __future__ import annotations

import pytest

from tasks.release.charts import MOST_POINTS, Line, line_chart, nice_ticks, number


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0.0, 1.0, [0.0, 0.5, 1.0]),
        (3.9, 8.3, [2, 4, 6, 8, 10]),
        (-0.31, 0.74, [-0.5, 0.0, 0.5, 1.0]),
        (5.0, 5.0, [5.0]),
    ],
)
def test_ticks_are_round_and_enclose_the_values(low, high, ticks):
    assert nice_ticks(low, high) == pytest.approx(ticks)


def test_points_are_placed_by_percent_from_left_and_top():
    chart = line_chart("loss", [Line("a", [(0, 0.0), (5, 5.0), (10, 10.0)], "first")])
    assert chart is not None
    assert chart.lines[0].path == "M0 100L50 50L100 0"


def test_a_reference_level_beyond_the_line_is_inside_the_chart():
    chart = line_chart("loss", [Line("a", [(0, 1.0), (1, 2.0)], "first")], references=[("bound", 9.0)])
    assert chart is not None
    assert 0 <= chart.references[0].place < 50
    assert "bound at 9" in chart.summary


def test_a_long_line_is_thinned_to_its_ends():
    chart = line_chart("loss", [Line("a", [(x, float(x)) for x in range(10_001)], "first")])
    assert chart is not None
    assert chart.lines[0].path.count("L") == MOST_POINTS - 1
    assert chart.lines[0].path.startswith("M0 100L")
    assert chart.lines[0].path.endswith("L100 0")


def test_values_that_are_not_finite_are_left_out():
    chart = line_chart("loss", [Line("a", [(0, float("nan")), (1, 2.0), (2, float("inf"))], "first")])
    assert chart is not None
    assert chart.lines[0].path == "M50 50"
    assert line_chart("loss", [Line("a", [(0, float("nan"))], "first")]) is None
    assert line_chart("loss", []) is None


def test_numbers_are_short_and_have_a_true_minus():
    assert [number(v) for v in (0, -1.25, 0.333333, 12345.6, 0.00004)] == [
        "0",
        "−1.25",
        "0.3333",
        "12,346",
        "4.00e−05",
    ]
