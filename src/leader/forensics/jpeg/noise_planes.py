"""The planes of a JPEG in which its noise is looked for: luma, and chroma, which has little texture.

Noise that is independent in R, G and B is in every plane: in luma with the shares of R, G and B in it, in Cb and Cr with
theirs, and weaker where chroma was averaged over several pixels. Content is strong in luma and weak in chroma; steps are the
other way round.
"""

import math
from dataclasses import dataclass

import numpy as np

from leader.forensics.jpeg.blocks import CHROMA, LUMA, Array, Blocks, Flags, compute_luma, transform_blocks
from leader.forensics.jpeg.coefficients import read_coefficients
from leader.forensics.noise.shot import MOST_LOST
from leader.pictures.jpeg_history import JpegHistory
from leader.transforms import BLOCK


@dataclass(frozen=True)
class NoisePlane:
    """One plane of a picture with C channels.

    blocks  its coefficients, [R, X] blocks, known where all their pixels are and not most of them are black or white
    steps   [8, 8], of their quantisation
    pixels  [R, X, C, K] that every block covers, in [0, 1], averaged over 2 x 2 of them
    shares  [C], of the channels in the variance of its noise; they sum to 1
    unit    standard deviation that a coefficient has of noise of 1 in every channel
    """

    blocks: Blocks
    steps: Array
    pixels: Array
    shares: Array
    unit: float


def read_luma(pixels: Array, history: JpegHistory, known: Flags | None) -> NoisePlane:
    """Of pixels [H, W, 1 or 3] in [0, 1], of which known [H, W] are valid."""
    row = LUMA if pixels.shape[2] == 3 else np.ones(1)
    blocks = transform_blocks(compute_luma(pixels), history.offset, known)
    top, left = (first % BLOCK for first in history.offset)
    return _weigh(blocks, history.luma_steps(), pixels[top:, left:], row, (1, 1))


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
    whole = np.asarray(inside.reshape(len(inside) // rows, rows, -1, columns).all(axis=(1, 3)))
    padded = np.pad(pixels, (*margins, (0, 0)), mode="edge")
    return [
        _weigh(Blocks(plane.values.astype(np.float64), whole), history.chroma_steps(), padded, row, history.sampling)
        for plane, row in zip(found.planes[1:], CHROMA, strict=True)
    ]


def _weigh(blocks: Blocks, steps: Array, pixels: Array, row: Array, sampling: tuple[int, int]) -> NoisePlane:
    """A plane that adds channels with the weights `row`, in blocks that were averaged over `sampling` pixels."""
    (down, across), halves = blocks.known.shape, [BLOCK * factor // 2 for factor in sampling]
    cut = pixels[: 2 * down * halves[0], : 2 * across * halves[1]]
    pairs = cut.reshape(down, halves[0], 2, across, halves[1], 2, -1).mean((2, 5))
    covered = np.moveaxis(pairs, (0, 2, 4), (0, 1, 2)).reshape(down, across, len(row), -1)
    clipped = ((covered <= 0) | (covered >= 1)).mean(-1).max(-1)
    gain = float(np.sqrt((row**2).sum()))
    unit = 255 * gain / math.sqrt(sampling[0] * sampling[1])
    whole = Blocks(blocks.coefficients, blocks.known & (clipped <= MOST_LOST))
    return NoisePlane(whole, steps, covered, row**2 / gain**2, unit)
