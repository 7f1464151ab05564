"""What the numbers of a finished run say: how much more detail, waves, noise or misfit there is than there should be."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from leader.trust import plausibility, residual
from leader.trust.limits import BLOCKS, LEAST_DETAIL, NOT_WHITE, OVERDONE, SEEN, TAKES_DETAIL, TOO_WIDE


def misfit(numbers: Mapping[str, Any]) -> float:
    """How many times larger the residual is than the noise it should be, which is at least that of rounding to 8 bits."""
    return float(numbers["residual"]) / max(float(numbers["sigma"]), residual.ROUNDING)


def growth(numbers: Mapping[str, Any]) -> float:
    """How many times the detail the picture has that undoing A would give the given one, whose noise counts as detail."""
    return float(numbers["detail"]) / max(float(numbers["given_detail"]), LEAST_DETAIL) / float(numbers.get("removed", 1.0))


def lost(numbers: Mapping[str, Any]) -> float:
    """How many times the given picture's own noise was taken away; 0 where A is not the identity, or noise not white."""
    noise = numbers.get("noise")
    ratio = 0.0 if noise is None else float(numbers["residual"]) / max(float(noise), residual.ROUNDING)
    return ratio if ratio <= NOT_WHITE else 0.0


def taken(numbers: Mapping[str, Any]) -> float:
    """How many times the white noise that was found in a picture denoising took away, which has no more than that to take."""
    return float(numbers.get("denoises", 0.0)) * float(numbers.get("white", 0.0)) * misfit(numbers)


def taken_detail(numbers: Mapping[str, Any]) -> float:
    """The correlation of neighbours of what denoising took away, where white noise was found in the picture; 0 elsewhere.

    White noise has none: what hangs together was detail, and the estimate too large. A level that was given is judged by
    `lost`; noise of another colour, or compressed, hangs together itself.
    """
    counts = float(numbers.get("denoises", 0.0)) * float(numbers.get("white", 0.0))
    return counts * max(0.0, float(numbers["correlation"] or 0.0))


def too_wide(numbers: Mapping[str, Any]) -> float:
    """Log-odds that the kernel is much too wide; at most doubtful where the picture was hardly changed more than was due.

    What is uncertain of a kernel counts as noise, so that a run with a wrong one may have done little, and no harm.
    """
    odds, due = numbers.get("too_wide"), numbers.get("due")
    if odds is None or due is None:
        return 0.0
    harmed = float(numbers["distance"]) > max(OVERDONE * float(due), SEEN)
    return float(odds) if harmed else min(float(odds), TOO_WIDE.failed)


def sharp(numbers: Mapping[str, Any]) -> float:
    """Log-odds that the given picture was not blurred at all; none where blocks of a compression that nobody knows pass for the
    detail of a sharp one, or nobody looked.
    """
    odds = numbers.get("sharp")
    blocks = not numbers.get("compressed") and float(numbers["blockiness"]) > BLOCKS.doubtful
    return -math.inf if odds is None or blocks else float(odds)


def kept_noise(numbers: Mapping[str, Any]) -> float:
    """What the network would change of the answer, where noise in it was not in the given picture; 0 without a look."""
    change = numbers.get("change")
    return 0.0 if change is None or float(numbers.get("removed", 1.0)) <= TAKES_DETAIL else float(change)


def waves(numbers: Mapping[str, Any]) -> float:
    """How far the spectrum rises above the 1/f of photographs, in octaves of power, where the given picture's does not.

    A band of frequencies counts by how much it exceeds the mean of those below it, and the same band of the given picture: what
    inverting a wrong kernel amplifies. 0 where the given picture has holes, whose spectrum says nothing.
    """
    found = [[numbers.get(f"{name}{k}") for k in range(len(plausibility.BANDS) - 1)] for name in ("band", "given_band")]
    if any(value is None for row in found for value in row):
        return 0.0
    bands, before = ([float(value) for value in row if value is not None] for row in found)
    rises = [min(bands[k] - sum(bands[:k]) / k, bands[k] - before[k]) for k in range(1, len(bands))]
    return float(max(0.0, *rises))
