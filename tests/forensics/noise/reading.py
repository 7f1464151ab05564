"""The noise that a picture is said to have, as its examination finds it."""

from typing import Any

from leader.forensics import Examination, NotExamined
from leader.forensics.noise.estimate import NoiseEstimate
from leader.pictures.picture import Picture


def measure_noise(pixels: Any, known: Any = None, bits: int = 8, history: Any = None) -> NoiseEstimate:
    """Of pixels [H, W, 1 or 3] in [0, 1], of which known [H, W] are valid."""
    found = Examination(Picture(pixels, bits=bits, history=history), known).noise
    assert not isinstance(found, NotExamined), found.reason
    return found
