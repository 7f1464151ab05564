"""Noise that was clipped: black and white pixels that look like specks.

Noise reaches black where the picture is dark, and white where it is bright; a defect strikes dark and bright places alike. So
pixels at the limits are noise if they are seldom where the limit lies beyond the noise around them.
"""

import numpy as np
from numpy.typing import NDArray

from leader.forensics.constants import read_constants
from leader.forensics.defects.neighbours import hold_all, median_around

Floats = NDArray[np.float32]
Flags = NDArray[np.bool_]

_CONSTANTS = read_constants("defects.clipped_noise")
OUT_OF_REACH, EVEN, GAMMA = _CONSTANTS.numbers("out_of_reach", "even", "gamma")
NORMAL_MEDIAN = 0.6745
"""Of the distance from the mean, in standard deviations."""
GREY_LEVEL = 1 / 255


def find_limits(pixels: Floats) -> Flags:
    """[2, H, W], which of pixels [H, W, C] in [0, 1] are black, and which are white."""
    return np.stack([hold_all(pixels <= 0), hold_all(pixels >= 1)])


def is_clipped_noise(found: Flags, pixels: Floats, fewest: float) -> bool:
    """Whether those of `find_limits` that were found [2, H, W] are noise, or at most `fewest` of them are none."""
    if int(found.sum()) < fewest:
        return True
    times = measure_reach(pixels.mean(2))
    beyond, within = times > OUT_OF_REACH, (times > 0) & (times <= OUT_OF_REACH)  # where it is black, nothing black is found
    defects, others = int((found & beyond).sum()), int((found & within).sum())
    seldom = defects * int(within.sum()) < EVEN * others * int(beyond.sum())
    return defects < fewest or (others >= fewest and seldom)


def measure_reach(plane: Floats) -> Floats:
    """[2, H, W], how many times the noise around a pixel of plane [H, W] in [0, 1] black and white lie off, whether it was
    added to pixels or to light: what was added to light is far stronger in the shadows.
    """
    found = []
    for values in (plane, plane**GAMMA):
        usual = median_around(values, 2)
        noise = median_around(np.abs(values - usual), 2) / NORMAL_MEDIAN
        found.append(np.stack([usual, 1 - usual]) / np.maximum(noise, GREY_LEVEL))
    times: Floats = np.minimum(*found)
    return times
