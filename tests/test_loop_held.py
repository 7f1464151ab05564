"""The loop and its presets, by what they hand on: seeds, spreads, clamps, starts, settings, visits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor

from leader import Grid, LeaderError, Problem, Sampler, operators, presets
from leader.methods import DDNM, METHODS
from leader.noise import SeededNoise
from leader.plugins import Plugin, StepInfo
from leader.priors.ask import Predict
from leader.priors.base import Prediction, Prior
from leader.priors.gaussian import GaussianPrior, white
from leader.priors.ledger import Counts, Ledger
from leader.result import Result
from leader.schedule import Schedule
from tests.oracle.cases import gaussian, mixture

SHAPE = (1, 8, 12)
TIMES = Grid((900, 500, 150, 90, 40, 0, -1))


def make_problem(count: int = 1, sigma: float = 0.1) -> Problem:
    operator = operators.AveragePoolSR(SHAPE, 2)
    x = mixture(SHAPE).sample(count, torch.Generator().manual_seed(1)).float()
    y = operator.A(x)
    return Problem.internal(y + sigma * torch.randn(y.shape, generator=torch.Generator().manual_seed(2)), operator, sigma)


def test_another_seed_is_another_picture() -> None:
    sampler = Sampler(mixture(SHAPE), "ddnm", (), steps=5)
    first, again, other = (sampler.run(make_problem(), seed).images for seed in (3, 3, 4))
    assert torch.equal(first, again) and float((first - other).abs().max()) > 1e-3


@pytest.mark.parametrize("trust_time", [100, 45, 40, 0])
def test_posterior_std_is_the_root_of_sigma_at_the_first_time_not_above_trust_time(trust_time: int) -> None:
    sampler = Sampler(mixture(SHAPE), "ddnm", (), grid=TIMES, trust_time=trust_time)
    steps = list(sampler.iterate(make_problem(2)))
    wanted = next(step for step in steps if int(step.t[0]) <= trust_time)
    assert wanted.sigma is not None
    kept = sampler.run(make_problem(2)).posterior_std
    assert kept is not None
    assert torch.allclose(kept**2, wanted.sigma, atol=1e-7)
    assert float(wanted.sigma.max()) < 0.9, "a variance of 1 is its own root"


def test_a_run_that_never_comes_below_trust_time_keeps_its_last_spread() -> None:
    sampler = Sampler(mixture(SHAPE), "ddnm", (), grid=Grid((900, 500, 150, -1)), trust_time=100)
    (last,) = [step for step in sampler.iterate(make_problem()) if int(step.t[0]) == 150]
    kept = sampler.run(make_problem()).posterior_std
    assert kept is not None and last.sigma is not None and torch.allclose(kept**2, last.sigma, atol=1e-7)


def test_sigma_is_held_between_zero_and_one() -> None:
    """A prior of standard deviation 3 is wider than any picture, and one may claim a negative variance."""

    class Odd(GaussianPrior):
        def _predict(self, x: Tensor, t: Tensor) -> Prediction:
            answer = super()._predict(x, t)
            assert answer.variance is not None
            variance = answer.variance.clone()
            variance[..., 0] = -0.5
            return Prediction(answer.x0, answer.eps, variance)

    problem = Problem.internal(torch.zeros(1, *SHAPE), operators.Denoising(SHAPE), 0.5)
    first = next(iter(Sampler(Odd(white(SHAPE, 3.0)), "ddnm", (), steps=4).iterate(problem)))
    assert first.sigma is not None
    assert float(first.sigma.max()) == 1 and float(first.sigma.min()) == 0


def test_every_image_gets_its_own_given_start() -> None:
    problem, starts = make_problem(3, 0.0), torch.randn(3, *SHAPE, generator=torch.Generator().manual_seed(5))

    def silent(ids: Sequence[int], positions: Sequence[int], name: str, shape: Sequence[int]) -> Tensor:
        return torch.zeros(len(ids), *shape)

    sampler = Sampler(mixture(SHAPE), "ddim", (), steps=3)
    together = sampler.run(problem, x_T=starts, noise=silent).images
    for i in range(3):
        alone = sampler.run(problem.select(torch.tensor([i])), x_T=starts[i : i + 1], noise=silent).images
        assert torch.equal(together[i], alone[0])
    assert float((together[0] - together[1]).abs().max()) > 1e-3


def test_images_and_spreads_stand_in_the_order_of_the_problem_whatever_their_ids() -> None:
    problem, sampler = make_problem(3), Sampler(mixture(SHAPE), "ddnm", (), grid=TIMES, estimator="noise-energy")
    together = sampler.run(problem, ids=(9, 2, 5))
    assert together.posterior_std is not None and list(together.trace) == [9, 2, 5]
    assert len({tuple(one.flatten().tolist()) for one in together.posterior_std}) == 3, "each has a spread of its own"
    for row, name in enumerate((9, 2, 5)):
        alone = sampler.run(problem.select(torch.tensor([row])), ids=(name,))
        assert alone.posterior_std is not None
        assert torch.equal(together.images[row], alone.images[0])
        assert torch.equal(together.posterior_std[row], alone.posterior_std[0])


@dataclass(frozen=True)
class Begins(Plugin):
    """Begins a run from one grey, or knows of nothing to begin from."""

    name: ClassVar[str] = "begins"
    summary: ClassVar[str] = "for tests"
    begins: ClassVar[bool] = True
    grey: float | None = None

    def origin(self, prior: Prior, problem: Problem, noise: Callable[[str], Tensor]) -> Tensor | None:
        return None if self.grey is None else torch.full((problem.batch, *problem.image_shape), self.grey)


def test_the_first_plug_in_that_knows_an_origin_decides_where_a_run_begins() -> None:
    def first_estimate(*plugins: Plugin) -> Tensor:
        sampler = Sampler(mixture(SHAPE), "ddim", plugins, grid=Grid((150, 40, -1)), use_presets=False)
        return next(iter(sampler.iterate(make_problem()))).x0

    wanted = first_estimate(Begins(0.5))
    assert torch.equal(first_estimate(Begins(), Begins(0.5), Begins(-0.5)), wanted)
    assert float((first_estimate(Begins(-0.5)) - wanted).abs().max()) > 0.1
    assert torch.equal(first_estimate(Begins()), first_estimate())


@dataclass(frozen=True)
class Watching(Plugin):
    """Jumps two steps at a time and writes down how often each image has been seen."""

    name: ClassVar[str] = "watching"
    summary: ClassVar[str] = "for tests"
    needs_sigma: ClassVar[bool] = True
    seen: list[tuple[int, int]] = field(default_factory=list)

    def wrap(self, predict: Predict, info: StepInfo) -> Predict:
        self.seen.extend(zip(info.positions, info.visits))
        return predict

    def pace(self, grid: Grid, position: int, uncertainty: float) -> int:
        return min(position + 2, max(grid.run_ends[position], position + 1))


def test_visits_count_evaluations_not_grid_positions() -> None:
    watching = Watching()
    Sampler(mixture(SHAPE), "ddnm", (watching,), steps=7).run(make_problem())
    assert watching.seen == [(0, 0), (2, 1), (4, 2), (6, 3)]


def test_images_that_stay_keep_their_own_data() -> None:
    """The first image leaves early; the second must go on with its own y."""

    @dataclass(frozen=True)
    class FirstIsFast(Plugin):
        name: ClassVar[str] = "fast"
        summary: ClassVar[str] = "for tests"
        needs_sigma: ClassVar[bool] = True
        limit: float = 0.0

        def pace(self, grid: Grid, position: int, uncertainty: float) -> int:
            return grid.run_ends[position] if uncertainty > self.limit and position == 0 else position + 1

    problem = make_problem(2)
    prior = mixture(SHAPE)
    first = next(iter(Sampler(prior, "ddnm", (), steps=8).iterate(problem)))
    assert first.U is not None
    order = [0, 1] if float(first.U[0]) > float(first.U[1]) else [1, 0]
    problem = problem.select(torch.tensor(order))
    sampler = Sampler(prior, "ddnm", (FirstIsFast(limit=float(first.U.mean())),), steps=8)
    result = sampler.run(problem, ids=order)
    lengths = [len(result.trace[name]) for name in order]
    assert lengths[0] < lengths[1], "the images must leave at different times"
    for row, name in enumerate(order):
        alone = sampler.run(problem.select(torch.tensor([row])), ids=[name]).images
        assert torch.equal(result.images[row], alone[0])


def _preset(monkeypatch: pytest.MonkeyPatch, *entries: dict[str, Any]) -> None:
    monkeypatch.setattr(presets, "entries", lambda: entries)


def test_a_preset_is_looked_up_at_the_noise_quoted_for_0_to_1(monkeypatch: pytest.MonkeyPatch) -> None:
    _preset(
        monkeypatch,
        {"method": "ddnm", "noise": 0.05, "settings": {"eta": 0.1}},
        {"method": "ddnm", "noise": 0.1, "settings": {"eta": 0.2}},
    )
    problem = Problem(torch.rand(1, *SHAPE), operators.Denoising(SHAPE), 0.05)
    plan = Sampler(mixture(SHAPE), "ddnm", (), steps=3).plan(problem)
    assert plan.settings["method"]["eta"] == 0.1


def test_what_the_caller_gives_wins_over_a_preset(monkeypatch: pytest.MonkeyPatch) -> None:
    _preset(monkeypatch, {"method": "any", "settings": {"eta": 0.1, "satp": {"budget": 0.5, "eta": 3.0}}})
    sampler = Sampler(mixture(SHAPE), "ddnm", ("satp",), steps=3, eta=0.7, satp={"budget": 0.2})
    settings = sampler.plan(make_problem()).settings
    assert settings["method"]["eta"] == 0.7
    assert settings["plugins"][0]["budget"] == 0.2 and settings["plugins"][0]["eta"] == 3.0


def test_the_most_specific_and_nearest_preset_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    _preset(
        monkeypatch,
        {"prior": "celebahq", "method": "ddnm", "settings": {"eta": 0.4}},
        {"prior": "celebahq-256", "method": "ddnm", "noise": "noisy", "settings": {"eta": 0.5}},
        {"method": "any", "settings": {"eta": 0.1, "form": "simple"}},
        {"method": "ddnm", "noise": "none", "settings": {"eta": 0.2}},
        {"method": "ddnm", "task": "sr", "noise": 0.05, "settings": {"eta": 0.3}},
        {"method": "ddnm", "task": "sr", "noise": 0.2, "settings": {"eta": 0.9}},
    )
    assert presets.find("other", "ddnm", "cs", 0.0) == {"eta": 0.2, "form": "simple"}
    assert presets.find("other", "ddnm", "cs", 0.1) == {"eta": 0.1, "form": "simple"}
    assert presets.find("other", "ddnm", "sr", 0.06)["eta"] == 0.3
    assert presets.find("other", "ddnm", "sr", 0.19)["eta"] == 0.9
    assert presets.find("celebahq-256", "ddnm", "cs", 0.0)["eta"] == 0.4, "a prior finds the presets of its data set"
    assert presets.find("celebahq-256", "ddnm", "cs", 0.1)["eta"] == 0.5


def test_a_problem_of_a_dark_operator_is_converted_by_what_white_becomes() -> None:
    """A(1) = 0.5: y' = 2 y - A(1), not 2 y - 1; the noise doubles."""

    def half(x: Tensor) -> Tensor:
        return 0.5 * x

    operator = operators.FromFunctions(SHAPE, half, half)
    picture = torch.rand(1, *SHAPE, generator=torch.Generator().manual_seed(0))
    problem = Problem(operator.A(picture), operator, 0.05)
    assert torch.allclose(problem.y, operator.A(2 * picture - 1), atol=1e-6)
    assert float(problem.sigma[0]) == pytest.approx(0.1)
    assert float(problem.residual(torch.ones(1, *SHAPE)).mean()) > 0, "A x - y, not y - A x"


def test_a_mixed_batch_uses_each_images_kernel() -> None:
    kernels = torch.stack([operators.gaussian_kernel(s, 5) for s in (0.5, 2.0)])[:, None]
    operator = operators.Blur(SHAPE, kernels)
    x = torch.rand(2, *SHAPE, generator=torch.Generator().manual_seed(3)) * 2 - 1
    problem = Problem.internal(operator.A(x), operator, 0.0)
    chosen = problem.select(torch.tensor([1]))
    assert torch.allclose(chosen.operator.A(x[1:]), problem.y[1:], atol=1e-6)
    images = Sampler(gaussian("white", SHAPE), "ddnm", (), steps=3).run(problem).images
    assert float((operator.truncated().A(images) - operator.truncated().A(x)).abs().max()) < 1e-3


def test_a_repeated_time_is_asked_again() -> None:
    """A grid may stay where it is, as EquS+ does; only moves upward are travel, which costs no call."""
    problem, prior = make_problem(), mixture(SHAPE)
    result = Sampler(prior, "ddnm", (), grid=Grid((900, 500, 500, 100, 0, -1)), use_presets=False).run(problem)
    assert [visit.t for visit in result.trace[0]] == [900, 500, 500, 100, 0] and result.ledger.total.calls == 5


NO_DRAWS: tuple[str, ...] = ("start",)
EVERY_STEP: tuple[str, ...] = ("start", "step")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("sigma", [0.0, 0.1])
def test_draws_for_different_ends_have_different_names(method: str, sigma: float) -> None:
    """One draw is used for one end: a step and what it observes, say, never share theirs."""
    asked: dict[str, set[int]] = {}

    def noise(ids: Sequence[int], positions: Sequence[int], name: str, shape: Sequence[int]) -> Tensor:
        asked.setdefault(name, set()).update(positions)
        return SeededNoise(0)(ids, positions, name, shape)

    given: dict[str, dict[str, Any]] = {
        "sitcom": {"inner": 2},
        "projdiff": {"form": "simple"},
        "daps": {"inner": 2, "end": 0.0},
    }
    settings = given.get(method, {})
    Sampler(mixture(SHAPE), method, (), 4, use_presets=False, **settings).run(make_problem(sigma=sigma), noise=noise)
    expected = NO_DRAWS if method in ("ddim", "idpg") else EVERY_STEP
    if method == "projdiff" and sigma > 0:
        expected = (*EVERY_STEP, "extra", "observation")
    if method in ("mcg", "repaint"):
        expected = (*EVERY_STEP, "observation")
    if method == "daps":
        expected = (*EVERY_STEP, "inner-0", "inner-1")
    assert set(asked) == set(expected)
    for name, positions in asked.items():  # DAPS takes its last answer without the inner loop
        assert positions == ({0} if name in ("start", "extra") else {0, 1, 2} if name.startswith("inner") else {0, 1, 2, 3})


def test_every_step_is_shown_the_first_included() -> None:
    seen: list[int] = []
    Sampler(mixture(SHAPE), "ddnm", (), steps=3).run(make_problem(), on_step=lambda step: seen.append(step.index))
    assert seen == [0, 1, 2]


def test_a_single_derivative_is_told() -> None:
    ledger = Ledger({0: Counts(calls=3, jvps=1, backwards=1)})
    text = repr(Result(torch.zeros(1, *SHAPE), None, None, {}, ledger, 4))
    assert "3 calls, 1 JVPs, 1 backwards, seed 4" in text


def test_a_plan_tells_the_times_of_every_image_and_the_steps_that_were_asked_for() -> None:
    y = torch.zeros(2, *SHAPE)
    problem = Problem.internal(y, operators.Denoising(SHAPE), torch.tensor([0.05, 0.4]))
    settings = Sampler(mixture(SHAPE), "ddnm", "direct", steps=20, use_presets=False).plan(problem).settings
    plan = Sampler(mixture(SHAPE), "ddnm", "direct", steps=20, use_presets=False).plan(problem)
    assert settings["grid"] == [list(grid.times) for grid in plan.grids] and plan.grids[0] != plan.grids[1]
    assert settings["grid_labels"] == [list(grid.labels) for grid in plan.grids] and settings["steps"] == 20
    same = Sampler(mixture(SHAPE), DDNM(eta=np.float64(0.5)), (), steps=4).plan(problem).settings
    assert same["grid"] == [750, 500, 250, 0, -1] and type(same["method"]["eta"]) is float


def test_as_many_steps_as_the_schedule_has() -> None:
    long = GaussianPrior(white(SHAPE, 0.5), Schedule.linear(steps=1500))
    assert Sampler(long, "ddnm", (), 1500).steps == 1500
    with pytest.raises(LeaderError, match="from 1 to 1500"):
        Sampler(long, "ddnm", (), 1501)
