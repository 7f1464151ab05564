"""A recipe: host, settings, grid, start and length, without task and photograph, and what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from measure import BACKWARD, work_table
from points import Point, Settings, Start, times_of

STEP = 20
"""Times between which the work of a call is taken as constant."""
STANDARD = 14.4
"""Full-resolution passes: 35 % of a hundred uniform steps."""


@dataclass(frozen=True)
class Recipe:
    """A point without its photograph; calls None: as many as fit into `STANDARD`."""

    method: str
    settings: Settings
    grid: str
    start: Start
    calls: int | None
    plugins: tuple[str, ...] = ()

    def point(self, task: str, index: int) -> Point:
        count = self.visits if self.calls is not None else fitting(self, STANDARD)
        times = times_of(self.grid, count, self.start)
        return Point(task, self.method, self.settings, times, self.grid, self.start, self.plugins, index)

    @property
    def visits(self) -> int:
        """Times that spend `calls`: SITCOM spends several on each."""
        assert self.calls is not None
        return max(2, self.calls // self.settings.get("inner", 30)) if self.method == "sitcom" else self.calls


def expected_cost(recipe: Recipe, times: Sequence[int]) -> float:
    """Full-resolution passes of a run over these times, backward passes included."""
    table = table_of_work()
    walk = [table[t - t % STEP] for t in times if t >= 0]
    if recipe.method == "dps":
        return (1 + BACKWARD) * sum(walk)
    if recipe.method == "sitcom":
        inner = int(recipe.settings.get("inner", 30))
        return (inner + BACKWARD * (inner - 1)) * sum(walk)
    return sum(walk) + (walk[0] if recipe.method == "projdiff" else 0.0)


@lru_cache(maxsize=1)
def table_of_work() -> dict[int, float]:
    return work_table(STEP)


def fitting(recipe: Recipe, passes: float) -> int:
    """The most times whose cost stays within `passes`."""
    count = 2
    while count < 100 and expected_cost(recipe, times_of(recipe.grid, count + 1, recipe.start)) <= passes:
        count += 1
    return count
