"""From a recipe to the objects that run it: operator, sampler, plan."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

import torch

from leader.bench.cell import Frozen, Recipe
from leader.bench.priors import stand_in
from leader.errors import LeaderError
from leader.operators.base import LinearOperator
from leader.operators.tasks import build_task
from leader.priors.base import Prior
from leader.problem import Problem
from leader.sampler import Plan, Sampler


@lru_cache(maxsize=512)
def plan_of(recipe: Recipe) -> tuple[Plan, Prior]:
    """The resolved settings of a recipe, without running it, and the prior they hold for."""
    prior = stand_in(recipe.prior, recipe.size)
    operator = operator_of(recipe, 0)
    blank = torch.zeros(1, *operator.measurement_shape)
    with _explaining(f"The method '{recipe.method}' cannot run with the settings {recipe.settings}"):
        return sampler_of(recipe, prior).plan(Problem(blank, operator, recipe.sigma)), prior


def sampler_of(recipe: Recipe, prior: Prior) -> Sampler:
    """The sampler that a recipe asks for."""
    if recipe.steps is None:
        raise LeaderError("A row that takes its steps from another one's calls was asked for alone; run that row first.")
    return Sampler(
        prior,
        recipe.method,
        recipe.plugins,
        recipe.steps,
        grid=recipe.grid,
        estimator=recipe.estimator,
        **recipe.settings.plain(),
    )


def operator_of(recipe: Recipe, index: int) -> LinearOperator:
    """The operator for the image at that position; a process keeps the last few."""
    return _operator(recipe.task, recipe.shape, recipe.options_at(index))


@lru_cache(maxsize=32)
def _operator(task: str, shape: tuple[int, int, int], options: Frozen) -> LinearOperator:
    with _explaining(f"The task '{task}' cannot be built with the options {options}"):
        return build_task(task, shape, **options.plain())


@contextmanager
def _explaining(what: str) -> Iterator[None]:
    """Turns what wrong values in an experiment's file lead to into one sentence."""
    try:
        yield
    except LeaderError:
        raise
    except (TypeError, ValueError, ArithmeticError, AttributeError, LookupError, RuntimeError) as error:
        raise LeaderError(f"{what} ({error}); correct them in the experiment's file.") from error
