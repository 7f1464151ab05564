"""The odds that undoing a blur ruined the picture, from several numbers together.

Scenes have detail and waves of their own, and a kernel may seem a little too wide: a limit on any one of these that recognises
most ruined runs gives false alarms; together they give fewer. A logistic regression with few features, all of the same sign
(limits.toml; docs/verdict.md).
"""

import math
from collections.abc import Mapping
from typing import Any

from leader.trust.limits import BIAS, LEAST_EXCESS, MOST_ODDS, TAKES_DETAIL, UNSEEN, WEIGHTS
from leader.trust.readings import read_growth, read_waves


def is_scored(numbers: Mapping[str, Any]) -> bool:
    """Whether the run undid a blur: the measurement is a picture of the same size with less detail."""
    is_picture = numbers.get("correlation") is not None and float(numbers.get("enlarged", 1.0)) == 1
    return is_picture and float(numbers.get("removed", 1.0)) > TAKES_DETAIL


def list_features(numbers: Mapping[str, Any]) -> dict[str, float]:
    """The features of the score.

    growth    log2 of the detail over what was expected
    waves     octaves by which a band of frequencies rises above photographs and the given picture
    excess    log2 of what had to be clipped at black and white over a thousandth of the range, at least 0
    too wide  log-odds that the kernel is much too wide, between -3 and 3; UNSEEN where the width was not examined
    """
    odds = numbers.get("too_wide")
    return {
        "growth": math.log2(max(read_growth(numbers), 1e-9)),
        "waves": read_waves(numbers),
        "excess": math.log2(max(float(numbers["excess"]) / LEAST_EXCESS, 1.0)),
        "too wide": UNSEEN if odds is None else min(max(float(odds), -MOST_ODDS), MOST_ODDS),
    }


def score_run(numbers: Mapping[str, Any]) -> float:
    """Natural logarithm of the odds that the run is ruined."""
    return BIAS + sum(WEIGHTS[name] * value for name, value in list_features(numbers).items())


def find_gravest(numbers: Mapping[str, Any]) -> str:
    """The feature that adds most to the odds."""
    found = list_features(numbers)
    return max(found, key=lambda name: WEIGHTS[name] * found[name])
