"""Noise that is the same in all colours: "monochromatic" noise of an editor, film, a grey picture stored in three channels.

The colour axes, by which white noise is told from texture, have none of it. It is judged as noise of a picture without colour
is, and counts only if it is visible and far stronger than what the colours explain, since texture is grey too. Small print on
blank paper has the detail of strong noise, but none of it on the paper.
"""

from statistics import NormalDist

import numpy as np

from leader.forensics.constants import read_constants
from leader.forensics.jpeg.blocks import Array
from leader.forensics.noise.spectrum import NoiseSpectrum

_CONSTANTS = read_constants("noise.grey")
FAINTEST, BEYOND_COLOUR, BEYOND_COMPRESSION = _CONSTANTS.numbers("faintest", "beyond_colour", "beyond_compression")
BLANK, NEAR_BLANK = _CONSTANTS.numbers("blank", "near_blank")


def grey_noise(level: float, white: float, least: float, clipped: float) -> NoiseSpectrum | None:
    """The spectrum of white noise of standard deviation `level`, for [0, 1] pixels, that is the same in three channels.

    white    what white noise the colours allow
    least    standard deviation of the other errors: compression, or rounding
    clipped  share of the samples at black or white: where one channel of a pixel lost its noise, that of the others has colour
    """
    if level < find_faintest(white, least):
        return None
    other = max(white, least) ** 2 + clipped * level**2
    return NoiseSpectrum(np.array([3 * level**2 + other, other, other]).reshape(3, 1, 1))


def find_faintest(white: float, least: float) -> float:
    """The least level of noise that counts as `grey_noise` beside this white noise and these other errors."""
    return max(FAINTEST, BEYOND_COLOUR * white, BEYOND_COMPRESSION * least)


def is_print(brightness: Array, level: float, least: float) -> bool:
    """Whether more of these pixels [N] are black, or white, than noise of this level leaves; `least` as in `grey_noise`."""
    near = max(NEAR_BLANK, least)
    share = max(float((brightness <= near).mean()), float((brightness >= 1 - near).mean()))
    return level > 0 and share > NormalDist().cdf(near / level) + BLANK
