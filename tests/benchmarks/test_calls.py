"""Which times the paths of benchmarks/calls.py keep of a host's own 100 steps."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from leader import Schedule
from leader.methods import make_method
from leader.schedule import Grid

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def calls() -> Any:
    """The benchmark, which is a program and not a package."""
    sys.path.insert(0, str(FOLDER))
    try:
        yield __import__("calls")
    finally:
        sys.path.remove(str(FOLDER))


@pytest.fixture(params=["ddnm", "diffpir"])
def whole(request: pytest.FixtureRequest) -> Grid:
    return make_method(request.param, {}).default_grid(Schedule.linear(), 100)


def test_late_keeps_the_last_35_of_100_times(calls: Any, whole: Grid) -> None:
    kept = calls.picked(whole, calls.late(whole))
    assert kept.times == whole.times[-36:] and kept.clock == whole.clock[-36:]
    assert kept.labels == tuple(range(65, 101))  # draws belong to the positions of the whole grid


def test_jump_visits_the_first_time_and_the_last_34(calls: Any, whole: Grid) -> None:
    kept = calls.picked(whole, calls.jump(whole))
    assert kept.times == (whole.times[0], *whole.times[-35:]) and kept.labels[:2] == (0, 66)


def test_halved_reaches_twice_as_far_in_steps_of_two(calls: Any, whole: Grid) -> None:
    assert calls.picked(whole, calls.halved(whole)).times == (*whole.times[31:100:2], -1)


def test_thinned_is_dense_at_the_end_and_reaches_the_top(calls: Any, whole: Grid) -> None:
    kept = calls.picked(whole, calls.thinned(whole))
    assert kept.visits == 35 and kept.times[0] == whole.times[0] and kept.times[-26:] == whole.times[-26:]
    assert list(kept.times) == sorted(kept.times, reverse=True)


def test_a_grid_with_fewer_times_keeps_its_share_of_them(calls: Any) -> None:
    cosine = make_method("ddnm", {}).default_grid(Schedule.cosine(300), 100)
    for part in (calls.late, calls.jump, calls.halved, calls.thinned):
        assert calls.picked(cosine, part(cosine)).visits <= int(0.35 * cosine.visits) < 35


def test_a_verdict_takes_seeds_together_inside_a_picture(calls: Any) -> None:
    def pair(change: float, calls_: int = 35) -> Any:
        return {"psnr": 25 + change, "lpips": 0.2, "calls": calls_}, {"psnr": 25.0, "lpips": 0.2, "calls": 100}

    assert "-0.10 [-0.10, -0.10]" in calls._line([[pair(-1.0), pair(0.8)], [pair(-0.1), pair(-0.1)]])
    assert calls._line([[pair(-0.2)], [pair(-0.2)]]).endswith("PSNR inferior")
    assert calls._line([[pair(0.0)], [pair(0.0)]]).endswith("| not inferior")
    assert calls._line([[pair(0.0, 36)], [pair(0.0, 36)]]).endswith("more calls than asked")
