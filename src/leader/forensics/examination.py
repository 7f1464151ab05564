"""One examination of a picture: every finding is computed once, on first use.

Tasks, noise level, diagnosis and page share one Examination, so that a picture is searched once for each trace. None means that
something was searched for and not found, `NotExamined` that the search was impossible or not requested, with the reason.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np

from leader.errors import LeaderError
from leader.forensics.blur.search import BlurSearch, find_blur
from leader.forensics.blur.views import middle
from leader.forensics.constants import read_constants
from leader.forensics.defects.areas import find_areas
from leader.forensics.defects.defects import Defects, count_few_levels, find_defects, is_reduced
from leader.forensics.defects.drawing import is_drawing
from leader.forensics.jpeg.block_grid import find_history
from leader.forensics.jpeg.blocks import Array, Flags
from leader.forensics.noise.estimate import NoiseEstimate, amplify_noise, crop_for_noise, last_compression, noise_behind
from leader.forensics.outcome import NotExamined
from leader.forensics.size.enlarged import find_enlargement
from leader.forensics.size.thumbnails import Recognised, recognise_kernel
from leader.pictures.jpeg_history import LARGEST_UNIT, JpegHistory
from leader.pictures.picture import Floats, Picture

_CONSTANTS = read_constants("examination")
HOLE, GREY = _CONSTANTS.numbers("hole", "grey")

DITHERED = "Its channels have only {} levels: what lies between them may be dots, so neither noise nor blur can be found."

Found = TypeVar("Found")


def examine(picture: Picture | Examination, jpeg: bool = True) -> Examination:
    """The examination of a picture; an existing one is continued.

    jpeg  whether to search for traces of JPEG
    """
    if isinstance(picture, Examination):
        return picture if picture.jpeg == jpeg else replace(picture, jpeg=jpeg)
    return Examination(picture, jpeg=jpeg)


def found_or_none(finding: Found | NotExamined | None) -> Found | None:
    """The finding, or None if nothing was found or the check was not run."""
    return None if isinstance(finding, NotExamined) else finding


@dataclass(frozen=True, eq=False)
class Examination:
    """What a picture reveals about its past.

    known  [H, W], where pixels are valid; None: everywhere, whatever its transparency
    jpeg   whether to search for traces of JPEG
    """

    picture: Picture
    known: Flags | None = None
    jpeg: bool = True

    @cached_property
    def compression(self) -> JpegHistory | NotExamined | None:
        """Its last compression: the one its file records, if the pixels are still as decoded, else one found in them."""
        if not self.jpeg:
            return NotExamined("The search for traces of JPEG was switched off.")
        if self.picture.bits != 8 and self.picture.history is None:
            return NotExamined("Pixels of more than 8 bits are not searched for blocks of JPEG.")
        search = self.picture.bits == 8 and self.few_levels is None
        return last_compression(self._for_noise[0], self.picture.history, self._for_noise[1], search)

    @property
    def history(self) -> JpegHistory | None:
        """The compression; None if none was found or searched for."""
        return found_or_none(self.compression)

    @cached_property
    def blocks(self) -> JpegHistory | None:
        """The compression; pixels of any depth are searched."""
        return find_history(self._for_noise[0]) if isinstance(self.compression, NotExamined) else self.compression

    @cached_property
    def noise(self) -> NoiseEstimate | NotExamined:
        """Its noise; not examined if the picture is too small or too little of it is known."""
        try:
            return noise_behind(*self._for_noise, self.picture.bits, self.history)
        except LeaderError as error:
            return NotExamined(str(error))

    @cached_property
    def amplified_noise(self) -> NoiseEstimate | NotExamined:
        """The same for tasks that amplify detail, and errors of compression with it."""
        return self.noise if isinstance(self.noise, NotExamined) else amplify_noise(self.noise, *self._for_noise)

    @cached_property
    def blur(self) -> BlurSearch:
        if self.few_levels is not None:
            return BlurSearch(None, DITHERED.format(self.few_levels))
        return find_blur(self.picture.pixels, self.noise, self.known)

    @cached_property
    def defects(self) -> Defects | NotExamined:
        """Specks, scratches and torn areas; not examined if there are holes, whose borders look like them."""
        if self.missing:
            return NotExamined("Defects are not searched for in pictures with transparent parts.")
        return find_defects(self.picture.pixels, self.history, self.torn)

    @cached_property
    def torn(self) -> Flags:
        """[H, W], areas that look torn out; none where few colours make areas of one."""
        pixels = self.picture.pixels
        return np.zeros(pixels.shape[:2], dtype=bool) if is_reduced(pixels) else find_areas(pixels)

    @cached_property
    def enlargement(self) -> float | NotExamined | None:
        """By how much the picture was enlarged, 1.2 to 8."""
        if self.missing:
            return NotExamined("Enlargement is not searched for in pictures with transparent parts.")
        return find_enlargement(self.picture.pixels, self.history is not None)

    def recognise_kernel(self, factor: float) -> Recognised:
        """The kernels that may have made a thumbnail, for enlarging it by `factor`."""
        found = found_or_none(self.noise)
        # what looks like noise of all colours is detail that the kernel left in a thumbnail
        noise = None if found is None else found.sigma if found.grey is None else found.white
        return recognise_kernel(self.picture.pixels, factor, self.history is not None, noise)

    @cached_property
    def few_levels(self) -> int | None:
        """Levels of a channel, if they are so few that what lies between them is made of dots."""
        return count_few_levels(self.picture.pixels)

    @cached_property
    def drawing(self) -> bool:
        """Whether it looks drawn rather than photographed, so that dots and lines may be what it shows."""
        return is_drawing(self.picture.pixels)

    @cached_property
    def grey(self) -> bool:
        """Whether it has no colour."""
        pixels = self.picture.pixels
        return pixels.shape[2] == 1 or bool((np.ptp(pixels, axis=2) <= GREY).all())

    @cached_property
    def missing(self) -> float:
        """Share of transparent pixels."""
        alpha = self.picture.alpha
        return 0.0 if alpha is None else float((alpha < HOLE).mean())

    @cached_property
    def visible(self) -> Examination:
        """The examination of the middle of a large picture without its transparent parts: enough for a diagnosis."""
        picture = self.picture
        rows, columns = middle(picture.pixels.shape, LARGEST_UNIT)  # blocks of compression begin there too
        if not self.missing and rows.start == columns.start == 0 and max(picture.size) <= rows.stop:
            return self
        alpha = None if picture.alpha is None else picture.alpha[rows, columns]
        part = replace(picture, pixels=picture.pixels[rows, columns], alpha=alpha)
        return Examination(part, None if alpha is None or not self.missing else alpha >= HOLE, self.jpeg)

    def of_measured(self, pixels: Floats, known: Flags | None) -> Examination:
        """The examination of the pixels that a task measured: other pixels [H, W, C], or only those that are known [H, W].

        Most defects are older than the compression, so the history of the whole picture takes precedence.
        """
        if pixels is self.picture.pixels and known is self.known:
            return self
        history = self.history if known is not None else self.picture.history
        return Examination(replace(self.picture, pixels=pixels, history=history), known, self.jpeg)

    @cached_property
    def _for_noise(self) -> tuple[Array, Flags | None]:
        return crop_for_noise(np.asarray(self.picture.pixels, dtype=np.float64), self.known)
