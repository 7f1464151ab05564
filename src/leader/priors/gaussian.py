"""Analytic priors: Gaussians and mixtures of Gaussians, with closed-form x0, Sigma_t and posteriors.

Every method, estimator and plug-in is tested against them. A Gaussian is diagonal in an orthonormal basis,
either the pixels (independent pixels, any variances) or the Fourier basis (stationary, a power spectrum).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from leader.errors import LeaderError
from leader.operators.base import LinearOperator
from leader.priors.base import Prediction, Prior, check_size, from_x0
from leader.schedule import Schedule


@dataclass(frozen=True)
class Gaussian:
    """N(mean, C) over images [C, H, W], float64.

    mean       [C, H, W]
    variances  eigenvalues of C, [C, H, W]: of the pixels, or of the unitary 2-D Fourier basis (then symmetric: P(-k) = P(k))
    fourier    which of the two
    """

    mean: Tensor
    variances: Tensor
    fourier: bool = False

    def to(self, x: Tensor) -> Tensor:
        """Coordinates in the eigenbasis."""
        return torch.fft.fft2(x, norm="ortho") if self.fourier else x

    def back(self, c: Tensor) -> Tensor:
        return torch.fft.ifft2(c, norm="ortho").real if self.fourier else c

    def scale(self, x: Tensor, gain: Tensor) -> Tensor:
        """The matrix with eigenvalues `gain` applied to x."""
        return self.back(gain * self.to(x))

    def diagonal(self, eigenvalues: Tensor) -> Tensor:
        """The diagonal, in pixels, of the matrix with these eigenvalues."""
        if not self.fourier:
            return eigenvalues
        return eigenvalues.mean((-2, -1), keepdim=True).expand_as(eigenvalues)

    def covariance(self) -> Tensor:
        """C as a dense matrix [N, N]. For small images."""
        size = self.mean.numel()
        rows = torch.eye(size, dtype=torch.float64).reshape(size, *self.mean.shape)
        return self.scale(rows, self.variances).reshape(size, size)

    def sample(self, count: int, generator: torch.Generator) -> Tensor:
        """Draws, [count, C, H, W] float64."""
        white = torch.randn(count, *self.mean.shape, generator=generator, dtype=torch.float64)
        return self.mean + self.scale(white, self.variances.sqrt())

    def log_density(self, x: Tensor, abar: Tensor) -> Tensor:
        """log N(x; sqrt(abar) mean, abar C + 1 - abar), [B]; abar float64 [B, 1, 1, 1]."""
        spread = abar * self.variances + 1 - abar
        energy = self.to(x.double() - abar.sqrt() * self.mean).abs() ** 2 / spread
        return -0.5 * (energy + spread.log()).sum((1, 2, 3))

    def posterior(self, operator: LinearOperator, y: Tensor, sigma: float) -> tuple[Tensor, Tensor]:
        """Mean [C, H, W] and dense covariance [N, N] of x given y = A x + sigma z, one measurement y without batch axis."""
        columns, residual, data = self._measured(operator, y, sigma)
        cov = self.covariance()
        gain = torch.linalg.lstsq(data, columns @ cov, driver="gelsd").solution.T
        return self.mean + (gain @ residual).reshape(self.mean.shape), cov - gain @ columns @ cov

    def evidence(self, operator: LinearOperator, y: Tensor, sigma: float) -> Tensor:
        """log p(y), up to a constant that all Gaussians share."""
        _, residual, data = self._measured(operator, y, sigma)
        evidence: Tensor = -0.5 * (residual @ torch.linalg.solve(data, residual) + torch.logdet(data))
        return evidence

    def _measured(self, operator: LinearOperator, y: Tensor, sigma: float) -> tuple[Tensor, Tensor, Tensor]:
        """Dense A [M, N], y minus its mean [M], and the covariance of y [M, M]."""
        size = self.mean.numel()
        columns = operator.A(torch.eye(size, dtype=torch.float64).reshape(size, *self.mean.shape)).reshape(size, -1).T
        data = columns @ self.covariance() @ columns.T + sigma**2 * torch.eye(len(columns), dtype=torch.float64)
        return columns, y.double().reshape(-1) - columns @ self.mean.reshape(-1), data


def white(shape: tuple[int, int, int], std: float, mean: float = 0.0) -> Gaussian:
    """Independent pixels of one standard deviation."""
    return Gaussian(torch.full(shape, mean, dtype=torch.float64), torch.full(shape, std**2, dtype=torch.float64))


def stationary(shape: tuple[int, int, int], std: float, slope: float = 2.5, mean: float = 0.0) -> Gaussian:
    """A photo-like stationary Gaussian: power spectrum (f^2 + f0^2)^(-slope/2), pixel standard deviation `std`."""
    channels, height, width = shape
    rows = torch.fft.fftfreq(height, dtype=torch.float64)[:, None]
    columns = torch.fft.fftfreq(width, dtype=torch.float64)[None, :]
    corner = 1 / max(height, width)
    power = (rows**2 + columns**2 + corner**2) ** (-slope / 2)
    power = power / power.mean() * std**2
    return Gaussian(torch.full(shape, mean, dtype=torch.float64), power.expand(channels, height, width).clone(), fourier=True)


class GaussianMixturePrior(Prior):
    """A mixture of Gaussians as a prior; with one component it is the Gaussian prior.

    >>> from leader.priors.gaussian import white
    >>> mixture = GaussianMixturePrior([white((1, 2, 2), 0.1, mean) for mean in (-0.5, 0.5)])
    >>> mixture.sample(5, torch.Generator().manual_seed(0)).shape
    torch.Size([5, 1, 2, 2])
    """

    name = "gaussian-mixture"
    source = "exact"

    def __init__(
        self, components: Sequence[Gaussian], weights: Sequence[float] | None = None, schedule: Schedule | None = None
    ) -> None:
        super().__init__(schedule or Schedule.linear())
        if not components or len({tuple(item.mean.shape) for item in components}) != 1:
            raise LeaderError("A mixture needs at least one component, all of one shape.")
        self.components = tuple(components)
        share = torch.tensor(list(weights or [1.0] * len(components)), dtype=torch.float64)
        self.log_weights = (share / share.sum()).log()
        height, width = components[0].mean.shape[-2:]
        self.size = (int(height), int(width))

    def _predict(self, x: Tensor, t: Tensor) -> Prediction:
        check_size(x, self.name, self.size)
        abar = self.schedule.level(t, x).abar
        state = x.double()
        means, variances, evidence = [], [], []
        for part, share in zip(self.components, self.log_weights):
            spread = abar * part.variances + 1 - abar
            centred = state - abar.sqrt() * part.mean
            means.append(part.mean + part.scale(centred, part.variances * abar.sqrt() / spread))
            variances.append(part.diagonal(part.variances * (1 - abar) / spread))
            evidence.append(share + part.log_density(state, abar))
        chances = torch.softmax(torch.stack(evidence), 0)[..., None, None, None]  # [K, B, 1, 1, 1]
        stack = torch.stack(means)
        x0 = (chances * stack).sum(0)
        # Total variance: the mean of the variances and the variance of the means.
        variance = (chances * (torch.stack(variances) + (stack - x0) ** 2)).sum(0)
        return from_x0(x, t, x0.to(x.dtype), self.schedule, variance.to(x.dtype))

    def sample(self, count: int, generator: torch.Generator) -> Tensor:
        """Draws, [count, C, H, W] float64."""
        chosen = torch.multinomial(self.log_weights.exp(), count, replacement=True, generator=generator)
        return torch.cat([self.components[int(k)].sample(1, generator) for k in chosen])

    def posterior(self, operator: LinearOperator, y: Tensor, sigma: float) -> tuple[Tensor, Tensor]:
        """Mean [C, H, W] and dense covariance [N, N] of x given y = A x + sigma z (sigma > 0 for several components)."""
        parts = [part.posterior(operator, y, sigma) for part in self.components]
        if len(parts) == 1:
            return parts[0]
        if sigma <= 0:
            raise LeaderError("The posterior of a mixture needs noisy data (sigma > 0).")
        chances = torch.softmax(
            self.log_weights + torch.stack([part.evidence(operator, y, sigma) for part in self.components]), 0
        )
        means = torch.stack([mean.reshape(-1) for mean, _ in parts])
        mean = chances @ means
        spread = means - mean
        covs = torch.stack([cov for _, cov in parts])
        cov = torch.einsum("k,kij->ij", chances, covs) + torch.einsum("k,ki,kj->ij", chances, spread, spread)
        return mean.reshape(self.components[0].mean.shape), cov


class GaussianPrior(GaussianMixturePrior):
    """One Gaussian as a prior.

    >>> from leader.priors.gaussian import white
    >>> GaussianPrior(white((1, 2, 2), 1.0)).predict(torch.ones(1, 1, 2, 2), torch.tensor([999])).x0.max()
    tensor(0.0064)
    """

    name = "gaussian"

    def __init__(self, gaussian: Gaussian, schedule: Schedule | None = None) -> None:
        super().__init__((gaussian,), schedule=schedule)
        self.gaussian = gaussian
