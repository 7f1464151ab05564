"""Photographs that nothing, or hardly anything, is wrong with: the kinds of benchmarks/no_harm.py, made by Pillow and NumPy.

Each kind varies its strength from photograph to photograph, by a seed that is the photograph's name and the kind's.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
from common import compress, to_image
from PIL import Image, ImageFilter

Rng = np.random.Generator
SIDE = 192
KERNELS = (Image.Resampling.BILINEAR, Image.Resampling.BICUBIC, Image.Resampling.LANCZOS)


def seed_of(path: Path, kind: str) -> Rng:
    return np.random.default_rng(int.from_bytes(hashlib.sha256(f"{path.name} {kind}".encode()).digest()[:4], "big"))


def factor_of(rng: Rng) -> float:
    """By how much `enlarge` enlarges with this generator."""
    return 1.5 if rng.random() < 0.5 else 2.0


def enlarge(image: Image.Image, rng: Rng) -> Image.Image:
    """Reduced by 1.5 or 2 and brought back to its size by one of three kernels."""
    factor = factor_of(rng)
    small = image.resize((round(image.width / factor), round(image.height / factor)), Image.Resampling.LANCZOS)
    return small.resize(image.size, KERNELS[int(rng.integers(3))])


def soften(image: Image.Image, rng: Rng) -> Image.Image:
    return image.filter(ImageFilter.GaussianBlur(float(rng.uniform(0.4, 0.8))))


def age(image: Image.Image, rng: Rng) -> Image.Image:
    """Sepia, of less contrast, with grain of 1 to 3 grey levels."""
    grey = np.asarray(image.convert("L"), np.float64) + rng.uniform(1, 3) * rng.standard_normal(image.size[::-1])
    faded = 40 + rng.uniform(0.6, 0.8) * grey
    toned = faded[..., None] * (1.05, 0.95, 0.78)
    return to_image(toned)


def draw(image: Image.Image, rng: Rng) -> Image.Image:
    """Areas of one colour each: smoothed, so that they are large, and reduced to a few colours."""
    smooth = image.filter(ImageFilter.MedianFilter(9)).filter(ImageFilter.ModeFilter(7))
    few = smooth.quantize(int(rng.integers(6, 13)), dither=Image.Dither.NONE).convert("RGB")
    return few.filter(ImageFilter.ModeFilter(7))


KINDS: dict[str, Callable[[Image.Image, Rng], Image.Image]] = {
    "as it is": lambda image, _: image,
    "JPEG 60 to 77": lambda image, rng: compress(image, int(rng.integers(60, 78))),
    "JPEG 78 to 95": lambda image, rng: compress(image, int(rng.integers(78, 96))),
    "soft": soften,
    "soft, JPEG 75 to 95": lambda image, rng: compress(soften(image, rng), int(rng.integers(75, 96))),
    "enlarged": enlarge,
    "enlarged, JPEG 75": lambda image, rng: compress(enlarge(image, rng), 75),
    "enlarged, JPEG 85": lambda image, rng: compress(enlarge(image, rng), 85),
    "enlarged, JPEG 95": lambda image, rng: compress(enlarge(image, rng), 95),
    "old": age,
    "drawn": draw,
    "grey": lambda image, _: image.convert("L"),
}
"""What becomes of a crop."""
