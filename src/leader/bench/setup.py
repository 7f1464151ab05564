"""Builds the objects that run a recipe (operator, sampler, plan), and estimates the cost."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any

import torch

from leader.bench.cell import BASELINES, Cell, Frozen, Recipe
from leader.bench.priors import stand_in
from leader.errors import LeaderError
from leader.operators.base import LinearOperator
from leader.operators.blur import Blur
from leader.operators.tasks import build_task
from leader.priors.base import Prior
from leader.problem import Problem
from leader.sampler import Plan, Sampler
from leader.uncertainty.estimators import count_derivatives

BACKWARD_PASSES = 2.0
"""A backward pass costs about as much as two forward passes."""
JVP_PASSES = 2.0
"""So does a forward-mode derivative, which also recomputes the value."""


@lru_cache(maxsize=512)
def plan_of(recipe: Recipe) -> tuple[Plan, Prior]:
    """The resolved settings of a recipe, without running it, and their prior."""
    prior = stand_in(recipe.prior, recipe.size)
    problem = _blank_problem(recipe.task, recipe.shape, recipe.options_at(0), recipe.sigma)
    return sampler_of(recipe, prior).plan(problem), prior


@lru_cache(maxsize=32)
def _blank_problem(task: str, shape: tuple[int, int, int], options: Frozen, sigma: float) -> Problem:
    operator = _operator(task, shape, options)
    return Problem(torch.zeros(1, *operator.measurement_shape), operator, sigma)


def sampler_of(recipe: Recipe, prior: Prior) -> Sampler:
    if recipe.steps is None:
        raise LeaderError("This row takes its steps from the calls of another row, which has no record; run that row first.")
    return Sampler(
        prior,
        recipe.method,
        recipe.plugins,
        recipe.steps,
        grid=recipe.grid,
        estimator=recipe.estimator.plain() if isinstance(recipe.estimator, Frozen) else recipe.estimator,
        **recipe.settings.plain(),
    )


def operator_of(recipe: Recipe, index: int) -> LinearOperator:
    """The operator for the image at that position; the last few are cached."""
    return _operator(recipe.task, recipe.shape, recipe.options_at(index))


def operator_for(recipe: Recipe, indices: Sequence[int]) -> LinearOperator | None:
    """One operator for several images; None if each image has its own and they cannot be combined."""
    ones = [operator_of(recipe, index) for index in indices]
    first = ones[0]
    if all(one is first for one in ones):
        return first
    if not all(type(one) is Blur for one in ones):
        return None
    joint = Blur(recipe.shape, torch.cat([one.kernel for one in ones if isinstance(one, Blur)]))
    joint.task = first.task
    return joint


@lru_cache(maxsize=32)
def _operator(task: str, shape: tuple[int, int, int], options: Frozen) -> LinearOperator:
    with _explaining(f"The task '{task}' cannot be built with the options {options}"):
        return build_task(task, shape, **options.plain())


@contextmanager
def _explaining(what: str) -> Iterator[None]:
    """Converts errors caused by wrong values in an experiment's file to one sentence."""
    try:
        yield
    except LeaderError:
        raise
    except (TypeError, ValueError, ArithmeticError, AttributeError, LookupError, RuntimeError) as error:
        raise LeaderError(f"{what} ({error}); correct them in the experiment's file.") from error


@dataclass(frozen=True)
class Bill:
    """The cost of one or several runs: upper bounds, since a pacer or an early stop may save some.

    calls      forward evaluations of the network
    jvps       forward-mode derivatives, for Sigma if the prior predicts no variance
    backwards  reverse-mode passes
    passes     equivalent full-resolution forward passes (calls x prior.work / pixels)
    """

    calls: int = 0
    jvps: int = 0
    backwards: int = 0
    passes: float = 0.0

    def __add__(self, other: Bill) -> Bill:
        return Bill(*(getattr(self, item.name) + getattr(other, item.name) for item in fields(self)))


def cost_of(cell: Cell, fallback_steps: int = 100) -> Bill:
    """The cost of a cell; if its steps depend on another cell's calls, with `fallback_steps`."""
    if cell.recipe.method in BASELINES:
        return Bill()
    return _cost(cell.recipe if cell.recipe.steps is not None else replace(cell.recipe, steps=fallback_steps))


@lru_cache(maxsize=4096)
def _cost(recipe: Recipe) -> Bill:
    plan, prior = plan_of(recipe)
    times = plan.grid.times
    visited = [now for now, after in itertools.pairwise(times) if after <= now]
    each = plan.method.cost
    share = [prior.work(t, recipe.size, recipe.size) / recipe.size**2 for t in visited]
    own = count_derivatives(plan.estimator, prior, math.prod(recipe.shape), len(visited), plan.settings["probes"])
    passes = count_passes(each.forward, 0, each.backward) * sum(share) + each.start * share[0]
    passes += count_passes(own.calls, own.jvps, own.backwards) * sum(share) / len(share)
    calls, backwards = each.forward * len(visited) + each.start + own.calls, each.backward * len(visited) + own.backwards
    return Bill(calls, own.jvps, backwards, passes)


def count_passes(calls: float, jvps: float, backwards: float) -> float:
    """Evaluations and derivatives of the network as equivalent forward passes."""
    return calls + JVP_PASSES * jvps + BACKWARD_PASSES * backwards


def work_of(record: Mapping[str, Any]) -> float | None:
    """Full-resolution passes of a record's run, derivatives included; a derivative has the size of the run's mean call.

    A record's own "work" counts only calls.
    """
    work = record.get("work")
    if work is None or not record.get("calls"):
        return None if work is None else float(work)
    calls, jvps, backwards = (float(record.get(name) or 0) for name in ("calls", "jvps", "backwards"))
    return float(work) * count_passes(calls, jvps, backwards) / calls
