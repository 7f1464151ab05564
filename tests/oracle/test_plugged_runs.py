"""Whole runs of every method, alone and with UCPM, SATP, UCDC and EquS, against dense recursions in NumPy, step by step.

Two images at once, each with its own noise level, mask, uncertainty and jumps; the data quoted for [0, 1] images on operators
that do not map white to white; draws from a generator of NumPy. In float64 the package and the equations agree to rounding.
"""

from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

from leader import Grid, Result, Sampler, Step
from leader.methods import METHODS
from leader.plugins import EquS
from tests.oracle import plugged, plugged_hosts
from tests.oracle.plugged import SATP, UCDC, UCPM
from tests.oracle.scenes import IDS, ForeignNoise, Scene, scene

NOISY = (0.05, 0.03)
JUMPY = SATP(budget=0.05, eta=4.0)
PAPER = UCPM(lam=0.3, solve="hessian", project="always")
WRITTEN = SATP(budget=0.05, eta=4.0, rule="written")
UNEVEN = Grid((990, 900, 870, 700, 690, 680, 610, 500, 420, 333, 290, 240, 200, 150, 90, 85, 80, 40, 20, 11, 5, 0, -1))


@dataclass(frozen=True)
class Case:
    """A run: the data, the host, its settings in its own symbols and where they differ as the package's, and the plug-ins."""

    method: str
    data: tuple[Any, ...]
    symbols: dict[str, Any]
    ucpm: UCPM | None = None
    satp: SATP | None = None
    ucdc: UCDC | None = None
    steps: int = 20
    grid: Grid | None = None
    turned: Any = None
    trust_time: int = 100
    extra: dict[str, Any] = field(default_factory=dict)
    tolerance: float = 1e-9

    @property
    def host(self) -> type[plugged.Host]:
        simple = "simple" if self.extra.get("form") == "simple" else ""
        return HOSTS[SHARED.get(self.method, self.method) + simple]


HOSTS = {name.lower(): kind for name, kind in vars(plugged_hosts).items() if isinstance(kind, type)}
SHARED = {"idpg": "ddpg", "pirp": "ddpg", "repaint": "ancestral", "red-diff": "reddiff"}
CLEAN, NOISE = (0.0, 0.0), NOISY
DIFFPIR = {"lam": 5.0, "zeta": 0.4, "eta": 0.3}
ADAM = {"inner": 6, "rate": 0.05, "lam": 0.1, "margin": 0.003}
PIRP = {"gamma": 6.0, "zeta": 0.6, "eta_tilde": 0.7, "lam": 0.15, "width": 0.2}
DDPG = {"gamma": 6.0, "zeta": 0.6, "eta_tilde": 0.9}
STARTS = [Grid((first, first // 2, 10, 0, -1), labels=(6, 7, 9, 20, 21)) for first in (200, 60, 20)]
"""Where y matters, since a long walk forgets how it began; draws by the labels of a longer grid."""
ANCESTRAL = {"damping": 2.5, "clamp": False}
CHAIN = {"flow": 3, "inner": 4, "rate": 3e-3, "fall": 0.1, "tau": 0.02, "end": 1.5}
DESCENT = {"flow": 2, "inner": 6, "rate": 0.8, "lam": 2.0}
RED = {"lam": 0.4, "rate": 0.05, "power": 0.5}
METRIC = UCDC(trust=0.3, power=0.7)

CASES: dict[str, Case] = {
    "ddnm": Case("ddnm", ("cs", CLEAN), {"eta": 0.85}, UCPM(lam=0.3), JUMPY),
    "ddnm-tikhonov": Case("ddnm", ("holes", CLEAN), {"eta": 0.6}, UCPM("tikhonov", lam=0.7, sharpen=0.5)),
    "ddnm-mean": Case("ddnm", ("sr", CLEAN), {"eta": 0.85}, UCPM(lam=0.3, map="mean", sharpen=2.0), trust_time=300),
    "ddnm-cg": Case("ddnm", ("cs", CLEAN), {"eta": 0.85}, UCPM(lam=0.3, solve="cg"), JUMPY, steps=12, tolerance=2e-5),
    "ddnm-uneven": Case("ddnm", ("holes", CLEAN, True), {"eta": 0.85}, UCPM(lam=0.3), JUMPY, grid=UNEVEN),
    "ddnm-fine": Case("ddnm", ("cs", CLEAN), {"eta": 0.85}, None, SATP(0.03, 8.0, 2.0), steps=250),
    "ddnm-travel": Case(
        "ddnm",
        ("cs", CLEAN, True),
        {"eta": 0.85},
        UCPM(lam=0.3),
        SATP(budget=0.05, eta=3.0),
        steps=20,
        extra={"travel_length": 4, "travel_repeats": 2},
    ),
    "ddnm-equs": Case("ddnm", ("cs", CLEAN, True), {"eta": 0.7}, UCPM(lam=0.2), JUMPY, turned="aligned"),
    "ddnm-equs-raw": Case("ddnm", ("cs", CLEAN), {"eta": 0.7}, UCPM(lam=0.2), JUMPY, steps=21, turned="raw"),
    "ddnm+": Case("ddnm", ("blur", NOISE, True), {"eta": 0.85}, UCPM(lam=0.3, sharpen=1.5), JUMPY),
    "ddnm+cs": Case("ddnm", ("cs", NOISE), {"eta": 0.5}, UCPM("tikhonov", lam=0.4), SATP(0.04, 3.0, 1.5)),
    "ddnm+cg": Case(
        "ddnm", ("blur", NOISE), {"eta": 0.85}, UCPM("tikhonov", lam=0.4, solve="cg", map="mean"), steps=12, tolerance=2e-5
    ),
    "ddnm+uneven": Case("ddnm", ("holes", NOISE), {"eta": 0.85}, UCPM(lam=0.2), JUMPY, grid=UNEVEN, trust_time=85),
    "ddrm": Case("ddrm", ("blur", NOISE), {"eta": 0.7}, UCPM(lam=0.3), JUMPY),
    "diffpir": Case("diffpir", ("holes", NOISE, True), DIFFPIR, UCPM(lam=0.3, sharpen=0.8), JUMPY),
    "diffpir-clean": Case("diffpir", ("cs", CLEAN), DIFFPIR, UCPM(lam=0.3), SATP(0.02, 5.0)),
    "diffpir-cg": Case("diffpir", ("blur", NOISE), DIFFPIR, UCPM(lam=0.2, solve="cg"), JUMPY, steps=12, tolerance=2e-5),
    "sitcom": Case("sitcom", ("blur", NOISE, True), ADAM, UCPM(lam=0.3), JUMPY, steps=10),
    "sitcom-clean": Case("sitcom", ("cs", CLEAN), {**ADAM, "lam": 0.0}, UCPM(lam=0.3), JUMPY, steps=10),
    "sitcom-stops": Case(
        "sitcom", ("holes", (0.1, 0.05)), {**ADAM, "inner": 25, "rate": 0.1}, UCPM("tikhonov", lam=0.5), steps=5
    ),
    "sitcom-equs": Case("sitcom", ("blur", NOISE), ADAM, UCPM(lam=0.3), steps=6, turned="aligned"),
    "dps": Case("dps", ("cs", NOISE), {"scale": 0.4}, UCPM(lam=0.3), JUMPY),
    "projdiff": Case("projdiff", ("blur", NOISE, True), {"step": 0.7}, UCPM(lam=0.3), JUMPY),
    "projdiff-clean": Case("projdiff", ("cs", CLEAN), {"step": 1.2}, UCPM(lam=0.3), JUMPY),
    "pirp": Case("pirp", ("blur", NOISE), PIRP, UCPM(lam=0.2), JUMPY),
    "pirp-taken-over": Case(
        "pirp", ("cs", CLEAN), {**PIRP, "lam": 0.0}, UCPM("pirp", lam=0.3, width=0.15), JUMPY, extra={"lam": 0.9}
    ),
    "pirp-smoothed": Case(
        "pirp", ("blur", NOISE), {**PIRP, "lam": 0.0}, UCPM("pirp", lam=-0.4, width=0.15), extra={"lam": 0.9}
    ),
    "ddpg": Case("ddpg", ("cs", NOISE), {**PIRP, "lam": 0.0}, UCPM(lam=0.2), JUMPY),
    "paper-ddnm+": Case("ddnm", ("cs", NOISE, True), {"eta": 0.85}, PAPER, WRITTEN, tolerance=2e-5),
    "paper-uneven": Case("ddnm", ("holes", NOISE), {"eta": 0.85}, PAPER, WRITTEN, grid=UNEVEN, tolerance=2e-5),
    "paper-fine": Case("ddnm", ("cs", CLEAN), {"eta": 0.85}, None, SATP(0.03, 8.0, 2.0, "written"), steps=250),
    "paper-diffpir": Case("diffpir", ("holes", NOISE, True), DIFFPIR, PAPER, WRITTEN, tolerance=2e-5),
    "paper-projdiff": Case("projdiff", ("cs", NOISE, True), {"step": 0.7}, PAPER, WRITTEN, tolerance=2e-5),
    "ddim": Case("ddim", ("cs", CLEAN), {}, UCPM(lam=0.1), SATP(0.02, 4.0), trust_time=0),
    "ddim-drawn": Case("ddim", ("circular", NOISE), {"eta": 0.6}),
    "ddnm-circular": Case("ddnm", ("circular", CLEAN), {"eta": 0.85}),
    "ddnm+circular": Case("ddnm", ("circular", NOISE), {"eta": 0.85}),
    "ddnm-simple": Case("ddnm", ("circular", NOISE), {"eta": 0.85}, extra={"form": "simple"}),
    "ddrm-clean": Case("ddrm", ("sr", CLEAN), {"eta": 0.7, "eta_b": 0.9}),
    "ddrm-shares": Case("ddrm", ("circular", NOISE), {"eta": 0.85, "eta_b": 0.8}),
    "ddrm-travel": Case(
        "ddrm", ("cs", NOISE), {"eta": 0.7}, satp=SATP(0.05, 3.0), extra={"travel_length": 4, "travel_repeats": 2}
    ),
    "ddpg-clean": Case("ddpg", ("circular", CLEAN), {**DDPG, "zeta": 0.7}),
    "ddpg-still": Case("ddpg", ("blur", NOISE), {**DDPG, "inject": False}),
    "ddpg-steps": Case(
        "ddpg", ("sr", NOISE), {**DDPG, "decreasing": "least", "least": 0.6}, extra={"mode": 2, "ls_scale": 0.6}
    ),
    "idpg": Case("idpg", ("circular", NOISE), {**DDPG, "decreasing": False, "inject": False}),
    "idpg-clean": Case("idpg", ("sr", CLEAN), {**DDPG, "inject": False}),
    "idpg-otherwise": Case("idpg", ("sr", NOISE), {**DDPG, "inject": True}, extra={"mode": 1}),
    "pirp-gradient": Case("pirp", ("sr", CLEAN), {**PIRP, "argument": "gradient", "eta_floor": 0.02}),
    "sitcom-known": Case("sitcom", ("holes", NOISE), {**ADAM, "overwrite": True, "clamp": False}, steps=5),
    "pirp-back": Case("pirp", ("blur", NOISE), {**PIRP, "blend": False}, extra={"variant": "b"}),
    "diffpir-units": Case(
        "diffpir", ("circular", NOISE), {**DIFFPIR, "clamp": False, "published_units": False, "return_noisy": True}
    ),
    "projdiff-relaxed": Case("projdiff", ("circular", NOISE), {"step": 0.7, "early_step": 1.4}),
    "projdiff-simple": Case("projdiff", ("holes", NOISE), {"step": 0.7, "early_step": 1.4}, extra={"form": "simple"}),
    "dps-annealed": Case("dps", ("sr", NOISE), {"scale": 0.7, "guidance": "annealed", "clamp": False}),
    "dps-predicted": Case("dps", ("blur", NOISE), {"scale": 0.7, "variance": "predicted"}, UCPM(lam=0.3), JUMPY),
    "repaint": Case("repaint", ("blur", NOISE), ANCESTRAL, UCPM(lam=0.3), JUMPY, extra={"travel_repeats": 1}),
    "repaint-travel": Case(
        "repaint", ("holes", CLEAN), {"damping": 4.0}, satp=JUMPY, extra={"travel_length": 3, "travel_repeats": 3}
    ),
    "mcg": Case("mcg", ("circular", NOISE), {**ANCESTRAL, "scale": 0.7}, UCPM(lam=0.3), JUMPY),
    "mcg-clean": Case("mcg", ("holes", CLEAN), {"damping": 4.0, "scale": 0.7}, turned="aligned"),
    "pigdm": Case("pigdm", ("holes", NOISE), {"eta": 0.6, "variance": 0.3, "weights": "adaptive"}, UCPM(), JUMPY),
    "pigdm-score": Case("pigdm", ("sr", NOISE), {"eta": 1.0, "variance": 0.3, "weights": "score"}),
    "pigdm-clean": Case("pigdm", ("circular", CLEAN), {"eta": 0.6, "variance": 1.0, "weights": "adaptive"}),
    "daps": Case("daps", ("circular", NOISE), CHAIN, UCPM(lam=0.3), JUMPY),
    "daps-clean": Case("daps", ("sr", CLEAN), CHAIN, turned="aligned"),
    "dcdp": Case("dcdp", ("blur", NOISE), DESCENT, UCPM(lam=0.3), JUMPY),
    "dcdp-clean": Case("dcdp", ("holes", CLEAN), DESCENT, extra={"first": 300}),
    "red-diff": Case("red-diff", ("holes", NOISE), RED, UCPM(lam=0.3), JUMPY),
    "red-diff-clean": Case("red-diff", ("sr", CLEAN), {**RED, "power": 1.0}),
    **{
        f"{method}-from-{grid.times[0]}": Case(method, (name, NOISE), symbols, grid=grid)
        for grid in STARTS
        for method, symbols, name in (
            ("ddrm", {"eta": 0.7}, "circular"),
            ("diffpir", DIFFPIR, "blur"),
            ("projdiff", {"step": 0.7}, "cs"),
        )
    },
    **{
        f"{method}-clipped-{name}": Case(method, (name, (0.5, 0.4), False, 5, True), symbols, satp=JUMPY)
        for method, name, symbols in (
            ("ddnm", "circular", {"eta": 0.85}),
            ("ddrm", "blur", {"eta": 0.7}),
            ("projdiff", "circular", {"step": 0.7}),
            ("diffpir", "holes", DIFFPIR),
            ("dps", "sr", {"scale": 0.4}),
            ("red-diff", "blur", RED),
        )
    },
    **{
        f"{method}-metric-{name}": Case(
            method, (name, sigmas), symbols, satp=JUMPY, ucdc=metric, steps=10, extra=extra, tolerance=1e-5
        )
        for method, symbols, name, sigmas, metric, extra in (
            ("ddnm", {"eta": 0.85}, "sr", CLEAN, METRIC, {}),
            ("ddnm", {"eta": 0.85}, "blur", NOISE, UCDC(scatter=0.5), {}),
            ("ddnm", {"eta": 0.85}, "cs", NOISE, UCDC(only_unmeasured=True), {}),
            ("ddnm", {"eta": 0.85}, "holes", NOISE, UCDC(only_unmeasured=True), {"form": "simple"}),
            ("ddrm", {"eta": 0.7}, "sr", NOISE, UCDC(map="mean", only_unmeasured=True), {}),
            ("diffpir", DIFFPIR, "holes", NOISE, METRIC, {}),
            ("ddpg", DDPG, "cs", CLEAN, METRIC, {}),
            ("idpg", {**DDPG, "decreasing": False, "inject": False}, "blur", NOISE, METRIC, {}),
            ("pirp", PIRP, "sr", NOISE, METRIC, {}),
            ("projdiff", {"step": 1.3}, "holes", CLEAN, METRIC, {}),
            ("projdiff", {"step": 0.7}, "cs", NOISE, UCDC(trust=0.3, only_unmeasured=True), {}),
            ("sitcom", ADAM, "cs", NOISE, UCDC(only_unmeasured=True), {}),
            ("posterior", {"eta": 0.6}, "blur", NOISE, METRIC, {}),
            ("repaint", ANCESTRAL, "sr", NOISE, UCDC(only_unmeasured=True), {"travel_repeats": 1}),
            ("mcg", {**ANCESTRAL, "variance": "predicted", "scale": 9.0}, "sr", NOISE, METRIC, {}),
            ("daps", CHAIN, "sr", NOISE, METRIC, {}),
            ("dcdp", DESCENT, "cs", NOISE, METRIC, {}),
            ("red-diff", RED, "blur", NOISE, METRIC, {}),
            ("pigdm", {"eta": 0.6, "variance": 0.3, "weights": "score"}, "sr", NOISE, METRIC, {}),
            ("dps", {"scale": 0.4}, "sr", NOISE, METRIC, {}),
        )
    },
}


def options(case: Case) -> dict[str, Any]:
    """The settings of the method as the package takes them."""
    own = set(METHODS[case.method].__dataclass_fields__)  # type: ignore[attr-defined]
    return {name: value for name, value in case.symbols.items() if name in own} | case.extra


def run(case: Case, made: Scene, noise: ForeignNoise) -> tuple[Sampler, list[Step], Result]:
    """The package's run: its steps and its result."""
    plugins: list[Any] = [] if case.turned is None else [EquS(mode=case.turned)]
    settings = options(case)
    for name, item in (("ucpm", case.ucpm), ("satp", case.satp), ("ucdc", case.ucdc)):
        if item is not None:
            plugins.append(name)
            settings[name] = vars(item)
    sampler = Sampler(
        made.prior, case.method, plugins, case.steps, grid=case.grid, use_presets=False, trust_time=case.trust_time, **settings
    )
    walk, steps = sampler.iterate(made.problem, 1, ids=IDS, noise=noise), []
    while True:
        try:
            steps.append(next(walk))
        except StopIteration as end:
            return sampler, steps, end.value


@cache
def told(name: str) -> tuple[Scene, Sampler, list[Step], Result]:
    """The run of a case by its name, once."""
    made = scene(*CASES[name].data)
    return made, *run(CASES[name], made, ForeignNoise())


def expected(case: Case, made: Scene, grid: Grid) -> dict[int, plugged.Story]:
    """NumPy's run of every image."""
    size, source = int(np.prod(made.shape)), ForeignNoise()
    flip = np.arange(size).reshape(made.shape)[..., ::-1].ravel()
    stories = {}
    for name, world in zip(IDS, made.worlds):
        world.raw = case.turned == "raw"

        def draw(position: int, kind: str, image: int = name) -> Any:
            return source.one(image, grid.labels[position], kind, made.shape).ravel()

        host = case.host(world, **case.symbols, image_like=made.image_like)
        turn = None if case.turned is None else flip
        plugins = (case.ucpm, case.satp, case.ucdc)
        stories[name] = plugged.walk(host, grid.times, grid.uniform, draw, *plugins, turn, case.trust_time)
    return stories


def close(found: torch.Tensor, wanted: Any, tolerance: float) -> bool:
    wanted = np.asarray(wanted)
    return bool(np.abs(found.reshape(-1).numpy() - wanted.ravel()).max() <= tolerance * max(1.0, np.abs(wanted).max()))


@pytest.mark.parametrize("name", CASES)
def test_run(name: str) -> None:
    """Every step of both images, their order, and the result."""
    case = CASES[name]
    made, sampler, steps, result = told(name)
    assert (made.problem.censored is not None) == ("clipped" in name)
    plan = sampler.plan(made.problem)
    grid, cost = plan.grid, plan.method.cost
    stories = expected(case, made, grid)
    longest = max(len(story.visits) for story in stories.values())
    assert [step.index for step in steps] == list(range(longest))
    for index, step in enumerate(steps):
        assert step.ids == tuple(i for i in IDS if index < len(stories[i].visits)), "who is still under way"
        assert step.sigma is not None and step.U is not None
        for row, image in enumerate(step.ids):
            wanted = stories[image].visits[index]
            where = f"image {image}, step {index}"
            assert (int(step.t[row]), int(step.u[row]), int(step.jump[row])) == (wanted.t, wanted.u, wanted.jump), where
            assert float(step.U[row]) == pytest.approx(wanted.U, rel=max(case.tolerance, 1e-9)), where
            assert close(step.sigma[row], wanted.sigma, case.tolerance), f"sigma, {where}"
            assert close(step.x0[row], wanted.x0, case.tolerance), f"x0, {where}"
            assert close(step.x0_hat[row], wanted.x0_hat, case.tolerance), f"x0_hat, {where}"
            assert close(step.state.x[row], wanted.x, case.tolerance), f"state, {where}"
    assert result.posterior_std is not None and result.error_std is None
    pixels = made.shape[1] * made.shape[2]
    for row, image in enumerate(IDS):
        story = stories[image]
        assert close(result.images[row], story.image, case.tolerance)
        assert close(result.posterior_std[row], story.posterior_std, case.tolerance)
        trace = [(v.t, v.u, v.jump) for v in result.trace[image]]
        assert trace == [(v.t, v.u, v.jump) for v in story.visits]
        assert [v.U for v in result.trace[image]] == pytest.approx([v.U for v in story.visits], rel=max(case.tolerance, 1e-9))
        counts = result.ledger.rows[image]
        assert (counts.calls, counts.backwards, counts.jvps) == (story.calls, story.backwards, 0)
        assert counts.pixels == pixels * story.calls
        most = (cost.start + cost.forward * len(story.visits), cost.backward * len(story.visits))
        assert (story.calls, story.backwards) == most or case.method == "sitcom", "what the method said before"
    assert (result.settings["ids"], result.settings["seed"], result.seed) == (list(IDS), 1, 1)


ELSEWHERE = {("ddnm", "noise")}
"""Held by tests of their own: the published noise depends on the basis of the SVD."""


def test_every_setting_of_every_method_has_a_run_off_its_default() -> None:
    """The table above, or ELSEWHERE; a setting that is inherited may be another method's."""
    left = set()
    for name, cls in METHODS.own.items():
        of_it = [case for case in CASES.values() if issubclass(METHODS[case.method], cls)]
        used = {key for case in of_it for key, value in options(case).items() if value != getattr(METHODS[case.method], key)}
        names = {item.name for item in fields(cls)}  # type: ignore[arg-type]
        left |= {(name, key) for key in vars(cls)["__annotations__"] if key in names - used}
        assert any(case.method == name for case in of_it), name
    assert left == ELSEWHERE
