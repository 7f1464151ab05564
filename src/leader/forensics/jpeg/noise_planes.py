"""The planes of a JPEG in which its noise is looked for: luma, and chroma, which has little texture.

Noise that is independent in R, G and B is in every plane: in luma with the shares of R, G and B in it, in Cb and Cr with
theirs, and weaker where chroma was averaged over several pixels. Content is strong in luma and weak in chroma; steps are the
other way round.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from leader.forensics.jpeg.blocks import CHROMA, LUMA, Array, Blocks, Flags, average_blocks, compute_luma, transform_blocks
from leader.forensics.jpeg.coefficients import read_coefficients
from leader.forensics.noise.shot import MOST_LOST
from leader.pictures.jpeg_history import JpegHistory
from leader.transforms import BLOCK


@dataclass(frozen=True)
class NoisePlane:
    """One plane of a picture with C channels.

    blocks  its coefficients, [R, X] blocks, known where all their pixels are and few of them touch black or white
    steps   [8, 8], of their quantisation
    means   [R, X, C] of the pixels of every block, in [0, 1]
    shares  [C], of the channels in the variance of its noise; they sum to 1
    unit    standard deviation that a coefficient has of noise of 1 in every channel
    """

    blocks: Blocks
    steps: Array
    means: Array
    shares: Array
    unit: float


def read_luma(pixels: Array, history: JpegHistory, known: Flags | None) -> NoisePlane:
    """Of pixels [H, W, 1 or 3] in [0, 1], of which known [H, W] are valid."""
    row = LUMA if pixels.shape[2] == 3 else np.ones(1)
    blocks = transform_blocks(compute_luma(pixels), history.offset, known)
    means, clipped = (
        np.stack([average_blocks(channel, history.offset) for channel in np.moveaxis(values, 2, 0)], axis=-1)
        for values in (pixels, _find_clipped(pixels))
    )
    usable = blocks.known & (clipped.max(-1) <= MOST_LOST)
    return NoisePlane(Blocks(blocks.coefficients, usable), history.luma_steps(), means, *_weigh(row, BLOCK**2))


def read_chroma(pixels: Array, history: JpegHistory, known: Flags | None) -> list[NoisePlane]:
    """Cb and Cr of the same pixels; none where there is no colour, or where a copy does not tell how it was averaged."""
    if pixels.shape[2] == 1 or history.chroma is None or (history.found and history.sampling != (1, 1)):
        return []
    found = read_coefficients(pixels, history)
    margins = (
        (found.top, found.frame[0] - found.top - found.height),
        (found.left, found.frame[1] - found.left - found.width),
    )
    inside = np.pad(np.ones(pixels.shape[:2], bool) if known is None else known, margins)
    rows, columns = (BLOCK * factor for factor in history.sampling)
    tiles = (found.frame[0] // rows, rows, found.frame[1] // columns, columns)
    whole = np.asarray(inside.reshape(tiles).all(axis=(1, 3)))
    means, clipped = (
        np.pad(values, (*margins, (0, 0)), mode="edge").reshape(*tiles, 3).mean((1, 3))
        for values in (pixels, _find_clipped(pixels))
    )
    usable = whole & (clipped.max(-1) <= MOST_LOST)
    pairs = zip(found.planes[1:], CHROMA, strict=True)
    return [
        NoisePlane(Blocks(plane.values.astype(np.float64), usable), history.chroma_steps(), means, *_weigh(row, rows * columns))
        for plane, row in pairs
    ]


def _find_clipped(pixels: Array) -> Array:
    """1 where a channel is black or white, else 0."""
    return np.asarray((pixels <= 0) | (pixels >= 1), np.float64)


def _weigh(row: Array, pixels: int) -> tuple[Array, float]:
    """(shares, unit) of a plane that adds channels with the weights `row`, in blocks that cover so many pixels."""
    gain = float(np.sqrt((row**2).sum()))
    return row**2 / gain**2, 255 * gain / math.sqrt(pixels / BLOCK**2)
