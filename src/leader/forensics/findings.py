"""Which findings of an examination are worth reporting, and which are worth a repair."""

from dataclasses import dataclass

from leader.forensics.blur.search import BlurSearch
from leader.forensics.constants import read_constants
from leader.forensics.defects.areas import LARGEST as MOST_TORN
from leader.forensics.defects.defects import TORN
from leader.forensics.examination import Examination, found_or_none
from leader.forensics.jpeg.blocks import LUMA_GAIN
from leader.forensics.noise.estimate import NoiseEstimate
from leader.pictures.jpeg_history import JpegHistory

_CONSTANTS = read_constants("findings")
VISIBLE_NOISE, BEYOND_JPEG, VISIBLE_JPEG = _CONSTANTS.numbers("visible_noise", "beyond_jpeg", "visible_jpeg")
REACHED_STEPS = _CONSTANTS.number("reached_steps")
TINY_PICTURE, TINY_NOISE = _CONSTANTS.count("tiny_picture"), _CONSTANTS.number("tiny_noise")
SURE_UNASKED = _CONSTANTS.number("sure_unasked")
MOST_DEFECTS, LEAST_SCRATCHED, LEAST_TORN = _CONSTANTS.numbers("most_defects", "least_scratched", "least_torn")


@dataclass(frozen=True)
class Findings:
    """What was found in a picture and is reported.

    size       (width, height)
    grey       whether it has no colour
    noise      None if the picture is too small or too empty for an estimate
    blur       the result of the search for a blur
    enlarged   by how much it was enlarged, or None
    defects    kinds of defects, and `defect_share` of the pixels
    missing    share of transparent pixels
    drawing    whether it looks drawn rather than photographed, so that dots and lines may be what it shows
    dithered   whether its channels have so few levels that what looks like noise is how it was reduced
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
    dithered: bool = False

    @property
    def history(self) -> JpegHistory | None:
        """The compression, if its error could be measured."""
        return None if self.noise is None else self.noise.history

    @property
    def noisy(self) -> bool:
        """Whether there is noise worth removing."""
        if self.noise is None or not self.seems_noisy:
            return False
        # colour, in which texture has next to nothing, would tell
        told = not self.grey and self.history is None and self.noise.spectrum is None
        return told or not self.tiny or self.noise_level >= TINY_NOISE

    @property
    def seems_noisy(self) -> bool:
        """Whether there is noise worth removing, or, in a tiny picture, detail that looks like it."""
        least, noise = VISIBLE_NOISE, self.noise
        if noise is None or self.dithered:
            return False
        if noise.history is not None and self._reached_steps < REACHED_STEPS:
            return False  # what such coarse steps leave is content
        if noise.spectrum is None:
            least = max(least, BEYOND_JPEG * noise.compression)
        return self.noise_level >= least

    @property
    def tiny(self) -> bool:
        """Whether detail of the scene may look like noise, specks or scratches because a pixel holds so much of it."""
        return self.size[0] * self.size[1] < TINY_PICTURE

    @property
    def _reached_steps(self) -> float:
        """Share of the steps of the compression's luma that the noise reaches half of."""
        assert self.history is not None
        return float((self.history.luma_steps() / 2 < 255 * LUMA_GAIN * self.noise_level).mean())

    @property
    def noise_level(self) -> float:
        """Standard deviation of the noise beside that of compression, for [0, 1] pixels; 0 if it cannot be measured."""
        if self.noise is None:
            return 0.0
        return max(self.noise.white, 0.0 if self.noise.spectrum is None else self.noise.spectrum.level)

    @property
    def blocky(self) -> bool:
        """Whether the error of the compression is visible."""
        return self.noise is not None and self.noise.history is not None and self.noise.compression >= VISIBLE_JPEG


def collect_findings(examination: Examination) -> Findings:
    """What an examination finds in the visible middle of a picture."""
    seen, picture, missing = examination.visible, examination.picture, examination.missing
    enlarged = None if missing else found_or_none(seen.enlargement)
    blur = _doubt_blur(seen.blur) if enlarged is None else _describe_enlarged(seen, enlarged)
    kinds, share = ((), 0.0) if missing else _defects(seen)
    if seen is not examination and not missing and not seen.drawing and examination.torn.any():  # corners are not in the middle
        kinds, share = tuple(dict.fromkeys((TORN, *kinds))), max(share, float(examination.torn.mean()))
    noise = found_or_none(seen.noise)
    dithered = seen.few_levels is not None
    return Findings(picture.size, picture.bits, seen.grey, noise, blur, enlarged, kinds, share, missing, seen.drawing, dithered)


def _doubt_blur(found: BlurSearch) -> BlurSearch:
    """What is reported about a blur that nobody mentioned: it is named only if it is certain."""
    if found.blur is None or found.blur.confidence >= SURE_UNASKED:
        return found
    return BlurSearch(None, f"There may be {found.blur.in_words()}.")


def _describe_enlarged(examination: Examination, factor: float) -> BlurSearch:
    """What is reported instead of a blur if the picture was enlarged."""
    after = "" if examination.history is None else ", and compressed afterwards"
    return BlurSearch(None, f"This picture was only enlarged, by about {factor:.2g}{after}.")


def _defects(examination: Examination) -> tuple[tuple[str, ...], float]:
    """Kinds and share of the defects that would be filled in."""
    found = found_or_none(examination.defects)
    if found is None or found.share > (MOST_TORN if TORN in found.kinds else MOST_DEFECTS):
        return (), 0.0
    stray = found.kinds == ("scratches",) and found.share < LEAST_SCRATCHED
    return ((), 0.0) if stray else (found.kinds, found.share)
