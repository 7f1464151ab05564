"""Everything that is looked for in a picture, and what was found."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from leader.errors import LeaderError
from leader.forensics.blur.search import BlurSearch, find_blur
from leader.forensics.blur.views import middle
from leader.forensics.defects.defects import find_defects
from leader.forensics.defects.drawing import is_drawing
from leader.forensics.jpeg.blocks import Flags
from leader.forensics.noise.estimate import NoiseEstimate, measure_noise
from leader.forensics.size.enlarged import enlarged_by
from leader.pictures.jpeg_history import JpegHistory
from leader.pictures.picture import Picture

VISIBLE_NOISE = 0.025
"""Standard deviation from which on noise is worth removing: six grey levels. Weaker noise may be the texture of a scene."""
BEYOND_JPEG = 1.25
"""How many times the error of compression white noise must have: texture behind JPEG 40 to 92 reads as noise of up to 1.2 times
that error in 24 of 25 clean development photographs, where removing the compression is what helps."""
VISIBLE_JPEG = 0.012
"""The same of JPEG's own error: about quality 75 and less."""
HOLE = 0.5
"""Opacity below which a pixel is missing."""
GREY = 1.5 / 255
MOST_DEFECTS = 0.3
"""A larger share of the picture is no defect but how it is."""
LEAST_SCRATCHED = 0.002
"""A smaller share of scratches alone is what thin lines of clean photographs, or blocks of JPEG, are taken for now and then."""


@dataclass(frozen=True)
class Findings:
    """What was found in a picture.

    size       (width, height)
    grey       whether it has no colour
    noise      None where the picture is too small or too empty for an estimate
    blur       what the search for a blur says
    enlarged   by how much it was enlarged, or None
    defects    kinds of defects, and `defect_share` of the pixels
    drawing    whether it looks drawn rather than photographed, so that dots and lines may be what it shows
    missing    share of transparent pixels
    """

    size: tuple[int, int]
    bits: int
    grey: bool
    noise: NoiseEstimate | None
    blur: BlurSearch
    enlarged: float | None
    defects: tuple[str, ...]
    defect_share: float
    missing: float
    drawing: bool = False

    @property
    def history(self) -> JpegHistory | None:
        return None if self.noise is None else self.noise.history

    @property
    def noisy(self) -> bool:
        """Whether there is noise worth removing."""
        least = VISIBLE_NOISE
        if self.noise is not None and self.noise.spectrum is None:
            least = max(least, BEYOND_JPEG * self.noise.compression)
        return self.noise_level >= least

    @property
    def noise_level(self) -> float:
        """Standard deviation of the noise beside that of compression, for [0, 1] pixels; 0 where it cannot be told."""
        if self.noise is None:
            return 0.0
        return max(self.noise.white, 0.0 if self.noise.spectrum is None else self.noise.spectrum.level)

    @property
    def blocky(self) -> bool:
        """Whether compression did visible harm."""
        return self.history is not None and self.noise is not None and self.noise.compression >= VISIBLE_JPEG


def examine(picture: Picture) -> Findings:
    """Looks at a picture, at its middle where it is large."""
    rows, columns = middle(picture.pixels.shape, unit=32)  # blocks of compression begin there too
    part = Picture(
        picture.pixels[rows, columns],
        None if picture.alpha is None else picture.alpha[rows, columns],
        picture.bits,
        history=picture.history,
    )
    known = None if part.alpha is None else part.alpha >= HOLE
    noise = _noise(part, known)
    if noise is not None:
        part = replace(part, history=noise.history)  # found once, in the pixels if need be
    missing = 0.0 if picture.alpha is None else float((picture.alpha < HOLE).mean())
    kinds, share = ((), 0.0) if missing else _defects(part)
    enlarged = None if missing else enlarged_by(part)
    blur = find_blur(part, noise) if enlarged is None else BlurSearch(None, _enlarged_words(enlarged))
    grey = part.pixels.shape[2] == 1 or bool((np.ptp(part.pixels, axis=2) <= GREY).all())
    drawing = is_drawing(part.pixels)
    return Findings(picture.size, picture.bits, grey, noise, blur, enlarged, kinds, share, missing, drawing)


def _enlarged_words(factor: float) -> str:
    return f"This picture was only enlarged, by about {factor:.2g}."


def _noise(picture: Picture, known: Flags | None) -> NoiseEstimate | None:
    try:
        return measure_noise(picture.pixels, known, picture.bits, picture.history)
    except LeaderError:
        return None


def _defects(picture: Picture) -> tuple[tuple[str, ...], float]:
    """Kinds and share of what would be filled in."""
    found = find_defects(picture)
    stray = found.kinds == ("scratches",) and found.share < LEAST_SCRATCHED
    return ((), 0.0) if stray or found.share > MOST_DEFECTS else (found.kinds, found.share)
