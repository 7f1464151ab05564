"""Writing picture files without loss of what the picture has: 16 bits, transparency, colour profile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from leader.errors import LeaderError, UsageError
from leader.files import printable, replacing
from leader.pictures.deep import write_deep_png, write_deep_tiff
from leader.pictures.picture import Picture, matching_profile, samples_of

FORMATS: dict[str, str] = {
    ".png": "PNG",
    ".jpg": "JPEG",
    ".jpeg": "JPEG",
    ".webp": "WEBP",
    ".tif": "TIFF",
    ".tiff": "TIFF",
    ".bmp": "BMP",
    ".ppm": "PPM",
    ".jp2": "JPEG2000",
}
"""What can be written, by suffix."""

_HOLDS_ALPHA = ("PNG", "WEBP", "TIFF", "JPEG2000")
_HOLDS_16_BITS = ("PNG", "TIFF")
_SAVE_OPTIONS: dict[str, dict[str, Any]] = {
    "JPEG": {"quality": 95, "subsampling": 0},
    "WEBP": {"lossless": True},
    "TIFF": {"compression": "tiff_deflate"},
}


def check_format(path: Path, alpha: bool = False) -> str:
    """The format a file name asks for; refuses what cannot be written or would lose an alpha channel."""
    if path.suffix.lower() not in FORMATS:
        found = f"'{printable(path.suffix)}'" if path.suffix else "no suffix"
        raise UsageError(f"{printable(path)} has {found}; pictures are written as {', '.join(FORMATS)}.")
    name = FORMATS[path.suffix.lower()]
    if alpha and name not in _HOLDS_ALPHA:
        raise LeaderError(
            f"{name} cannot hold the transparency of the picture; write PNG, WebP or TIFF instead of {printable(path.name)}."
        )
    return name


def write_picture(path: Path, picture: Picture) -> None:
    """Writes the picture whole or not at all, with 16 bits where it has them and the format can hold them."""
    name = check_format(path, picture.alpha is not None)
    with replacing(path) as temporary:
        if picture.bits == 16 and name in _HOLDS_16_BITS:
            samples = samples_of(picture)
            if samples.shape[2] == 2:
                samples = np.concatenate([np.repeat(samples[..., :1], 3, axis=2), samples[..., 1:]], axis=2)
            deep = np.round(samples * 65535).astype(np.uint16)
            (write_deep_png if name == "PNG" else write_deep_tiff)(temporary, deep, _profile_for(picture, deep.shape[2]))
            return
        options = dict(_SAVE_OPTIONS.get(name, {}))
        if picture.icc:
            options["icc_profile"] = picture.icc
        picture.to_pil().save(temporary, name, **options)


def _profile_for(picture: Picture, channels: int) -> bytes | None:
    return matching_profile(picture.icc, 1 if channels == 1 else 3)
