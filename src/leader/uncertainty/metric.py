"""The metric of a data step: how a misfit y - A x0 is shared out among pixels.

    x_hat = x0 + Sigma A^T (A Sigma A^T + sigma^2)^{-1} (y - A x0) = E[x0 | x_t, y]  if x0 | x_t ~ N(x0, Sigma)

Every method's data step is this with some Sigma. The papers' is a multiple of the identity, `Euclidean`: pixels are equally
uncertain and know nothing of each other. `Calibrated` takes the covariance that the prior itself reports at x_t: a misfit goes
to the pixels that are uncertain, the border of a hole reaches into it as far as pixels are correlated, and badly measured
components are left to the prior. Clean data are met exactly in either: Proposition 4.1 of LEADer holds in every metric.

Nearest: PiGDM (Sigma = c I), TMPD, MMPS, Peng et al. 2024, Free Hunch, which pay Jacobian products or keep one covariance. Here
Sigma comes from a head, times a fitted spectrum.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Protocol

import torch
from torch import Tensor

from leader.operators.base import Eta, LinearOperator, SpectralOperator
from leader.uncertainty.covariance import Covariance, share_out


class Metric(Protocol):
    """What a method's data step asks for. r = y - A x0 [B, ...] in the shape of y; answers are changes of x0 [B, C, H, W]."""

    def pinv(self, r: Tensor) -> Tensor:
        """The smallest change d, in this metric, with A d = r."""
        ...

    def regularised_pinv(self, r: Tensor, eta: Eta) -> Tensor:
        """W A^T (A W A^T + eta)^{-1} r, W of mean 1 on its diagonal; eta a float or [B]."""
        ...

    def expect(self, r: Tensor, sigma: Tensor, taken: bool = False) -> Tensor:
        """E[x0 | x_t, y] - E[x0 | x_t] for noise of standard deviation sigma [B]; 0 where the metric knows no scale.

        taken  whether the method takes the measured components from y itself, so that a metric may leave them alone
        """
        ...

    def scatter(self, white: Callable[[], Tensor]) -> Tensor | None:
        """The change [B, C, H, W] that turns x0 into a random draw, from standard normal numbers; None: x0 stays the mean."""
        ...


@dataclass(frozen=True)
class Euclidean:
    """All pixels alike: the operator's own inverses."""

    operator: LinearOperator

    def pinv(self, r: Tensor) -> Tensor:
        return self.operator.pinv(r)

    def regularised_pinv(self, r: Tensor, eta: Eta) -> Tensor:
        return self.operator.regularised_pinv(r, eta)

    def expect(self, r: Tensor, sigma: Tensor, taken: bool = False) -> Tensor:
        return torch.zeros(len(r), *self.operator.image_shape, dtype=r.dtype, device=r.device)

    def scatter(self, white: Callable[[], Tensor]) -> Tensor | None:
        return None


@dataclass(frozen=True)
class Calibrated:
    """The metric of one image with Cov[x0 | x_t] = `covariance`.

    operator    of that image
    mean        of the covariance's diagonal; a tensor stays on its device, where reading it would wait
    trust       of the data against the covariance: their variance is divided by it
    iterations  of a solve at most; it ends where its error is `visible` standard deviations, root mean square
    floor       the smallest variance of data inside a solve, as a share of the mean: an exact projection does the rest
    only_unmeasured  whether methods that take measured components from y themselves are told of the others alone
    scattered   standard deviations of the covariance with which x0 is drawn before the data step
    """

    covariance: Covariance
    operator: LinearOperator
    mean: float | Tensor
    trust: float
    iterations: int
    visible: float
    floor: float
    only_unmeasured: bool = False
    scattered: float = 0.0

    def pinv(self, r: Tensor) -> Tensor:
        change = self._share_out(r, 0.0)
        return change + self.operator.pinv(r - self.operator.A(change))

    def regularised_pinv(self, r: Tensor, eta: Eta) -> Tensor:
        """Below the floor f the rest is the operator's own: with K = A W A^T,

        (K + eta)^{-1} r = (K + f)^{-1} r + (K + eta)^{-1} q,   q = (f - eta) (K + f)^{-1} r = (1 - eta / f) (r - A change).
        """
        shift = float(torch.as_tensor(eta, dtype=torch.float64).max())
        change = self._share_out(r, shift * self.mean)
        if shift >= self.floor:
            return change
        left = r - self.operator.A(change)
        return change + self.operator.regularised_pinv((1 - shift / self.floor) * left, shift)

    def expect(self, r: Tensor, sigma: Tensor, taken: bool = False) -> Tensor:
        """With `only_unmeasured`, of components that are `taken` by the method nothing: it weighs each of them against its own
        noise, and would count y twice. Without correlations between measured components that is all that y says beyond it.
        """
        variance = float(sigma.max()) ** 2
        change = self._share_out(r, variance / self.trust) if variance > 0 else self.pinv(r)
        if not (taken and self.only_unmeasured and isinstance(self.operator, SpectralOperator)):
            return change
        part = self.operator.measured
        return change - part.back(part.to(change) * (part.s > 0).to(change))

    def scatter(self, white: Callable[[], Tensor]) -> Tensor | None:
        return self.scattered * self.covariance.draw(white()) if self.scattered > 0 else None

    def _share_out(self, r: Tensor, variance: float | Tensor) -> Tensor:
        """Sigma A^T (A Sigma A^T + variance)^{-1} r; never below the floor."""
        floor = torch.as_tensor(self.floor * self.mean, dtype=r.dtype, device=r.device)
        least = floor.clamp_min(torch.as_tensor(variance, dtype=r.dtype, device=r.device))
        return share_out(self.covariance, self.operator, least, r, self.iterations, self.visible)


@dataclass(frozen=True)
class ByImage:
    """A batch whose images have metrics of their own, of one kind: all of them scatter x0 or none."""

    metrics: Sequence[Metric]

    def pinv(self, r: Tensor) -> Tensor:
        return torch.cat([metric.pinv(r[i : i + 1]) for i, metric in enumerate(self.metrics)])

    def regularised_pinv(self, r: Tensor, eta: Eta) -> Tensor:
        shifts = torch.as_tensor(eta, dtype=torch.float64).expand(len(r))
        return torch.cat([metric.regularised_pinv(r[i : i + 1], shifts[i : i + 1]) for i, metric in enumerate(self.metrics)])

    def expect(self, r: Tensor, sigma: Tensor, taken: bool = False) -> Tensor:
        return torch.cat([metric.expect(r[i : i + 1], sigma[i : i + 1], taken) for i, metric in enumerate(self.metrics)])

    def scatter(self, white: Callable[[], Tensor]) -> Tensor | None:
        drawn = cache(white)

        def scatter_one(i: int) -> Tensor | None:
            return self.metrics[i].scatter(lambda: drawn()[i : i + 1])

        changes = [change for change in map(scatter_one, range(len(self.metrics))) if change is not None]
        return torch.cat(changes) if changes else None
