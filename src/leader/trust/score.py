"""Was undoing a blur ruinous? The odds of it, from several numbers together.

Scenes have detail and waves of their own, and a kernel may seem a little too wide: each of these alone gives false alarms where
it is asked to recognise most of the ruined runs, all together fewer. A logistic regression with few features that all count in
one direction, fitted to runs on photographs (`python benchmarks/self_check_fit.py`; docs/verdict.md).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from leader.trust.limits import TAKES_DETAIL
from leader.trust.readings import growth, waves

WEIGHTS: dict[str, float] = {"growth": 0.813, "waves": 0.505, "excess": 0.327, "too wide": 0.633}
"""Natural logarithms of odds for one more of each of `features`."""
BIAS = -1.307
LEAST_GROWTH, LEAST_EXCESS, MOST_ODDS = 0.05, 1e-3, 3.0
UNSEEN = -1.84
"""What counts for "too wide" where nobody could look: its mean over the runs that the weights were fitted to."""


def applies(numbers: Mapping[str, Any]) -> bool:
    """Whether the run undid a blur: the measurement is a picture of the same size with less detail."""
    is_picture = numbers.get("correlation") is not None and float(numbers.get("enlarged", 1.0)) == 1
    return is_picture and float(numbers.get("removed", 1.0)) > TAKES_DETAIL


def features(numbers: Mapping[str, Any]) -> dict[str, float]:
    """What is weighed.

    growth    log2 of the detail over what was to be expected
    waves     octaves by which a band of frequencies rises above photographs and the given picture
    excess    log2 of what had to be clipped at black and white over a thousandth of the range, at least 0
    too wide  log-odds that the kernel is much too wide, between -3 and 3; UNSEEN where nobody could look
    """
    odds = numbers.get("too_wide")
    return {
        "growth": math.log2(max(growth(numbers), LEAST_GROWTH)),
        "waves": waves(numbers),
        "excess": math.log2(max(float(numbers["excess"]) / LEAST_EXCESS, 1.0)),
        "too wide": UNSEEN if odds is None else min(max(float(odds), -MOST_ODDS), MOST_ODDS),
    }


def of(numbers: Mapping[str, Any]) -> float:
    """Natural logarithm of the odds that the run is ruined."""
    return BIAS + sum(WEIGHTS[name] * value for name, value in features(numbers).items())


def gravest(numbers: Mapping[str, Any]) -> str:
    """The feature that adds most to the odds."""
    found = features(numbers)
    return max(found, key=lambda name: WEIGHTS[name] * found[name])
