"""How long a restoration will take and how far it is, by a clock that ticks with the work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from leader.restoration import progress
from leader.restoration.progress import RunProgress, count_work, predict_seconds
from leader.restoration.restore import Preparation, prepare
from tests.cheap_prior import CheapPrior, photograph


def ready(prior: CheapPrior | None = None, steps: int = 10, **choices: Any) -> Preparation:
    return prepare(
        photograph(16, 24), "denoise", sigma=0.1, prior=prior or CheapPrior(), steps=steps, **{"plugins": (), **choices}
    )


def tick(seconds: float) -> Callable[[], float]:
    """A clock that moves on by so many seconds whenever it is read."""
    now = [0.0]

    def clock() -> float:
        now[0] += seconds
        return now[0]

    return clock


def test_time_left_follows_the_work() -> None:
    """A prior whose late steps cost 100 times as much: the estimate after the cheap ones is still right."""

    class Uneven(CheapPrior):
        def work(self, t: int, height: int, width: int) -> float:
            return height * width * (1.0 if t < 500 else 0.01)

    made = ready(Uneven())
    now = [0.0]
    left = RunProgress(made, clock=lambda: now[0])
    assert left.seconds_left is None and left.share == 0
    pixels = 16 * 24
    costs = [cost + 0.3 * pixels for _, cost in made.work()]  # not quite the ratio the bar starts from
    for done, step in enumerate(made.sampler.iterate(made.problem), 1):
        now[0] += costs[done - 1] / pixels  # a clock that ticks with the work
        left.add(step)
        assert left.seconds_left == pytest.approx(sum(costs[done:]) / pixels, rel=0.5 if done <= 5 else 0.25)
        assert done != 5 or left.share < 0.3
    assert left.share == pytest.approx(1) and str(left) == "step 10 of 10, at most 0:00 left"


def test_a_jump_takes_all_that_it_leaves_out() -> None:
    made = ready(steps=20)
    step = next(made.sampler.iterate(made.problem))
    now = [0.0]
    left = RunProgress(made, clock=lambda: now[0])
    now[0] = 3.0
    left.add(replace(step, jump=torch.tensor([5])))
    assert left.position == 5 and left.share == pytest.approx(5 / 20)
    assert left.seconds_left == pytest.approx(15 * 3.0), "every step alike: as long as the first"
    assert str(left) == "step 5 of 20, at most 0:45 left"
    left.add(replace(step, jump=torch.tensor([1]), u=torch.tensor([-1])))
    assert left.share == pytest.approx(1) and left.seconds_left == pytest.approx(0)


def test_the_prediction_is_work_times_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    assert predict_seconds(ready()) is None, "short runs are not measured"
    monkeypatch.setattr(progress, "WORTH_MEASURING", 1)
    assert count_work(ready()) == pytest.approx(1.2 * 10 * 16 * 24) and count_work(ready(average=3)) == 3 * count_work(ready())
    seconds = 2.0 / 256**2 * count_work(ready())  # the call on 256 x 256 pixels takes two seconds
    assert predict_seconds(ready(), tick(2.0)) == pytest.approx(seconds)
    assert predict_seconds(ready(average=3), tick(2.0)) == pytest.approx(3 * seconds)


def test_the_pace_is_measured_with_the_threads_of_the_run_at_the_size_of_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "WORTH_MEASURING", 1)
    used: list[tuple[int, tuple[int, ...]]] = []

    class Noted(CheapPrior):
        def _predict(self, x: torch.Tensor, t: torch.Tensor) -> Any:
            used.append((torch.get_num_threads(), tuple(x.shape)))
            return super()._predict(x, t)

    before = torch.get_num_threads()
    made = ready(Noted(), threads=before + 1)
    predict_seconds(made)
    made.sampler.prior.size = (16, 24)
    predict_seconds(made)
    assert used == [(before + 1, (1, 3, 256, 256)), (before + 1, (1, 3, 16, 24))] and torch.get_num_threads() == before


def test_derivatives_for_the_uncertainty_are_part_of_the_work() -> None:
    """A picture of 24 x 16 pixels has 1152 values: as many derivatives at every step for `exact`, 5 for as many probes."""

    def count(**settings: Any) -> float:
        return count_work(ready(steps=3, method="ddnm", settings=settings))

    plain = count(estimator="noise-energy")
    calls = plain / (1 + progress.OVERHEAD)
    assert count(estimator="hutchinson", probes=5) == pytest.approx(plain + 5 * progress.DERIVATIVE * calls)
    assert count(estimator="exact") == pytest.approx(plain + 1152 * progress.DERIVATIVE * calls)
