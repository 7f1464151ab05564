"""HEIC, HEIF and AVIF files: which of them a file is, and stills of HEIC through the extra `heic`."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import features

from leader.errors import LeaderError
from leader.pictures.formats import AVIF, HEIF

_BRANDS = {
    **dict.fromkeys((b"avif", b"avis"), AVIF),
    **dict.fromkeys((b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"hevm", b"hevs"), HEIF),
}
_EITHER = (b"mif1", b"msf1")
_HEAD = 512
"""Bytes that identify the format of a file."""
_WIDE = {9, 11, 12}
_BRIGHT = {16, 18}
"""Numbers of the standard for primaries beyond sRGB and for curves of bright displays."""


def kind_of(path: Path) -> str | None:
    """HEIF or AVIF if a file starts as one, whatever its name; None for all others."""
    with path.open("rb") as file:
        head = file.read(_HEAD)
    if head[4:8] != b"ftyp":
        return None
    end = min(int.from_bytes(head[:4], "big"), len(head))
    brands = [head[8:12], *(head[at : at + 4] for at in range(16, end - 3, 4))]
    found = next((_BRANDS[brand] for brand in brands if brand in _BRANDS), None)
    return HEIF if found is None and brands[0] in _EITHER else found


def can_avif() -> bool:
    """Whether this Pillow reads and writes AVIF."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # older versions do not have this feature name
        return bool(features.check("avif"))


@dataclass(frozen=True)
class Still:
    """The photograph of a HEIC file, not yet decoded. size: (width, height); depth: bits per sample; notes: sentences."""

    image: Any
    size: tuple[int, int]
    depth: int
    icc: bytes | None
    exif: bytes
    notes: tuple[str, ...]

    def decode(self) -> NDArray[Any]:
        """Samples [H, W, 1, 3 or 4], upright: decoding a HEIC file includes its rotation."""
        samples = np.asarray(self.image)
        return samples[..., None] if samples.ndim == 2 else samples


def open_still(path: Path, name: str) -> Still:
    """Opens the photograph of a HEIC file: the one it calls its primary."""
    try:
        import pillow_heif
    except ImportError as error:
        raise LeaderError(
            f"{name} is a HEIC file, which needs an extra: pip install 'leader-ir[heic]', or convert it to JPEG or PNG."
        ) from error
    file = pillow_heif.open_heif(path, convert_hdr_to_8bit=False, hdr_to_16bit=False)
    image = file[file.primary_index]
    if image.premultiplied_alpha:
        raise LeaderError(f"{name} has premultiplied transparency, which is not supported; convert it to PNG.")
    icc, colours = image.info.get("icc_profile"), image.info.get("nclx_profile") or {}
    notes: tuple[str, ...] = ()
    if not icc and (colours.get("color_primaries") in _WIDE or colours.get("transfer_characteristics") in _BRIGHT):
        notes = ("The file describes wide colours without a profile that other formats can hold; they may look paler.",)
    return Still(image, image.size, int(image.info["bit_depth"]), icc, image.info.get("exif") or b"", notes)
