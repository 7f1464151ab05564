"""JPEG's blocks found by the standard tables, which most encoders scale by a quality: all frequencies are used together.

A single frequency has too few nonzero coefficients if a picture is small, smooth, or mostly clipped. A whole table is more
conclusive: with the right one every coefficient is a multiple of its step, and none lies between zero and half a step.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from leader.forensics.constants import read_constants
from leader.forensics.jpeg.blocks import Array, Flags, transform_blocks
from leader.pictures.jpeg_history import standard_luma
from leader.transforms import BLOCK

Floats = NDArray[np.float32]

QUALITIES = np.arange(8, 98)
_CONSTANTS = read_constants("jpeg.standard_grid")
SMALLEST_STEP = _CONSTANTS.count("smallest_step")
NOT_ZERO = _CONSTANTS.number("not_zero")
SAFE_STEP = _CONSTANTS.count("safe_step")
NOT_ZERO_CLIPPED = _CONSTANTS.number("not_zero_clipped")
MOST_BLOCKS_FOR_GRID, MOST_VALUES = _CONSTANTS.counts("most_blocks_for_grid", "most_values")
FEWEST_VALUES, FEWEST_BANDS = _CONSTANTS.counts("fewest_values", "fewest_bands")
CLEAR_TABLE, AHEAD = _CONSTANTS.numbers("clear_table", "ahead")


@dataclass(frozen=True)
class Standard:
    """Where blocks begin (row, column), the quality of the standard table that fits them, and how well, up to 1."""

    offset: tuple[int, int]
    quality: int
    score: float


def find_standard(plane: Array, clear: Flags) -> Standard | None:
    """The blocks of luma [H, W] in 0..255; None if no table fits.

    clear  [H, W], where no channel touches black or white
    """
    found = [Standard((row, column), *_best(plane, clear, (row, column))) for row, column in np.ndindex(BLOCK, BLOCK)]
    second, best = sorted(found, key=lambda one: one.score)[-2:]
    return best if best.score >= CLEAR_TABLE and best.score - second.score >= AHEAD else None


def _best(plane: Array, clear: Flags, offset: tuple[int, int]) -> tuple[int, float]:
    """The quality of the best table for blocks that begin at offset, and its score, -1 if too little is visible."""
    values, bands, cut = _values(plane, clear, offset)
    steps = _tables()[:, bands]
    phase = values / steps
    beyond = phase > 0.5
    used = np.where(cut, (steps >= SAFE_STEP) & beyond, steps >= SMALLEST_STEP)
    cosine = np.where(beyond, np.cos(np.float32(2 * np.pi) * phase), np.float32(-1))
    count = used.sum(1)
    scores = np.where(count >= FEWEST_VALUES, np.where(used, cosine, 0).sum(1) / np.maximum(count, 1), -1)
    best = len(scores) - 1 - int(scores[::-1].argmax())  # of equal ones the finest
    seen = len(np.unique(bands[used[best] & beyond[best]]))
    return int(QUALITIES[best]), float(scores[best]) if seen >= FEWEST_BANDS else -1.0


@lru_cache(maxsize=1)
def _tables() -> Floats:
    return np.stack([standard_luma(int(quality)) for quality in QUALITIES]).astype(np.float32)


def _values(plane: Array, clear: Flags, offset: tuple[int, int]) -> tuple[Floats, NDArray[np.intp], Flags]:
    """Coefficients [N] that rounding does not explain, their bands 1 to 63, and which are of blocks with clipped pixels."""
    side = BLOCK * int(np.sqrt(MOST_BLOCKS_FOR_GRID))
    top, left = (max(0, (length - side) // 2 // BLOCK * BLOCK) for length in plane.shape)
    part = slice(top, top + side + BLOCK), slice(left, left + side + BLOCK)
    blocks = transform_blocks(plane[part], offset, clear[part])
    sizes = np.abs(blocks.coefficients).astype(np.float32).reshape(-1, BLOCK * BLOCK)
    least = np.where(blocks.known.reshape(-1), np.float32(NOT_ZERO), np.float32(NOT_ZERO_CLIPPED))
    rows, bands = np.nonzero((sizes > least[:, None]) & (np.arange(BLOCK * BLOCK) > 0))
    chosen = slice(None, None, max(1, len(rows) // MOST_VALUES))
    rows, bands = rows[chosen], bands[chosen]
    return sizes[rows, bands], bands, ~blocks.known.reshape(-1)[rows]
