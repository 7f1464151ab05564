"""Picture: pixels in [0, 1], upright, with transparency, bits, colour profile and metadata."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from leader.pictures.jpeg_history import JpegHistory
from leader.pictures.metadata import Metadata

Floats = NDArray[np.float32]

MOST_PIXELS = 64_000_000
"""Pictures that declare more pixels than this are rejected before they are decoded."""


@dataclass(frozen=True, repr=False)
class Picture:
    """A picture, upright.

    pixels    [H, W, C] float32 in [0, 1], C = 1 (grey) or 3 (RGB)
    alpha     [H, W] float32 in [0, 1], or None
    bits      8 or 16 per sample in the file it came from
    icc       its colour profile, or None
    history   the compression of its file, if it is known and the pixels are unchanged
    metadata  of its file
    """

    pixels: Floats
    alpha: Floats | None = None
    bits: int = 8
    icc: bytes | None = None
    history: JpegHistory | None = None
    metadata: Metadata = field(default_factory=Metadata)

    @property
    def size(self) -> tuple[int, int]:
        """(width, height)."""
        return self.pixels.shape[1], self.pixels.shape[0]

    def __repr__(self) -> str:
        kind = ("grey" if self.pixels.shape[2] == 1 else "RGB") + (" with alpha" if self.alpha is not None else "")
        return f"<Picture {self.size[0]} x {self.size[1]}, {kind}, {self.bits} bits>"

    def _repr_png_(self) -> bytes:
        """The picture as a notebook shows it."""
        buffer = io.BytesIO()
        self.to_pil().save(buffer, "PNG")
        return buffer.getvalue()

    def rgb(self) -> Image.Image:
        """The picture as Pillow's 8-bit RGB: grey is repeated, alpha and profile are left out."""
        samples = np.round(self.pixels.clip(0, 1) * 255).astype(np.uint8)
        return Image.fromarray(np.repeat(samples, 3, axis=2) if samples.shape[2] == 1 else samples)

    def to_pil(self) -> Image.Image:
        """The picture in 8 bits, alpha included."""
        samples = np.round(samples_of(self) * 255).astype(np.uint8)
        image = Image.fromarray(samples[..., 0] if samples.shape[2] == 1 else samples)
        if self.icc:
            image.info["icc_profile"] = self.icc
        return image

    def with_pixels(self, pixels: Floats) -> Picture:
        """The picture with new pixels of any size; its alpha is resized, its profile depends on the number of channels, and its
        metadata is kept.
        """
        alpha = self.alpha
        if alpha is not None and alpha.shape != pixels.shape[:2]:
            resized = Image.fromarray(alpha).resize((pixels.shape[1], pixels.shape[0]), Image.Resampling.BICUBIC)
            alpha = np.asarray(resized, dtype=np.float32).clip(0, 1)
        return Picture(pixels, alpha, self.bits, matching_profile(self.icc, pixels.shape[2]), None, self.metadata)


def matching_profile(icc: bytes | None, channels: int) -> bytes | None:
    """A profile only describes pixels of its own colour space, named in bytes 16 to 20 of its header."""
    return icc if icc and icc[16:20] == (b"GRAY" if channels == 1 else b"RGB ") else None


def from_samples(samples: NDArray[Any], depth: int, icc: bytes | None) -> Picture:
    """samples [H, W, 1 to 4] of unsigned integers of `depth` bits -> Picture; an even number of channels ends in alpha."""
    values = samples.astype(np.float32)
    values /= float(2**depth - 1)  # in place: a picture of 64 million pixels fits into memory once, not twice
    bits, channels = 8 if depth <= 8 else 16, values.shape[2]
    if channels in (2, 4):
        return Picture(values[..., :-1], values[..., -1], bits, matching_profile(icc, channels - 1))
    return Picture(values, None, bits, matching_profile(icc, channels))


def samples_of(picture: Picture) -> Floats:
    """[H, W, 1 to 4] in [0, 1], alpha last."""
    pixels = picture.pixels.clip(0, 1)
    return pixels if picture.alpha is None else np.concatenate([pixels, picture.alpha[..., None]], axis=2)
