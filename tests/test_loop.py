"""The loop: what it hands to methods, plug-ins, estimators and callers, and what it keeps."""

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

from leader import Grid, LeaderError, Problem, Sampler, operators, presets
from leader.methods import DDNM, SITCOM
from leader.plugins import SATP, UCPM, Plugin, Start, StepInfo
from leader.priors.ask import Ask, Predict
from leader.priors.base import Prediction, Prior
from leader.priors.gaussian import GaussianPrior, white
from leader.priors.ledger import Ledger
from leader.result import Result
from leader.schedule import Schedule
from tests.cheap_prior import CheapPrior
from tests.oracle.cases import gaussian, mixture

SHAPE = (1, 8, 12)


def make_problem(count: int = 1, sigma: float | Tensor = 0.1) -> Problem:
    operator = operators.AveragePoolSR(SHAPE, 2)
    x = mixture(SHAPE).sample(count, torch.Generator().manual_seed(1)).float()
    return Problem.internal(operator.A(x), operator, sigma)


@dataclass(frozen=True)
class Scaled(Plugin):
    """Multiplies what the network says, then adds to it what it is told, and notes whom it saw."""

    name: ClassVar[str] = "scaled"
    summary: ClassVar[str] = ""
    needs_sigma: ClassVar[bool] = True

    factor: float = 1.0
    shift: float = 0.0
    seen: list[Any] = field(default_factory=list)

    def wrap(self, predict: Predict, info: StepInfo) -> Predict:
        self.seen.append((tuple(info.ids), tuple(info.positions), tuple(info.visits), info.t.tolist()))

        def wrapped(x: Tensor, t: Tensor) -> Prediction:
            answer = predict(x, t)
            return Prediction(self.factor * answer.x0, answer.eps, answer.variance)

        return wrapped

    def modulate(self, x0: Tensor, sigma: Tensor, info: StepInfo, problem: Problem) -> Tensor:
        return 2 * x0 + self.shift

    def settle(self, x0: Tensor, x0_hat: Tensor, prior: Prior, problem: Problem) -> Tensor:
        return 3 * x0_hat + self.shift * x0


def test_plug_ins_compose_in_their_order() -> None:
    prior, problem = CheapPrior(), make_problem()
    plain = next(Sampler(prior, "ddim", (), 3, use_presets=False).iterate(problem))
    both = (Scaled(5.0, 1.0), Scaled(7.0, 0.25))
    step = next(Sampler(prior, "ddim", both, 3, use_presets=False).iterate(problem))
    x0 = 2 * (2 * (5 * 7 * plain.x0) + 1.0) + 0.25
    assert torch.allclose(step.x0, x0, rtol=1e-5)
    assert torch.allclose(step.x0_hat, 3 * (3 * x0 + 1.0 * x0) + 0.25 * x0, rtol=1e-5), "against the modulated estimate"


def test_plug_ins_see_ids_positions_visits_and_times() -> None:
    watcher = Scaled()
    Sampler(CheapPrior(), "ddim", (watcher,), grid=Grid((700, 300, 0, -1)), use_presets=False).run(make_problem(2), ids=[5, 9])
    assert watcher.seen == [((i,), (k,), (k,), [t]) for k, t in enumerate((700, 300, 0)) for i in (5, 9)]


def test_whichever_plug_in_jumps_farthest_is_followed() -> None:
    problem, pacer = make_problem(), SATP(budget=0.3, eta=3.0)
    runs = [
        Sampler(mixture(SHAPE), "ddnm", plugins, 40, use_presets=False).run(problem).trace[0]
        for plugins in ((UCPM(), pacer), (pacer, UCPM()))
    ]
    assert [visit.jump for visit in runs[0]] == [visit.jump for visit in runs[1]] and len(runs[0]) < 30


def test_sigma_is_estimated_where_the_network_was_asked() -> None:
    """SITCOM asks about another point than the state; ids and times are those of the step."""
    seen: list[tuple[Tensor, list[int], Sequence[int]]] = []

    def estimator(ask: Ask, x: Tensor, t: Tensor, prediction: Prediction, ids: Sequence[int]) -> Tensor:
        seen.append((x.clone(), t.tolist(), ids))
        assert torch.allclose(ask(x, t).x0.clamp(-1, 1), prediction.x0, atol=1e-6)
        return torch.full_like(x, 0.2)

    problem, method = make_problem(), SITCOM(inner=4, margin=0.0, rate=0.3)
    Sampler(mixture(SHAPE), method, (), grid=Grid((600, 200, -1)), estimator=estimator).run(problem, ids=[4])
    assert [(t, list(ids)) for _, t, ids in seen] == [([600], [4]), ([200], [4])]


def test_a_plan_says_where_sigma_and_draws_come_from() -> None:
    problem = make_problem()
    assert Sampler(mixture(SHAPE), "ddnm", (), 5).plan(problem).estimator == "auto"  # the prior's own, for the map
    assert Sampler(mixture(SHAPE), "ddnm", (), 5, estimator=None).plan(problem).estimator is None
    plan = Sampler(mixture(SHAPE), "ddnm", (Start(time=300),), 10, use_presets=False).plan(problem)
    assert plan.settings["grid"] == [300, 200, 100, 0, -1] and plan.settings["grid_labels"] == [[6, 7, 8, 9, 10]]
    assert "grid_clock" not in plan.settings
    probes = Sampler(mixture(SHAPE), "ddnm", (), 5, estimator="hutchinson", probes=3).plan(problem)
    assert (probes.settings["estimator"], probes.settings["probes"]) == ("hutchinson", 3)


def test_who_reads_sigma_gets_a_real_estimate_and_a_map_alone_a_cheap_one() -> None:
    class Headless(CheapPrior):
        source: Any = None

        def _predict(self, x: Tensor, t: Tensor) -> Prediction:
            return replace(super()._predict(x, t), variance=None)

    problem = make_problem()

    def estimator(plugins: Any, asked: str | None) -> Any:
        return Sampler(Headless(), "ddnm", plugins, 5, estimator=asked).plan(problem).estimator

    assert estimator((), "auto") == "noise-energy" and estimator((), None) is None
    assert estimator("ucpm", "auto") == "auto" and estimator("satp", None) == "auto"
    assert estimator("equs", None) is None and estimator("equs", "auto") == "noise-energy"
    result = Sampler(Headless(), "ddnm", "satp", 5, estimator=None).run(problem)
    assert result.ledger.total.jvps == result.ledger.total.calls > 0  # one probe of the network a visit


def test_one_value_that_is_no_number_spoils_the_answer() -> None:
    class Spoiling(CheapPrior):
        def _predict(self, x: Tensor, t: Tensor) -> Prediction:
            answer = super()._predict(x, t)
            x0 = answer.x0.clone()
            if int(t[0]) == 0:
                x0[0, 0, 1, 2] = torch.nan
            return Prediction(x0, answer.eps, answer.variance)

    with pytest.raises(LeaderError, match="diverged"):
        Sampler(Spoiling(), "ddim", (), 4, estimator=None).run(make_problem())


def test_a_result_says_its_calls_and_shows_eight_images() -> None:
    sampler = Sampler(CheapPrior(), "dps", (), 2, estimator="hutchinson", use_presets=False)
    result = sampler.run(make_problem(10))
    assert repr(result) == "Result(dps: images [10, 1, 8, 12], 20 calls, 20 JVPs, 20 backwards, seed 0)"
    assert Image.open(io.BytesIO(result._repr_png_())).size == (8 * 12, 8)
    grey = Result(torch.zeros(1, 1, 2, 2), None, None, {}, result.ledger, 0)
    assert Image.open(io.BytesIO(grey._repr_png_())).getpixel((0, 0)) == 128


def test_a_notebook_shows_colours_side_by_side_and_the_mean_of_what_is_no_colour() -> None:
    images = torch.tensor([[1.0, -1.0, 0.0], [-1.0, 1.0, -1.0]]).reshape(2, 3, 1, 1).expand(2, 3, 4, 5)
    shown = np.asarray(Image.open(io.BytesIO(Result(images, None, None, {}, Ledger(), 0)._repr_png_())))
    assert shown.shape == (4, 10, 3)
    assert (shown[:, :5] == [255, 0, 128]).all() and (shown[:, 5:] == [0, 255, 0]).all()
    five = torch.linspace(-1, 1, 5).reshape(1, 5, 1, 1).expand(1, 5, 4, 3)
    assert (np.asarray(Image.open(io.BytesIO(Result(five, None, None, {}, Ledger(), 0)._repr_png_()))) == 128).all()


TIMES = Grid((900, 500, 150, 90, 40, 0, -1))


def make_noisy_problem(count: int = 1, sigma: float = 0.1) -> Problem:
    operator = operators.AveragePoolSR(SHAPE, 2)
    x = mixture(SHAPE).sample(count, torch.Generator().manual_seed(1)).float()
    y = operator.A(x)
    return Problem.internal(y + sigma * torch.randn(y.shape, generator=torch.Generator().manual_seed(2)), operator, sigma)


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
        return next(iter(sampler.iterate(make_noisy_problem()))).x0

    wanted = first_estimate(Begins(0.5))
    assert torch.equal(first_estimate(Begins(), Begins(0.5), Begins(-0.5)), wanted)
    assert float((first_estimate(Begins(-0.5)) - wanted).abs().max()) > 0.1
    assert torch.equal(first_estimate(Begins()), first_estimate())


def _preset(monkeypatch: pytest.MonkeyPatch, *entries: dict[str, Any]) -> None:
    monkeypatch.setattr(presets, "entries", lambda: entries)


def test_a_preset_is_looked_up_at_the_noise_quoted_for_0_to_1(monkeypatch: pytest.MonkeyPatch) -> None:
    _preset(
        monkeypatch,
        {"method": "ddnm", "noise": 0.05, "settings": {"eta": 0.1}},
        {"method": "ddnm", "noise": 0.1, "settings": {"eta": 0.2}},
    )
    problem = Problem(torch.rand(2, *SHAPE), operators.Denoising(SHAPE), torch.tensor([0.01, 0.05]))  # of the loudest
    for use, eta in ((True, 0.1), (False, DDNM.eta)):
        plan = Sampler(mixture(SHAPE), "ddnm", (), steps=3, use_presets=use).plan(problem)
        assert plan.settings["method"]["eta"] == eta


def test_what_the_caller_gives_wins_over_a_preset(monkeypatch: pytest.MonkeyPatch) -> None:
    _preset(monkeypatch, {"method": "any", "settings": {"eta": 0.1, "satp": {"budget": 0.5, "eta": 3.0}}})
    sampler = Sampler(mixture(SHAPE), "ddnm", ("satp",), steps=3, eta=0.7, satp={"budget": 0.2})
    settings = sampler.plan(make_noisy_problem()).settings
    assert settings["method"]["eta"] == 0.7
    assert settings["plugins"][0]["budget"] == 0.2 and settings["plugins"][0]["eta"] == 3.0


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


@pytest.mark.parametrize("trust_time", [400, 100])
def test_trust_time_is_read_on_the_standard_clock_whatever_the_prior_s_own_times(trust_time: int) -> None:
    schedule = Schedule.cosine(200)
    sampler = Sampler(gaussian("four", SHAPE, schedule), "ddnm", (), steps=20, trust_time=trust_time)
    steps = list(sampler.iterate(make_noisy_problem()))
    clock = sampler.plan(make_noisy_problem()).grid.clock
    wanted = next(step for step in steps if clock[step.index] <= trust_time)
    own = next(step for step in steps if int(step.t[0]) <= trust_time)
    kept = sampler.run(make_noisy_problem()).posterior_std
    assert kept is not None and wanted.sigma is not None and wanted.index != own.index
    assert torch.allclose(kept**2, wanted.sigma, atol=1e-7)
