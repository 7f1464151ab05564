"""Whether a task leaves so much open that the model may invent faces or writing, and the note for that."""

import torch
from torch import Tensor

from leader.messages import Note
from leader.trust.limits import FAR
from leader.trust.residual import find_far_pixels

NOTE = Note(
    "invented", "So much detail is missing that the model invents what it shows: do not trust faces or writing in the result."
)
LARGE_FACTOR = 3
"""At this factor one number in nine is measured; letters and eyes are then a few pixels wide."""
KEPT = 1 / LARGE_FACTOR**2
"""The same share of what is measured, for other tasks."""
HEARD = 0.1
"""A frequency that a blur reduces below this share counts as lost: noise and rounding hide it."""


def strong_blur(kernel: Tensor) -> bool:
    """Whether a kernel [h, w] loses as many frequencies as making a picture three times smaller does."""
    side = max(128, *(2 * length for length in kernel.shape))
    response = torch.fft.fft2(kernel.double() / kernel.double().sum(), s=(side, side)).abs()
    return float((response >= HEARD).double().mean()) < KEPT


def large_holes(known: Tensor) -> bool:
    """Whether a mask [H, W], 1 where known, has a hole that will be called invented, or leaves next to nothing."""
    seen = known > 0
    return float(seen.float().mean()) < KEPT or bool(find_far_pixels(seen[None], FAR).any())
