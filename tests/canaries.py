"""Canary runs: small runs of every method with every set of plug-ins on every task, whose numbers are committed.

`tests/test_canaries.py` computes them again. Where they differ beyond rounding, someone changed what a method, plug-in,
operator, prior or metric computes, and its `revision` must be raised, so that older benchmark records are not taken for new
ones.

    python -m tests.canaries --write     the table of today, refused where numbers changed and no revision did

Runs are in float64 on closed-form priors, where processors agree closely; the few that need float32 (the embedded prior, the
metrics) have a wider tolerance.
"""

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from leader import Problem, Sampler
from leader.bench import keys
from leader.bench.cell import Cell, Frozen, Recipe
from leader.bench.images import list_images
from leader.bench.running import run_cell
from leader.errors import LeaderError
from leader.methods import METHODS
from leader.metrics import METRICS, Metric
from leader.operators import LinearOperator, build_task
from leader.plugins import PLUGINS, expand, make_plugin
from leader.priors.base import Prior
from leader.priors.gaussian import GaussianMixturePrior, stationary
from leader.priors.loading import load_prior
from leader.schedule import Grid
from leader.uncertainty import estimators

TABLE = Path(__file__).with_name("canaries.jsonl")
TOLERANCE, WIDE_TOLERANCE = 2e-5, 2e-3
"""Differences beyond which a number has changed, of runs in float64 and in float32. Between torch with and without vector
instructions (ATEN_CPU_CAPABILITY=default) the numbers, of order 0.1 to 1, differed by at most 3e-6 and 4e-4.
"""
SHAPE = (3, 32, 32)
STEPS = 4
LUMA = torch.arange(64, dtype=torch.float64).reshape(8, 8).div(2).floor() + 8
TASKS: dict[str, dict[str, Any]] = {
    "sr": {"factor": 4},
    "deblur-gaussian": {},
    "deblur-motion": {"seed": 3, "size": 15},
    "deblur": {"kernel": torch.tensor([[0.1, 0.2, 0.05], [0.0, 0.4, 0.1], [0.05, 0.1, 0.0]])},
    "inpaint": {"keep": 0.4, "seed": 1},
    "cs": {"seed": 2},
    "colourise": {},
    "denoise": {},
    "jpeg": {"luma": LUMA, "chroma": LUMA + 5},
}
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    **{down: ("sr", {"down": down}) for down in ("average", "nearest", "soft-nearest", "box", "bilinear", "lanczos")},
    **{down: ("sr", {"down": down}) for down in ("opencv-bilinear", "opencv-bicubic", "soft-centred")},
    "pillow-bicubic": ("sr", {"down": "pillow-bicubic"}),
    "mixture": ("sr", {"down": "soft-nearest:20+box:30+lanczos:50"}),
    "reflected": ("deblur-motion", {"seed": 3, "size": 9, "boundary": "reflected"}),
    "published blur": ("deblur-gaussian", {"form": "published"}),
    "published grey": ("colourise", {"form": "published"}),
}
"""Operators that no task has by default."""
SOME = ("sr", "deblur-motion", "inpaint")
"""Tasks of what is tried with every method: an operator with fewer numbers than pixels, one with as many, and a mask."""
PLUGIN_SETS: tuple[tuple[str, ...], ...] = (
    *((), ("leader",), ("leader-paper",)),
    *((name,) for name in PLUGINS if name.partition("-")[0] not in ("ucpm", "satp")),
)
SHORT: dict[str, dict[str, Any]] = {
    "sitcom": {"inner": 2},
    "daps": {"flow": 2, "inner": 3},
    "dcdp": {"flow": 2, "inner": 2},
    "repaint": {"travel_length": 2, "travel_repeats": 2},
}
"""Settings that keep a method's run short."""
BRANCHES: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("ddnm", "", {"form": "plain"}),
    ("ddnm", "", {"form": "simple"}),
    ("ddnm", "", {"noise": "published"}),
    ("ddnm", "", {"travel_length": 2, "travel_repeats": 2, "eta": 0.3}),
    ("ddrm", "", {"eta": 0.6, "eta_b": 0.7}),
    ("dps", "", {"scale": 0.4, "clamp": False, "variance": "small"}),
    ("diffpir", "", {"eta": 0.3, "zeta": 0.6, "clamp": False, "published_units": False}),
    ("ddpg", "", {"mode": 2, "zeta": 0.8}),
    ("projdiff", "", {"form": "simple", "step": 0.5}),
    ("sitcom", "", {"inner": 2, "lam": 0.1, "overwrite": True}),
    ("pirp", "", {"variant": "b", "argument": "gradient", "lam": 0.4, "width": 0.1}),
    ("ddnm", "ucpm", {"ucpm": {"phi": "tikhonov", "solve": "cg", "sharpen": 2.0}}),
    ("ddnm", "ucpm", {"ucpm": {"phi": "pirp", "lam": 2.0, "width": 1.0}}),
    ("ddnm", "ucpm", {"ucpm": {"map": "mean", "project": "always", "lam": 0.5}}),
    ("ddnm", "ucdc", {"ucdc": {"covariance": "diagonal", "power": 0.5, "trust": 0.5, "iterations": 2}}),
    ("diffpir", "ucdc", {"ucdc": {"map": "shuffle", "floor": 0.3, "visible": 0.2}}),
    ("ddnm", "satp", {"satp": {"budget": 0.4, "eta": 3.3}}),
    ("ddnm", "satp-paper", {"satp-paper": {"budget": 0.4, "eta": 3.3}}),
    ("ddnm", "equs", {"equs": {"transform": "shift", "mode": "raw"}}),
    ("ddnm", "start", {"start": {"draw": True, "spread": True, "share": 0.2}}),
    ("diffpir", "wiener", {"wiener": {"trust": 3.0}}),
)
"""Methods and plug-ins off their defaults, where other branches of their formulas run."""


@dataclass(frozen=True)
class Canary:
    """One run. parts: the names of what took part, with their revisions; numbers: None where the run is refused."""

    name: str
    parts: Mapping[str, int]
    measure: Callable[[], list[float] | None]
    tolerance: float = TOLERANCE


def all_canaries() -> Iterator[Canary]:
    """Every canary, in the order of the table."""
    for method in METHODS:
        for plugins in PLUGIN_SETS:
            for task in TASKS if plugins in ((), ("leader",), ("leader-paper",)) else SOME:
                yield sampling(method, plugins, task)
    for method, plugin, settings in BRANCHES:
        for task in SOME:
            yield sampling(method, (plugin,) if plugin else (), task, steps=12, settings=settings)
    for name in estimators.ESTIMATORS:
        if name not in ("head", "learned", "exact"):  # the priors here have no head; exact costs a JVP a pixel
            yield sampling("ddnm", ("leader",), "sr", estimator=name)
    for name in ("satp", "satp-paper"):
        yield _jumps(name)
    for task, options in TASKS.items():
        yield _operator(task, task, options)
    for name, (task, options) in VARIANTS.items():
        yield _operator(name, task, options)
    for metric in METRICS.values():
        yield _metric(metric)
    for name, keep in (("harness", ()), ("trust", ("trust",))):
        yield _cell(name, keep)


def sampling(
    method: str,
    plugins: tuple[str, ...],
    task: str,
    *,
    estimator: str = "auto",
    steps: int = STEPS,
    settings: Mapping[str, Any] | None = None,
) -> Canary:
    """A run of the loop on the closed-form prior."""
    operator = _built(task)
    members = [str(item) for item in expand(plugins)]
    given = SHORT.get(method, {}) if settings is None else dict(settings)
    sampler = Sampler(_prior(), method, plugins, steps, estimator=estimator, use_presets=False, **given)
    parts = {"sampler": Sampler.revision, method: METHODS[method].revision}
    parts |= {name: PLUGINS[name].revision for name in members}
    parts |= {type(operator).__name__: operator.revision, "GaussianMixturePrior": GaussianMixturePrior.revision}
    if any(PLUGINS[name].needs_sigma for name in members):
        parts["estimators"] = estimators.REVISION

    def measure() -> list[float] | None:
        sigma = 0.0 if task == "sr" else 0.1
        clean = operator.A(_truth())
        noise = 2**0.5 * torch.sin(torch.arange(clean.numel(), dtype=torch.float64) ** 2).reshape(clean.shape)
        try:
            result = sampler.run(Problem.internal(clean + sigma * noise, operator, sigma), seed=5)
        except LeaderError:
            return None
        return [*summarise(result.images), float(result.ledger.total.calls)]

    words = [" + ".join([method, *plugins]), task, *([] if estimator == "auto" else [estimator])]
    return Canary(", ".join([*words, *([] if settings is None else [json.dumps(settings)])]), parts, measure)


def _jumps(name: str) -> Canary:
    """How far a pacer goes from the first of a thousand times: jumps are whole numbers, so short runs hide small changes."""
    plugin, grid = make_plugin(name, {}), Grid((*range(999, -1, -1), -1))

    def measure() -> list[float]:
        return [sum(plugin.pace(grid, 0, base ** -(k / 20)) for k in range(100)) / 1000 for base in (3.0, 10.0)]

    return Canary(f"jumps of {name}", {name: plugin.revision}, measure)


def _operator(name: str, task: str, options: dict[str, Any]) -> Canary:
    operator = build_task(task, SHAPE, **options)

    def measure() -> list[float]:
        y = operator.A(_truth())
        return [
            value for x in (y, operator.AT(y), operator.pinv(y), operator.regularised_pinv(y, 0.1)) for value in summarise(x)
        ]

    return Canary(f"operator {name}", {type(operator).__name__: operator.revision}, measure)


def _metric(metric: Metric) -> Canary:
    def measure() -> list[float]:
        clean = (_truth().float() + 1) / 2
        spoilt = (clean + 0.1 * torch.sin(7 * clean.cumsum(-1))).clamp(0, 1)
        return [float(metric.function(spoilt, clean)[0]), float(metric.function(clean.flip(-1), clean)[0])]

    return Canary(f"metric {metric.name}", {metric.name: metric.revision}, measure, WIDE_TOLERANCE)


def _cell(name: str, keep: tuple[str, ...]) -> Canary:
    """A cell of a benchmark on the embedded prior: pictures, noise, loop, scores, and the error map."""
    recipe = Recipe(
        fit="crop",
        size=64,
        prior="embedded",
        task="sr",
        sigma=0.02,
        method="ddnm",
        options=Frozen({"factor": 4}),
        plugins=("ucdc", "satp"),
        steps=5,
        estimator="auto",
        timing=False,
        keep=keep,
    )
    cell = Cell("DDNM", "SR", list_images("test")[2], 2, recipe)

    def measure() -> list[float]:
        record = run_cell(cell).record
        chosen = {key: value for key, value in record.items() if isinstance(value, (int, float))}
        return [chosen[key] / (10 if key == "psnr" else 1) for key in sorted(chosen)]

    return Canary(f"cell, {name}", keys.identify(cell).revisions, measure, WIDE_TOLERANCE)


def summarise(x: Tensor) -> list[float]:
    """Five numbers of order 0.1 to 1 that hardly any change of x leaves alone: its mean, spread and energies of waves."""
    flat = (torch.view_as_real(x) if x.is_complex() else x).flatten().double()
    position = torch.arange(flat.numel(), dtype=torch.float64)
    waves = [float((flat * torch.sin(rate * position + rate)).sum() / flat.numel() ** 0.5) for rate in (0.7, 2.3)]
    return [float(flat.mean()), float(flat.std()), float((flat[1:] - flat[:-1]).abs().mean()), *waves]


@lru_cache(maxsize=1)
def _truth() -> Tensor:
    """A picture [1, 3, 32, 32] in [-1, 1] with edges, slopes and texture, float64."""
    rows, columns = torch.meshgrid(*(torch.linspace(-1, 1, side, dtype=torch.float64) for side in SHAPE[1:]), indexing="ij")
    planes = [0.6 * torch.sin(3 * rows + k * columns) + 0.3 * ((rows + 0.3 * k) > columns) - 0.1 * k for k in range(3)]
    return torch.stack(planes)[None].clamp(-1, 1)


@lru_cache(maxsize=1)
def _prior() -> Prior:
    """Two photo-like Gaussians of other spectra and means: nonlinear, exact, without weights. What start, pace and wiener ask
    for, the spectrum of its errors, is that of the embedded prior.
    """
    prior = GaussianMixturePrior([stationary(SHAPE, 0.5, 2.5, 0.1), stationary(SHAPE, 0.3, 1.5, -0.2)], [0.6, 0.4])
    prior.spectrum = load_prior("embedded").spectrum
    return prior


@lru_cache(maxsize=16)
def _built(task: str) -> LinearOperator:
    return build_task(task, SHAPE, **TASKS[task])


def read_table() -> tuple[dict[str, int], dict[str, list[float] | None]]:
    """The committed revisions by part, and numbers by canary."""
    head, *rows = (json.loads(line) for line in TABLE.read_text(encoding="utf-8").splitlines())
    return head["revisions"], {row["run"]: row["numbers"] for row in rows}


def find_changed(canaries: Sequence[Canary], measured: Mapping[str, list[float] | None]) -> list[Canary]:
    """The canaries whose numbers are not those of the table."""
    _, stored = read_table()
    return [canary for canary in canaries if _differs(measured[canary.name], stored.get(canary.name, []), canary.tolerance)]


def _differs(now: list[float] | None, before: list[float] | None, tolerance: float) -> bool:
    if now is None or before is None or len(now) != len(before):
        return now != before
    return any(not abs(a - b) <= tolerance * max(1.0, abs(b)) for a, b in zip(now, before))


def find_suspects(canaries: Sequence[Canary], changed: Sequence[Canary]) -> list[str]:
    """The fewest parts that explain the changed canaries: again and again that of which the largest share has changed."""
    left, suspects = list(changed), []
    while left:
        share = {
            part: (
                sum(part in canary.parts for canary in left) / sum(part in canary.parts for canary in canaries),
                sum(part in canary.parts for canary in left),
            )
            for canary in left
            for part in canary.parts
        }
        suspects.append(max(share, key=lambda part: share[part]))
        left = [canary for canary in left if suspects[-1] not in canary.parts]
    return suspects


def explain(canaries: Sequence[Canary], changed: Sequence[Canary]) -> str:
    """What to do about changed canaries."""
    parts = ", ".join(f"'{part}'" for part in find_suspects(canaries, changed))
    return (
        f"{len(changed)} of {len(canaries)} canary runs gave other numbers, such as '{changed[0].name}': if that is intended, "
        f"raise the revision of {parts} and run `python -m tests.canaries --write`; if not, undo the change."
    )


def write_table() -> None:
    """Writes the table of today; refuses where numbers changed and no revision of the parts that explain it was raised."""
    canaries = list(all_canaries())
    measured = {canary.name: canary.measure() for canary in canaries}
    revisions = {part: revision for canary in canaries for part, revision in canary.parts.items()}
    if TABLE.exists():
        before, stored = read_table()
        changed = [canary for canary in find_changed(canaries, measured) if canary.name in stored]
        silent = [c for c in changed if not any(before.get(part, 0) < revision for part, revision in c.parts.items())]
        if silent:
            raise SystemExit(explain(canaries, silent))
    lines: list[dict[str, Any]] = [{"revisions": dict(sorted(revisions.items()))}]
    lines += [
        {"run": name, "numbers": numbers and [float(f"{value:.7g}") for value in numbers]} for name, numbers in measured.items()
    ]
    TABLE.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        raise SystemExit("Give --write to write the table of canary runs.")
    torch.set_num_threads(1)
    write_table()
