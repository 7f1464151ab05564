"""Masks for inpainting: 1 where a pixel is observed, 0 where it is missing."""

from __future__ import annotations

import torch
from torch import Tensor

from leader.errors import LeaderError


def random_mask(height: int, width: int, missing: float = 0.5, seed: int = 0) -> Tensor:
    """A mask [H, W] float32 with round(missing * H * W) missing pixels, the same on every device.

    >>> random_mask(8, 6, 0.5).shape
    torch.Size([8, 6])
    """
    if not 0 <= missing < 1:
        raise LeaderError(f"The missing fraction must lie in [0, 1); found {missing}.")
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(height * width, generator=generator)
    mask = torch.ones(height * width)
    mask[order[: round(missing * height * width)]] = 0
    return mask.reshape(height, width)


def box_mask(height: int, width: int, top: int, left: int, box_height: int, box_width: int) -> Tensor:
    """A mask [H, W] float32 whose rectangle of box_height x box_width pixels at (top, left) is missing.

    >>> box_mask(8, 8, 2, 2, 4, 4).mean()
    tensor(0.7500)
    """
    inside = min(top, left) >= 0 and top + box_height <= height and left + box_width <= width
    if not inside or box_height < 1 or box_width < 1:
        raise LeaderError(
            f"The box of {box_height} x {box_width} pixels at ({top}, {left}) does not lie inside {height} x {width} pixels."
        )
    mask = torch.ones(height, width)
    mask[top : top + box_height, left : left + box_width] = 0
    return mask


def check_mask(mask: Tensor, height: int, width: int) -> Tensor:
    """A user's mask [H, W], [1, H, W] or [B, 1, H, W] as float64 [1 or B, 1, H, W]."""
    values = torch.as_tensor(mask).to(torch.float64).cpu()
    if values.ndim == 2:
        values = values[None]
    if values.ndim == 3:
        values = values[None]
    if values.ndim != 4 or values.shape[1] != 1 or tuple(values.shape[2:]) != (height, width):
        raise LeaderError(
            f"The mask has shape {list(mask.shape)}; expected [{height}, {width}] or [batch, 1, {height}, {width}]."
        )
    if not bool(((values == 0) | (values == 1)).all()):
        raise LeaderError("A mask may hold only 0 (missing) and 1 (observed); threshold it first.")
    if not bool((values.flatten(1).sum(1) > 0).all()):
        raise LeaderError("The mask leaves no pixel observed; at least one pixel must be 1.")
    return values
