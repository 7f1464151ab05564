"""JPEG's traces in pixels: where its blocks lie and which steps their coefficients are multiples of.

For coefficients c beyond half a step q, the mean of cos(2 pi c / q) is near 1 where they are multiples of q; any smooth and
falling density of c makes it negative, since most of them lie just beyond half a step.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from leader.forensics.constants import read_constants
from leader.forensics.jpeg.blocks import (
    CHROMA,
    Array,
    Blocks,
    Flags,
    compute_luma,
    middle_blocks,
    split_blocks,
    transform_blocks,
)
from leader.forensics.jpeg.standard_grid import MOST_BLOCKS_FOR_GRID, NOT_ZERO, SMALLEST_STEP, find_standard, take_blocks
from leader.pictures.jpeg_history import JpegHistory, standard_chroma, standard_luma
from leader.transforms import BLOCK

_CONSTANTS = read_constants("jpeg.block_grid")
MOST_BLOCKS_FOR_STEPS, SEARCHED_BLOCKS = _CONSTANTS.counts("most_blocks_for_steps", "searched_blocks")
LARGEST_STEP = _CONSTANTS.count("largest_step")
CLEAR_STEP = _CONSTANTS.number("clear_step")
VOTES = _CONSTANTS.count("votes")
CONTRAST, ABRUPT = _CONSTANTS.numbers("contrast", "abrupt")
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
    standard = find_standard(take_blocks(plane, clear))
    offset = _grid(take_blocks(plane, clear), plane.shape) if standard is None else standard.offset
    if offset is None or _is_untouched(plane, clear):
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


def _is_untouched(plane: Array, clear: Flags) -> bool:
    """Whether areas of one colour end without the ripples that JPEG leaves in every block with an edge: a drawing, whose few
    coefficients are multiples of anything.
    """
    blocks, whole = split_blocks(plane), split_blocks(clear)
    here = (..., slice(-1), slice(-1))
    sides = ((..., slice(1, None), slice(-1)), (..., slice(-1), slice(1, None)))
    known = whole[here] & (np.ptp(blocks, axis=(2, 3)) >= CONTRAST)[..., None, None]
    alike = np.ones_like(known)
    for side in sides:
        known &= whole[side]
        alike &= blocks[here] == blocks[side]
    return bool(known.any()) and float(alike[known].mean()) >= ABRUPT


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


def _grid(blocks: Iterable[tuple[tuple[int, int], Blocks]], shape: tuple[int, ...]) -> tuple[int, int] | None:
    """The offset whose blocks hold multiples of something at most frequencies, or None; SEARCHED_BLOCKS of the `blocks` of
    `take_blocks` are looked at.

    shape  of the plane they were taken from
    """
    best: tuple[int, float] = (0, 0.0)
    where = (0, 0)
    rows, columns = np.array(SEARCHED).T
    all_of_them, few = middle_blocks(shape, MOST_BLOCKS_FOR_GRID), middle_blocks(shape, SEARCHED_BLOCKS)
    starts = [(inner.start - outer.start) // BLOCK for inner, outer in zip(few, all_of_them, strict=True)]
    stops = [min(inner.stop, length) - outer.start for inner, outer, length in zip(few, all_of_them, shape, strict=True)]
    for offset, here in blocks:
        part = tuple(slice(first, (stop - by) // BLOCK) for first, stop, by in zip(starts, stops, offset, strict=True))
        coefficients = here.coefficients[part][..., rows, columns][here.known[part]]
        hopeful = _may_have_steps(coefficients, 40, 24)
        if np.count_nonzero(hopeful) < max(VOTES, best[0]):
            continue
        scores = [_best_step(coefficients[:, band], 40, 24)[1] for band in np.flatnonzero(hopeful)]
        votes = [score for score in scores if score > CLEAR_STEP]
        if (len(votes), sum(votes)) > best:
            best, where = (len(votes), sum(votes)), offset
    return where if best[0] >= VOTES else None


def _may_have_steps(values: Array, largest: int, fewest: int) -> Flags:
    """For which bands of values [N, bands] `_best_step` may find a step: all bands at once, in single precision."""
    sizes = np.abs(values)
    bands = sizes.shape[1]
    below = np.minimum(np.ceil(2 * sizes), largest + 1).astype(np.intp)  # half of larger or equal steps is not exceeded
    counts = np.bincount((below + np.arange(bands) * (largest + 2)).reshape(-1), minlength=bands * (largest + 2))
    steps = np.arange(SMALLEST_STEP, largest + 1)
    beyond = counts.reshape(bands, -1)[:, ::-1].cumsum(1)[:, ::-1][:, steps + 1]  # [bands, steps]
    between = np.maximum((sizes > NOT_ZERO).sum(0)[:, None] - beyond, 0)
    total = np.maximum(beyond + between, 1)
    possible = (beyond >= fewest) & ((beyond - between) / total > CLEAR_STEP)  # no cosine exceeds 1
    hopeful, single = np.zeros(bands, bool), sizes.astype(np.float32)
    for number in np.flatnonzero(possible.any(0)):
        open_ = np.flatnonzero(possible[:, number] & ~hopeful)
        cosines = np.cos(single[:, open_] * np.float32(2 * np.pi / steps[number]))
        sums = np.where(below[:, open_] > steps[number], cosines, np.float32(0)).sum(0)
        hopeful[open_] = (sums - between[open_, number]) / total[open_, number] > CLEAR_STEP - 2 * SINGLE
    return hopeful


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
    part = middle_blocks(plane.shape, most)
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
