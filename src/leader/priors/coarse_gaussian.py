"""A Gaussian prior for tiny level images: exact answers if the noise is too strong for the network.

When a picture cannot be averaged any further and the noise still exceeds the network's range, only coarse structure is left to
find, and second-order statistics describe it almost completely. The prior is stationary with symmetric boundaries, so the
DCT-II diagonalises it: posterior mean and variance are closed forms, for any size. Colours are separated by a fixed orthonormal
opponent basis, each component with its own power spectrum.
"""

from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from leader import transforms

OPPONENT = torch.tensor(transforms.OPPONENT)


@dataclass(frozen=True)
class CoarseGaussian:
    """Statistics of block-averaged photographs in [0, 1]; tuples of three are opponent components.

    mean: mean colour (R, G, B). dc: variance of an image's mean. scale, knee, power: orthonormal DCT spectrum scale/(f^2 +
    knee^2)^(power/2), f in cycles per level pixel. detail: per level, variance of full-resolution pixels around the enlarged
    level image (last: and beyond).
    """

    mean: tuple[float, ...]
    dc: tuple[float, ...]
    scale: tuple[float, ...]
    knee: tuple[float, ...]
    power: tuple[float, ...]
    detail: tuple[float, ...]

    def spectrum(self, height: int, width: int) -> Tensor:
        """Prior variance of each DCT coefficient, [3, height, width] float64."""
        square = frequencies(height)[:, None] ** 2 + frequencies(width)[None, :] ** 2
        column = [torch.tensor(v, dtype=torch.float64).view(3, 1, 1) for v in (self.scale, self.knee, self.power)]
        spectrum = column[0] / (square + column[1] ** 2) ** (column[2] / 2)
        spectrum[:, 0, 0] = torch.tensor(self.dc, dtype=torch.float64) * height * width
        return spectrum

    def posterior(self, noisy: Tensor, sigma: float, level: int) -> tuple[Tensor, Tensor]:
        """Posterior mean and variance [B, 3, H, W] of a level image observed with noise sigma.

        The variance is that of a full-resolution pixel: the level's posterior variance plus the detail inside a block.
        """
        height, width = noisy.shape[2:]
        rows, columns = dct_matrix(height).to(noisy), dct_matrix(width).to(noisy)
        basis = OPPONENT.to(noisy)
        prior = self.spectrum(height, width)
        gain = (prior / (prior + sigma**2)).to(noisy)
        mean = torch.tensor(self.mean, dtype=noisy.dtype, device=noisy.device).view(1, 3, 1, 1)
        coefficients = rows @ torch.einsum("oc,bchw->bohw", basis, noisy - mean) @ columns.T
        estimate = torch.einsum("oc,bohw->bchw", basis, rows.T @ (gain * coefficients) @ columns) + mean
        spread = (rows**2).T @ (gain * sigma**2) @ columns**2
        variance = torch.einsum("oc,ohw->chw", basis**2, spread) + self.detail[min(level, len(self.detail) - 1)]
        return estimate, variance.expand_as(estimate)


def frequencies(size: int) -> Tensor:
    """Frequencies of the DCT-II of `size` samples in cycles per sample, float64."""
    return torch.arange(size, dtype=torch.float64) / (2 * size)


@lru_cache(maxsize=32)
def dct_matrix(size: int) -> Tensor:
    """Orthonormal DCT-II [size, size], float64; its rows are the basis."""
    return torch.tensor(transforms.dct_matrix(size))
