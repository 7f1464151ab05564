"""The power of a picture at each frequency, from tiles under a smooth window, so that its borders do not matter.

Units: white noise of standard deviation s has the power s^2 at every frequency.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from leader.forensics.constants import read_constants
from leader.forensics.jpeg.blocks import LUMA, transform_blocks
from leader.pictures.jpeg_history import JpegHistory
from leader.transforms import BLOCK

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

_CONSTANTS = read_constants("blur.periodogram")
MOST_TILES = _CONSTANTS.count("most_tiles")
ALIVE = _CONSTANTS.number("alive")


@dataclass(frozen=True)
class Plane:
    """The frequencies of a tile of side T that are looked at.

    f, theta  [n] cycles per pixel and angle; `use` [T, T / 2 + 1] marks them among those of rfft2
    basis     [n, BASIS] what the logarithm of a photograph's power is a combination of
    """

    side: int
    use: Flags
    f: Array
    theta: Array
    basis: Array


@lru_cache(maxsize=4)
def plane(side: int) -> Plane:
    """All frequencies of a half plane but those near zero and the two axes, where the window's own width shows."""
    fy, fx = np.fft.fftfreq(side)[:, None], np.fft.rfftfreq(side)[None]
    f = np.hypot(fy, fx)
    off = (np.abs(np.rint(fy * side)) > 1) & (np.rint(fx * side) > 1)
    use = off & (f >= 3 / side) & (f <= 0.5) & (np.abs(fy) < 0.5) & (fx < 0.5)
    theta = np.arctan2(np.broadcast_to(fy, f.shape), np.broadcast_to(fx, f.shape))[use]
    return Plane(side, use, f[use], theta, basis_of(f[use], theta))


def basis_of(f: Array, theta: Array) -> Array:
    """[..., BASIS]: level, slope, curvature; then how both differ with direction. f in cycles per pixel."""
    log = np.log(f / 0.1)
    parts = (
        np.ones_like(log),
        -log,
        -(log**2),
        np.cos(2 * theta),
        np.sin(2 * theta),
        np.cos(4 * theta),
        np.sin(4 * theta),
        log * np.cos(2 * theta),
        log * np.sin(2 * theta),
    )
    return np.stack(parts, axis=-1)


def luma_plane(pixels: NDArray[np.floating]) -> Array:
    """[H, W, 1 or 3] in [0, 1] -> luma [H, W] in [0, 1]."""
    values = np.asarray(pixels, dtype=np.float64)
    return values[..., 0] if values.shape[2] == 1 else values @ LUMA


def periodogram(luma: Array, side: int, known: Flags | None = None) -> Array | None:
    """Mean power [side, side / 2 + 1] over tiles [side, side] that overlap by half, or None if no tile is completely known."""
    window = np.outer(_hann(side), _hann(side))
    total, count = np.zeros((side, side // 2 + 1)), 0
    for rows, columns in _tiles(luma.shape, side):
        if known is not None and not known[rows, columns].all():
            continue
        tile = luma[rows, columns]
        tile = tile - (tile * window).sum() / window.sum()
        total += np.abs(np.fft.rfft2(tile * window)) ** 2
        count += 1
    return total / count / (window**2).sum() if count else None


def _hann(side: int) -> Array:
    values: Array = np.hanning(side + 1)[:-1]
    return values


def _tiles(shape: tuple[int, ...], side: int) -> Iterator[tuple[slice, slice]]:
    """Tiles over the picture that overlap by half; if there are too many, fewer, evenly spread."""
    counts = [max(1, math.ceil((length - side) / (side / 2)) + 1) for length in shape]
    shrink = min(1.0, math.sqrt(MOST_TILES / (counts[0] * counts[1])))
    starts = [
        np.unique(np.linspace(0, length - side, max(1, round(count * shrink))).astype(int))
        for length, count in zip(shape, counts, strict=True)
    ]
    for top in starts[0]:
        for left in starts[1]:
            yield slice(top, top + side), slice(left, left + side)


def mix_neighbours(power: Array) -> Array:
    """A power [..., T, T / 2 + 1] at the frequencies of rfft2 as tiles under the window see it: mixed with that of its
    neighbours, but for the first and the last column, which no plane looks at.

    The window of Hann has three coefficients, (-1/4, 1/2, -1/4) along each axis: powers (1, 4, 1) / 6 after scaling.
    """
    mixed = (4 * power + np.roll(power, 1, -2) + np.roll(power, -1, -2)) / 6
    mixed[..., 1:-1] = (4 * mixed[..., 1:-1] + mixed[..., :-2] + mixed[..., 2:]) / 6
    return mixed


def describe_quantisation(luma: Array, history: JpegHistory, at: Plane, shrunk: int = 1) -> tuple[Array, Array]:
    """What a JPEG's steps did at the frequencies [n] of a plane: 1 where the picture can be seen, 0 elsewhere; and the power
    that rounding added. luma in [0, 1].

    shrunk  the plane is that of the picture after averaging over so many pixels along each side

    Frequency u of a block lies at u / 16 cycles per pixel. Where nearly all coefficients became zero, the power says
    nothing of the picture.
    """
    steps = history.luma_steps()
    blocks = transform_blocks(255 * luma, history.offset)
    share = (np.rint(blocks.coefficients / steps) != 0).mean(axis=(0, 1))
    rows, columns = (np.minimum(2 * BLOCK * np.abs(part) / shrunk, BLOCK - 1) for part in _components(at))
    left = _between(share, rows, columns)
    added = _between(share * (steps / 255) ** 2 / 12, rows, columns) / shrunk**2
    return (left > ALIVE).astype(np.float64), added


def _components(at: Plane) -> tuple[Array, Array]:
    return at.f * np.sin(at.theta), at.f * np.cos(at.theta)


def _between(table: Array, rows: Array, columns: Array) -> Array:
    """A table [8, 8] at fractional places, bilinear."""
    top, left = np.minimum(rows.astype(int), BLOCK - 2), np.minimum(columns.astype(int), BLOCK - 2)
    down, right = rows - top, columns - left
    upper = table[top, left] * (1 - right) + table[top, left + 1] * right
    lower = table[top + 1, left] * (1 - right) + table[top + 1, left + 1] * right
    mixed: Array = upper * (1 - down) + lower * down
    return mixed
