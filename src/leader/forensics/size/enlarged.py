"""Whether a picture was only enlarged: interpolation leaves a trace that repeats with the grid of the small one.

Between the pixels that were there, interpolated ones vary less, so the size of the first or second differences, averaged
over all rows, beats with the factor along the columns, and the other way round (Gallagher, "Detection of linear and cubic
interpolation in JPEG compressed images", CRV 2005). Blur leaves no such beat. The blocks of JPEG do, at multiples of 1/8.
"""

import math

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from leader.forensics.constants import read_constants
from leader.forensics.jpeg.blocks import compute_luma
from leader.transforms import BLOCK

Array = NDArray[np.float64]

_CONSTANTS = read_constants("size.enlarged")
SMALLEST_ENLARGED, LONGEST_PART = _CONSTANTS.counts("smallest_enlarged", "longest_part")
TRANSFORM_LENGTH = _CONSTANTS.count("transform_length")
SLOWEST = _CONSTANTS.number("slowest")
TREND = _CONSTANTS.count("trend")
STANDS_OUT, STRENGTH, REPEATED = _CONSTANTS.numbers("stands_out", "strength", "repeated")
PHOTOGRAPH_SLOPE = _CONSTANTS.number("photograph_slope")
NOTCH, COMPRESSED_NOTCH, AMONG_BLOCKS = _CONSTANTS.numbers("notch", "compressed_notch", "among_blocks")


def find_enlargement(pixels: NDArray[np.floating], compressed: bool) -> float | None:
    """By how much pixels [H, W, C] were enlarged, 1.2 to 8, by nearest neighbour, bilinear, bicubic or Lanczos; None if they
    were not.

    compressed  whether blocks of JPEG, which beat too, are in them; those of other compressions are looked for: an enlargement
                by 4 / 3 or 8 / 5, which beats like them, is not named
    """
    top, left = (max(0, (length - LONGEST_PART) // 2) for length in pixels.shape[:2])
    part = pixels[top : top + LONGEST_PART, left : left + LONGEST_PART].astype(np.float64)
    if min(part.shape[:2]) < SMALLEST_ENLARGED:
        return None
    plane = compute_luma(part) / 255
    found = [beat for order in (1, 2) if (beat := _strongest(plane, order, compressed)) is not None]
    if not found:
        return None
    frequency = max(found)[1]
    slow, fast = 1 / frequency, 1 / (1 - frequency)  # they beat alike
    repeated = _share_repeated(plane)
    if repeated > REPEATED:  # by nearest neighbour: of a cell all pixels but one repeat the one before
        return min(slow, fast, key=lambda factor: abs(1 - 1 / factor - repeated))
    if _relative_power(plane, frequency) < (COMPRESSED_NOTCH if compressed else NOTCH):
        return slow
    if not compressed and abs(frequency * BLOCK - round(frequency * BLOCK)) / BLOCK <= 2 / min(plane.shape):
        return find_enlargement(pixels, True)  # blocks of WebP and of videos beat so, without an empty frequency
    return fast


def _strongest(plane: Array, order: int, compressed: bool) -> tuple[float, float] | None:
    """(how far it stands out, cycles per pixel) of the strongest beat of the differences that rows and columns share."""
    beats = np.minimum(_beats(plane, order), _beats(plane.T, order))
    frequencies = np.arange(len(beats)) / TRANSFORM_LENGTH
    usable = frequencies >= SLOWEST
    if compressed:
        near = 2 / min(plane.shape)
        usable &= np.abs(frequencies * BLOCK - np.round(frequencies * BLOCK)) / BLOCK > near
    usual = float(np.median(beats[usable]))
    if compressed:
        usable |= (frequencies >= 0.5 - near / 2) & _twice_stands_out(beats, frequencies, near)
    best = int(np.where(usable, beats, 0).argmax())
    if beats[best] < max(STRENGTH, STANDS_OUT * usual):
        return None
    return float(beats[best] / (usual + 1e-12)), float(frequencies[best])


def _twice_stands_out(beats: Array, frequencies: Array, near: float) -> bool:
    """Whether the beat of twice enlarged pictures is more than what blocks add to every multiple of 1 / 8."""
    every = [float(beats[np.abs(frequencies - number / BLOCK) < near / 2].max()) for number in range(1, BLOCK // 2 + 1)]
    return every[-1] > AMONG_BLOCKS * max(every[:-1])


def _beats(plane: Array, order: int) -> Array:
    """[TRANSFORM_LENGTH / 2 + 1], the spectrum of the logarithm of the mean difference of columns, without its trend."""
    size = np.log(np.abs(np.diff(plane, order, axis=1)).mean(0) + 1e-4)
    framed = np.pad(size, TREND // 2, mode="reflect")
    size = size - np.median(sliding_window_view(framed, TREND), axis=1)
    window = np.hanning(len(size) + 2)[1:-1]
    spectrum: Array = np.abs(np.fft.rfft(size * window, TRANSFORM_LENGTH)) / math.sqrt(float((window**2).sum()))
    return spectrum


def _share_repeated(plane: Array) -> float:
    """The share of columns that are hardly different from the one before, against the most different tenth."""
    size = np.abs(np.diff(plane, axis=1)).mean(0)
    return float((size < 0.1 * np.quantile(size, 0.9)).mean())


def _relative_power(plane: Array, frequency: float) -> float:
    """The power around a frequency, where an enlarged picture's mean would be repeated, against that of a photograph."""
    height, width = plane.shape
    window = np.outer(np.hanning(height + 2)[1:-1], np.hanning(width + 2)[1:-1])
    centred = plane - (plane * window).sum() / window.sum()
    power = np.abs(np.fft.rfft2(centred * window)) ** 2
    large = np.maximum(np.abs(np.fft.fftfreq(height))[:, None], np.fft.rfftfreq(width)[None])
    here = (large > frequency - 0.015) & (large < frequency + 0.015)
    coarse = (large > 0.03) & (large < 0.09)
    expected = float((power * large**PHOTOGRAPH_SLOPE)[coarse].mean()) / frequency**PHOTOGRAPH_SLOPE
    found: float = float(power[here].mean()) / (expected + 1e-12)
    return found
