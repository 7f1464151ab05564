"""Cells: after every data step the estimate is moved to where the measurement says that the truth lies.

JPEG gives more than a noisy measurement: every coefficient of the true picture lies in its cell, within half a step of the
stored multiple, and those that were rounded to zero, which count as unmeasured, lie within half a step of zero. Operators that
know such cells have `confine`; for all others this plug-in does nothing. It acts before colours are clipped, with every host.

With `doubt` it is the data step itself: the network says what every coefficient is, and by Sigma how well it knows that; the
answer is the mean of such a normal variable within its cell, exactly (`leader.censoring.mean_between`). A host with a data step
of its own would take the estimate to the middle of the cells a second time: DiffPIR has none where its lam is large.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from torch import Tensor

from leader.operators.jpeg import Jpeg
from leader.plugins.base import Plugin, StepInfo
from leader.plugins.informed import by_time
from leader.priors.base import Prior
from leader.problem import Problem
from leader.schedule import Grid


@dataclass(frozen=True)
class Cells(Plugin):
    """Keeps the coefficients of a JPEG in their cells, and may begin from the decoded picture.

    >>> Cells().name, Cells.needs_sigma
    ('cells', True)
    """

    name: ClassVar[str] = "cells"
    summary: ClassVar[str] = "keeps every coefficient of a JPEG within half a step of its value in the file"
    paper: ClassVar[str] = "this project: docs/jpeg.md"
    begins: ClassVar[bool] = True
    needs_sigma: ClassVar[bool] = True
    mirrors: ClassVar[bool] = True
    revision: ClassVar[int] = 2

    begin: Annotated[float | None, "(0, inf)"] = None
    """The noise level at which a run begins from the decoded picture, over sigma; None: where the host begins, from noise."""
    end: Annotated[float, "(0, inf)"] = 0.7
    """The last noise level over sigma, where a run begins from the decoded picture; those between have equal ratios."""
    doubt: Annotated[float | None, "(0, inf)"] = None
    """Standard deviation of an estimated coefficient over that which Sigma says, which is blind to the compression: estimates
    become means within the cells. None: they are only kept inside.
    """
    enlarge_luma: Annotated[float, "[0, 1]"] = 0.0
    """Share by which coefficients that were rounded to zero are enlarged in every step, with `doubt`: smoothing again and again
    shrinks what nothing holds.
    """
    enlarge_chroma: Annotated[float, "[0, 1]"] = 0.0
    inner: Annotated[float, "[0, 1]"] = 1.0
    """Share of every cell, around the value in the file, to which a result without a data step of its own is confined: the last
    evaluation of DiffPIR, which smooths. Smaller values keep more of the file's contrast (docs/jpeg.md).
    """

    def grid(self, grid: Grid, prior: Prior, problem: Problem) -> Grid:
        if self.begin is None or not isinstance(problem.operator, Jpeg):
            return grid
        sigma, ratio = float(problem.sigma[0]), self.end / self.begin
        levels = [self.begin * ratio ** (i / max(1, grid.visits - 1)) for i in range(grid.visits)]
        found = {prior.schedule.nearest(level * sigma) for level in levels}  # few times lie at little noise
        times = (*sorted(found, reverse=True), -1)
        return by_time(Grid(times, clock=tuple(prior.schedule.clock_of(time) if time >= 0 else -1 for time in times)))

    def origin(self, prior: Prior, problem: Problem, noise: Callable[[str], Tensor]) -> Tensor | None:
        operator = problem.operator
        return operator.decoded(problem.y) if self.begin is not None and isinstance(operator, Jpeg) else None

    def modulate(self, x0: Tensor, sigma: Tensor, info: StepInfo, problem: Problem) -> Tensor:
        operator = problem.operator
        if self.doubt is None or not isinstance(operator, Jpeg):
            return x0
        larger = operator.enlarge_open(x0, self.enlarge_luma, self.enlarge_chroma)
        return operator.expect(larger, problem.y, self.doubt**2 * operator.variances(sigma))

    def settle(self, x0: Tensor, x0_hat: Tensor, prior: Prior, problem: Problem) -> Tensor:
        operator = problem.operator
        if not isinstance(operator, Jpeg):
            return x0_hat
        untouched = (x0_hat == x0).flatten(1).all(1, keepdim=True)
        return operator.confine(x0_hat, problem.y, torch.where(untouched, self.inner, 1.0).to(x0_hat))
