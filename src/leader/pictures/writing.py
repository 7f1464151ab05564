"""Writing picture files without losing 16 bits, transparency, colour profile or metadata."""

import io
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageCms

from leader.errors import LeaderError, UsageError
from leader.files import printable, replacing
from leader.pictures.deep import write_deep_png, write_tiff
from leader.pictures.formats import AVIF, FORMATS, JPEG, PNG, TIFF, Format
from leader.pictures.heif import can_avif
from leader.pictures.jpeg_history import JpegHistory
from leader.pictures.metadata import Stamp
from leader.pictures.picture import Picture, matching_profile, samples_of

_SUBSAMPLINGS = {(1, 1): 0, (1, 2): 1, (2, 2): 2}
"""Pillow's numbers of what it can write."""


def check_format(path: Path, alpha: bool = False, size: tuple[int, int] | None = None) -> Format:
    """The format of a file name; rejects formats that cannot be written, or cannot hold an alpha channel or the picture's size.

    size  (width, height) of the picture, if known
    """
    if path.suffix.lower() not in FORMATS:
        found = f"'{printable(path.suffix)}'" if path.suffix else "no suffix"
        raise UsageError(f"{printable(path)} has {found}; pictures are written as {', '.join(FORMATS)}.")
    chosen = FORMATS[path.suffix.lower()]
    if chosen.name == AVIF and not can_avif():
        raise LeaderError(f"This Pillow cannot write {printable(path.name)}; install Pillow 11.3 or newer, or write PNG.")
    if alpha and not chosen.alpha:
        raise LeaderError(
            f"{chosen.name} cannot hold the transparency of the picture; write PNG, WebP or TIFF instead of "
            f"{printable(path.name)}."
        )
    if size is not None and chosen.side is not None and max(size) > chosen.side:
        raise LeaderError(
            f"{chosen.name} holds at most {chosen.side} pixels on a side, and the picture has {size[0]} x {size[1]}; write PNG "
            f"or TIFF instead of {printable(path.name)}."
        )
    return chosen


def write_picture(
    path: Path, picture: Picture, location: bool = False, stamp: Stamp | None = None, quality: int | None = None
) -> None:
    """Writes the picture whole or not at all, with 16 bits if it has them and the format can hold them.

    location  whether to keep where it was taken
    stamp     additional metadata
    quality   1 to 100, for lossy formats; None: WebP is lossless, the others nearly so
    """
    chosen = check_format(path, picture.alpha is not None, picture.size)
    with replacing(path) as temporary:
        if picture.bits == 16 and chosen.deep:
            samples = samples_of(picture)
            if samples.shape[2] == 2:
                samples = np.concatenate([np.repeat(samples[..., :1], 3, axis=2), samples[..., 1:]], axis=2)
            deep = np.round(samples * 65535).astype(np.uint16)
            write = write_deep_png if chosen.name == PNG else write_tiff
            write(temporary, deep, matching_profile(picture.icc, deep.shape[2]), picture.metadata.tree(location, stamp))
            return
        if chosen.name == TIFF:
            shallow = np.round(samples_of(picture) * 255).astype(np.uint8)
            write_tiff(temporary, shallow, picture.icc, picture.metadata.tree(location, stamp))
            return
        options = dict(chosen.options)
        if chosen.name == JPEG and picture.history is not None and not picture.history.found:
            options = _as_before(picture.history)
        if quality is not None and not {"quality", "lossless"}.isdisjoint(chosen.options):
            options = {"quality": quality}
        image = picture.to_pil()
        if picture.icc and chosen.profile:
            options["icc_profile"] = picture.icc
        elif picture.icc:
            image = _without_profile(image, picture.icc)
        block = picture.metadata.block(location, stamp)
        if block is not None and chosen.exif:
            options["exif"] = block
        image.save(temporary, chosen.name, **options)


def _without_profile(image: Image.Image, icc: bytes) -> Image.Image:
    """An 8-bit image in sRGB, which is assumed for files without a profile: wide colours would come out pale."""
    if image.mode not in ("RGB", "RGBA"):
        return image
    try:
        profile = ImageCms.ImageCmsProfile(io.BytesIO(icc))
        made = ImageCms.profileToProfile(image, profile, ImageCms.createProfile("sRGB"))
    except (ImageCms.PyCMSError, OSError):  # no viewer could apply it either
        return image
    return image if made is None else made


def _as_before(history: JpegHistory) -> dict[str, Any]:
    """Options with which pixels decoded from a JPEG give the same JPEG again, up to rounding."""
    tables = [history.luma] if history.chroma is None else [history.luma, history.chroma]
    options: dict[str, Any] = {"qtables": [list(table) for table in tables]}
    if history.chroma is not None and history.sampling in _SUBSAMPLINGS:
        options["subsampling"] = _SUBSAMPLINGS[history.sampling]
    return options
