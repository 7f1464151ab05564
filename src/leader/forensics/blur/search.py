"""The blur of a picture, named with a confidence, or one sentence that says why none is named."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leader.forensics.blur.candidates import Found, candidates
from leader.forensics.blur.evidence import Scene
from leader.forensics.blur.periodogram import Flags, luma_plane
from leader.forensics.blur.shapes import SMALLEST, Family, Shape
from leader.forensics.blur.views import COARSE_TILE, middle
from leader.forensics.constants import read_constants
from leader.forensics.noise.estimate import NoiseEstimate
from leader.forensics.outcome import NotExamined

ODDS: dict[Family, float] = {"gaussian": math.log(0.3), "disk": math.log(0.1), "line": math.log(0.1)}
"""Prior log odds of each family against no blur."""
_CONSTANTS = read_constants("blur.search")
UPRIGHT, NEARLY_UPRIGHT, SURE_OF_BLUR = _CONSTANTS.numbers("upright", "nearly_upright", "sure_of_blur")
SUREST, SMALLEST_ERROR, FLAT_VARIANCE = _CONSTANTS.numbers("surest", "smallest_error", "flat_variance")
LEAST_ODDS, ODDS_BY_WIDTH = _CONSTANTS.numbers("least_odds", "odds_by_width")
TITLES: dict[Family, str] = {"gaussian": "a Gaussian blur", "disk": "a lens out of focus", "line": "a straight motion"}


@dataclass(frozen=True)
class Blur:
    """A blur that was found.

    error       standard deviation of the logarithm of the width: its relative error
    confidence  probability that the family is right and the width within 20 %
    scene       the power spectrum of what lies behind it
    """

    shape: Shape
    error: float
    confidence: float
    scene: Scene

    @property
    def kernel(self) -> str:
        """The blur as the option `kernel` takes it."""
        width = f"{self.shape.width:.3g}"
        return f"line:{width}:{self.shape.angle:.0f}" if self.shape.family == "line" else f"{self.shape.family}:{width}"

    def in_words(self) -> str:
        width, sure = self.shape.width, f"{math.floor(100 * self.confidence)} % sure"
        if self.shape.family == "line":
            return f"a straight motion over {width:.0f} pixels at {self.shape.angle:.0f} degrees ({sure})"
        if self.shape.family == "disk":
            return f"a lens out of focus, a disk of radius {width:.1f} pixels ({sure})"
        return f"a Gaussian blur of standard deviation {width:.1f} pixels ({sure})"


@dataclass(frozen=True)
class BlurSearch:
    """The blur, or None if none can be named; `seen` says in one sentence what was seen."""

    blur: Blur | None
    seen: str


def find_blur(pixels: NDArray[np.floating], noise: NoiseEstimate | NotExamined, known: Flags | None = None) -> BlurSearch:
    """Looks for a blur in pixels [H, W, 1 or 3] in [0, 1] with this noise; `known` [H, W] marks valid ones."""
    height, width = pixels.shape[:2]
    if min(width, height) < COARSE_TILE:
        return BlurSearch(
            None, f"The picture has {width} x {height} pixels; finding a blur takes {COARSE_TILE} x {COARSE_TILE}."
        )
    part = middle(pixels.shape)
    luma, seen = luma_plane(pixels[part]), None if known is None else known[part]
    if float((luma if seen is None or not seen.any() else luma[seen]).var()) < FLAT_VARIANCE:
        return BlurSearch(None, "The picture is flat, so no blur can be seen in it.")
    if isinstance(noise, NotExamined):
        return BlurSearch(None, f"No blur was looked for: {noise.reason[0].lower()}{noise.reason[1:]}")
    found = candidates(luma, noise, seen)
    if not found:
        return BlurSearch(None, "Compression or missing parts have left too little to find a blur in.")
    return judge_candidates(found)


def judge_candidates(found: tuple[Found, ...]) -> BlurSearch:
    """The most likely of the families' best kernels, if one can be named."""
    chosen, ahead = choose_candidate(found)
    name, width = TITLES[chosen.shape.family], chosen.shape.width
    if ahead is None:
        return BlurSearch(None, "No blur was found: the picture is as sharp as photographs are.")
    confidence = state_confidence(*describe_choice(chosen, ahead))
    if confidence < SURE_OF_BLUR:
        sure = f"{math.floor(100 * confidence)} % sure"
        return BlurSearch(None, f"There may be {name} of about {width:.1f} pixels, but that is only {sure}.")
    blur = Blur(chosen.shape, max(chosen.width_error, SMALLEST_ERROR), confidence, chosen.scene)
    return BlurSearch(blur, f"The picture shows {blur.in_words()}.")


def choose_candidate(found: tuple[Found, ...]) -> tuple[Found, float | None]:
    """The most likely candidate and its log odds against all others and no blur; None if it is no better than no blur."""
    scores = np.array([one.evidence + ODDS[one.shape.family] - UPRIGHT * is_upright(one.shape) for one in found])
    best = int(scores.argmax())
    chosen = found[best]
    if scores[best] <= 0 or chosen.shape.width < SMALLEST[chosen.shape.family]:
        return chosen, None
    return chosen, float(scores[best] - np.logaddexp.reduce(np.append(np.delete(scores, best), 0.0)))


def describe_choice(chosen: Found, ahead: float) -> tuple[float, float]:
    """The probability, among blurs and none, that its family is right and its width within 20 %; and the logarithm of its width
    over the least.
    """
    share = 1 / (1 + math.exp(-ahead))
    error = max(chosen.width_error, SMALLEST_ERROR)
    return share * math.erf(0.2 / error / math.sqrt(2)), math.log(chosen.shape.width / SMALLEST[chosen.shape.family])


def state_confidence(share: float, above: float) -> float:
    """The probability of `describe_choice` times that of a blur of this width, as measured on photographs; at most what their
    number supports.

    An enlarged picture looks like one behind a narrow kernel, which no odds among blurs reveal.
    """
    return min(SUREST, share / (1 + math.exp(-LEAST_ODDS - ODDS_BY_WIDTH * above)))


def is_upright(shape: Shape) -> bool:
    """Whether it is a motion along rows or columns, where scenes often have lines of their own."""
    return shape.family == "line" and min(shape.angle % 90, 90 - shape.angle % 90) < NEARLY_UPRIGHT
