"""JPEG files made by Pillow from the bundled photographs."""

import io
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

import leader

PHOTOGRAPHS = sorted((Path(leader.__file__).parent / "samples" / "test").glob("*.png"))


def photograph(index: int, noise: float = 0, side: int = 192, grey: bool = False) -> Image.Image:
    """The corner of a bundled photograph with white noise of that many grey levels, clipped and rounded."""
    image = Image.open(PHOTOGRAPHS[index]).convert("L" if grey else "RGB").crop((0, 0, side, side))
    values = np.asarray(image) + noise * np.random.default_rng(index).standard_normal(np.asarray(image).shape)
    return Image.fromarray(values.round().clip(0, 255).astype(np.uint8))


def jpeg(image: Image.Image, quality: int = 75, subsampling: int = 2, **options: Any) -> Image.Image:
    """The image behind JPEG, opened as a file is."""
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=quality, subsampling=subsampling, **options)
    return Image.open(io.BytesIO(buffer.getvalue()))


def unit(image: Image.Image) -> NDArray[np.float64]:
    """[H, W, C] in [0, 1]."""
    values = np.asarray(image, dtype=np.float64) / 255
    return values[..., None] if values.ndim == 2 else values
