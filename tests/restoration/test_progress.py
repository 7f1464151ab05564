"""The time that is left, by a clock that ticks with the work."""

from __future__ import annotations

import pytest

from leader.restoration.progress import WorkLeft
from leader.restoration.restore import prepare
from tests.cheap_prior import CheapPrior, photograph


def test_time_left_follows_the_work() -> None:
    """A prior whose late steps cost 100 times as much: the estimate after the cheap ones is still right."""

    class Uneven(CheapPrior):
        def work(self, t: int, height: int, width: int) -> float:
            return height * width * (1.0 if t < 500 else 0.01)

    ready = prepare(photograph(16, 16), "denoise", sigma=0.1, prior=Uneven(), steps=10, plugins=())
    now = [0.0]
    left = WorkLeft(ready, clock=lambda: now[0])
    assert left.seconds_left is None
    pixels = 16 * 16
    costs = [cost + 0.3 * pixels for _, cost in ready.work()]  # not quite the ratio the bar starts from
    walk = ready.sampler.iterate(ready.problem)
    for done in range(1, 6):
        now[0] += costs[done - 1] / pixels  # a clock that ticks with the work
        left.step(next(walk))
        assert left.seconds_left == pytest.approx(sum(costs[done:]) / pixels, rel=0.5)
    assert left.done < 0.3
    for step in walk:
        now[0] += costs[done] / pixels
        done += 1
        left.step(step)
        assert left.seconds_left == pytest.approx(sum(costs[done:]) / pixels, rel=0.25)
    assert left.done == 1
