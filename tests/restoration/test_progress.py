"""How long a restoration will take and how far it is, by a clock that ticks with the work."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from leader.restoration import progress
from leader.restoration import restore as restoring
from leader.restoration.pose import pose_picture
from leader.restoration.progress import RunProgress, count_work, forecast_run
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
    costs = [cost + 0.15 * pixels for _, cost in made.work()]  # not quite the ratio the bar starts from
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


def test_the_forecast_is_work_times_pace() -> None:
    """A call on all of the small picture takes two seconds, three of which a run of as many averaged ones needs."""
    calls = 10 * (1 + progress.OVERHEAD) + progress.AROUND
    assert count_work(ready()) == pytest.approx(calls * 16 * 24) and count_work(ready(average=3)) == 3 * count_work(ready())
    found = forecast_run(ready(), clock=tick(2.0))
    assert found.seconds == pytest.approx(2.0 * calls) and found.call == pytest.approx(2.0) and not found.most
    assert forecast_run(ready(average=3), clock=tick(2.0)).seconds == pytest.approx(6.0 * calls)


def test_what_passed_lately_for_a_second_of_the_processor_counts_as_much_as_the_calls() -> None:
    """Two calls in 1.8 seconds, each 0.3 of the processor: where three pass for one, the pace is between 0.9 and 0.9."""
    calls = 10 * (1 + progress.OVERHEAD) + progress.AROUND
    for busy, pace in ((3.0, 0.9), (12.0, 1.8), (None, 0.9)):
        assert forecast_run(ready(), busy, tick(0.9), tick(0.3)).seconds == pytest.approx(pace * calls)


def test_the_first_call_which_takes_longer_does_not_count_for_the_processor() -> None:
    calls = 100 * (1 + progress.OVERHEAD) + progress.AROUND
    times = iter([0.0, 8.0, 8.0, 10.0, *[value for k in range(9) for value in (10.0 + 2 * k, 12.0 + 2 * k)]])
    assert forecast_run(ready(steps=100), 4.5, tick(1.0), lambda: next(times)).seconds == pytest.approx(3.0 * calls)


def test_the_pace_is_measured_for_a_share_of_the_run_and_two_seconds_at_most() -> None:
    class Noted(CheapPrior):
        calls = 0

        def _predict(self, x: torch.Tensor, t: torch.Tensor) -> Any:
            self.calls += 1
            return super()._predict(x, t)

    def count(steps: int, seconds: float) -> int:
        prior = Noted()
        made = ready(prior, steps)
        prior.calls = 0
        forecast_run(made, clock=tick(seconds))
        return prior.calls

    assert count(10, 1.0) == 1, "a fiftieth of 12 calls"
    assert count(400, 0.01) == 9, "a fiftieth of 449 calls"
    assert count(400, 1.0) == 2, "two seconds"
    assert count(1, 0.012) == 4, "four hundredths of a second"


def test_a_run_that_may_leave_out_steps_is_told_at_most() -> None:
    assert forecast_run(ready(plugins=("satp",)), clock=tick(1.0)).most
    assert not forecast_run(ready(plugins=("ucdc",)), clock=tick(1.0)).most


def test_a_picture_is_posed_with_the_threads_of_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    pose, used, before = pose_picture, list[int](), torch.get_num_threads()

    def note(*given: Any) -> Any:
        used.append(torch.get_num_threads())
        return pose(*given)

    monkeypatch.setattr(restoring, "pose_picture", note)
    prepare(photograph(16, 24), "denoise", sigma=0.1, prior=CheapPrior(), plugins=(), threads=before + 1)
    assert used == [before + 1] and torch.get_num_threads() == before


def test_the_pace_is_measured_with_the_threads_of_the_run_at_the_size_of_the_network() -> None:
    used: list[tuple[int, tuple[int, ...]]] = []

    class Noted(CheapPrior):
        def _predict(self, x: torch.Tensor, t: torch.Tensor) -> Any:
            used.append((torch.get_num_threads(), tuple(x.shape)))
            return super()._predict(x, t)

    before = torch.get_num_threads()
    made = ready(Noted(), threads=before + 1)
    forecast_run(made, clock=tick(9.0))
    made.sampler.prior.size = (8, 40)
    forecast_run(made, clock=tick(9.0))
    wide = prepare(photograph(16, 300), "denoise", sigma=0.1, prior=made.sampler.prior, plugins=(), threads=before + 1)
    wide.sampler.prior.size = None
    assert forecast_run(wide, clock=tick(9.0)).call == pytest.approx(9.0 * 300 / 96), "of the whole picture"
    assert used == [(before + 1, (1, 3, *side)) for side in ((16, 24), (8, 40), (16, 96))]
    assert torch.get_num_threads() == before


def test_a_measured_call_tells_what_the_cheap_first_steps_do_not() -> None:
    class Uneven(CheapPrior):
        def work(self, t: int, height: int, width: int) -> float:
            return height * width * (1.0 if t < 500 else 0.01)

    made = ready(Uneven())
    now = [0.0]
    first = next(made.sampler.iterate(made.problem))
    told = []
    for call in (None, 4.0):
        left = RunProgress(made, clock=lambda: now[0], call=call)
        now[0] += 4.0 * (0.01 + progress.OVERHEAD)
        left.add(first)
        assert left.seconds_left is not None
        told.append(left.seconds_left)
    truth = 4.0 * (5 + 4 * 0.01 + 9 * progress.OVERHEAD)
    assert told[1] == pytest.approx(truth, rel=0.05)
    slower = RunProgress(made, clock=lambda: now[0], call=8.0)
    now[0] += 4.0 * (0.01 + progress.OVERHEAD)
    slower.add(first)
    assert slower.seconds_left is not None and slower.seconds_left > 1.5 * told[1]
    averaged = RunProgress(ready(average=3), call=2.0).seconds_left
    assert averaged == pytest.approx(10 * 3 * (1 + progress.OVERHEAD) * 2.0)


def test_derivatives_and_solves_are_part_of_the_work() -> None:
    """For the uncertainty, `exact` takes one at every step for each of 24 x 16 x 3 values, and probes one each."""

    def calls(method: str = "ddnm", plugins: Any = (), **settings: Any) -> float:
        return count_work(ready(steps=4, method=method, plugins=plugins, settings=settings)) / (16 * 24)

    plain, derivatives = 4 + 4 * progress.OVERHEAD + progress.AROUND, 4 * progress.DERIVATIVE
    assert calls(estimator="noise-energy") == calls() == pytest.approx(plain)
    assert calls("dps") == pytest.approx(plain + derivatives) and calls("projdiff") == pytest.approx(plain + 1)
    assert calls(estimator="hutchinson", probes=5) == pytest.approx(plain + 5 * derivatives)
    assert calls(estimator="exact") == pytest.approx(plain + 1152 * derivatives)
    assert calls("ddnm", ("ucdc",), ucdc={"iterations": 9}) == pytest.approx(plain + 4 * 9 * progress.SOLVE)
    assert calls("ddnm", ("ucdc",), ucdc={"iterations": 9, "covariance": "diagonal"}) == pytest.approx(plain)
