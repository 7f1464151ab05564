"""SATP, state-aware trajectory pruning: jump as far as the current uncertainty allows. LEADer, section 4.4.

Delta = max(1, floor(eta (B / (U_t + 1e-8))^(1/rho))) grid steps. The paper counts steps of the grid in use, and a jump may
lead to the clean image itself: t_next = max(0, t - Delta); `SATPPaper` is that. Ours, `SATP`: the formula means steps of a
100-step grid; on finer grids it is scaled by T/100, and on a non-uniform grid the farthest time not below t - 10 Delta is
taken. The last time before the clean image is always visited.
"""

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from leader.plugins.base import Plugin
from leader.schedule import Grid

FARTHEST = 10**6
"""Grid steps; no grid has as many."""


@dataclass(frozen=True)
class SATP(Plugin):
    """Prunes time steps that the current uncertainty shows to be redundant.

    >>> SATP().name, SATP.needs_sigma
    ('satp', True)
    """

    name: ClassVar[str] = "satp"
    label: ClassVar[str] = "SATP"
    summary: ClassVar[str] = "jumps over time steps that the current uncertainty shows to be redundant"
    needs_sigma: ClassVar[bool] = True

    budget: Annotated[float, "[0, inf)"] = 0.01
    """B, the information loss allowed per step; 0 switches pruning off."""
    eta: Annotated[float, "[0, inf)"] = 2.0
    """Scale of the jumps, calibrated once per prior and estimator."""
    rho: Annotated[float, "(0, inf)"] = 1.0
    """Order of the local error."""
    rule: Literal["scaled", "written"] = "scaled"
    """"scaled": Delta in steps of a 100-step grid, and the last time is visited; "written": in steps of the grid in use,
    down to the clean image.
    """

    def jump(self, uncertainty: float, scale: float = 1.0) -> int:
        """Delta in grid steps, from 1 to more than any grid has."""
        if self.budget == 0 or self.eta == 0:
            return 1
        try:
            reach: float = self.eta * (self.budget / (uncertainty + 1e-8)) ** (1 / self.rho)
        except OverflowError:  # a power beyond all floats: to the end of the run
            return FARTHEST
        return max(1, math.floor(min(reach * scale, FARTHEST)))

    def pace(self, grid: Grid, position: int, uncertainty: float) -> int:
        if self.budget == 0:
            return position + 1  # also where a non-uniform grid is finer than ten times a step
        if self.rule == "written":
            return min(position + self.jump(uncertainty), grid.farthest(position))
        end = max(grid.run_ends[position], position + 1)
        if grid.uniform:
            count = len(grid.times) - 1
            return min(position + self.jump(uncertainty, max(1.0, count / 100)), end)
        floor = grid.clock[position] - 10 * self.jump(uncertainty)
        target = position + 1
        while target < end and grid.clock[target + 1] >= floor:
            target += 1
        return target


@dataclass(frozen=True)
class SATPPaper(SATP):
    """SATP as the paper writes it: lines 12 to 14 of Algorithm 1, with B = 0.01 and rho = 1.

    >>> SATPPaper().name, SATPPaper.needs_sigma
    ('satp-paper', True)
    """

    name: ClassVar[str] = "satp-paper"
    label: ClassVar[str] = "SATP (paper)"
    summary: ClassVar[str] = "SATP as the paper writes it: B = 0.01, steps of the grid in use, down to the clean image"

    rule: Literal["scaled", "written"] = "written"
