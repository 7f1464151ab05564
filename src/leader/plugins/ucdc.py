"""UCDC, uncertainty-calibrated data consistency: the host's data step in the metric of Sigma.

    x_hat = x0 + Sigma A^T (A Sigma A^T + sigma^2)^{-1} (y - A x0)

This is LEADer's own objective, 1/2 (x - x0)^T Sigma^{-1} (x - x0), minimised under the data instead of before a projection that
takes all pixels for equally uncertain. Methods use it through the `metric` of their Context (`leader.uncertainty.metric`):

    DDNM, ProjDiff (clean data)      x0 + metric.pinv(y - A x0), still exactly consistent
    DiffPIR, DDPG, IDPG, PIRP        metric.regularised_pinv in the place of A^T (A A^T + eta)^{-1}
    DDNM+, DDRM, ProjDiff (noise)    E[x0 | x_t, y] before their split into components, which keeps its noise levels
    RePaint, MCG                     E[x0 | x_t, y] in DDPM's step, for MCG in the place of its gradient; they replace as before
    SITCOM (noise)                   E[x0 | x_t, y] of what its inner loop found
    RED-diff                         E[x0 | x_t, y] in the place of the network's estimate
    DCDP                             E[x0 | x_t, y] in the place of its descent
    DAPS                             its Langevin steps begin at E[x0 | x_t, y]
    DPS, PiGDM                       unchanged: a gradient through the network is Sigma A^T r already, by Tweedie's formula
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

import torch
from torch import Tensor

from leader.plugins.base import MapName, Plugin, StepInfo, map_sigma
from leader.plugins.opposed import Opposed
from leader.priors.base import Prior
from leader.problem import Problem
from leader.schedule import Grid
from leader.uncertainty.covariance import error_covariance, independent
from leader.uncertainty.metric import ByImage, Calibrated, Metric

EARLY = 700
"""Time of the standard clock from which on a picture is hardly more than its mean colours."""
SMALLEST = 1e-8
"""A variance of 0 would take a pixel out of every data step."""


@dataclass(frozen=True)
class UCDC(Plugin):
    """The host's data step in the metric of the local uncertainty.

    >>> UCDC().name, UCDC.needs_sigma
    ('ucdc', True)
    """

    name: ClassVar[str] = "ucdc"
    label: ClassVar[str] = "UCDC"
    summary: ClassVar[str] = "takes the data step in the metric of the local uncertainty"
    paper: ClassVar[str] = "this project: docs/metric.md"
    needs_sigma: ClassVar[bool] = True
    gives_metric: ClassVar[bool] = True
    draws: ClassVar[tuple[str, ...]] = ("scatter",)

    covariance: Literal["full", "diagonal"] = "full"
    """"full": pixels are correlated as the prior's fitted spectrum says; "diagonal": each knows itself alone."""
    power: Annotated[float, "[0, inf)"] = 1.0
    """Of the local variance: Sigma^power, its mean kept."""
    trust: Annotated[float, "(0, inf)"] = 1.0
    """In noisy data: their variance is divided by it where E[x0 | x_t, y] is formed; below 1 believes the network more."""
    iterations: Annotated[int, "[1, 1000]"] = 4
    """Of a step's conjugate gradients at most."""
    early: Annotated[int, "[0, 1000]"] = field(default=0, metadata={"later": True})
    """As many at most at times of `EARLY` and above, where longer solves gain nothing; 0: as many as later."""
    visible: Annotated[float, "[0, inf)"] = 0.02
    """A solve ends where its error is this share of a standard deviation, root mean square."""
    floor: Annotated[float, "(0, inf)"] = 0.01
    """The smallest variance of data inside a solve, as a share of the mean of Sigma; clean data are met exactly afterwards."""
    share: Annotated[float, "(0, 1]"] = 1.0
    """Of the correlation's variance: only the low frequencies that hold so much count. Below 1 high noise costs less."""
    narrow: Annotated[float, "(0, 1]"] = field(default=1.0, metadata={"later": True})
    """The correlation is that of this share of the time t: a state that has taken up y is less wrong at low frequencies."""
    only_unmeasured: bool = False
    """Whether DDNM+, DDRM, ProjDiff, RePaint and MCG, which take measured components from noisy data themselves, get
    E[x0 | x_t, y] of the others alone.
    """
    map: MapName = "local"
    """"local": Sigma itself; "mean": its mean U_t; "shuffle": its pixels in random order. The latter two are ablations."""
    scatter: Annotated[float, "[0, 2]"] = field(default=0.0, metadata={"later": True})
    """Standard deviations of Sigma by which x0 is drawn at random before every data step but the last; 0: the mean."""
    opposed: Annotated[int, "[0, 999]"] = field(default=0, metadata={"later": True})
    """The time, on the standard clock, from which on the noise of every two steps in a row adds up to nothing, as with the
    plug-in `opposed`; 0: all draws are independent.
    """

    def oppose(self, white: Callable[[int], Tensor], name: str, grid: Grid, position: int) -> Tensor | None:
        return Opposed(first=self.opposed).oppose(white, name, grid, position) if self.opposed > 0 else None

    def metric(self, prior: Prior, sigma: Tensor, info: StepInfo, problem: Problem) -> Metric:
        spread = self._shape_variance(map_sigma(sigma, self.map, info))
        metrics = [self._of_image(prior, spread[row : row + 1], info, problem, row) for row in range(len(info.ids))]
        return metrics[0] if len(metrics) == 1 else ByImage(metrics)

    def _of_image(self, prior: Prior, spread: Tensor, info: StepInfo, problem: Problem, row: int) -> Metric:
        operator = problem.operator if problem.batch == 1 else problem.operator.select(torch.tensor([row]))
        if self.covariance == "diagonal":
            covariance = independent(spread)
        else:
            covariance = error_covariance(
                prior, int(info.t[row]), spread, info.positions[row] % 2 == 1, share=self.share, narrow=self.narrow
            )
        few = self.early > 0 and info.grids[row].clock[info.positions[row]] >= EARLY
        return Calibrated(
            covariance,
            operator,
            spread.mean(),
            self.trust,
            min(self.iterations, self.early) if few else self.iterations,
            self.visible,
            self.floor,
            self.only_unmeasured,
            self.scatter,
        )

    def _shape_variance(self, sigma: Tensor) -> Tensor:
        """Sigma to the power asked for, the mean of every image kept."""
        spread = sigma.clamp_min(SMALLEST)
        if self.power == 1:
            return spread
        shaped = spread**self.power
        return shaped * (spread.mean((1, 2, 3), keepdim=True) / shaped.mean((1, 2, 3), keepdim=True))
