"""JPEG's blocks found by the standard tables, which most encoders scale by a quality: all frequencies are used together.

A single frequency has too few nonzero coefficients if a picture is small, smooth, or mostly clipped. A whole table is more
conclusive: with the right one every coefficient is a multiple of its step, and none lies between zero and half a step.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from leader.forensics.constants import read_constants
from leader.forensics.jpeg.blocks import Array, Blocks, Flags, middle_blocks, transform_all_offsets
from leader.pictures.jpeg_history import standard_luma
from leader.transforms import BLOCK

Floats = NDArray[np.float32]
Seen = tuple[Floats, NDArray[np.intp], Flags]

QUALITIES = np.arange(8, 98)
PARTS = tuple(slice(first, None, step) for first, step in ((0, 8), (4, 8), (2, 4), (1, 2)))
"""Of the coefficients, all over the picture each: every part is compared with the tables that those before it have left."""
_CONSTANTS = read_constants("jpeg.standard_grid")
SMALLEST_STEP = _CONSTANTS.count("smallest_step")
NOT_ZERO = _CONSTANTS.number("not_zero")
SAFE_STEP = _CONSTANTS.count("safe_step")
NOT_ZERO_CLIPPED = _CONSTANTS.number("not_zero_clipped")
MOST_BLOCKS_FOR_GRID, MOST_VALUES = _CONSTANTS.counts("most_blocks_for_grid", "most_values")
FEWEST_VALUES, FEWEST_BANDS = _CONSTANTS.counts("fewest_values", "fewest_bands")
CLEAR_TABLE, AHEAD, FAR_OFF = _CONSTANTS.numbers("clear_table", "ahead", "far_off")
ROUNDED = 0.01
"""Far above the error of a score in single precision."""


@dataclass(frozen=True)
class Standard:
    """Where blocks begin (row, column), the quality of the standard table that fits them, and how well, up to 1."""

    offset: tuple[int, int]
    quality: int
    score: float


def find_standard(blocks: Iterable[tuple[tuple[int, int], Blocks]]) -> Standard | None:
    """The blocks of a compression, of those at all offsets (`take_blocks`); None if no table fits."""
    seen = {offset: _values(here) for offset, here in blocks}
    if max(_best(values, CLEAR_TABLE)[1] for values in seen.values()) < CLEAR_TABLE:
        return None
    found = [Standard(offset, *_best(values, CLEAR_TABLE - AHEAD)) for offset, values in seen.items()]
    second, best = sorted(found, key=lambda one: one.score)[-2:]
    return best if best.score >= CLEAR_TABLE and best.score - second.score >= AHEAD else None


def _best(seen: Seen, least: float) -> tuple[int, float]:
    """The quality of the best table for these coefficients, and its score; some score below `least` where none reaches it, as
    where too little is visible.
    """
    values, bands, cut = seen
    tried = np.flatnonzero(_bounds(seen) >= least - ROUNDED)
    total, count = np.zeros(len(tried)), np.zeros(len(tried), np.intp)
    for part in PARTS:
        hopeful = total >= (least - ROUNDED) * count - FAR_OFF * np.sqrt(count)
        tried, total, count = tried[hopeful], total[hopeful], count[hopeful]
        if not len(tried):
            return 0, -1.0
        steps = _tables()[tried][:, bands[part]]
        phase = values[part] / steps
        beyond = phase > 0.5
        used = (steps >= np.where(cut[part], SAFE_STEP, SMALLEST_STEP)) & (beyond | ~cut[part])
        cosine = np.where(beyond, np.cos(np.float32(2 * np.pi) * phase), np.float32(-1))
        total += (cosine * used).sum(1)
        count += used.sum(1)
    scores = np.where(count >= FEWEST_VALUES, total / np.maximum(count, 1), -1)
    best = len(scores) - 1 - int(scores[::-1].argmax())  # of equal ones the finest
    steps = _tables()[tried[best], bands]
    shown = bands[(values > steps / 2) & (steps >= np.where(cut, SAFE_STEP, SMALLEST_STEP))]
    enough = len(np.unique(shown)) >= FEWEST_BANDS
    return int(QUALITIES[tried[best]]), float(scores[best]) if enough else -1.0


def _bounds(seen: Seen) -> Array:
    """What no score exceeds, by quality: that of cosines of 1 beyond half a step.

    The finer a table, the more lies beyond half of its steps, so the first such quality of every value says it all.
    """
    values, bands, cut = seen
    first, small, safe = _first_qualities()
    begin = first[bands, np.minimum(np.ceil(2 * values), 256).astype(np.intp)]
    end = np.where(cut, safe[bands], small[bands])
    ones = _running(begin, end)
    minus = _running(np.zeros_like(begin[~cut]), np.minimum(begin, end)[~cut])
    bounds: Array = np.where(ones + minus >= FEWEST_VALUES, (ones - minus) / np.maximum(ones + minus, 1), -1)
    return bounds


def _running(begin: NDArray[np.intp], end: NDArray[np.intp]) -> NDArray[np.intp]:
    """How many of the ranges begin <= quality < end hold each quality, both as numbers of QUALITIES."""
    kept, length = begin < end, len(QUALITIES) + 1
    starts, ends = (np.bincount(places[kept], minlength=length) for places in (begin, end))
    return np.cumsum(starts - ends)[:-1]


@lru_cache(maxsize=1)
def _first_qualities() -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """By band: the first quality whose step is below 0 to 256, [64, 257], and the first ones whose steps are below
    SMALLEST_STEP and SAFE_STEP, [64]; all as numbers of QUALITIES.
    """
    first = np.stack([(_tables() >= limit).sum(0) for limit in range(257)], axis=1)
    return first, first[:, SMALLEST_STEP], first[:, SAFE_STEP]


@lru_cache(maxsize=1)
def _tables() -> Floats:
    return np.stack([standard_luma(int(quality)) for quality in QUALITIES]).astype(np.float32)


def take_blocks(plane: Array, clear: Flags) -> Iterator[tuple[tuple[int, int], Blocks]]:
    """Blocks at all 64 offsets from the middle of luma [H, W] in 0..255.

    clear  [H, W], where no channel touches black or white: such blocks are known
    """
    part = middle_blocks(plane.shape, MOST_BLOCKS_FOR_GRID)
    return transform_all_offsets(plane[part], clear[part])


def _values(blocks: Blocks) -> Seen:
    """Coefficients [N] that rounding does not explain, their bands 1 to 63, and which are of blocks with clipped pixels."""
    sizes = np.abs(blocks.coefficients.astype(np.float32, order="C")).reshape(-1, BLOCK * BLOCK)
    sizes[:, 0] = 0
    known = blocks.known.reshape(-1)
    least = np.where(known, np.float32(NOT_ZERO), np.float32(NOT_ZERO_CLIPPED))
    places = np.flatnonzero(sizes > least[:, None])
    rows, bands = np.divmod(places[:: max(1, len(places) // MOST_VALUES)], BLOCK * BLOCK)
    return sizes[rows, bands], bands, ~known[rows]
