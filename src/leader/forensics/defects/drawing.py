"""Whether a picture was drawn rather than photographed: a plot, a diagram, a logo, a screenshot.

Drawings have areas of exactly one colour, which the noise of a camera prevents. Their dots and thin lines are content, where in
a photograph they would be dust and scratches. Photographs of an even sky or an overexposed background share some of that: 12 of
294 views of photographs lie above the limit, so it is a reason for care, not for a verdict.
"""

import numpy as np
from numpy.typing import NDArray

from leader.forensics.constants import read_constants
from leader.forensics.defects.neighbours import hold_all

_CONSTANTS = read_constants("defects.drawing")
ONE_COLOUR = _CONSTANTS.number("one_colour")


def is_drawing(pixels: NDArray[np.floating]) -> bool:
    """Whether pixels [H, W, C] have so large areas of exactly one colour that they were drawn."""
    here = pixels[:-1, :-1]
    alike = (here == pixels[1:, :-1]) & (here == pixels[:-1, 1:])
    return alike.size > 0 and float(hold_all(alike).mean()) >= ONE_COLOUR
