"""The formats of picture files: one row each, with its suffixes, how it is read and written, and what it can hold."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from leader.errors import LeaderError
from leader.files import printable

JPEG, PNG, TIFF, HEIF, AVIF = "JPEG", "PNG", "TIFF", "HEIF", "AVIF"


@dataclass(frozen=True)
class Format:
    """A format.

    name      as Pillow calls it
    suffixes  of its files, in lower case
    title     its common name, if it is listed among the supported formats
    sniffed   whether Pillow may try it on a file of any name; AVIF and HEIC files are recognised by their first bytes
    marks     the first bytes of its files, if not every variant is supported
    written   whether it can be written; then whether it holds alpha, 16 bits, colour profiles, and EXIF through Pillow
    side      largest side in pixels, if the format limits it
    options   of Pillow for writing
    """

    name: str
    suffixes: tuple[str, ...] = ()
    title: str | None = None
    sniffed: bool = True
    marks: tuple[bytes, ...] = ()
    written: bool = True
    alpha: bool = False
    deep: bool = False
    profile: bool = False
    exif: bool = False
    side: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


TABLE = (
    Format(PNG, (".png",), "PNG", marks=(b"\x89PNG",), alpha=True, deep=True, profile=True, exif=True),
    Format(
        JPEG,
        (".jpg", ".jpeg", ".jfif"),
        "JPEG",
        marks=(b"\xff\xd8\xff",),
        profile=True,
        exif=True,
        side=65_500,
        options={"quality": 95, "subsampling": 0},
    ),
    Format("WEBP", (".webp",), "WebP", alpha=True, profile=True, exif=True, side=16_383, options={"lossless": True}),
    Format(TIFF, (".tif", ".tiff"), "TIFF", marks=(b"II*\0", b"MM\0*", b"II+\0"), alpha=True, deep=True, profile=True),
    Format("BMP", (".bmp",), "BMP", marks=(b"BM",)),
    Format("PPM", (".ppm",)),
    Format("JPEG2000", (".jp2",), alpha=True),
    Format("GIF", (".gif",), written=False),
    Format(
        AVIF,
        (".avif",),
        "AVIF",
        sniffed=False,
        alpha=True,
        profile=True,
        exif=True,
        side=32_768,  # libavif writes up to 65,536 and, as Pillow has it, reads up to this
        options={"quality": 95, "subsampling": "4:4:4"},
    ),
    Format(HEIF, (".heic", ".heif", ".hif"), "HEIC", sniffed=False, written=False),
)
READ = tuple(row.name for row in TABLE if row.sniffed)
"""Formats that are opened whatever the file name; one of Pillow's other formats starts a program (EPS)."""
FORMATS = {suffix: row for row in TABLE if row.written for suffix in row.suffixes}
"""Formats that can be written, by suffix."""
SUFFIXES = tuple(suffix for row in TABLE for suffix in row.suffixes)
"""Suffixes of picture files."""
_TITLES = [row.title for row in TABLE if row.title is not None]
SERVED = f"{', '.join(_TITLES[:-1])} or {_TITLES[-1]}"


def format_by_mark(begin: bytes) -> str | None:
    """The format whose files begin with these bytes."""
    return next((row.name for row in TABLE if any(begin.startswith(mark) for mark in row.marks)), None)


def list_pictures(folder: str | Path) -> list[Path]:
    """The picture files of a folder, sorted by name; hidden files and sub-folders are left out."""
    path = Path(folder)
    if not path.is_dir():
        raise LeaderError(f"There is no folder of pictures '{printable(path)}'; give an existing one.")
    found = sorted(item for item in path.iterdir() if is_picture_name(item) and item.is_file())
    if not found:
        raise LeaderError(
            f"No pictures were found in '{printable(path)}'; a folder with files ending in {', '.join(SUFFIXES)} is needed."
        )
    return found


def is_picture_name(path: Path) -> bool:
    """Whether a file name is that of a picture; names that start with a dot belong to other programs."""
    return path.suffix.lower() in SUFFIXES and not path.name.startswith(".")
