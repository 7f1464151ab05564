"""A spectrum over four orders of magnitude, and a covariance made of it as the package sees it and as a dense matrix."""

import math

import numpy as np
import scipy.fft
import torch
from torch import Tensor

from leader.priors.spectrum import Spectrum
from leader.uncertainty.covariance import Covariance, local, stationary

Shape = tuple[int, int, int]


def toy_spectrum() -> Spectrum:
    generator = torch.Generator().manual_seed(3)
    radii = torch.tensor([0.06, 0.12, 0.25, 0.5], dtype=torch.float64)
    mix = torch.randn(2, 4, 3, 3, generator=generator, dtype=torch.float64)
    fall = radii.reshape(1, 4, 1, 1) ** -1.5
    power = (mix @ mix.mT + 0.1 * torch.eye(3)) * fall
    one = torch.tensor([[0.3, 0.2, 0.1], [0.2, 0.4, 0.2], [0.1, 0.2, 0.5]], dtype=torch.float64)
    levels = torch.tensor([-4.0, 2.0], dtype=torch.float64)
    return Spectrum(
        levels, radii, power, torch.stack([one, 3 * one]), power[0] / 50, one / 9, torch.tensor([0.1, -0.2, 0.0]).double()
    )


def spectrum_for(channels: int) -> Spectrum:
    return toy_spectrum() if channels == 3 else toy_spectrum().grey()


def uneven_spread(shape: Shape, seed: int = 1) -> Tensor:
    """Variances [1, C, H, W] that differ by a factor of 20."""
    return 0.01 + 0.2 * torch.rand(1, *shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def correlated(shape: Shape, abar: float = 0.3, dtype: torch.dtype = torch.float64) -> tuple[Covariance, Tensor]:
    """D^(1/2) C D^(1/2) as the package makes it, and as a matrix [N, N] from SciPy's DCT."""
    table, spread = spectrum_for(shape[0]).at(abar, *shape[1:]), uneven_spread(shape)
    return local(spread.to(dtype), stationary(table, spread.to(dtype))), dense_covariance(table, spread)


def dense_covariance(table: Tensor, spread: Tensor) -> Tensor:
    """D^(1/2) C D^(1/2) [N, N] of channel matrices [H, W, C, C] in the DCT and variances [1, C, H, W]."""
    shape = spread.shape[1:]
    size = math.prod(shape)
    waves = scipy.fft.dctn(np.eye(size).reshape(size, *shape), axes=(-2, -1), norm="ortho")
    mixed = np.einsum("hwcd,ndhw->nchw", table.numpy(), waves).reshape(size, size)
    deviation = spread.flatten().sqrt()
    return deviation[:, None] * torch.from_numpy(waves.reshape(size, size) @ mixed.T) * deviation
