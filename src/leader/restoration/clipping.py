"""Which entries of a picture's measurement were clipped: noise of a file ends at black and white.

Values beyond [0, 1] prove that nothing was clipped: they are simulated decimal numbers. Otherwise every value of exactly 0 or 1
in a file or an array, channel by channel, is a limit. If the picture really is black there, this does no harm.
"""

from __future__ import annotations

import torch
from torch import Tensor

from leader.censoring import Censored
from leader.pictures.picture import Floats
from leader.restoration.borders import Window

LEAST = 2 / 255
"""Standard deviation of noise, for [0, 1] images, above which clipping is considered: below it, rounding to 8 bits (0.3 /
255) and errors of the operator decide which values lie at the limits.
"""


def find_clipped(pixels: Floats, y: Tensor, sigma: float, window: Window | None) -> Censored | None:
    """The censored entries of y [1, C, H, W] in [0, 1], which holds pixels [H, W, C], in a frame where there is a window."""
    if sigma < LEAST or float(pixels.min()) < 0 or float(pixels.max()) > 1:
        return None
    found = Censored.at_limits(y)
    if found is None or window is None:
        return found
    inside = torch.zeros_like(y, dtype=torch.bool)
    window.crop(inside).fill_(True)  # beyond its frame the picture is only continued
    return found.where(inside)
