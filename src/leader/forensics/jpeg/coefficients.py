"""The quantised coefficients of a JPEG, recovered from its pixels.

A decoder converts them to pixels: inverse transform, rounding, enlarging of chroma, RGB, rounding and clipping. Each step is
undone, and values near a multiple of their step are rounded to it. Rounding leaves errors of 0.2 to 0.4 grey levels, so steps
of 3 and more are recovered exactly; where black, white or a pure colour was clipped, or a border cuts a block, the value stays
as it is and is marked as not exact.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from leader.forensics.constants import read_constants
from leader.forensics.jpeg.blocks import BLUE_ERROR, CHROMA, DCT, RED_ERROR, Array, Flags, compute_luma, transform_blocks
from leader.forensics.jpeg.chroma import Reach, reduce_chroma
from leader.pictures.jpeg_history import LARGEST_UNIT, JpegHistory, standard_chroma, standard_luma
from leader.transforms import BLOCK

_CONSTANTS = read_constants("jpeg.coefficients")
ROUNDING, CERTAIN, AGREES, STANDARD_AGREES = _CONSTANTS.numbers("rounding", "certain", "agrees", "standard_agrees")
QUALITIES_AROUND, FEWEST_MULTIPLES = _CONSTANTS.counts("qualities_around", "fewest_multiples")
MOST_BLOCKS_OF_LUMA, MOST_ROWS = _CONSTANTS.counts("most_blocks_of_luma", "most_rows")
SAMPLINGS = ((2, 2), (1, 2), (2, 1))
"""Of chroma, where the file does not say: 4:2:0, 4:2:2, 4:4:0."""

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Plane:
    """Coefficients of whole blocks in grey levels of 0..255, 128 taken off.

    values  [R, C, 8, 8] float32, multiples of the steps where `exact`
    exact   [R, C, 8, 8], where the stored multiple is known
    error   [R, C] float32, standard deviation of what decoding and clipping left in the coefficients of a block
    """

    values: Floats
    exact: Flags
    error: Floats

    def zero(self, steps: Array) -> Flags:
        """[R, C, 8, 8], which coefficients were rounded to zero; the mean of a block never counts as such."""
        empty: Flags = np.rint(self.values / steps) == 0
        empty[..., 0, 0] = False
        return empty & (self.exact | (steps > 2 * CERTAIN * ROUNDING))

    def doubt(self) -> Floats:
        """[R, C, 8, 8], how far in grey levels the stored multiple may lie from `values`."""
        return np.where(self.exact, np.float32(0), CERTAIN * self.error[..., None, None]).astype(np.float32)


@dataclass(frozen=True)
class Coefficients:
    """What a JPEG holds, on the smallest frame of whole units around the picture.

    history  with the offset of the picture's first whole unit, and the findings about its chroma
    top, left, height, width  where the picture lies in the frame
    frame    (height, width) of the frame, multiples of 8 times the sampling
    planes   luma, or luma, Cb and Cr
    """

    history: JpegHistory
    top: int
    left: int
    height: int
    width: int
    frame: tuple[int, int]
    planes: tuple[Plane, ...]

    def steps(self) -> list[Array]:
        """The quantisation steps [8, 8] of every plane."""
        return [self.history.luma_steps(), *2 * [self.history.chroma_steps()]][: len(self.planes)]

    def rounding_error(self) -> float:
        """Root mean square error of [0, 1] pixels from rounding the coefficients that were not rounded to zero."""
        total = 1 / 12
        for plane, steps, gain in zip(self.planes, self.steps(), (1.0, BLUE_ERROR, RED_ERROR), strict=False):
            total += gain * float((np.where(plane.zero(steps), 0.0, steps**2) / 12).mean())
        return math.sqrt(total) / 255


def read_coefficients(pixels: NDArray[np.floating], history: JpegHistory) -> Coefficients:
    """The coefficients behind pixels [H, W, 1 or 3] in [0, 1], as a file with this history decodes to."""
    values = np.asarray(pixels, dtype=np.float64)
    colour, smooth = values.shape[2] == 3, True
    if not colour:
        history = replace(history, chroma=None, sampling=(1, 1))
    if history.found:
        history = _standardised(values, history)
    if history.found and history.sampling != (1, 1):
        history, smooth = _understood(values, history)
    vertical, horizontal = _reaches(values, history)
    margins = [(reach.before, reach.after) for reach in (vertical, horizontal)]
    luma = np.pad(compute_luma(values), margins, mode="edge")
    usable = np.pad(np.ones(values.shape[:2], bool), margins)
    planes = [_snapped(luma, usable, history.luma_steps())]
    if colour:
        units = usable.reshape(vertical.samples, vertical.factor, horizontal.samples, horizontal.factor)
        small: Flags = np.asarray(units.all(axis=(1, 3)))
        for row in CHROMA:
            plane = reduce_chroma(255 * (values @ row), vertical, horizontal, smooth) + 128
            planes.append(_snapped(plane, small, history.chroma_steps()))
    frame = (BLOCK * len(planes[0].values), BLOCK * planes[0].values.shape[1])
    height, width = values.shape[:2]
    return Coefficients(history, vertical.before, horizontal.before, height, width, frame, tuple(planes))


def _reaches(pixels: Array, history: JpegHistory) -> tuple[Reach, Reach]:
    """How rows and columns of the picture lie in whole units; a file's picture ends where its chroma does."""
    found = []
    for length, factor, first in zip(pixels.shape[:2], history.sampling, history.offset, strict=True):
        unit = BLOCK * factor
        before = -first % unit
        found.append(Reach(length, before, -(-(before + length) // unit) * BLOCK, factor, ends=not history.found))
    return found[0], found[1]


def _standardised(pixels: Array, history: JpegHistory) -> JpegHistory:
    """The history with the standard tables of a quality, if these explain nearly all coefficients of luma.

    Steps found frequency by frequency have gaps, and are twice too large where few coefficients are not zero.
    """
    whole = transform_blocks(compute_luma(pixels), history.offset).coefficients.reshape(-1, BLOCK, BLOCK)
    inner = whole[:: max(1, len(whole) // MOST_BLOCKS_OF_LUMA)]
    best, chosen = STANDARD_AGREES, history
    for quality in range(max(1, history.quality - QUALITIES_AROUND), min(100, history.quality + QUALITIES_AROUND) + 1):
        table = standard_luma(quality)
        score = _multiples(inner, table.reshape(BLOCK, BLOCK))
        if score > best:
            chroma = None if history.chroma is None else tuple(int(step) for step in standard_chroma(quality))
            best, chosen = score, replace(history, luma=tuple(int(step) for step in table), chroma=chroma)
    return chosen


def _multiples(blocks: Array, steps: Array) -> float:
    """Mean of cos(2 pi c / q) over coefficients [..., 8, 8] beyond half a step: 1 for multiples of q; 0 where there are few."""
    phase = blocks / steps
    used = (np.abs(phase) > 0.5) & (steps >= 3)
    return float(np.cos(2 * np.pi * phase[used]).mean()) if int(used.sum()) >= FEWEST_MULTIPLES else 0.0


def _understood(pixels: Array, history: JpegHistory) -> tuple[JpegHistory, bool]:
    """The history with the sampling and the unit whose chroma holds multiples of its steps, and whether it was enlarged
    smoothly; without one, means over 2 x 2 pixels are used.
    """
    top, left = (max(0, (length - MOST_ROWS) // 2 // LARGEST_UNIT * LARGEST_UNIT) for length in pixels.shape[:2])
    part = pixels[top : top + MOST_ROWS, left : left + MOST_ROWS]
    best, chosen = AGREES, (history, False)
    for rows, columns in SAMPLINGS:
        for down, across in np.ndindex(rows, columns):
            offset = (history.offset[0] + BLOCK * down, history.offset[1] + BLOCK * across)
            tried = replace(history, sampling=(rows, columns), offset=offset)
            for smooth in (True, False):
                score = _agreement(part, tried, smooth)
                if score > best:
                    best, chosen = score, (tried, smooth)
    return chosen


def _agreement(pixels: Array, history: JpegHistory, smooth: bool) -> float:
    """How clearly the coefficients of Cb and Cr are multiples of their steps."""
    planes = [reduce_chroma(255 * (pixels @ row), *_reaches(pixels, history), smooth) for row in CHROMA]
    return _multiples(np.stack([_transformed(plane)[1:-1, 1:-1] for plane in planes]), history.chroma_steps())


def _snapped(plane: Array, usable: Flags, steps: Array) -> Plane:
    """The coefficients of a plane [H, W] in 0..255, taken to multiples of their steps.

    A clipped pixel moves all coefficients of its block by a little: the mean distance of a block tells how far to trust it.
    """
    found = _transformed(plane - 128)
    multiples = np.rint(found / steps) * steps
    error = np.sqrt(((found - multiples) ** 2).mean(axis=(2, 3), keepdims=True)).clip(ROUNDING)
    whole = np.asarray(usable.reshape(found.shape[0], BLOCK, found.shape[1], BLOCK).all(axis=(1, 3)))
    exact = whole[..., None, None] & (CERTAIN * error < steps / 2)
    return Plane(np.where(exact, multiples, found).astype(np.float32), exact, error[..., 0, 0].astype(np.float32))


def _transformed(plane: Array) -> Array:
    tiles = plane.reshape(plane.shape[0] // BLOCK, BLOCK, plane.shape[1] // BLOCK, BLOCK).swapaxes(1, 2)
    return np.asarray(DCT @ tiles @ DCT.T)
