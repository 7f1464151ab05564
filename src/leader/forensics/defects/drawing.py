"""Whether a picture was drawn rather than photographed: a plot, a diagram, a logo, a screenshot.

Drawings have areas of exactly one colour, which the noise of a camera prevents, and behind JPEG paper is still nearly white
between letters. Their dots and thin lines are content, where in a photograph they would be dust and scratches. Photographs of
an even sky or an overexposed background share some of that: 12 of 294 views of photographs lie above the limit, so it is a
reason for care, not for a verdict.
"""

import numpy as np
from numpy.typing import NDArray

from leader.forensics.constants import read_constants
from leader.forensics.defects.neighbours import hold_all

_CONSTANTS = read_constants("defects.drawing")
ONE_COLOUR, PAPER = _CONSTANTS.numbers("one_colour", "paper")


def is_drawing(pixels: NDArray[np.floating]) -> bool:
    """Whether pixels [H, W, C] have so large areas of exactly one colour, or of nearly white, that they were drawn."""
    here, below, beside = pixels[:-1, :-1], pixels[1:, :-1], pixels[:-1, 1:]
    alike = hold_all((here == below) & (here == beside))
    alike |= hold_all(np.minimum(np.minimum(here, below), beside) >= PAPER)
    return alike.size > 0 and float(alike.mean()) >= ONE_COLOUR
