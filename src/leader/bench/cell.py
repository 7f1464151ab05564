"""One cell of an experiment: one image, one task, one method with its plug-ins, one seed. Run in this
process, it gives a record.
"""

from __future__ import annotations

import io
import json
import sys
import time
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from leader import metrics
from leader.bench.images import file_hash, load_image, to_pixels
from leader.bench.priors import fingerprint, open_prior, stand_in
from leader.bench.records import Record, canonical, digest
from leader.bench.version import code_version
from leader.errors import LeaderError
from leader.methods import METHODS
from leader.noise import SeededNoise
from leader.operators.base import LinearOperator
from leader.operators.tasks import build_task
from leader.priors.base import Prior
from leader.priors.catalogue import ENTRIES
from leader.problem import Problem
from leader.result import Result, Step
from leader.sampler import Plan, Sampler

BASELINES = {"reference": "Reference", "measurement": "Measurement", "pinv": "A⁺ y"}
"""Not methods, with their names in tables: the picture itself, the measurement as a picture (A^+ y where it is none), A^+ y."""
KEEP = ("restored", "path", "trace")
"""What a record can keep besides numbers: the restored picture, x0_hat and Sigma along the way, (t, U_t,
jump) of every step.
"""
FRAMES = 8
"""Pictures along the way."""


@dataclass(frozen=True)
class Cell:
    """What to run. `row` and `title` are the experiment's names for it and do not determine its numbers.

    image     the file, or None where a dry run has no folder
    index     position of the image: it chooses the image's noise and, with options seed = "image", its kernel
    steps     T; None in a row that takes the calls of another row's record as its steps (`calls_of`)
    settings  of the method; under a plug-in's name a table with that plug-in's
    """

    row: str
    title: str
    image: Path | None
    index: int
    fit: str
    size: int
    prior: str
    task: str
    options: dict[str, Any]
    sigma: float
    method: str
    plugins: tuple[str, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)
    steps: int | None = 100
    grid: str | None = None
    estimator: str | None = None
    seed: int = 0
    device: str = "cpu"
    timing: bool = True
    memory: bool = False
    keep: tuple[str, ...] = ()
    calls_of: str | None = None

    @property
    def place(self) -> tuple[str, str, int, int]:
        """Where its number goes in a table: row, task, image, seed."""
        return self.row, self.title, self.index, self.seed

    def with_steps(self, steps: int) -> Cell:
        return replace(self, steps=steps, calls_of=None)

    @property
    def task_options(self) -> dict[str, Any]:
        return {name: self.index if value == "image" else value for name, value in self.options.items()}

    @property
    def shape(self) -> tuple[int, int, int]:
        return 3, self.size, self.size


@dataclass(frozen=True)
class Answer:
    """What a worker sends back: the record, and the pictures it refers to (file name -> PNG)."""

    record: Record
    pictures: dict[str, bytes]


def identity(cell: Cell) -> Record:
    """Everything that determines a cell's record, and the keys that follow: {"key", "cell", "what",
    "code"}.
    """
    what: Record = {
        "image": None if cell.image is None else file_hash(cell.image),
        "index": cell.index,
        "fit": cell.fit,
        "size": cell.size,
        "task": cell.task,
        "options": cell.task_options,
        "sigma": cell.sigma,
        "seed": cell.seed,
        "device": cell.device,
        "timing": cell.timing,
        "memory": cell.memory,
        "keep": sorted(cell.keep),
        **_choices(blueprint(cell)),
    }
    code = what.pop("code")
    return {"key": digest([what, code]), "cell": digest(what), "what": what, "code": code}


def plan_of(cell: Cell) -> tuple[Plan, Prior]:
    """The resolved settings of a cell, without running it, and the prior they hold for."""
    return _plan(blueprint(cell))


@lru_cache(maxsize=512)
def _plan(text: str) -> tuple[Plan, Prior]:
    cell = from_blueprint(text)
    prior = stand_in(cell.prior, cell.size)
    operator = operator_of(cell)
    blank = torch.zeros(1, *operator.measurement_shape)
    return _sampler(cell, prior).plan(Problem(blank, operator, cell.sigma)), prior


def run_cell(cell: Cell) -> Answer:
    """Runs a cell. A request that cannot be served, or diverges, gives a record with an "error" instead
    of numbers.
    """
    who = identity(cell)
    record: Record = {
        "key": who["key"],
        "cell": who["cell"],
        "code": who["code"],
        "what": who["what"],
        "image": "" if cell.image is None else cell.image.stem,
        "index": cell.index,
        "task": cell.task,
        "sigma": cell.sigma,
        "method": cell.method,
        "plugins": "+".join(cell.plugins),
        "prior": cell.prior,
        "seed": cell.seed,
    }
    try:
        numbers, pictures = _measured(cell)
    except LeaderError as error:
        return Answer({**record, "error": str(error)}, {})
    names = {kind: f"{who['key']}-{kind}.png" for kind in pictures}
    if names:
        record["pictures"] = names
    return Answer({**record, **numbers}, {names[kind]: data for kind, data in pictures.items()})


def blueprint(cell: Cell) -> str:
    """What a cell shares with those of other images, as text: the key of caches."""
    own = ("row", "title", "image", "index", "calls_of")
    return canonical({item.name: getattr(cell, item.name) for item in fields(cell) if item.name not in own})


def from_blueprint(text: str) -> Cell:
    """The cell of a blueprint, for the first image."""
    plain = json.loads(text)
    plain |= {name: tuple(plain[name]) for name in ("plugins", "keep")}
    return Cell(row="", title="", image=None, index=0, **plain)


@lru_cache(maxsize=4096)
def _choices(text: str) -> Record:
    """The part of a blueprint's identity that is the same for all images: settings, weights, code."""
    cell = from_blueprint(text)
    operator = type(operator_of(cell))
    scoring = ("leader.metrics.fidelity", "leader.metrics.perceptual")
    if cell.method in BASELINES:
        return {"method": {"name": cell.method}, "code": code_version([operator], scoring)}
    plan, prior = plan_of(cell)
    settings = {name: plan.settings[name] for name in ("method", "plugins", "estimator", "probes")}
    times = plan.grid.times
    settings["grid"] = f"{plan.grid.visits} times from {times[0]} to {times[-2]}, {digest(times)[:8]}"
    classes = [operator, type(prior), type(plan.method), *map(type, plan.plugins)]
    taken = {plugin.takes_over for plugin in plan.plugins} - {None}
    classes += [method for method in METHODS.values() if method.term in taken]
    weights = {"name": cell.prior, "weights": fingerprint(cell.prior)}
    loading = ("leader.priors.loading",) if cell.prior in ENTRIES else ()
    return {**settings, "prior": weights, "code": code_version(classes, (*scoring, *loading))}


def operator_of(cell: Cell) -> LinearOperator:
    """The operator of a cell; a process keeps the last few."""
    return _operator(cell.task, cell.shape, canonical(cell.task_options))


@lru_cache(maxsize=32)
def _operator(task: str, shape: tuple[int, int, int], options: str) -> LinearOperator:
    return build_task(task, shape, **json.loads(options))


def _sampler(cell: Cell, prior: Prior) -> Sampler:
    if cell.steps is None:
        raise LeaderError(f"The row '{cell.row}' takes its steps from '{cell.calls_of}'; run that one first.")
    return Sampler(
        prior,
        cell.method,
        cell.plugins,
        cell.steps,
        grid=cell.grid,
        estimator=cell.estimator,
        **cell.settings,
    )


def measure(cell: Cell, picture: Tensor) -> Problem:
    """The problem of a cell: y of the picture [1, 3, H, W] in [0, 1]; its noise is the same for all
    methods.
    """
    operator = operator_of(cell)
    clean = operator.A(picture)
    noise = SeededNoise(cell.seed)([cell.index], [0], "measurement", clean.shape[1:]).to(clean.device)
    return Problem(clean + cell.sigma * noise, operator, cell.sigma)


def _measured(cell: Cell) -> tuple[Record, dict[str, bytes]]:
    if cell.image is None:
        raise LeaderError("A cell without an image can be planned, not run; give a folder with --images.")
    picture = load_image(cell.image, cell.fit, cell.size).to(cell.device)
    problem = measure(cell, picture)
    numbers: Record = {}
    pictures: dict[str, bytes] = {}
    if cell.method in BASELINES:
        restored = _baseline(cell.method, picture, problem)
    else:
        prior = open_prior(cell.prior, cell.size, cell.device)
        before = _resident("VmRSS", cell.device)
        started = time.perf_counter()
        steps, result = _walk(cell, prior, problem)
        seconds = time.perf_counter() - started
        restored = result.images
        numbers |= _counts(cell, result)
        if cell.timing:
            numbers["seconds"] = round(seconds, 4)
        if cell.memory:  # read before any metric allocates
            peak = _resident("VmHWM", cell.device)
            numbers |= {"peak_mb": round(peak, 2), "run_mb": round(peak - before, 2)}
        if "trace" in cell.keep:
            trace = result.trace[cell.index]
            numbers["trace"] = [[v.t, v.jump, None if v.U is None else round(v.U, 8)] for v in trace]
        if "path" in cell.keep:
            numbers |= {"frames": [int(step.t[0]) for step in steps], "frame_calls": _frame_calls(steps)}
            pictures |= _path_pictures(steps)
    if cell.method != "reference":
        numbers |= _scores(restored, picture, problem)
    if "restored" in cell.keep:
        pictures["restored"] = _png(to_pixels((restored[0] + 1) / 2))
    return numbers, pictures


def _walk(cell: Cell, prior: Prior, problem: Problem) -> tuple[list[Step], Result]:
    """Runs to the end; keeps FRAMES steps, equally spaced among those visited, if they are asked for."""
    sampler = _sampler(cell, prior)
    if "path" not in cell.keep:
        return [], sampler.run(problem, cell.seed, ids=[cell.index])
    seen: list[Step] = []
    walk = sampler.iterate(problem, cell.seed, ids=[cell.index])
    while True:
        try:
            seen.append(next(walk))
        except StopIteration as end:
            chosen = np.linspace(0, len(seen) - 1, min(FRAMES, len(seen))).round().astype(int)
            return [seen[i] for i in chosen], end.value


def _frame_calls(steps: list[Step]) -> list[int]:
    return [step.index + 1 for step in steps]


def _path_pictures(steps: list[Step]) -> dict[str, bytes]:
    """x0_hat of the kept steps side by side, and sqrt(Sigma) as grey levels, white at 0.5."""
    frames = np.concatenate([to_pixels((step.x0_hat[0] + 1) / 2) for step in steps], 1)
    pictures = {"path": _png(frames)}
    sigmas = [step.sigma for step in steps if step.sigma is not None]
    if len(sigmas) == len(steps):
        spreads = [to_pixels(2 * sigma[0].clamp_min(0).sqrt().mean(0, keepdim=True)) for sigma in sigmas]
        pictures["spread"] = _png(np.concatenate(spreads, 1))
    return pictures


def _scores(restored: Tensor, picture: Tensor, problem: Problem) -> Record:
    """The metrics of the restored image [1, 3, H, W] in [-1, 1]; residuals in units of [0, 1] pictures.

    residual is that of the clamped picture, residual_raw that of the sampler's output before clamping.
    """
    if not bool(torch.isfinite(restored).all()):
        raise LeaderError("The restored image holds values that are not finite; use smaller steps.")
    shown = ((restored + 1) / 2).clamp(0, 1)
    scores = {
        name: float(metric.function(shown, picture)[0])
        for name, metric in metrics.METRICS.items()
        if name != "lpips" or min(picture.shape[-2:]) >= 31  # AlexNet's smallest side
    }
    scores["residual"] = float(problem.residual(2 * shown - 1).abs().square().mean().sqrt()) / 2
    scores["residual_raw"] = float(problem.residual(restored).abs().square().mean().sqrt()) / 2
    return {name: round(value, 6) if np.isfinite(value) else None for name, value in scores.items()}


def _counts(cell: Cell, result: Result) -> Record:
    total = result.ledger.total
    return {
        "calls": int(total.calls),
        "jvps": int(total.jvps),
        "backwards": int(total.backwards),
        "work": round(total.pixels / cell.size**2, 3),
    }


def _baseline(name: str, picture: Tensor, problem: Problem) -> Tensor:
    """The picture of a baseline in [-1, 1]."""
    if name == "reference":
        return 2 * picture - 1
    return problem.operator.pinv(problem.y) if name == "pinv" else _measurement_picture(problem)


def _measurement_picture(problem: Problem) -> Tensor:
    """y as an image [1, 3, H, W] in [-1, 1]: itself, enlarged by repetition if it is small, A^+ y if it
    is no image.
    """
    height, width = problem.image_shape[1:]
    y = problem.y
    if y.ndim == 4 and y.shape[1] == problem.image_shape[0] and not y.is_complex():
        return torch.nn.functional.interpolate(y, (height, width), mode="nearest")
    return problem.operator.pinv(y)


def _png(pixels: np.ndarray[tuple[int, ...], np.dtype[np.uint8]]) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, format="PNG")
    return buffer.getvalue()


def _resident(what: str, device: str) -> float:
    """Memory of this process in MB: VmRSS now, VmHWM its peak; on a GPU what torch allocated there.

    The kernel's ru_maxrss is no use: it survives exec and so contains the parent's size.
    """
    if device.startswith("cuda"):
        used = torch.cuda.max_memory_allocated() if what == "VmHWM" else torch.cuda.memory_allocated()
        return used / 2**20
    status = Path("/proc/self/status")
    if status.is_file():
        for line in status.read_text().splitlines():
            if line.startswith(what):
                return int(line.split()[1]) / 1024
    if sys.platform == "win32":
        raise LeaderError("Peak memory is measured on Linux and macOS only; leave 'memory' out.")
    import resource

    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
