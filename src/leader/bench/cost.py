"""What a cell will cost, before it runs."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from functools import lru_cache

from leader.bench.cell import BASELINES, Cell, Recipe
from leader.bench.setup import plan_of

BACKWARD_PASSES = 2.0
"""A backward pass costs about as much as two forward passes."""


@dataclass(frozen=True)
class Bill:
    """The cost of a whole run, or of several: upper bounds, a pacer or an early stop may save some.

    calls      forward evaluations of the network
    backwards  reverse-mode passes
    passes     full-resolution forward passes that all of it amounts to (calls x prior.work / pixels)
    """

    calls: int = 0
    backwards: int = 0
    passes: float = 0.0

    def __add__(self, other: Bill) -> Bill:
        return Bill(self.calls + other.calls, self.backwards + other.backwards, self.passes + other.passes)


def cost_of(cell: Cell, fallback_steps: int = 100) -> Bill:
    """The cost of a cell; where its steps depend on another's calls, that of `fallback_steps`."""
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
    passes = (each.forward + BACKWARD_PASSES * each.backward) * sum(share) + each.start * share[0]
    return Bill(each.forward * len(visited) + each.start, each.backward * len(visited), passes)
