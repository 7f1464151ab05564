"""The Wiener factor: badly measured components are trusted only as far as their noise allows.

DDNM+ and DDRM move every measured component of x0 to y / s, however small its singular value s is; where sigma / s is far
above what photographs have there, the answer is noise up to 50 times too strong (docs/posterior-distance.md). This plug-in
multiplies what the data step changed, component by component of the operator's SVD, by

    s^2 C g / (s^2 C g + sigma^2),

C the variance of the component under the prior's Gaussian model. It trades LPIPS for PSNR (what comes in through those
components looks like texture): a tool for the faithful look. Noise-free data and operators without an SVD are left alone.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from leader.operators.base import SpectralOperator
from leader.plugins.base import Plugin
from leader.plugins.informed import model_of
from leader.priors.base import Prior
from leader.problem import Problem

DRAWS = 64
"""Pictures of the Gaussian model behind C: its error is sqrt(2 / 64) per component, far below the range of s^2 C / sigma^2."""
_VARIANCES: WeakKeyDictionary[Prior, WeakKeyDictionary[SpectralOperator, Tensor]] = WeakKeyDictionary()
"""C by prior and operator: made in the first step of a run, used in all of them."""


@dataclass(frozen=True)
class Wiener(Plugin):
    """Weakens the data step for components that are measured less precisely than the prior knows them.

    >>> Wiener().name, Wiener.needs_sigma
    ('wiener', False)
    """

    name: ClassVar[str] = "wiener"
    summary: ClassVar[str] = "trusts badly measured components only as far as the prior knows them less well"
    paper: ClassVar[str] = "this project: docs/start.md"

    trust: Annotated[float, "(0, inf)"] = 8.0
    """g, how many times the spread of the Gaussian model a picture may have; larger is closer to the plain host."""

    def settle(self, x0: Tensor, x0_hat: Tensor, prior: Prior, problem: Problem) -> Tensor:
        operator = problem.operator
        if problem.noise_free or not isinstance(operator, SpectralOperator):
            return x0_hat
        known = _VARIANCES.setdefault(prior, WeakKeyDictionary())
        if operator not in known:
            known[operator] = component_variances(prior, operator, problem.image_shape)
        power = operator.s.cpu() ** 2 * known[operator] * self.trust
        noise = problem.sigma_column(power) ** 2
        change = operator.to(x0_hat - x0)
        return x0 + operator.back(operator.cast(power / (power + noise), change) * change)


def component_variances(prior: Prior, operator: SpectralOperator, shape: tuple[int, int, int]) -> Tensor:
    """C: the variance of every component of the operator's SVD under the prior's Gaussian model, float64, in the shape of c."""
    like = torch.zeros(1, *shape)
    _, covariance = model_of(prior, like, "the Wiener factor", "wiener")
    generator = torch.Generator().manual_seed(0)
    total = torch.zeros((), dtype=torch.float64)
    for _ in range(DRAWS):
        draw = covariance.draw(torch.randn(1, *shape, generator=generator))
        total = total + operator.to(draw.to(like)).abs().double() ** 2
    return total.cpu() / DRAWS
