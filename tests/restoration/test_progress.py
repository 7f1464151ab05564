"""The time that is left, by a clock that ticks with the work."""

from __future__ import annotations

import pytest
import torch

from leader.priors.base import Prediction
from leader.restoration import ahead
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


def test_a_network_tied_to_a_size_is_timed_at_that_size(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, ...]] = []

    class Tied(CheapPrior):
        def _predict(self, x: torch.Tensor, t: torch.Tensor) -> Prediction:
            asked.append(tuple(x.shape))
            return super()._predict(x, t)

    monkeypatch.setattr(ahead, "WORTH_ASKING", 0)
    made = prepare(photograph(40, 48), "denoise", sigma=0.1, prior=Tied(), steps=2, method="ddnm")
    for size, expected in (((16, 24), (1, 3, 16, 24)), (None, (1, 3, 256, 256))):
        made.sampler.prior.size = size
        seconds = ahead.seconds_ahead(made, iter((0.0, 2.0)).__next__)
        assert asked[-1] == expected
        pixels = expected[2] * expected[3]
        assert seconds == pytest.approx(2.0 / pixels * 2 * 40 * 48 * 1.2)
