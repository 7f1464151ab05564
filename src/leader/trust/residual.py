"""Was y = A x + noise true? Level, colour and blocks of what the finished picture leaves unexplained."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

ROUNDING = 1 / 255 / math.sqrt(12)
"""Standard deviation of rounding to 8 bits, of the range 0 to 1: the least noise a measurement kept in 8 bits has."""
BLOCK = 8
"""Side of the blocks of JPEG, in pixels."""
NEAR = 3
"""Pixels within which something known still says much of an unknown one."""
FEWEST = 64
"""Entries below which a correlation is chance."""


def level(residual: Tensor, reached: Tensor) -> float:
    """Root mean square of the residual over the entries that depend on the image (`reached`, of its shape)."""
    chosen = residual.double()[reached]
    return float(chosen.square().mean().sqrt()) if chosen.numel() else 0.0


def neighbour_correlation(residual: Tensor, reached: Tensor) -> float | None:
    """Correlation of neighbours of a residual [C, H, W], right and below: 0 for white noise, towards 1 for what is smooth,
    negative for what alternates; None where too few neighbours are known.
    """
    known = reached.double()
    values = torch.where(reached, residual.double(), 0)
    power, count = float(values.square().sum()), float(known.sum())
    pairs = float((known[..., 1:] * known[..., :-1]).sum() + (known[..., 1:, :] * known[..., :-1, :]).sum())
    if power == 0 or pairs < FEWEST:
        return None
    products = (values[..., 1:] * values[..., :-1]).sum() + (values[..., 1:, :] * values[..., :-1, :]).sum()
    return float(products) / pairs / (power / count)


def blockiness(picture: Tensor) -> float:
    """How much stronger the second differences of a picture [C, H, W] are across borders of 8 x 8 blocks than inside them.

    1 without blocks, above for JPEG; the blocks may begin anywhere in the picture, as in a part of a photograph.
    """
    if min(picture.shape[-2:]) < 4 * BLOCK:
        return 1.0
    x = picture.double()
    across = (x[..., 3:] - 3 * x[..., 2:-1] + 3 * x[..., 1:-2] - x[..., :-3]).abs().mean((0, 1))
    down = (x[..., 3:, :] - 3 * x[..., 2:-1, :] + 3 * x[..., 1:-2, :] - x[..., :-3, :]).abs().mean((0, 2))
    return math.sqrt(_strongest_phase(across) * _strongest_phase(down))


def _strongest_phase(steps: Tensor) -> float:
    """Mean of every eighth number over the mean of all, for the first number that makes it largest."""
    total = float(steps.mean())
    return 1.0 if total == 0 else max(float(steps[first::BLOCK].mean()) / total for first in range(BLOCK))


def invented_share(reached: Tensor) -> float:
    """Share of the picture further than `NEAR` pixels from anything known, for a mask `reached` [C, H, W]."""
    known = reached.any(0, keepdim=True)[None].float()
    near = F.max_pool2d(known, 2 * NEAR + 1, stride=1, padding=NEAR)
    return 1 - float(near.mean())
