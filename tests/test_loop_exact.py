"""What the loop hands to plug-ins, estimators and its callers, one by one: points, ids, order, indices, plans."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

from leader import Grid, LeaderError, Problem, Sampler, operators, presets
from leader.methods import DPS, SITCOM
from leader.plugins import SATP, UCPM, Plugin, Start, StepInfo
from leader.priors.ask import Ask, Predict
from leader.priors.base import Prediction, Prior
from leader.priors.ledger import Ledger
from leader.result import Result
from tests.cheap_prior import CheapPrior
from tests.methods.contexts import context
from tests.oracle.cases import mixture

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
        return 3 * x0_hat + self.shift


def test_plug_ins_compose_in_their_order() -> None:
    prior, problem = CheapPrior(), make_problem()
    plain = next(Sampler(prior, "ddim", (), 3, use_presets=False).iterate(problem))
    both = (Scaled(5.0, 1.0), Scaled(7.0, 0.25))
    step = next(Sampler(prior, "ddim", both, 3, use_presets=False).iterate(problem))
    x0 = 2 * (2 * (5 * 7 * plain.x0) + 1.0) + 0.25
    assert torch.allclose(step.x0, x0, rtol=1e-5)
    assert torch.allclose(step.x0_hat, 3 * (3 * x0 + 1.0) + 0.25, rtol=1e-5)


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


@pytest.mark.parametrize("method", [DPS(scale=0.5), SITCOM(inner=3)])
def test_what_a_guided_method_returns_has_no_graph(method: DPS | SITCOM) -> None:
    prior, problem = mixture(SHAPE), make_problem()
    state = method.start(context(prior, problem), torch.tensor([400]))
    estimate = method.estimate(context(prior, problem), state, torch.tensor([400]))
    answer = estimate.prediction
    tensors = [estimate.x, answer.x0, answer.eps, answer.variance, estimate.guidance]
    assert not any(item.requires_grad for item in tensors if item is not None)


def test_steps_are_numbered_and_a_trace_is_each_images_own() -> None:
    uneven = mixture(SHAPE)
    uneven.one_by_one = False
    problem = make_problem(2)
    steps = list(Sampler(uneven, "ddnm", (), 5, use_presets=False).iterate(problem))
    assert [step.index for step in steps] == list(range(5))
    result = Sampler(uneven, "ddnm", (), 5, use_presets=False).run(problem)
    for row in range(2):
        for step, visit in zip(steps, result.trace[row]):
            assert step.sigma is not None
            assert (visit.t, visit.u, visit.jump) == (int(step.t[row]), int(step.u[row]), 1)
            assert pytest.approx(float(step.sigma[row].mean())) == visit.U
    assert [visit.U for visit in result.trace[0]] != [visit.U for visit in result.trace[1]]
    assert result.settings["ids"] == [0, 1]


def test_presets_are_those_of_the_loudest_image(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Any, ...]] = []

    def find(*which: Any) -> dict[str, Any]:
        asked.append(which)
        return {}

    monkeypatch.setattr(presets, "find", find)
    problem = make_problem(2, torch.tensor([0.1, 0.3]))
    Sampler(mixture(SHAPE), "ddnm", (), 5).plan(problem)
    assert asked == [("gaussian-mixture", "ddnm", "sr-average", pytest.approx(0.15))]
    Sampler(mixture(SHAPE), "ddnm", (), 5, use_presets=False).plan(problem)
    assert len(asked) == 1


def test_a_plan_refuses_what_the_method_cannot_serve() -> None:
    operator = operators.FromFunctions(SHAPE, torch.clone, torch.clone)
    problem = Problem.internal(torch.zeros(1, *SHAPE), operator, 0.1)
    for method in ("ddrm", "projdiff"):
        with pytest.raises(LeaderError, match="singular value decomposition"):
            Sampler(mixture(SHAPE), method, (), 5).plan(problem)


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


def test_plugins_settle_what_the_data_step_made_of_the_modulated_estimate() -> None:
    @dataclass(frozen=True)
    class Noting(Scaled):
        noted: list[Any] = field(default_factory=list)

        def settle(self, x0: Tensor, x0_hat: Tensor, prior: Prior, problem: Problem) -> Tensor:
            self.noted.append((x0.clone(), x0_hat.clone()))
            return x0_hat

    plugin, steps = Noting(shift=0.25), list[Any]()
    Sampler(CheapPrior(), "ddnm", (plugin,), 4).run(make_problem(), on_step=steps.append)
    assert len(plugin.noted) == len(steps) == 4
    for (x0, x0_hat), step in zip(plugin.noted, steps):
        assert torch.equal(x0, step.x0) and torch.equal(x0_hat, step.x0_hat)


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


def test_a_cut_grid_draws_by_its_labels() -> None:
    """What a late run draws at a time is what the whole run draws there; a grid of its own draws by time."""
    seen: list[tuple[int, str]] = []

    def noise(ids: Sequence[int], positions: Sequence[int], name: str, shape: Sequence[int]) -> Tensor:
        seen.append((positions[0], name))
        return torch.zeros(1, *shape)

    grid = Grid((300, 200, 0, -1), labels=(6, 7, 9, 10))
    Sampler(CheapPrior(), "ddnm", (), grid=grid, use_presets=False).run(make_problem(), noise=noise)
    assert [place for place, name in seen if name == "step"] == [6, 7, 9] and (6, "start") in seen


def test_a_notebook_shows_colours_side_by_side_and_the_mean_of_what_is_no_colour() -> None:
    images = torch.tensor([[1.0, -1.0, 0.0], [-1.0, 1.0, -1.0]]).reshape(2, 3, 1, 1).expand(2, 3, 4, 5)
    shown = np.asarray(Image.open(io.BytesIO(Result(images, None, None, {}, Ledger(), 0)._repr_png_())))
    assert shown.shape == (4, 10, 3)
    assert (shown[:, :5] == [255, 0, 128]).all() and (shown[:, 5:] == [0, 255, 0]).all()
    five = torch.linspace(-1, 1, 5).reshape(1, 5, 1, 1).expand(1, 5, 4, 3)
    assert (np.asarray(Image.open(io.BytesIO(Result(five, None, None, {}, Ledger(), 0)._repr_png_()))) == 128).all()
