"""Fits the correlation of a prior's errors: power by radius, as channel matrices, at a few noise levels."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from torch import Tensor

from leader.errors import LeaderError
from leader.priors.base import Prior
from leader.priors.spectrum import Spectrum, dct_radius
from leader.uncertainty.dct import dct2

RINGS = 14
"""Rings of equal width in the logarithm of the radius; the mean of a picture is in none of them."""
LEVELS = 10
MOST_CROPS = 48


@torch.no_grad()
def fit_spectrum(prior: Prior, clean: Tensor, seed: int = 0, say: Callable[[str], None] | None = None) -> Spectrum:
    """The spectrum of a prior with a variance of its own, from held-out crops.

    clean  [N, C, H, W] in [-1, 1]; a few dozen are enough: a ring averages over many coefficients of each
    """
    if len(clean) < 2:
        raise LeaderError(f"A spectrum needs at least two pictures; found {len(clean)}.")
    colour = clean.double().mean((0, 2, 3))
    rings = Rings(int(clean.shape[-2]), int(clean.shape[-1]))
    images, images_mean = rings.power(clean.double() - colour.reshape(1, -1, 1, 1))
    generator = torch.Generator().manual_seed(seed)
    last = len(prior.schedule) - 1
    noise = ((1 - prior.schedule.abar_table) / prior.schedule.abar_table).log()
    wanted = torch.linspace(float(noise[last // 100]), float(noise[last]), LEVELS, dtype=torch.float64)
    times = list(dict.fromkeys(int((noise - place).abs().argmin()) for place in wanted))
    powers, means = [], []
    for count, t in enumerate(times):
        level = prior.schedule.level(torch.tensor([t]), clean)
        errors = []
        for one in torch.split(clean, 1):
            x = level.signal * one + level.noise * torch.randn(one.shape, generator=generator)
            answer = prior.predict(x, torch.tensor([t]))
            if answer.variance is None:
                raise LeaderError(f"The prior '{prior.name}' predicts no variance; fit its head first.")
            errors.append((one - answer.x0) / answer.variance.clamp_min(1e-10).sqrt())
        power, mean = rings.power(torch.cat(errors).double())
        powers.append(power)
        means.append(mean)
        if say is not None:
            say(f"spectrum at noise {float(noise[t].exp().sqrt()) / 2 * 255:.1f} of 255 ({count + 1} of {len(times)})")
    return Spectrum(noise[times], rings.radii, torch.stack(powers), torch.stack(means), images, images_mean, colour)


@torch.no_grad()
def count_affordable_crops(prior: Prior, crop: Tensor, seconds: float) -> int:
    """The number of crops like `crop` [1, C, H, W] to which a spectrum can be fitted in this time."""
    began = time.monotonic()
    prior.predict(crop, torch.tensor([len(prior.schedule) // 2]))
    each = LEVELS * (time.monotonic() - began)
    return min(MOST_CROPS, int(seconds / each))


class Rings:
    """The frequency plane of H x W pictures in rings."""

    def __init__(self, height: int, width: int) -> None:
        radius = dct_radius(height, width)
        self.pixels = height * width
        lowest, highest = float(radius[radius > 0].min()), float(radius.max())
        edges = torch.logspace(0, 1, RINGS + 1, base=highest / lowest, dtype=torch.float64) * lowest
        index = torch.bucketize(radius, edges[1:-1])
        index[0, 0] = -1
        filled = [ring for ring in range(RINGS) if bool((index == ring).any())]  # low rings of small pictures may be empty
        self.members = [index == ring for ring in filled]
        self.radii = torch.stack([radius[where].log().mean().exp() for where in self.members])

    def power(self, errors: Tensor) -> tuple[Tensor, Tensor]:
        """Pictures [N, C, H, W] -> mean power [rings, C, C] and covariance of their means [C, C]."""
        coefficients = dct2(errors)
        channels = errors.shape[1]
        power = []
        for where in self.members:
            rows = coefficients[..., where].permute(1, 0, 2).reshape(channels, -1)
            power.append(_make_definite(rows @ rows.T / rows.shape[1]))
        first = coefficients[..., 0, 0]
        return torch.stack(power), _make_definite(first.T @ first / len(first) / self.pixels)


def _make_definite(matrix: Tensor) -> Tensor:
    """A channel matrix with a little of its mean added to the diagonal: from two pictures it is singular, and it is rounded."""
    return matrix + 1e-4 * matrix.diagonal().mean() * torch.eye(len(matrix), dtype=matrix.dtype)
