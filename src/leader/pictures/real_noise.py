"""The noise of a picture as people have it: white noise, what JPEG did to it and added, rounding.

One number is sought: the standard deviation that a data term should assume of every R, G and B. It is the largest of
  white        the white noise that was there before the picture was compressed, judged by its luma: white noise of s in R, G
               and B is one of 0.669 s in luma, which keeps it where chroma is averaged over 2 x 2 pixels
  compression  the root mean square error of the last compression, from its steps and what is left of the coefficients
  rounding     that of 8 or 16 bits
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leader.pictures.block_grid import belongs, find_history
from leader.pictures.blocks import LUMA, LUMA_GAIN, Array, Flags, block_means, blocks_of, chroma_of, finest_detail, luma_of
from leader.pictures.jpeg_history import LARGEST_UNIT, JpegHistory
from leader.pictures.noise_level import before_clipping, estimate_noise
from leader.pictures.quantised_noise import FEWEST, compression_error, flat_blocks, noise_before, step_error

LONGEST_SIDE = 4096
"""The middle of a larger picture speaks for all of it."""

ENLARGED = 0.3
"""Finest over next finest detail of chroma: 0.2 to 0.24 behind 4:2:0, 0.5 or more in photographs without it."""


@dataclass(frozen=True)
class NoiseEstimate:
    """Standard deviations for pixels in [0, 1]; `history` is the compression that was found, or None."""

    white: float
    compression: float
    rounding: float
    history: JpegHistory | None = None

    @property
    def sigma(self) -> float:
        return max(self.white, self.compression, self.rounding)

    def notes(self) -> tuple[str, ...]:
        """A sentence where compression sets the noise level."""
        if self.history is None or self.sigma > self.compression or self.compression <= self.rounding:
            return ()
        was = "was once a JPEG" if self.history.found else "is a JPEG"
        return (
            f"The file {was} of about quality {self.history.quality}: its compression counts as noise of "
            f"{self.compression:.2g}.",
        )


def measure_noise(
    image: NDArray[np.floating],
    known: Flags | None = None,
    bits: int = 8,
    history: JpegHistory | None = None,
    amplified: bool = False,
) -> NoiseEstimate:
    """The noise of image [H, W, C] in [0, 1], C = 1 or 3.

    known      [H, W] marks valid pixels
    bits       8 or 16 per sample of the file
    history    what its file says of its compression; it is looked for in 8-bit pixels where there is none
    amplified  whether detail will be amplified: the error of compression lies where content is, so in a smooth picture
               its mean is too small there, and that of blocks with content counts
    """
    rounding = 1 / float(2**bits - 1) / math.sqrt(12)
    pixels, known = _middle(np.asarray(image, dtype=np.float64), known)
    if history is not None and not belongs(pixels, history):
        history = None  # of a picture that was resized or edited since
    if history is None and bits == 8:
        history = find_history(pixels if known is None else np.where(known[..., None], pixels, 0))
    if history is None:
        return NoiseEstimate(_white_of_pixels(pixels, known), 0.0, rounding)
    compression = max(compression_error(pixels, history, known), step_error(history) if amplified else 0.0)
    white = _white(pixels, known, history)
    return NoiseEstimate(_white_of_pixels(pixels, known) if white is None else white, compression, rounding, history)


def _middle(pixels: Array, known: Flags | None) -> tuple[Array, Flags | None]:
    """At most LONGEST_SIDE rows and columns, cut where blocks begin."""
    top, left = (max(0, (length - LONGEST_SIDE) // 2 // LARGEST_UNIT * LARGEST_UNIT) for length in pixels.shape[:2])
    rows, columns = slice(top, top + LONGEST_SIDE), slice(left, left + LONGEST_SIDE)
    return pixels[rows, columns], None if known is None else known[rows, columns]


def _white_of_pixels(pixels: Array, known: Flags | None) -> float:
    """White noise of a picture without blocks; judged by luma alone where chroma was enlarged and hides it."""
    level = estimate_noise(pixels, known)
    if pixels.shape[2] == 1 or not _chroma_was_enlarged(pixels):
        return level
    return max(level, estimate_noise(luma_of(pixels)[..., None] / 255, known) / LUMA_GAIN)


def _chroma_was_enlarged(pixels: Array) -> bool:
    """Whether the finest detail of chroma is far weaker than the next finest: in white noise it is four times as strong,
    in photographs about as strong.
    """
    fine, coarse = (sum(finest_detail(plane) for plane in chroma_of(pixels, (side, side), (0, 0))) for side in (1, 2))
    return fine < ENLARGED * coarse


def _white(pixels: Array, known: Flags | None, history: JpegHistory) -> float | None:
    """White noise before the compression, or None where too few blocks are known."""
    blocks = blocks_of(luma_of(pixels), history.offset, known)
    if int(blocks.known.sum()) < FEWEST:
        return None
    colour = pixels.shape[2] == 3
    gain, shares = (LUMA_GAIN, LUMA**2 / LUMA_GAIN**2) if colour else (1.0, np.ones(1))
    means = np.stack([block_means(pixels[..., channel], history.offset) for channel in range(len(shares))], axis=-1)
    flat = flat_blocks(blocks, blocks.known)
    level = noise_before(blocks.coefficients[flat], history.luma_steps()) / (255 * gain)
    return before_clipping(level, means[flat].reshape(-1), np.tile(shares, int(flat.sum())))
