"""The five tasks of benchmarks/peers.py: a photograph, what happens to it, and what everybody is told of it.

Everything is made by Pillow, SciPy and NumPy and ends in 8 bits, as files do; none of it by our operators.
"""

import io
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from real_rows import gaussian
from scipy import ndimage

Bytes = NDArray[np.uint8]
"""[H, W, 3] in 0..255."""
TASKS = ("enlarge", "noise", "jpeg", "blur", "hole")
SIDE, MARGIN = 256, 24
FACTOR, LEVEL, QUALITY, WIDTH, HOLE = 4, 50.0, 20, 2.0, 76
"""Thumbnail x 4; noise of 0..255; JPEG quality; standard deviation of the blur in pixels; side of the hole."""


@dataclass(frozen=True)
class Case:
    """One degraded picture.

    given   what everybody gets; `file` the JPEG itself, where it is one
    sigma   noise level of 0..255, rounding where nothing else was added
    kernel  [k, k] of the blur; mask [H, W], True in the hole
    """

    task: str
    given: Bytes
    sigma: float = 0.289
    kernel: NDArray[np.float64] | None = None
    mask: NDArray[np.bool_] | None = None
    file: bytes | None = None


def make_case(task: str, photograph: Bytes, seed: int) -> tuple[Case, Bytes]:
    """The degraded picture and the truth, from a photograph with a margin that the blur reaches into."""
    inside = slice(MARGIN, -MARGIN)
    truth = photograph[inside, inside]
    draw = np.random.default_rng([seed, TASKS.index(task)])
    if task == "enlarge":
        small = Image.fromarray(truth).resize((SIDE // FACTOR, SIDE // FACTOR), Image.Resampling.BICUBIC)
        return Case(task, np.asarray(small)), truth
    if task == "noise":
        return Case(task, _to_bytes(truth + LEVEL * draw.standard_normal(truth.shape)), LEVEL), truth
    if task == "jpeg":
        Image.fromarray(truth).save(packed := io.BytesIO(), "jpeg", quality=QUALITY)
        return Case(task, np.asarray(Image.open(packed)), file=packed.getvalue()), truth
    if task == "blur":
        kernel = gaussian(WIDTH)
        soft = np.stack([ndimage.convolve(photograph[..., c].astype(float), kernel) for c in range(3)], -1)
        return Case(task, _to_bytes(soft[inside, inside] + 2 * draw.standard_normal(truth.shape)), 2.0, kernel), truth
    top, left = draw.integers(SIDE // 8, SIDE - SIDE // 8 - HOLE, 2)
    mask = np.zeros((SIDE, SIDE), bool)
    mask[top : top + HOLE, left : left + HOLE] = True
    return Case(task, np.where(mask[..., None], 0, truth).astype(np.uint8), mask=mask), truth


def _to_bytes(values: NDArray[np.float64]) -> Bytes:
    return values.round().clip(0, 255).astype(np.uint8)
