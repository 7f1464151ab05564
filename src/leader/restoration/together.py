"""Several pictures in one pass of the network, if that pays off: on a GPU, small ones of one size with the same settings.

Each gets the noise that it would get alone, so that its result is the same as alone, up to the rounding of a batch.
"""

import hashlib
import json
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

import torch
from torch import Tensor

from leader.censoring import Censored
from leader.noise import SeededNoise
from leader.operators.base import LinearOperator
from leader.operators.blur import Blur
from leader.operators.pillow_resize import PILLOW_DOWNSAMPLING
from leader.operators.pointwise import Colourisation, Denoising, Inpainting
from leader.operators.resize import AveragePoolSR, BicubicSR
from leader.operators.separable_blur import SeparableBlur
from leader.priors.ledger import Ledger
from leader.restoration.restore import Preparation
from leader.restoration.restored import Restoration
from leader.result import Result, drain
from leader.trust import Watch, add_errors
from leader.uncertainty.estimators import Hutchinson, make_estimator

T = TypeVar("T")
MOST_TOGETHER = 16
"""Pictures of one pass."""
MOST_PIXELS = 1 << 20
"""Of all pictures in one pass: a larger picture fills a GPU alone. Chosen without a GPU."""
_OPERATORS: set[type[LinearOperator]] = {Denoising, Inpainting, Colourisation, BicubicSR, AveragePoolSR, Blur, SeparableBlur}
_OPERATORS.update(PILLOW_DOWNSAMPLING.values())
"""Operators that follow from the options of their task and the size of the picture alone."""
_GRID = ("grid", "grid_clock", "grid_labels")
"""Settings in which pictures of one pass may differ: each walks its own times."""


def run_all(ready: Sequence[Preparation], check: bool = True) -> list[Restoration | Exception]:
    """Runs every preparation, similar ones together; an exception takes the place of its result."""
    found: dict[int, Restoration | Exception] = {}
    for rows in passes(ready):
        some = [ready[row] for row in rows]
        made = _try(partial(run_together, some, check)) if len(some) > 1 else None
        # a pass may fail because of one picture or the size of all: then each runs alone
        found.update(zip(rows, made if isinstance(made, list) else [_try(partial(one.run, check=check)) for one in some]))
    return [found[row] for row in range(len(ready))]


def _try(run: Callable[[], T]) -> T | Exception:
    try:
        return run()
    except Exception as error:
        return error


def passes(ready: Sequence[Preparation]) -> list[list[int]]:
    """Positions of the preparations that run together, in order."""
    kinds: dict[Hashable, list[int]] = {}
    for row, one in enumerate(ready):
        kinds.setdefault(_find_kind(one) or row, []).append(row)
    out = []
    for rows in kinds.values():
        _, height, width = ready[rows[0]].problem.image_shape
        count = max(1, min(MOST_TOGETHER, MOST_PIXELS // (height * width)))
        out += [rows[start : start + count] for start in range(0, len(rows), count)]
    return out


def _find_kind(one: Preparation) -> Hashable | None:
    """Equal for pictures that one pass can serve; None for one that runs alone."""
    problem = one.problem
    if one.sampler.prior.takes_one_by_one(problem.y.device) or one.average > 1 or problem.batch > 1:
        return None
    if type(problem.operator) not in _OPERATORS or _draws(one):
        return None
    options = {
        name: hashlib.sha256(value.cpu().numpy().tobytes()).hexdigest() if isinstance(value, Tensor) else value
        for name, value in one.posed.options.items()
    }
    settings = {name: value for name, value in one.plan.settings.items() if name not in _GRID}
    words = {"task": one.task, "options": options, "settings": settings}
    sizes = (type(problem.operator), problem.image_shape, tuple(problem.y.shape[1:]), problem.noise_free)
    return id(one.sampler.prior), sizes, one.seed, one.ids, one.threads, json.dumps(words, sort_keys=True, default=str)


def _draws(one: Preparation) -> bool:
    """Whether the estimator of Sigma draws numbers of its own, which follow an image's place in the batch."""
    plan = one.plan
    if plan.estimator is None:
        return False
    return isinstance(make_estimator(plan.estimator, one.sampler.prior, plan.settings["probes"]), Hutchinson)


def run_together(ready: Sequence[Preparation], check: bool = True) -> list[Restoration]:
    """One run of preparations of one kind."""
    begin = time.perf_counter()
    first = ready[0]
    alone = 0 if first.ids is None else first.ids[0]
    parts = [one.problem for one in ready]
    problem = replace(
        first.problem,
        y=torch.cat([part.y for part in parts]),
        sigma=torch.cat([part.sigma for part in parts]),
        censored=Censored.join([part.censored for part in parts], [part.y for part in parts]),
    )
    plan = replace(first.plan, grids=tuple(one.plan.grid for one in ready))
    seeded, watch, prior = SeededNoise(first.seed), Watch(first.sampler.prior.schedule), first.sampler.prior

    def noise(ids: Sequence[int], positions: Sequence[int], name: str, shape: Sequence[int]) -> Tensor:
        return seeded([alone] * len(ids), positions, name, shape)

    with first.use_resources():
        result = drain(first.sampler.iterate(problem, first.seed, noise=noise, plan=plan, looks=watch.find_looks), watch)
        result, maps = add_errors(prior, problem, result, watch)
    share = (time.perf_counter() - begin) / len(ready)
    return [
        one.finish(_take_row(result, row, alone, one), maps[row] if maps else None, time.perf_counter() - share, check)
        for row, one in enumerate(ready)
    ]


def _take_row(result: Result, row: int, name: int, one: Preparation) -> Result:
    """The result of the image in `row`, as it would be alone under its name."""

    def part(values: Tensor | None) -> Tensor | None:
        return None if values is None else values[row : row + 1]

    return replace(
        result,
        images=result.images[row : row + 1],
        posterior_std=part(result.posterior_std),
        error_std=part(result.error_std),
        trace={name: result.trace[row]},
        ledger=Ledger({name: result.ledger.rows[row]}),
        settings={**one.plan.settings, "seed": result.seed, "ids": [name]},
    )
