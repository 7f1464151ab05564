"""Readings of the numbers of a finished run: how much more detail, waves, noise or misfit there is than expected."""

import math
from collections.abc import Mapping
from typing import Any

from leader.trust import residual
from leader.trust.limits import BANDS, BLOCKS, LEAST_DETAIL, NOT_WHITE, TAKES_DETAIL


def read_misfit(numbers: Mapping[str, Any]) -> float:
    """The residual over the noise that should explain it, which is at least that of rounding to 8 bits."""
    return float(numbers["residual"]) / max(float(numbers["sigma"]), residual.ROUNDING)


def read_growth(numbers: Mapping[str, Any]) -> float:
    """The picture's detail over that expected from undoing A on the given picture, whose noise counts as detail."""
    return float(numbers["detail"]) / max(float(numbers["given_detail"]), LEAST_DETAIL) / float(numbers.get("removed", 1.0))


def read_loss(numbers: Mapping[str, Any]) -> float:
    """What was removed over the given picture's own noise; 0 if A is not the identity or the noise is not white."""
    noise = numbers.get("noise")
    ratio = 0.0 if noise is None else float(numbers["residual"]) / max(float(noise), residual.ROUNDING)
    return ratio if ratio <= NOT_WHITE else 0.0


def read_sharpness(numbers: Mapping[str, Any]) -> float:
    """Log-odds that the given picture was not blurred at all; -inf if that was not examined, or if the blocks of an unknown
    compression could be mistaken for the detail of a sharp picture.
    """
    odds = numbers.get("sharp")
    blocks = not numbers.get("compressed") and float(numbers["blockiness"]) > BLOCKS.doubtful
    return -math.inf if odds is None or blocks else float(odds)


def read_kept_noise(numbers: Mapping[str, Any]) -> float:
    """What the network would change in the result, if noise in it cannot come from the given picture; 0 if not measured."""
    change = numbers.get("change")
    return 0.0 if change is None or float(numbers.get("removed", 1.0)) <= TAKES_DETAIL else float(change)


def read_waves(numbers: Mapping[str, Any]) -> float:
    """How far the spectrum rises above the 1/f of photographs, in octaves of power, where the given picture's does not.

    A band of frequencies counts by how much it exceeds the mean of those below it, and the same band of the given picture: what
    inverting a wrong kernel amplifies. 0 if the given picture has holes, which make its spectrum meaningless.
    """
    found = [[numbers.get(f"{name}{k}") for k in range(len(BANDS) - 1)] for name in ("band", "given_band")]
    if any(value is None for row in found for value in row):
        return 0.0
    bands, before = ([float(value) for value in row if value is not None] for row in found)
    rises = [min(bands[k] - sum(bands[:k]) / k, bands[k] - before[k]) for k in range(1, len(bands))]
    return float(max(0.0, *rises))
