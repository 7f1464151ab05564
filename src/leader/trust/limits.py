"""The limits of the verdict: beyond which a number is doubtful, and beyond which a run has failed.

From runs of benchmarks/self_check.py; docs/verdict.md says what they reach and what they do not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Beyond which a number is doubtful, and beyond which the run has failed."""

    doubtful: float
    failed: float


NEVER = math.inf
INVENTED = Limits(0.25, 0.5)
GROWTH = Limits(1.3, 1.8)
ENLARGED_GROWTH = Limits(0.7, 0.77)
"""Of pictures made larger, which end with less detail than the spectrum of photographs promises."""
WAVES = Limits(1.2, 1.85)
KEPT_NOISE = Limits(0.023, 0.026)
ENLARGED_KEPT_NOISE = Limits(0.023, 0.028)
"""Of pictures made larger, whose grain alone is no ruin."""
LOST = Limits(1.35, 1.5)
TAKEN_DETAIL = Limits(0.06, 0.1)
TAKEN = Limits(1.25, 1.5)
TOO_WIDE = Limits(0.3, 0.5)
"""Natural logarithms of odds."""
SHARP = Limits(0.3, 1.0)
"""The same, for no blur at all: -0.7 at most in 125 parts of 64 pixels of photographs that were blurred, -0.2 in 104 behind
JPEG whose steps were found, 5 in the median of 51 sharp ones.
"""
MISREAD = Limits(0.12, NEVER)
"""Probability that a thumbnail was taken for nearest neighbour's and is not, or the other way, which costs 1.3 to 1.7 dB. Of
1,000 thumbnails of validation photographs, half of them behind JPEG, 89 were; 66 of these are doubtful, a third of all by
nearest neighbour and box, one to five in a hundred of the others (`benchmarks/thumbnails.py measure`).
"""
OVERDONE = 2.25
"""Times what was due to be changed of a picture from which on too wide a kernel has ruined it."""
SEEN = 1.5 / 255
"""Difference between pictures below which nobody sees it."""
SCORE = Limits(NEVER, -1.2)
"""Of a run that undid a blur, by several numbers together (`score`): natural logarithms of the odds that it is ruined. Below,
numbers are doubtful by their own limits.
"""
EXCESS = Limits(0.002, 0.03)
MISFIT = Limits(3.0, 7.0)
TOO_CLOSE = Limits(1.8, NEVER)
COLOUR = Limits(0.3, NEVER)
BLOCKS = Limits(1.4, NEVER)
WORTH_A_LOOK = 1.3
"""Times the noise below which the colour of a residual does not matter."""
LEAST_DETAIL = 1 / 255
"""Detail of a picture that counts as flat."""
LITTLE_GROWTH, USUAL_GROWTH = 0.4, 0.7
"""Times the detail to be expected: below the first waves are too faint to have ruined a picture, beyond the second, which right
answers hardly pass, they count for more.
"""
TAKES_DETAIL = 1.5
"""Times the detail that A takes from photographs above which noise in the answer was not in what was given."""
NOT_WHITE = 8.0
"""Times its white noise beyond which a picture's noise is not white, as after JPEG, and says nothing."""
