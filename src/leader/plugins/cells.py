"""Cells: after every data step the estimate is moved to where the measurement says that the truth lies.

JPEG gives more than a noisy measurement: every coefficient of the true picture lies in its cell, within half a step of the
stored multiple, and those that were rounded to zero, which count as unmeasured, lie within half a step of zero. Operators that
know such cells have `confine`; for all others this plug-in does nothing. It acts before colours are clipped, with every host.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from torch import Tensor

from leader.operators.jpeg import Jpeg
from leader.plugins.base import Plugin
from leader.plugins.informed import by_time
from leader.priors.base import Prior
from leader.problem import Problem
from leader.schedule import Grid, grid_on, noise_grid


@dataclass(frozen=True)
class Cells(Plugin):
    """Keeps the coefficients of a JPEG in their cells, and may begin from the decoded picture.

    >>> Cells().name, Cells.needs_sigma
    ('cells', False)
    """

    name: ClassVar[str] = "cells"
    summary: ClassVar[str] = "keeps every coefficient of a JPEG within half a step of its value in the file"
    paper: ClassVar[str] = "this project: docs/jpeg.md"
    begins: ClassVar[bool] = True

    begin: Annotated[float | None, "(0, inf)"] = None
    """The noise level at which a run begins from the decoded picture, over sigma; None: where the host begins, from noise."""
    fresh: Annotated[float, "[0, 1]"] = 1.0
    """Share of that noise that is drawn: 0 treats the error of the compression as all of it and draws none."""
    inner: Annotated[float, "[0, 1]"] = 1.0
    """Share of every cell, around the value in the file, to which a result without a data step of its own is confined: the last
    evaluation of DiffPIR, which smooths. Smaller values keep more of the file's contrast (docs/jpeg.md).
    """

    def grid(self, grid: Grid, prior: Prior, problem: Problem) -> Grid:
        if self.begin is None or not isinstance(problem.operator, Jpeg):
            return grid
        clock = prior.schedule.clock_of(int(self._first(prior, problem)[0]))
        count = min(grid.visits, clock + 1)
        return by_time(grid_on(prior.schedule, count, lambda steps, total: noise_grid(steps, total, clock)))

    def origin(self, prior: Prior, problem: Problem, noise: Callable[[str], Tensor]) -> Tensor | None:
        operator = problem.operator
        if self.begin is None or not isinstance(operator, Jpeg):
            return None
        level = prior.schedule.level(self._first(prior, problem), problem.y)
        return operator.decoded(problem.y) - (1 - self.fresh) * level.sigma * noise("start")

    def _first(self, prior: Prior, problem: Problem) -> Tensor:
        """The first time of every image, LongTensor [B]."""
        assert self.begin is not None
        return torch.tensor([prior.schedule.nearest(self.begin * sigma) for sigma in problem.sigma.tolist()])

    def settle(self, x0: Tensor, x0_hat: Tensor, prior: Prior, problem: Problem) -> Tensor:
        operator = problem.operator
        if not isinstance(operator, Jpeg):
            return x0_hat
        untouched = (x0_hat == x0).flatten(1).all(1, keepdim=True)
        return operator.confine(x0_hat, problem.y, torch.where(untouched, self.inner, 1.0).to(x0_hat))
