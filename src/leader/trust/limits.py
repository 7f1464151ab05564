"""The limits of the verdict and the weights of its score, read from limits.toml, which gives unit and source of each."""

import math
from dataclasses import dataclass
from importlib import resources
from typing import Any

from leader.presets import parsed

_TABLES: dict[str, Any] = parsed(resources.files(__package__) / "limits.toml")


@dataclass(frozen=True)
class Limits:
    """Above which a number is doubtful, and above which the run has failed; infinite if there is no limit."""

    doubtful: float = math.inf
    failed: float = math.inf


def _limits(name: str) -> Limits:
    entry = _TABLES["limits"][name]
    return Limits(float(entry.get("doubtful", math.inf)), float(entry.get("failed", math.inf)))


def _number(name: str) -> float:
    return float(_TABLES["numbers"][name]["value"])


INVERTED = _limits("inverted")
INVENTED = _limits("invented")
UNCOLOURED = _limits("uncoloured")
UNSURE = _limits("unsure")
GROWTH = _limits("growth")
ENLARGED_GROWTH = _limits("enlarged_growth")
WAVES = _limits("waves")
KEPT_NOISE = _limits("kept_noise")
LOST = _limits("lost")
TOO_WIDE = _limits("too_wide")
SHARP = _limits("sharp")
MISREAD = _limits("misread")
SCORE = _limits("score")
EXCESS = _limits("excess")
MISFIT = _limits("misfit")
TOO_CLOSE = _limits("too_close")
COLOUR = _limits("colour")
BLOCKS = _limits("blocks")


def find_enlarged_growth(enlarged: float) -> Limits:
    """The limits of detail in a picture of `enlarged` times as many pixels.

    Those of ENLARGED_GROWTH hold for sides at least twice as long; below that, correct results keep more of the detail of a
    picture that was not enlarged, and the limits are interpolated by the logarithm of the factor.
    """
    share = min(1.0, math.log2(enlarged) / 2)
    doubtful, failed = (
        share * large + (1 - share) * same
        for large, same in ((ENLARGED_GROWTH.doubtful, GROWTH.doubtful), (ENLARGED_GROWTH.failed, GROWTH.failed))
    )
    return Limits(doubtful, failed)


WORTH_A_LOOK = _number("worth_a_look")
LEAST_DETAIL = _number("least_detail") / 255
VISIBLE = _number("visible") / 255
USUAL_GROWTH = _number("usual_growth")
TAKES_DETAIL = _number("takes_detail")
SUSPECT = _number("suspect") * KEPT_NOISE.doubtful
NOT_WHITE = _number("not_white")
CLOCK = int(_number("clock"))
NEAR = int(_number("near"))
FAR = int(_number("far"))
FEWEST = int(_number("fewest"))
BANDS = tuple(float(edge) for edge in _TABLES["numbers"]["bands"]["value"])

WEIGHTS: dict[str, float] = _TABLES["score"]["weights"]
BIAS, UNSEEN, MOST_ODDS, LEAST_EXCESS = (
    float(_TABLES["score"][name]) for name in ("bias", "unseen", "most_odds", "least_excess")
)
