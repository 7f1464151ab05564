"""Calibration of the embedded prior's variance on held-out photographs: one factor per noise level."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from leader.errors import LeaderError
from leader.pictures import list_pictures
from leader.priors.pyramid import PyramidPrior, VarianceScale
from leader.train.data import crop_centre, decode, halved

NODES = tuple(float(value) / 255 for value in (*np.geomspace(3, 533.5, 10), 950, 1700, 3000, 8000, 20000))
"""Noise levels at which the factor is fitted; log-linear between, constant beyond."""


def central_crops(folder: Path, size: int = 256, half: bool = True) -> Tensor:
    """Central crops [N, 3, size, size] in [0, 1] of a folder's pictures, at half or full size."""
    return _stack_crops(_read_squares(folder, size, half), folder, size)


def crops_of_both_sizes(folder: Path, size: int = 256) -> Tensor:
    """Central crops of a folder's pictures at half and at full size, as far as these are large enough."""
    return _stack_crops([crop for half in (True, False) for crop in _read_squares(folder, size, half)], folder, size)


def _read_squares(folder: Path, size: int, half: bool) -> list[Tensor]:
    pictures = (halved(decode(path)) if half else decode(path) for path in list_pictures(folder))
    return [square for picture in pictures if (square := crop_centre(picture, size)) is not None]


def _stack_crops(crops: list[Tensor], folder: Path, size: int) -> Tensor:
    if not crops:
        raise LeaderError(f"No picture in {folder} is {size} pixels high and wide: give larger ones.")
    return torch.stack(crops)


@torch.no_grad()
def error_and_variance(prior: PyramidPrior, clean: Tensor, sigma: float, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Squared errors of clamped estimates and predicted variances [N, 3, H, W], in [0, 1] units."""
    generator = torch.Generator().manual_seed(seed)
    errors, variances = [], []
    for image in torch.split(clean, 1):
        noisy = image + sigma * torch.randn(image.shape, generator=generator)
        estimate, variance = prior.denoise(noisy, sigma)
        errors.append((estimate.clamp(0, 1) - image).square())
        variances.append(variance)
    return torch.cat(errors), torch.cat(variances)


def fit_scale(
    prior: PyramidPrior,
    clean: Tensor,
    nodes: tuple[float, ...] = NODES,
    say: Callable[[str], None] | None = None,
) -> VarianceScale:
    """Factors that make mean squared error and mean variance agree at each node, on top of the present ones.

    clean: held-out crops. At the highest noise levels little but brightness and layout is left of a picture, a few numbers
    each: there a few dozen crops fix a factor to no better than about 20 %. `say` hears every factor as it is found.
    """
    factors = []
    for index, sigma in enumerate(nodes):
        error, variance = error_and_variance(prior, clean, sigma, seed=index)
        factors.append(float(error.mean() / variance.mean()) * prior.scale.at(sigma))
        if say is not None:
            say(f"noise {255 * sigma:7.1f} of 255 ({index + 1} of {len(nodes)}): variance times {factors[-1]:.3f}")
    return VarianceScale(nodes, tuple(factors))
