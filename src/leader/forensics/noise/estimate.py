"""The noise of a real picture: white noise, its change by JPEG, the error of JPEG, rounding.

One number is estimated: the standard deviation that a data term should assume for each of R, G and B. It is the largest of
  white        the white noise that was there before the picture was compressed
  compression  the root mean square error of the last compression, from its steps and what is left of the coefficients
  rounding     that of 8 or 16 bits
Noise that grows with brightness (`shot_noise`, behind JPEG `noise_curve`), falls with it (`light_noise`), is not white
(`coloured_noise`) or is the same in all colours (`grey_noise`) is described in addition, and compression by its bands if detail
will be amplified (`compression_spectrum`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from leader.errors import LeaderError
from leader.forensics.constants import read_constants
from leader.forensics.jpeg.block_grid import find_history, matches_history
from leader.forensics.jpeg.blocks import LUMA_GAIN, Array, Flags, compute_chroma, compute_luma, finest_detail
from leader.forensics.jpeg.compression_spectrum import compression_spectrum
from leader.forensics.jpeg.noise_curve import read_noise_before
from leader.forensics.jpeg.quantised_noise import compression_error, step_error
from leader.forensics.noise.coloured import noise_spectrum
from leader.forensics.noise.grey import find_faintest, grey_noise, is_print
from leader.forensics.noise.level import estimate_noise
from leader.forensics.noise.light import light_noise
from leader.forensics.noise.shot import ShotNoise, shot_noise
from leader.forensics.noise.spectrum import NoiseSpectrum
from leader.forensics.noise.texture_limit import CHANCE, noise_everywhere, white_limit
from leader.pictures.jpeg_history import LARGEST_UNIT, JpegHistory

_CONSTANTS = read_constants("noise.estimate")
LARGE_PICTURE, SIDE_OF_LARGE = _CONSTANTS.counts("large_picture", "side_of_large")
ENLARGED_CHROMA, COUNTED_ERROR, BEYOND_WHITE = _CONSTANTS.numbers("enlarged_chroma", "counted_error", "beyond_white")
BEYOND_COMPRESSION, BENEATH_COMPRESSION = _CONSTANTS.numbers("beyond_compression", "beneath_compression")
PATCHY, MOST_UNEVEN = _CONSTANTS.numbers("patchy", "most_uneven")
COARSE_COLOUR, COARSE_GROWING = _CONSTANTS.numbers("coarse_colour", "coarse_growing")


@dataclass(frozen=True)
class NoiseEstimate:
    """Standard deviations for pixels in [0, 1]; `history` is the compression that was found, or None.

    spectrum  of noise that is not white, or of a compression that determines the level if detail will be amplified
    shot      noise that grows with brightness; at most one of the two is found
    """

    white: float
    compression: float
    rounding: float
    history: JpegHistory | None = None
    spectrum: NoiseSpectrum | None = None
    shot: ShotNoise | None = None

    @property
    def sigma(self) -> float:
        """One number: white noise, or the standard deviation of a pixel if coloured noise is stronger."""
        coloured = 0.0 if self.spectrum is None or self.history is not None else self.spectrum.level
        return max(self.white, coloured, self.compression, self.rounding)

    @property
    def grey(self) -> NoiseSpectrum | None:
        """Its spectrum, if that is of white noise that is the same in all colours."""
        return None if self.spectrum is None or self.spectrum.table.shape != (3, 1, 1) else self.spectrum

    def raised(self) -> NoiseEstimate:
        """What counts where noise is to be removed: more, if it is mainly noise whose colours JPEG averaged over pixels."""
        sampled = self.history is not None and self.history.chroma is not None and self.history.sampling != (1, 1)
        if not sampled or self.spectrum is not None or self.white <= self.compression:
            return self
        shot, times = self.shot, COARSE_COLOUR if self.shot is None else COARSE_GROWING
        if shot is not None:
            shot = shot.weakened(times**2)
        return replace(self, white=times * self.white, shot=shot)

    def notes(self) -> tuple[str, ...]:
        """A sentence if compression determines the noise level."""
        if self.history is None or self.sigma > self.compression or self.compression <= self.rounding:
            return ()
        was = "was once a JPEG" if self.history.found else "is a JPEG"
        return (
            f"The file {was} of about quality {self.history.quality}: its compression counts as noise of "
            f"{self.compression:.2g}.",
        )


def noise_behind(pixels: Array, known: Flags | None, bits: int, history: JpegHistory | None) -> NoiseEstimate:
    """The noise of pixels [H, W, 1 or 3] in [0, 1] whose compression is known; None: they never had one."""
    least = rounding(bits)
    if history is None:
        shot = shot_noise(pixels, known, least) or light_noise(pixels, known, least)
        if shot is not None:  # what dark places have would pass for all there is
            return NoiseEstimate(shot.level(pixels if known is None else pixels[known]), 0.0, least, None, None, shot)
        white, grey = _white_of_pixels(pixels, known), pixels.mean(2, keepdims=True)
        if _is_print(pixels, known, white, least):
            return NoiseEstimate(0.0, 0.0, least)
        limit = white_limit(grey, known) if pixels.shape[2] == 3 else 0.0
        spectrum = noise_spectrum(pixels, known, least, limit=limit)
        if spectrum is None and limit >= find_faintest(white, least):
            spectrum = _grey(pixels, known, _level_of_grey(grey, known, limit), white, least)
        return NoiseEstimate(white, 0.0, least, None, spectrum)
    compression = compression_error(pixels, history, known)
    before = read_noise_before(pixels, history, known, max(least, compression))
    if before is None:
        return NoiseEstimate(_white_of_pixels(pixels, known), compression, least, history)
    if _is_print(pixels, known, before.level, max(least, compression)):
        return NoiseEstimate(0.0, compression, least, history)
    if before.shot is not None:
        return NoiseEstimate(before.level, compression, least, history, None, before.shot)
    # around holes, defects smeared by compression look the same
    spectrum = _blotches(pixels, before.level, compression) if known is None else None
    spectrum = spectrum or _grey(pixels, known, before.of_luma, before.level, compression)
    return NoiseEstimate(before.level, compression, least, history, spectrum)


def amplify_noise(found: NoiseEstimate, pixels: Array, known: Flags | None) -> NoiseEstimate:
    """The noise of the same pixels if detail will be amplified, and errors of compression with it."""
    if found.history is None:
        return found
    compression = max(found.compression, step_error(found.history))
    if found.white >= compression:
        return replace(found, compression=compression, spectrum=None)
    errors = NoiseSpectrum(COUNTED_ERROR * compression_spectrum(pixels, found.history, known).table)
    return replace(found, compression=compression, spectrum=errors, shot=None)


def _blotches(pixels: Array, white: float, compression: float) -> NoiseSpectrum | None:
    """The spectrum of noise behind JPEG that is much stronger than the white noise read from its finest detail."""
    spectrum = noise_spectrum(pixels, None, BENEATH_COMPRESSION * compression, MOST_UNEVEN, fewest=1)
    if spectrum is None or spectrum.level < max(BEYOND_WHITE * white, BEYOND_COMPRESSION * compression):
        return None
    return spectrum


def rounding(bits: int) -> float:
    """Root mean square error of [0, 1] pixels that were rounded to so many bits."""
    return 1 / float(2**bits - 1) / math.sqrt(12)


def last_compression(
    image: NDArray[np.floating], history: JpegHistory | None, known: Flags | None = None, search: bool = True
) -> JpegHistory | None:
    """The last compression of image [H, W, C] in [0, 1]: the one its file records, if the pixels are still as decoded, else one
    found in them.
    """
    pixels = np.asarray(image, dtype=np.float64)
    if history is not None and matches_history(pixels, history):
        return history  # otherwise the picture was resized or edited since
    return find_history(pixels if known is None else np.where(known[..., None], pixels, 0)) if search else None


def crop_for_noise(pixels: Array, known: Flags | None) -> tuple[Array, Flags | None]:
    """At most SIDE_OF_LARGE rows and columns of a large picture, cut where blocks begin."""
    height, width = pixels.shape[:2]
    if height * width <= LARGE_PICTURE:
        return pixels, known
    top, left = (max(0, (length - SIDE_OF_LARGE) // 2 // LARGEST_UNIT * LARGEST_UNIT) for length in (height, width))
    rows, columns = slice(top, top + SIDE_OF_LARGE), slice(left, left + SIDE_OF_LARGE)
    return pixels[rows, columns], None if known is None else known[rows, columns]


def _white_of_pixels(pixels: Array, known: Flags | None) -> float:
    """White noise of a picture without blocks; judged by luma alone where chroma was enlarged and hides it."""
    if pixels.shape[2] == 1 or not _chroma_was_enlarged(pixels):
        return _without_texture(pixels, known)
    return max(estimate_noise(pixels, known), _without_texture(compute_luma(pixels)[..., None] / 255, known) / LUMA_GAIN)


def _without_texture(pixels: Array, known: Flags | None, limit: float | None = None) -> float:
    """White noise by patches of pixels, which mistake texture for noise; at most what the finest detail allows (`limit`, if it
    is known already), and at most what is present everywhere.
    """
    chance = CHANCE if pixels.shape[2] == 3 else 1.0  # the weakest of three axes is a little too weak
    level = min(estimate_noise(pixels, known), chance * (white_limit(pixels, known) if limit is None else limit))
    everywhere = noise_everywhere(pixels, known)
    return everywhere if everywhere < PATCHY * level else level


def _chroma_was_enlarged(pixels: Array) -> bool:
    """Whether the finest detail of chroma is far weaker than the next finest: in white noise it is four times as strong,
    in photographs about as strong.
    """
    fine, coarse = (sum(finest_detail(plane) for plane in compute_chroma(pixels, (side, side), (0, 0))) for side in (1, 2))
    return fine < ENLARGED_CHROMA * coarse


def _grey(pixels: Array, known: Flags | None, level: float, white: float, least: float) -> NoiseSpectrum | None:
    """Noise of this level that is the same in all colours, if that is what it is."""
    seen = _list_pixels(pixels, known)
    if is_print(seen.mean(-1), level, least):
        return None
    return grey_noise(level, white, least, float(((seen <= 0) | (seen >= 1)).mean()))


def _list_pixels(pixels: Array, known: Flags | None) -> Array:
    """[N, C], the valid ones."""
    return pixels.reshape(-1, pixels.shape[2]) if known is None else pixels[known]


def _is_print(pixels: Array, known: Flags | None, level: float, least: float) -> bool:
    """Whether a picture without colour is small print, not noise of this level."""
    return pixels.shape[2] == 1 and is_print(_list_pixels(pixels, known)[:, 0], level, least)


def _level_of_grey(plane: Array, known: Flags | None, limit: float) -> float:
    """White noise of the mean [H, W, 1] of three channels, judged as that of a picture without colour; 0 if not measurable."""
    try:
        return _without_texture(plane, known, limit)
    except LeaderError:  # patches without colour have to be larger
        return 0.0
