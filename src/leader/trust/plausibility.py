"""Does the answer look like a picture, beside the one that was given? Detail, black and white, and what the network changes."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from leader.priors.base import Prior

CLOCK = 20
"""The time of the standard clock at which the network looks at the finished picture: noise of about 0.03 of [0, 1] images."""


@dataclass(frozen=True)
class Look:
    """What the network says of a finished picture with a little noise on it, per pixel [C, H, W], for [0, 1] images.

    change  what it would change: the picture minus its estimate of it
    spread  standard deviation of the picture as the network sees it; None where it has no opinion
    """

    change: Tensor
    spread: Tensor | None


@torch.no_grad()
def look(prior: Prior, x: Tensor, noise: Tensor) -> Look:
    """One pass over x [1, C, H, W] in [-1, 1] with `noise` of the same shape, standard normal."""
    t = torch.full((1,), prior.schedule.at_clock(CLOCK), dtype=torch.long, device=x.device)
    level = prior.schedule.level(t, x)
    seen = prior.predict(level.signal * x + level.noise * noise.to(x), t)
    spread = None if seen.variance is None else seen.variance[0].clamp_min(0).sqrt() / 2
    return Look((x - seen.x0)[0] / 2, spread)


def detail(picture: Tensor, known: Tensor | None = None) -> float:
    """Root mean square of neighbouring differences of a picture [C, H, W], right and below, where both are known [H, W]."""
    x = picture.double()
    total, count = 0.0, 0.0
    for axis in (-1, -2):
        size = x.shape[axis]
        step = x.narrow(axis, 1, size - 1) - x.narrow(axis, 0, size - 1)
        weight = torch.ones_like(step)
        if known is not None:
            both = known.narrow(axis, 1, size - 1) & known.narrow(axis, 0, size - 1)
            weight = both.to(step).expand_as(step)
        total += float((weight * step.square()).sum())
        count += float(weight.sum())
    return (total / count) ** 0.5 if count else 0.0


def fine_detail(picture: Tensor) -> float:
    """Root mean square of what a 3 x 3 mean takes away from a picture [C, H, W]: its finest detail."""
    smooth = F.avg_pool2d(picture.double()[None], 3, stride=1)[0]
    return float((picture.double()[..., 1:-1, 1:-1] - smooth).square().mean().sqrt())


def saturated(picture: Tensor) -> float:
    """Share of values of a picture [C, H, W] in [0, 1] that are black or white to 8 bits."""
    return float(((picture < 0.5 / 255) | (picture > 1 - 0.5 / 255)).double().mean())


def brought_to_size(given: Tensor, size: tuple[int, int]) -> Tensor:
    """A picture [C, h, w] enlarged by bicubic interpolation to `size` (height, width) where it is smaller."""
    if tuple(given.shape[-2:]) == size:
        return given
    return F.interpolate(given[None], size=size, mode="bicubic", align_corners=False)[0].clamp(0, 1)
