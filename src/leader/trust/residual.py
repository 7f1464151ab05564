"""Was y = A x + noise true? Level, colour and blocks of what the finished picture leaves unexplained."""

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from leader.transforms import BLOCK
from leader.trust.limits import FEWEST, NEAR
from leader.trust.strips import strips

ROUNDING = 1 / 255 / math.sqrt(12)
"""Standard deviation of rounding to 8 bits, of the range 0 to 1: the least noise a measurement kept in 8 bits has."""


def measure_level(residual: Tensor, reached: Tensor) -> float:
    """Root mean square of the residual over the entries that depend on the image (`reached`, of its shape)."""
    flat, known = residual.reshape(-1, residual.shape[-1]), reached.reshape(-1, reached.shape[-1])
    total, count = 0.0, 0
    for rows in strips(*flat.shape):
        chosen = flat[rows].double()[known[rows]]
        total, count = total + float(chosen.square().sum()), count + chosen.numel()
    return math.sqrt(total / count) if count else 0.0


def correlate_neighbours(residual: Tensor, reached: Tensor) -> float | None:
    """Correlation of neighbours of a residual [C, H, W], right and below: 0 for white noise, towards 1 for what is smooth,
    negative for what alternates; None where too few neighbours are known.
    """
    power = count = pairs = products = 0.0
    end = 0
    for rows in strips(residual.shape[-2], residual.shape[-1], more=1):
        known = reached[..., rows, :].double()
        values = torch.where(reached[..., rows, :], residual[..., rows, :].double(), 0)
        new = slice(end - rows.start, None)  # the first row of all but the first strip was the last of the one before
        end = rows.stop
        power, count = power + float(values[..., new, :].square().sum()), count + float(known[..., new, :].sum())
        pairs += float((known[..., new, 1:] * known[..., new, :-1]).sum() + (known[..., 1:, :] * known[..., :-1, :]).sum())
        products += float(
            (values[..., new, 1:] * values[..., new, :-1]).sum() + (values[..., 1:, :] * values[..., :-1, :]).sum()
        )
    if power == 0 or pairs < FEWEST:
        return None
    return products / pairs / (power / count)


def measure_blockiness(picture: Tensor) -> float:
    """How much stronger the second differences of a picture [C, H, W] are across borders of 8 x 8 blocks than inside them.

    1 without blocks, above for JPEG; the blocks may begin anywhere in the picture, as in a part of a photograph.
    """
    if min(picture.shape[-2:]) < 4 * BLOCK:
        return 1.0
    height, width = picture.shape[-2:]
    across, down = torch.zeros(width - 3, dtype=torch.float64), []
    end = 0
    for rows in strips(height, width, more=3):
        x = picture[..., rows, :].double()
        down.append((x[..., 3:, :] - 3 * x[..., 2:-1, :] + 3 * x[..., 1:-2, :] - x[..., :-3, :]).abs().mean((0, 2)))
        x = x[..., end - rows.start :, :]
        end = rows.stop
        part = (x[..., 3:] - 3 * x[..., 2:-1] + 3 * x[..., 1:-2] - x[..., :-3]).abs().mean(0).sum(0)
        across += part.cpu() / height
    return math.sqrt(_find_strongest_phase(across) * _find_strongest_phase(torch.cat(down)))


def _find_strongest_phase(steps: Tensor) -> float:
    """Mean of every eighth number over the mean of all, for the first number that makes it largest."""
    total = float(steps.mean())
    return 1.0 if total == 0 else max(float(steps[first::BLOCK].mean()) / total for first in range(BLOCK))


def find_far_pixels(reached: Tensor, distance: int) -> Tensor:
    """Where [H, W] bool nothing is known within `distance` rows and columns, for a mask `reached` [C, H, W] bool."""
    near = reached.any(0, keepdim=True)[None].float()
    for kernel, padding in (((2 * distance + 1, 1), (distance, 0)), ((1, 2 * distance + 1), (0, distance))):
        near = F.max_pool2d(near, kernel, 1, padding)
    return near[0, 0] == 0


def measure_far_share(reached: Tensor, distance: int = NEAR) -> float:
    """Share of the picture without anything known within `distance` pixels, for a mask `reached` [C, H, W] bool."""
    return float(find_far_pixels(reached, distance).double().mean())
