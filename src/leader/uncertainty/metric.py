"""The metric of a data step: how a misfit y - A x0 is shared out among pixels.

    x_hat = x0 + Sigma A^T (A Sigma A^T + sigma^2)^{-1} (y - A x0) = E[x0 | x_t, y]  if x0 | x_t ~ N(x0, Sigma)

Every method's data step is this with some Sigma. The papers' is a multiple of the identity, `Euclidean`: pixels are equally
uncertain and know nothing of each other. `Calibrated` takes the covariance that the prior itself reports at x_t: a misfit goes
to the pixels that are uncertain, the border of a hole reaches into it as far as pixels are correlated, and badly measured
components are left to the prior. Data without noise are met exactly in either (Proposition 4.1 of LEADer holds in every metric).

Nearest: PiGDM (Sigma = c I), TMPD, MMPS, Peng et al. 2024, Free Hunch, which pay Jacobian products or keep one covariance. Here
Sigma comes from a head, times a fitted spectrum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor

from leader.operators.base import Eta, LinearOperator
from leader.uncertainty.covariance import Covariance, dct_gain, solve_in_white

VISIBLE = 0.02
"""A solve ends where its error is below this share of a standard deviation of Sigma, root mean square: nothing shows it."""
CLEANEST = 1e-2
"""Data are not trusted beyond this share of the mean variance inside a solve; an exact projection does the rest."""


class Metric(Protocol):
    """What a method's data step asks for. r = y - A x0 [B, ...] in the shape of y; answers are changes of x0 [B, C, H, W]."""

    def pinv(self, r: Tensor) -> Tensor:
        """The smallest change d, in this metric, with A d = r."""
        ...

    def regularised_pinv(self, r: Tensor, eta: Eta) -> Tensor:
        """W A^T (A W A^T + eta)^{-1} r, W of mean 1 on its diagonal; eta a float or [B]."""
        ...

    def expect(self, r: Tensor, sigma: Tensor) -> Tensor:
        """E[x0 | x_t, y] - E[x0 | x_t] for noise of standard deviation sigma [B]; 0 where the metric knows no scale."""
        ...


@dataclass(frozen=True)
class Euclidean:
    """All pixels alike: the operator's own inverses."""

    operator: LinearOperator

    def pinv(self, r: Tensor) -> Tensor:
        return self.operator.pinv(r)

    def regularised_pinv(self, r: Tensor, eta: Eta) -> Tensor:
        return self.operator.regularised_pinv(r, eta)

    def expect(self, r: Tensor, sigma: Tensor) -> Tensor:
        return torch.zeros(len(r), *self.operator.image_shape, dtype=r.dtype, device=r.device)


@dataclass
class Memory:
    """What solves of a run leave for the next ones.

    white  white coordinates of every image's last solve: the next one starts there
    gain   what A^T A does to every frequency, measured once
    """

    white: dict[int, Tensor] = field(default_factory=dict)
    gain: dict[int, Tensor] = field(default_factory=dict)


@dataclass(frozen=True)
class Calibrated:
    """Sigma = `covariance` of one image; `scale` is the mean of its diagonal.

    operator    of that image
    iterations  of a solve at most
    memory      of the run, with the image's name: where the last solve ended
    """

    covariance: Covariance
    operator: LinearOperator
    scale: float
    iterations: int
    memory: Memory
    name: int

    def pinv(self, r: Tensor) -> Tensor:
        change = self._solve(r, CLEANEST * self.scale)
        return change + self.operator.pinv(r - self.operator.A(change))

    def regularised_pinv(self, r: Tensor, eta: Eta) -> Tensor:
        return self._solve(r, float(torch.as_tensor(eta).max()) * self.scale)

    def expect(self, r: Tensor, sigma: Tensor) -> Tensor:
        return self._solve(r, float(sigma.max()) ** 2)

    def _solve(self, r: Tensor, noise: float) -> Tensor:
        """Sigma A^T (A Sigma A^T + noise)^{-1} r, not trusting data beyond CLEANEST."""
        variance = max(noise, CLEANEST * self.scale)
        memory, name = self.memory, self.name
        if self.covariance.easing is not None and name not in memory.gain:
            memory.gain[name] = dct_gain(self.operator, self.operator.AT(r))
        start, gain = None, None
        white = solve_in_white(self.covariance, self.operator, variance, r, self.iterations, VISIBLE, start, gain)
        memory.white[name] = white
        return self.covariance.root(white)


@dataclass(frozen=True)
class ByImage:
    """A batch whose images have metrics of their own."""

    metrics: Sequence[Metric]

    def pinv(self, r: Tensor) -> Tensor:
        return torch.cat([metric.pinv(r[i : i + 1]) for i, metric in enumerate(self.metrics)])

    def regularised_pinv(self, r: Tensor, eta: Eta) -> Tensor:
        shifts = torch.as_tensor(eta).expand(len(r))
        return torch.cat([metric.regularised_pinv(r[i : i + 1], shifts[i : i + 1]) for i, metric in enumerate(self.metrics)])

    def expect(self, r: Tensor, sigma: Tensor) -> Tensor:
        return torch.cat([metric.expect(r[i : i + 1], sigma[i : i + 1]) for i, metric in enumerate(self.metrics)])
