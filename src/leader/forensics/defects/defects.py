"""Defects of a picture found without a mask: salt and pepper, dead pixels, scratches, lines of dust and torn areas."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leader.forensics.constants import read_constants
from leader.forensics.defects.neighbours import grow_mask
from leader.forensics.defects.scratches import find_drawn, find_smeared
from leader.forensics.defects.specks import find_drowned, find_specks
from leader.forensics.jpeg.blocks import compute_luma
from leader.pictures.jpeg_history import JpegHistory

Flags = NDArray[np.bool_]

_CONSTANTS = read_constants("defects.defects")
MANY_SPECKS, WIDE_STEP = _CONSTANTS.numbers("many_specks", "wide_step")
FEW_LEVELS = _CONSTANTS.count("few_levels")
PALETTE, MOST_LOOKED_AT, FEWEST_LOOKED_AT = _CONSTANTS.counts("palette", "most_looked_at", "fewest_looked_at")
FINE_QUALITY, COARSE_QUALITY = _CONSTANTS.counts("fine_quality", "coarse_quality")
TORN = "torn areas"


@dataclass(frozen=True)
class Defects:
    """What was found.

    known  [H, W], False at defects and what compression smeared around them
    kinds  "torn areas", "salt and pepper", "dead pixels", "scratches": those that were found
    smeared  whether scratches were found behind compression, where they are less certain
    drowned  whether there is salt and pepper behind compression so strong that what it left around them is no picture either
    """

    known: Flags
    kinds: tuple[str, ...]
    smeared: bool = False
    drowned: bool = False

    @property
    def share(self) -> float:
        """Of the pixels that are not known."""
        return 1 - float(self.known.mean())

    def words(self) -> str:
        """One sentence."""
        if not self.kinds:
            return "No defects were found: no specks, scratches, lines of dust or torn areas."
        share = f"{100 * self.share:.1f}" if self.share >= 0.001 else f"{100 * self.share:.2g}"
        doubt = "; behind JPEG some lines are missed, and some belong to the scene" if self.smeared else ""
        return f"Defects were found: {' and '.join(self.kinds)}, {share} % of the pixels{doubt}."


def is_reduced(pixels: NDArray[np.float32]) -> bool:
    """Whether a picture [H, W, C] has so few colours that neighbours agree or differ by design: no more than a palette holds,
    or levels as far apart as what stands out.
    """
    flat = pixels.reshape(-1, pixels.shape[2])
    seen = flat[:: max(1, len(flat) // MOST_LOOKED_AT)]
    if len(seen) < FEWEST_LOOKED_AT:
        return False
    coloured = pixels.shape[2] == 3 and bool((seen != seen[:, :1]).any())
    if coloured and all(len(np.unique(part, axis=0)) <= PALETTE for part in (seen[::8], seen)):
        return True
    return all(len(levels) > 1 and float(np.median(np.diff(levels))) >= WIDE_STEP for levels in map(np.unique, seen.T))


def count_few_levels(pixels: NDArray[np.float32]) -> int | None:
    """Levels that a channel of pixels [H, W, C] uses at most, 2 or more; None where they are too many to be dithered."""
    channels = np.sort(np.moveaxis(pixels, 2, 0).reshape(pixels.shape[2], -1))
    most = int(np.count_nonzero(np.diff(channels), axis=1).max()) + 1
    return most if 2 <= most <= FEW_LEVELS else None


def find_defects(pixels: NDArray[np.float32], history: JpegHistory | None, torn: Flags | None = None) -> Defects:
    """Specks and scratches of pixels [H, W, C] in [0, 1], beside what is known to be torn [H, W]; behind JPEG with what it
    smeared around them. None in a dithered picture.
    """
    if is_reduced(pixels):
        return Defects(np.ones(pixels.shape[:2], dtype=bool), ())
    specks = find_specks(pixels)
    drawn, smeared, drowned = np.zeros_like(specks), np.zeros_like(specks), False
    if history is None:
        drawn = find_drawn(pixels)
    else:  # where rows and columns of whole blocks have one colour, without a scratch
        luma = (compute_luma(pixels.astype(np.float64)) / 255).astype(np.float32)
        specks |= find_drowned(luma)
        drowned = history.quality < COARSE_QUALITY and float(specks.mean()) >= MANY_SPECKS
        smeared = smeared if drowned else find_smeared(luma) & ~specks
    missing = np.zeros_like(specks) if torn is None else torn
    kinds = [TORN] if missing.any() else []
    if specks.any():
        kinds.append("salt and pepper" if specks.mean() >= MANY_SPECKS else "dead pixels")
    if drawn.any() or smeared.any():
        kinds.append("scratches")
    wide = 1 if history is None or history.quality >= FINE_QUALITY else 2
    few = history is not None and specks.mean() < MANY_SPECKS  # grown, many would leave too little
    known = ~(grow_mask(specks, int(few)) | grow_mask(drawn, 1) | grow_mask(smeared, wide) | grow_mask(missing, 1 + wide))
    return Defects(known, tuple(kinds), bool(smeared.any()), drowned)
