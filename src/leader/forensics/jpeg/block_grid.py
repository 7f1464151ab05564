"""JPEG's traces in pixels: where its blocks lie and which steps their coefficients are multiples of.

For coefficients c beyond half a step q, the mean of cos(2 pi c / q) is near 1 where they are multiples of q; any smooth and
falling density of c makes it negative, since most of them lie just beyond half a step.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from leader.forensics.constants import read_constants
from leader.forensics.jpeg.blocks import CHROMA, Array, Flags, compute_luma, transform_blocks
from leader.forensics.jpeg.standard_grid import NOT_ZERO, find_standard
from leader.pictures.jpeg_history import JpegHistory, standard_chroma, standard_luma
from leader.transforms import BLOCK

_CONSTANTS = read_constants("jpeg.block_grid")
MOST_BLOCKS_FOR_STEPS, SEARCHED_BLOCKS = _CONSTANTS.counts("most_blocks_for_steps", "searched_blocks")
LARGEST_STEP = _CONSTANTS.count("largest_step")
CLEAR_STEP = _CONSTANTS.number("clear_step")
VOTES = _CONSTANTS.count("votes")
SMALLEST_STEP = 3
"""Smaller steps drown in the rounding of R, G and B, and matter little."""
SINGLE = 0.01
"""Above the error of a mean cosine in single precision: coefficients are at most 680 half turns."""
SEARCHED = (
    (0, 1),
    (1, 0),
    (1, 1),
    (0, 2),
    (2, 0),
    (2, 2),
    (0, 4),
    (4, 0),
    (3, 3),
    (4, 4),
    (2, 5),
    (5, 2),
    (5, 6),
    (7, 5),
    (7, 7),
)
"""Frequencies by which the grid is found: low ones for clean pictures, high ones for noise behind fine steps."""


def find_history(pixels: Array) -> JpegHistory | None:
    """The last compression of pixels [H, W, 1 or 3] in [0, 1], if its blocks are still visible."""
    plane, clear = compute_luma(pixels), _unclipped(pixels)
    if min(plane.shape) < 6 * BLOCK:
        return None
    standard = find_standard(plane, clear)
    offset = _grid(plane, clear) if standard is None else standard.offset
    if offset is None:
        return None
    if standard is not None and standard.score > CLEAR_STEP:
        quality = standard.quality
        luma = standard_luma(quality).reshape(BLOCK, BLOCK)
    else:
        found = _all_steps(plane, clear, offset)
        if np.count_nonzero(found) < VOTES and standard is None:
            return None
        quality = _nearest_quality(found) if np.count_nonzero(found) >= VOTES or standard is None else standard.quality
        luma = np.where(found > 0, found, standard_luma(quality).reshape(BLOCK, BLOCK))
    if pixels.shape[2] == 1:
        return JpegHistory(_table(luma), None, (1, 1), offset, found=True)
    blue = _all_steps(255 * (pixels @ CHROMA[0]) + 128, clear, offset)
    full = np.count_nonzero(blue) >= VOTES  # otherwise chroma was enlarged smoothly, which hides its steps
    chroma = np.where(blue > 0, blue, standard_chroma(quality).reshape(BLOCK, BLOCK))
    return JpegHistory(_table(luma), _table(chroma), (1, 1) if full else (2, 2), offset, found=True)


def matches_history(pixels: Array, history: JpegHistory) -> bool:
    """Whether coefficients of pixels [H, W, 1 or 3] are multiples of the history's steps, as far as that is visible."""
    steps = history.luma_steps()
    coefficients = _sample(compute_luma(pixels), _unclipped(pixels), history.offset, MOST_BLOCKS_FOR_STEPS)
    scores = [
        score
        for row, column in np.argwhere(steps >= SMALLEST_STEP)
        for score, count in [_score(coefficients[:, row, column], steps[row, column])]
        if count >= 8
    ]
    return len(scores) < VOTES or float(np.median(scores)) > CLEAR_STEP / 2


def _grid(plane: Array, clear: Flags) -> tuple[int, int] | None:
    """The offset whose blocks hold multiples of something at most frequencies, or None."""
    best: tuple[int, float] = (0, 0.0)
    where = (0, 0)
    for offset in np.ndindex(BLOCK, BLOCK):
        coefficients = _sample(plane, clear, (offset[0], offset[1]), SEARCHED_BLOCKS)
        scores = [_best_step(coefficients[:, row, column], 40, 24)[1] for row, column in SEARCHED]
        votes = [score for score in scores if score > CLEAR_STEP]
        if (len(votes), sum(votes)) > best:
            best, where = (len(votes), sum(votes)), (offset[0], offset[1])
    return where if best[0] >= VOTES else None


def _all_steps(plane: Array, clear: Flags, offset: tuple[int, int]) -> Array:
    """The visible steps [8, 8], 0 where none is visible."""
    coefficients = _sample(plane, clear, offset, MOST_BLOCKS_FOR_STEPS)
    steps = np.zeros((BLOCK, BLOCK))
    for row, column in np.ndindex(BLOCK, BLOCK):
        if row + column:
            steps[row, column], _ = _best_step(coefficients[:, row, column], LARGEST_STEP, 16)
    return steps


def _best_step(values: Array, largest: int, fewest: int) -> tuple[int, float]:
    """The largest step that values are clearly multiples of, with its score; (0, 0) for none.

    Values between zero and half a step contradict it. All steps are tried at once in single precision; one that lies within
    its error of being clear is judged again.
    """
    sizes = np.sort(np.abs(values))[::-1]
    if len(sizes) < fewest:
        return 0, 0.0
    top = int(min(largest, 2 * sizes[fewest - 1]))  # fewer values lie beyond half of a larger step
    steps = np.arange(top, SMALLEST_STEP - 1, -1)
    beyond, (not_zero,) = (np.searchsorted(-sizes, -np.asarray(limits)) for limits in (steps / 2, [NOT_ZERO]))
    between = np.maximum(not_zero - beyond, 0)
    total = np.maximum(beyond + between, 1)
    possible = np.flatnonzero((beyond >= fewest) & ((beyond - between) / total > CLEAR_STEP))  # no cosine exceeds 1
    if not len(possible):
        return 0, 0.0
    phases = sizes[: beyond[possible].max()].astype(np.float32) * (2 * np.pi / steps[possible]).astype(np.float32)[:, None]
    cosines = np.where(np.arange(phases.shape[1]) < beyond[possible, None], np.cos(phases), np.float32(0)).sum(1)
    for number in possible[(cosines - between[possible]) / total[possible] > CLEAR_STEP - SINGLE]:
        score = float((_score(sizes, float(steps[number]))[0] * beyond[number] - between[number]) / total[number])
        if score > CLEAR_STEP:
            return int(steps[number]), score
    return 0, 0.0


def _score(values: Array, step: float) -> tuple[float, int]:
    sizes = np.abs(values)
    beyond = sizes[sizes > step / 2]
    return (float(np.cos(2 * np.pi / step * beyond).mean()) if len(beyond) else 0.0), len(beyond)


def _unclipped(pixels: Array) -> Flags:
    """Where no channel touches black or white: clipping moves coefficients away from their multiples."""
    inside = (pixels > 0.5 / 255) & (pixels < 254.5 / 255)
    return np.asarray(inside.all(axis=2))


def _sample(plane: Array, clear: Flags, offset: tuple[int, int], most: int) -> NDArray[np.float64]:
    """Coefficients [N, 8, 8] of whole blocks from the middle of the plane, of `clear` pixels only."""
    side = BLOCK * int(np.sqrt(most))
    top, left = (max(0, (length - side) // 2 // BLOCK * BLOCK) for length in plane.shape)
    part = slice(top, top + side + BLOCK), slice(left, left + side + BLOCK)
    blocks = transform_blocks(plane[part], offset, clear[part])
    kept: NDArray[np.float64] = blocks.coefficients[blocks.known]
    return kept


def _nearest_quality(found: Array) -> int:
    seen = found > 0

    def distance(quality: int) -> float:
        return float(np.abs(np.log(standard_luma(quality).reshape(BLOCK, BLOCK)[seen] / found[seen])).sum())

    return min(range(100, 0, -1), key=distance)


def _table(steps: Array) -> tuple[int, ...]:
    values: Sequence[float] = steps.reshape(-1).tolist()
    return tuple(int(step) for step in values)
