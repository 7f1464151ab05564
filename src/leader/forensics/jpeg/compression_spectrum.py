"""The error of JPEG compression as noise with a spectrum: by band of its blocks, for luma and chroma apart.

Bands of the 8 x 8 blocks lie at frequencies of u / 16 cycles a pixel; those of chroma that was averaged over 2 x 2 pixels at
half of that, with four times the power there, and beyond lies what the averaging removed. Errors lie where content is: where
a picture has some, they are larger than their mean over the picture. For pictures whose detail will be amplified a band of luma
therefore counts as the geometric mean of its expected error and of that of a band that is never rounded to zero.
"""

import numpy as np

from leader.forensics.jpeg.blocks import Array, Flags, compute_chroma, compute_luma, finest_detail, transform_blocks
from leader.forensics.jpeg.quantised_noise import SUBSAMPLING_LOSS, band_errors
from leader.forensics.noise.spectrum import NoiseSpectrum
from leader.pictures.jpeg_history import JpegHistory
from leader.transforms import BLOCK, OPPONENT, RGB_OF_YCBCR

SHARES: Array = (OPPONENT @ RGB_OF_YCBCR) ** 2
"""[3, 3] power along the opponent axes for one of luma, Cb and Cr."""


def compression_spectrum(pixels: Array, history: JpegHistory, known: Flags | None) -> NoiseSpectrum:
    """The error that the compression made of pixels [H, W, 1 or 3] in [0, 1] whose detail will be amplified."""
    steps = history.luma_steps()
    expected = band_errors(transform_blocks(compute_luma(pixels), history.offset, known), steps)
    luma = _with_last(np.sqrt(expected * np.maximum(expected, steps**2 / 12)))
    if pixels.shape[2] == 1:
        return NoiseSpectrum((luma[None] + 1 / 12) / 255**2)
    planes = [luma]
    for plane in compute_chroma(pixels, history.sampling, history.offset):
        errors = band_errors(transform_blocks(plane), history.chroma_steps())
        planes.append(_enlarged(errors, history.sampling, SUBSAMPLING_LOSS * finest_detail(plane)))
    return NoiseSpectrum((np.einsum("ac,cuv->auv", SHARES, np.array(planes)) + 1 / 12) / 255**2)


def _enlarged(errors: Array, sampling: tuple[int, int], lost: float) -> Array:
    """Errors [9, 9] at the frequencies of pixels of chroma [8, 8] that was averaged over `sampling` pixels."""
    if sampling == (1, 1):
        return _with_last(errors)
    rows, columns = sampling
    inside = rows * columns * errors[::rows, ::columns]
    table = np.full((BLOCK + 1, BLOCK + 1), lost / (1 - 1 / (rows * columns)))
    table[: inside.shape[0], : inside.shape[1]] = inside
    floored: Array = np.maximum(table, 1e-12)
    return floored


def _with_last(errors: Array) -> Array:
    """Errors [8, 8] with the highest frequency, which no band stands for, as the last band."""
    return np.pad(errors, ((0, 1), (0, 1)), mode="edge")
