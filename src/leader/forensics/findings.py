"""Which findings of an examination are worth telling, and worth a repair."""

from __future__ import annotations

from dataclasses import dataclass

from leader.forensics.blur.search import BlurSearch
from leader.forensics.examination import Examination, found_or_none
from leader.forensics.noise.estimate import NoiseEstimate
from leader.pictures.jpeg_history import JpegHistory

VISIBLE_NOISE = 0.025
"""Standard deviation from which on noise is worth removing: six grey levels. Weaker noise may be the texture of a scene."""
BEYOND_JPEG = 1.25
"""How many times the error of compression white noise must have: texture behind JPEG 40 to 92 reads as noise of up to 1.2 times
that error in 24 of 25 clean development photographs, where removing the compression is what helps."""
VISIBLE_JPEG = 0.012
"""The same of JPEG's own error: about quality 75 and less."""
MOST_DEFECTS = 0.3
"""A larger share of the picture is no defect but how it is."""
LEAST_SCRATCHED = 0.002
"""A smaller share of scratches alone is what thin lines of clean photographs, or blocks of JPEG, are taken for now and then."""


@dataclass(frozen=True)
class Findings:
    """What was found in a picture, and would be told.

    size       (width, height)
    grey       whether it has no colour
    noise      None where the picture is too small or too empty for an estimate
    blur       what the search for a blur says
    enlarged   by how much it was enlarged, or None
    defects    kinds of defects, and `defect_share` of the pixels
    missing    share of transparent pixels
    drawing    whether it looks drawn rather than photographed, so that dots and lines may be what it shows
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
        """The compression, where its error could be measured."""
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
        return self.noise is not None and self.noise.history is not None and self.noise.compression >= VISIBLE_JPEG


def collect_findings(examination: Examination) -> Findings:
    """What an examination finds in the visible middle of a picture."""
    seen, picture, missing = examination.visible, examination.picture, examination.missing
    enlarged = None if missing else found_or_none(seen.enlargement)
    blur = seen.blur if enlarged is None else BlurSearch(None, f"This picture was only enlarged, by about {enlarged:.2g}.")
    kinds, share = ((), 0.0) if missing else _defects(seen)
    noise = found_or_none(seen.noise)
    return Findings(picture.size, picture.bits, seen.grey, noise, blur, enlarged, kinds, share, missing, seen.drawing)


def _defects(examination: Examination) -> tuple[tuple[str, ...], float]:
    """Kinds and share of what would be filled in."""
    found = found_or_none(examination.defects)
    if found is None or found.share > MOST_DEFECTS:
        return (), 0.0
    stray = found.kinds == ("scratches",) and found.share < LEAST_SCRATCHED
    return ((), 0.0) if stray else (found.kinds, found.share)
