"""HEIC, HEIF and AVIF files: which of them a file is, and stills of HEIC through the extra `heic`."""

import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from PIL import features

from leader.errors import LeaderError
from leader.pictures.colours import profile_of
from leader.pictures.formats import AVIF, HEIF
from leader.pictures.metadata import OWN_COLOURS, metadata_in
from leader.pictures.picture import Picture, from_samples

_BRANDS = {
    **dict.fromkeys((b"avif", b"avis"), AVIF),
    **dict.fromkeys((b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"hevm", b"hevs"), HEIF),
}
_EITHER = (b"mif1", b"msf1")
_HEAD = 512
"""Bytes that identify the format of a file."""
DEEP = "The file holds more than 8 bits per sample, of which 8 are read."
_BOXES = 1 << 16
"""Bytes that hold the descriptions at the beginning of a file."""


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


def find_losses(path: Path) -> tuple[bytes | None, tuple[str, ...]]:
    """What Pillow leaves behind of an AVIF file: a profile described by numbers, and, a sentence each, bits beyond 8, and
    colours that are not understood.
    """
    with path.open("rb") as file:
        head = file.read(_BOXES)
    losses, icc, understood = [], None, True
    _, found, coding = head.partition(b"av1C")
    if found and coding[2] & 0x40:
        losses.append(DEEP)
    _, found, colours = head.partition(b"colrnclx")
    if found and b"colrprof" not in head:
        icc, understood = profile_of(colours[1], colours[3])
    if not understood:
        losses.append(OWN_COLOURS)
    return icc, tuple(losses)


def read_still(path: Path, name: str, check_size: Callable[[tuple[int, int]], None]) -> Picture:
    """The photograph of a HEIC file, the one it calls its primary, upright: decoding includes its rotation.

    check_size  refuses a (width, height) before anything is decoded; the decoder enforces what was declared
    """
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
    icc, colours, understood = image.info.get("icc_profile"), image.info.get("nclx_profile"), True
    if not icc and colours:
        icc, understood = profile_of(colours["color_primaries"], colours["transfer_characteristics"])
    check_size(image.size)
    samples = np.asarray(image)
    picture = from_samples(samples[..., None] if samples.ndim == 2 else samples, int(image.info["bit_depth"]), icc)
    return replace(picture, metadata=metadata_in(image.info.get("exif") or b"", *(() if understood else (OWN_COLOURS,))))
