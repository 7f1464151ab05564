"""Running a cell whose error map is judged (`keep = ["trust"]`): what the trust map says against what the error is.

Records of experiments that do not ask for it depend on nothing here: their keys have no revision of the trust map.
"""

from __future__ import annotations

import math
import time

import torch
from torch import Tensor

from leader.bench.cell import BASELINES, Cell
from leader.bench.measures import DIGITS, counts, scores
from leader.bench.priors import open_prior
from leader.bench.records import Record
from leader.bench.running import open_cell
from leader.bench.setup import sampler_of
from leader.errors import LeaderError
from leader.metrics.uncertainty import block_rank_correlation, calibration_error, interval_coverage, sparsification_error
from leader.trust.calibration import SHOWN
from leader.trust.error_map import ErrorMap, error_map, is_in_metric
from leader.trust.evidence import Watch, gather


def trusted_numbers(cell: Cell, metrics: tuple[str, ...]) -> Record:
    """All that is measured of a cell, with the scores of `metrics` and of its error map; no pictures."""
    recipe = cell.recipe
    if recipe.method in BASELINES:
        raise LeaderError(f"The baseline '{recipe.method}' has no error map; leave its row out, or 'trust' out of keep.")
    picture, problem = open_cell(cell)
    prior = open_prior(recipe.prior, recipe.size, recipe.device)
    watch = Watch(prior.schedule)
    started = time.perf_counter()
    result = sampler_of(recipe, prior).run(problem, recipe.seed, ids=[cell.index], on_step=watch)
    between = time.perf_counter()
    evidence = gather(prior, problem, result.images, watch, cell.index)
    found = None if evidence is None else error_map(prior, problem, evidence, metric=is_in_metric(result))
    ended = time.perf_counter()
    if evidence is None or found is None:
        raise LeaderError(f"The prior '{recipe.prior}' has no referee, or estimated no Sigma; run `leader fit-trust` first.")
    numbers: Record = {**counts(result, cell.index, recipe.size), **scores(result.images, picture, problem, metrics)}
    if recipe.timing:
        numbers |= {"seconds": round(between - started, 4), "trust_seconds": round(ended - between, 4)}
    return numbers | judged(found, evidence.restored - (2 * picture[0] - 1), evidence.open)


def judged(found: ErrorMap, error: Tensor, is_open: Tensor) -> Record:
    """Coverage, calibration error, AUSE and rank of an error map, of an error [C, H, W], over the open pixels [H, W] bool."""
    if not bool(is_open.any()):
        raise LeaderError("Every pixel is known, so there is no error map to judge; choose another task.")
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
