"""Thumbnails of a result in one small picture: before, after, and where not to trust it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

SIDE = 112
GAP = 4
WHITE_AT = 0.2
"""The end of the colour scale of maps: a standard deviation of a fifth of the range. Fixed, so that rows compare."""

_STOPS = np.array([[0, 0, 4], [81, 18, 124], [183, 55, 121], [252, 137, 97], [252, 253, 191]], np.float32)


def write_strip(path: Path, before: Image.Image, after: Image.Image, spread: NDArray[np.float32] | None) -> None:
    """Writes the strip: three squares beside each other, the last one empty where there is no map."""
    strip = Image.new("RGB", (3 * SIDE + 2 * GAP, SIDE), "white")
    views = [before, after, *([] if spread is None else [colour_map(spread)])]
    for position, view in enumerate(views):
        small = _fit(view)
        left = position * (SIDE + GAP) + (SIDE - small.width) // 2
        strip.paste(small, (left, (SIDE - small.height) // 2))
    strip.save(path, "WEBP", quality=70, method=4)


def colour_map(spread: NDArray[np.float32]) -> Image.Image:
    """A map [H, W] of standard deviations of [0, 1] images: black 0, violet, orange, pale yellow from WHITE_AT on."""
    share = np.clip(spread / WHITE_AT, 0, 1) * (len(_STOPS) - 1)
    planes = [np.interp(share, np.arange(len(_STOPS)), _STOPS[:, channel]) for channel in range(3)]
    return Image.fromarray(np.stack(planes, -1).round().astype(np.uint8))


def _fit(view: Image.Image) -> Image.Image:
    """The view made as large as a square allows; pixels of small pictures stay pixels."""
    scale = SIDE / max(view.size)
    size = (max(1, round(view.width * scale)), max(1, round(view.height * scale)))
    return view.resize(size, Image.Resampling.NEAREST if scale > 1 else Image.Resampling.LANCZOS)
