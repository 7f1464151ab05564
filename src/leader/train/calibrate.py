"""Calibration of the embedded prior's variance on held-out photographs: one factor per noise level."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from leader.errors import LeaderError
from leader.priors.pyramid import PyramidPrior, VarianceScale
from leader.train.data import Images, crop_centre, decode, halved, list_images

NODES = tuple(float(value) / 255 for value in (*np.geomspace(3, 533.5, 10), 950, 1700, 3000, 8000, 20000))
"""Noise levels at which the factor is fitted; log-linear between, constant beyond."""


def central_crops(images: Images, size: int = 256, half: bool = True) -> Tensor:
    """Central crops [N, 3, size, size] in [0, 1] of pictures, with `half` at half their size where that is large enough."""
    found = []
    for picture in (decode(path) for path in list_images(images)):
        small = crop_centre(halved(picture), size) if half else None
        found.append(crop_centre(picture, size) if small is None else small)
    return _stack_crops(found, size)


def crops_of_both_sizes(images: Images, size: int = 256) -> Tensor:
    """Central crops of pictures at half and at full size, if they are large enough."""
    files = list_images(images)
    small = [crop_centre(halved(decode(path)), size) for path in files]
    return _stack_crops([*small, *(crop_centre(decode(path), size) for path in files)], size)


def _stack_crops(crops: Sequence[Tensor | None], size: int) -> Tensor:
    large = [crop for crop in crops if crop is not None]
    if not large:
        raise LeaderError(f"None of the pictures is {size} pixels high and wide: give larger ones.")
    return torch.stack(large)


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
    """Factors that make mean squared error and mean variance agree at each node, in addition to the current ones.

    clean: held-out crops. At the highest noise levels little more than brightness and layout remains of a picture, a few
    numbers each: there a few dozen crops determine a factor to about 20 % at best. `say` is called with every factor as it is
    found.
    """
    factors = []
    for index, sigma in enumerate(nodes):
        error, variance = error_and_variance(prior, clean, sigma, seed=index)
        factors.append(float(error.mean() / variance.mean()) * prior.scale.at(sigma))
        if say is not None:
            say(f"noise {255 * sigma:7.1f} of 255 ({index + 1} of {len(nodes)}): variance times {factors[-1]:.3f}")
    return VarianceScale(nodes, tuple(factors))
