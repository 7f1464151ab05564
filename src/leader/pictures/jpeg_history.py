"""The JPEG compression of a picture: its quantisation tables, its chroma sampling, the position of its blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from leader.transforms import BLOCK

LARGEST_UNIT = 32
"""Rows and columns after which the largest arrangement of luma and chroma blocks (4:1:1) repeats."""

# Annex K of the JPEG standard, rows of vertical frequency; most encoders scale these by a quality
_LUMA = """
    16 11 10 16  24  40  51  61
    12 12 14 19  26  58  60  55
    14 13 16 24  40  57  69  56
    14 17 22 29  51  87  80  62
    18 22 37 56  68 109 103  77
    24 35 55 64  81 104 113  92
    49 64 78 87 103 121 120 101
    72 92 95 98 112 100 103  99"""
_CHROMA = "17 18 24 47 99 99 99 99 18 21 26 66 99 99 99 99 24 26 56 99 99 99 99 99 47 66" + 38 * " 99"

Steps = NDArray[np.float64]


@dataclass(frozen=True)
class JpegHistory:
    """The last compression of a picture.

    luma      64 quantisation steps, rows of vertical frequency, in grey levels of 0..255
    chroma    the same for the colour differences, or None for a grey file
    sampling  (rows, columns) of luma for one of chroma: (2, 2) is 4:2:0
    offset    (row, column) where the first unit of blocks starts
    found     whether this was found in the pixels, rather than read from the file
    """

    luma: tuple[int, ...]
    chroma: tuple[int, ...] | None = None
    sampling: tuple[int, int] = (1, 1)
    offset: tuple[int, int] = (0, 0)
    found: bool = False

    @property
    def quality(self) -> int:
        """The quality from 1 to 100 whose standard table is nearest to the luma table."""
        steps = np.log(np.array(self.luma, dtype=np.float64))
        return min(range(100, 0, -1), key=lambda quality: float(np.abs(steps - np.log(standard_luma(quality))).sum()))

    def luma_steps(self) -> Steps:
        return np.array(self.luma, dtype=np.float64).reshape(BLOCK, BLOCK)

    def chroma_steps(self) -> Steps:
        return np.array(self.chroma or self.luma, dtype=np.float64).reshape(BLOCK, BLOCK)

    def turned(self, orientation: int, height: int, width: int) -> JpegHistory:
        """The history of a picture of height x width after applying the EXIF orientation (1 to 8)."""
        luma, chroma, sampling, (top, left) = self.luma, self.chroma, self.sampling, self.offset
        if orientation in (5, 6, 7, 8):
            luma, chroma = _transpose_table(luma), None if chroma is None else _transpose_table(chroma)
            sampling, (top, left), (height, width) = sampling[::-1], (left, top), (width, height)
        if orientation in (3, 4, 7, 8):
            top = (height - top) % LARGEST_UNIT
        if orientation in (2, 3, 6, 7):
            left = (width - left) % LARGEST_UNIT
        return JpegHistory(luma, chroma, sampling, (top, left), self.found)


def standard_luma(quality: int) -> Steps:
    """The standard luma table of a quality from 1 to 100, 64 steps."""
    return _scale_table(_LUMA, quality)


def standard_chroma(quality: int) -> Steps:
    """The standard chroma table of a quality from 1 to 100, 64 steps."""
    return _scale_table(_CHROMA, quality)


def _scale_table(table: str, quality: int) -> Steps:
    percent = 5000 // quality if quality < 50 else 200 - 2 * quality
    return np.clip((np.array(table.split(), dtype=int) * percent + 50) // 100, 1, 255).astype(np.float64)  # type: ignore[no-any-return]


def _transpose_table(table: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(step) for step in np.array(table).reshape(BLOCK, BLOCK).T.reshape(-1))


def read_history(image: Image.Image) -> JpegHistory | None:
    """The compression of a freshly opened JPEG file; None for other images, and for CMYK."""
    tables: dict[int, Sequence[int]] = getattr(image, "quantization", None) or {}
    layers: list[Any] = getattr(image, "layer", None) or []
    if image.format not in ("JPEG", "MPO") or len(layers) not in (1, 3):
        return None
    chosen = [tuple(int(step) for step in tables.get(layer[3], ())) for layer in layers]
    if any(len(table) != BLOCK * BLOCK or min(table) < 1 for table in chosen):
        return None
    if len(layers) == 1:
        return JpegHistory(chosen[0])
    rows, columns = layers[0][2] // max(layers[1][2], 1), layers[0][1] // max(layers[1][1], 1)
    return JpegHistory(chosen[0], chosen[1], (max(rows, 1), max(columns, 1)))
