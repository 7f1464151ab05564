"""Running cells in this process; each gives a record."""

import io
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from leader.bench.cell import BASELINES, Cell
from leader.bench.images import load_image, to_pixels
from leader.bench.keys import identify, metrics_of_record, provenance
from leader.bench.measures import DIGITS, counts, measure_memory, scores
from leader.bench.priors import open_prior
from leader.bench.records import Record
from leader.bench.setup import operator_for, sampler_of
from leader.errors import LeaderError
from leader.metrics.uncertainty import block_rank_correlation, calibration_error, interval_coverage, sparsification_error
from leader.priors.base import Prior
from leader.problem import Problem
from leader.result import Result, Step
from leader.trust.calibration import SHOWN
from leader.trust.error_map import ErrorMap, error_map, is_in_metric
from leader.trust.evidence import Watch, gather

FRAMES = 8
"""Pictures taken during a run."""
Found = tuple[Record, dict[str, bytes]]
"""The measured numbers of a cell, and its pictures (kind -> PNG)."""


@dataclass(frozen=True)
class Answer:
    """The result of a worker: the record and its pictures (file name -> PNG)."""

    record: Record
    pictures: dict[str, bytes]


def run_cell(cell: Cell) -> Answer:
    return run_cells((cell,))[0]


def run_cells(cells: Sequence[Cell]) -> list[Answer]:
    """Runs cells of one recipe, in one batch if their operators can be combined.

    A run that fails or diverges gives a record with an "error" instead of numbers; if one of several images fails, each is run
    alone.
    """
    recipe = cells[0].recipe
    if len(cells) > 1 and ("trust" in recipe.keep or operator_for(recipe, [cell.index for cell in cells]) is None):
        return [run_cell(cell) for cell in cells]
    try:
        found = measure_cells(cells)
    except LeaderError as error:
        if len(cells) > 1:
            return [run_cell(cell) for cell in cells]
        found = [({"error": str(error)}, {})]
    return [_answer(cell, *numbers) for cell, numbers in zip(cells, found, strict=True)]


def _answer(cell: Cell, numbers: Record, pictures: dict[str, bytes]) -> Answer:
    who = identify(cell)
    record: Record = {"key": who.key, "asked": who.asked, "revisions": who.revisions, **provenance()}
    names = {kind: f"{who.key}-{kind}.png" for kind in pictures}
    if names:
        record["pictures"] = names
    return Answer({**record, **numbers}, {names[kind]: data for kind, data in pictures.items()})


def measure_cells(cells: Sequence[Cell]) -> list[Found]:
    """The measured numbers of cells of one recipe, run together, and their pictures."""
    first, recipe, ids = cells[0], cells[0].recipe, [cell.index for cell in cells]
    if any(cell.image is None for cell in cells):
        raise LeaderError("A cell without an image can be planned but not run; give the experiment a folder of pictures.")
    clean = [load_image(cell.image, recipe.fit, recipe.size).to(recipe.device) for cell in cells if cell.image is not None]
    operator = operator_for(recipe, ids)
    assert operator is not None
    problem = Problem.simulate(torch.cat(clean), operator, recipe.sigma, recipe.seed, ids=ids)
    found: list[Found] = [({}, {}) for _ in cells]
    if recipe.method in BASELINES:
        if "trust" in recipe.keep:
            raise LeaderError(f"The baseline '{recipe.method}' has no error map; remove its row, or 'trust' from keep.")
        restored = _baseline(recipe.method, torch.cat(clean), problem)
    else:
        prior = open_prior(recipe.prior, recipe.size, recipe.device, recipe.precision)
        before = measure_memory(recipe.device) if recipe.memory else 0.0
        steps: list[Step] = []
        watch = Watch(prior.schedule) if "trust" in recipe.keep else None

        def see(step: Step) -> None:
            if "path" in recipe.keep:
                steps.append(step)
            if watch is not None:
                watch(step)

        started = time.perf_counter()
        result = sampler_of(recipe, prior).run(problem, recipe.seed, ids=ids, on_step=see)
        seconds = time.perf_counter() - started
        restored = result.images
        for cell, (numbers, pictures) in zip(cells, found, strict=True):
            numbers |= counts(result, cell.index, recipe.size)
            if recipe.timing:
                numbers["seconds"] = round(seconds, 4)  # timed cells run one by one
            if recipe.memory:  # read before any metric allocates
                peak = measure_memory(recipe.device, peak=True)
                numbers |= {"peak_mb": round(peak, 2), "run_mb": round(peak - before, 2)}
            if "trace" in recipe.keep:
                trace = result.trace[cell.index]
                numbers["trace"] = [[v.t, v.jump, None if v.U is None else round(v.U, 8)] for v in trace]
            if "path" in recipe.keep and cell is first:
                chosen = np.linspace(0, len(steps) - 1, min(FRAMES, len(steps))).round().astype(int)
                frames = [steps[i] for i in chosen]
                numbers |= {"frames": [int(step.t[0]) for step in frames], "frame_calls": [step.index + 1 for step in frames]}
                pictures |= _path_pictures(frames)
            if watch is not None:
                numbers |= _judge_map(prior, problem, result, watch, cell, clean[0])
    for row, (picture, (numbers, pictures)) in enumerate(zip(clean, found, strict=True)):
        own, one = restored[row : row + 1], problem if len(cells) == 1 else problem.select(torch.tensor([row]))
        if recipe.method != "reference":
            numbers |= scores(own, picture, one, metrics_of_record(recipe))
        if "restored" in recipe.keep:
            pictures["restored"] = _png(to_pixels((own[0] + 1) / 2))
    return found


def _path_pictures(steps: list[Step]) -> dict[str, bytes]:
    """x0_hat of the kept steps side by side, and sqrt(Sigma) as grey levels, white at 0.5."""
    frames = np.concatenate([to_pixels((step.x0_hat[0] + 1) / 2) for step in steps], 1)
    pictures = {"path": _png(frames)}
    sigmas = [step.sigma for step in steps if step.sigma is not None]
    if len(sigmas) == len(steps):
        spreads = [to_pixels(2 * sigma[0].clamp_min(0).sqrt().mean(0, keepdim=True)) for sigma in sigmas]
        pictures["spread"] = _png(np.concatenate(spreads, 1))
    return pictures


def _baseline(name: str, picture: Tensor, problem: Problem) -> Tensor:
    """The picture of a baseline in [-1, 1]."""
    if name == "reference":
        return 2 * picture - 1
    return problem.operator.pinv(problem.y) if name == "pinv" else _measurement_picture(problem)


def _measurement_picture(problem: Problem) -> Tensor:
    """y as an image [1, 3, H, W] in [-1, 1]: itself, enlarged by repetition if it is small, A^+ y if it is not an image."""
    height, width = problem.image_shape[1:]
    y = problem.y
    if y.ndim == 4 and y.shape[1] == problem.image_shape[0] and not y.is_complex():
        return torch.nn.functional.interpolate(y, (height, width), mode="nearest")
    return problem.operator.pinv(y)


def _png(pixels: np.ndarray[tuple[int, ...], np.dtype[np.uint8]]) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, format="PNG", optimize=True)
    return buffer.getvalue()


def _judge_map(prior: Prior, problem: Problem, result: Result, watch: Watch, cell: Cell, picture: Tensor) -> Record:
    """Scores of the error map of a cell's run (`keep = ["trust"]`)."""
    started = time.perf_counter()
    evidence = gather(prior, problem, result.images, watch, cell.index)
    found = None if evidence is None else error_map(prior, problem, evidence, metric=is_in_metric(result))
    seconds = time.perf_counter() - started
    if evidence is None or found is None:
        name = cell.recipe.prior
        raise LeaderError(f"The prior '{name}' has no referee, or estimated no Sigma; run `leader fit-trust` first.")
    numbers = judged(found, evidence.restored - (2 * picture[0] - 1), evidence.open)
    return {**numbers, **({"trust_seconds": round(seconds, 4)} if cell.recipe.timing else {})}


def judged(found: ErrorMap, error: Tensor, is_open: Tensor) -> Record:
    """Coverage, calibration error, AUSE and rank of an error map, of an error [C, H, W], over the open pixels [H, W] bool."""
    if not bool(is_open.any()):
        raise LeaderError("Every pixel is known, so there is no error map to score; choose another task.")
    std = found.std
    errors = error[:, is_open][None, :, None]
    stds = std[is_open].expand_as(errors)
    hidden = torch.where(is_open, error, 0.0)[None], torch.where(is_open, std.expand_as(error), 0.0)[None]
    numbers = {
        **{_coverage(level): float(interval_coverage(errors, stds, multiple)) for level, multiple in found.level.items()},
        "calibration_error": float(calibration_error(errors, stds, found.level)),
        "ause": float(sparsification_error(errors, stds)),
        "rank": float(block_rank_correlation(*hidden)),
    }
    return {name: round(value, DIGITS) if math.isfinite(value) else None for name, value in numbers.items()}


def _coverage(level: float) -> str:
    return "coverage" if level == SHOWN else f"coverage_{round(100 * level)}"
