"""Colour pictures of 16 bits a channel, which Pillow reads and writes in 8 bits only.

Reading: Pillow's decoders keep one byte of each 16-bit sample, chosen by the byte order they are told.
Decoding a file twice, with the true and with the swapped order, gives the high and the low bytes. Writing:
PNG and TIFF, deflated, without a library.
"""

from __future__ import annotations

import struct
import sys
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFile

from leader.errors import LeaderError
from leader.files import printable

Deep = NDArray[np.uint16]

_SWAPPED = {"B": "L", "L": "B", "N": "B" if sys.byteorder == "little" else "L"}
_SERVED = ("RGB;16", "RGBA;16")


def is_deep(image: Image.Image) -> bool:
    """Whether this freshly opened file holds 16-bit colour that Pillow would reduce to 8 bits."""
    return any(";16" in _raw_mode(tile) for tile in getattr(image, "tile", ())) and image.mode in (
        "RGB",
        "RGBA",
        "CMYK",
    )


def read_deep(path: Path, formats: Sequence[str]) -> Deep:
    """The 16-bit samples [H, W, 3 or 4] of a file for which `is_deep` holds; Pillow's `formats` may open it."""
    with Image.open(path, formats=tuple(formats)) as image:
        modes = {_raw_mode(tile) for tile in image.tile} if isinstance(image, ImageFile.ImageFile) else set()
        if not all(mode[:-1] in _SERVED for mode in modes) or "transparency" in image.info:
            raise LeaderError(
                f"{printable(path)} holds 16-bit samples in a layout that cannot be read without loss; "
                "convert it to 16-bit RGB or RGBA."
            )
        high = np.asarray(image).astype(np.uint16)
    with Image.open(path, formats=tuple(formats)) as image:
        assert isinstance(image, ImageFile.ImageFile)
        image.tile = [_with_swapped_order(tile) for tile in image.tile]
        low = np.asarray(image)
    deep: Deep = high << 8 | low
    return deep


def _raw_mode(tile: Any) -> str:
    args = tile[3]
    return str(args[0] if isinstance(args, tuple) and args else args)


def _with_swapped_order(tile: Any) -> Any:
    args, mode = tile[3], _raw_mode(tile)
    swapped = mode[:-1] + _SWAPPED[mode[-1]]
    new = (swapped, *args[1:]) if isinstance(args, tuple) else swapped
    return tile._replace(args=new) if hasattr(tile, "_replace") else (*tile[:3], new)


def write_deep_png(path: Path, samples: Deep, icc: bytes | None) -> None:
    """samples [H, W, 1, 3 or 4] as a 16-bit PNG."""
    height, width, channels = samples.shape
    colour_type = {1: 0, 3: 2, 4: 6}[channels]
    rows = np.ascontiguousarray(samples.astype(">u2")).view(np.uint8).reshape(height, -1)
    step = 2 * channels
    filtered = rows.copy()
    filtered[:, step:] -= rows[:, :-step]  # PNG's "sub" filter, modulo 256
    lines = np.concatenate([np.ones((height, 1), np.uint8), filtered], axis=1)
    with path.open("wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n")
        file.write(_chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 16, colour_type, 0, 0, 0)))
        if icc:
            file.write(_chunk(b"iCCP", b"ICC Profile\0\0" + zlib.compress(icc)))
        file.write(_chunk(b"IDAT", zlib.compress(lines.tobytes(), 6)))
        file.write(_chunk(b"IEND", b""))


def _chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def write_deep_tiff(path: Path, samples: Deep, icc: bytes | None) -> None:
    """samples [H, W, 1, 3 or 4] as a 16-bit TIFF: little endian, one deflated strip with horizontal
    differences.
    """
    height, width, channels = samples.shape
    differences = samples.copy()
    differences[:, 1:] -= samples[:, :-1]
    strip = zlib.compress(np.ascontiguousarray(differences.astype("<u2")).tobytes(), 6)
    short, long, undefined = 3, 4, 7
    tags: list[tuple[int, int, list[int] | bytes]] = [
        (256, long, [width]),
        (257, long, [height]),
        (258, short, [16] * channels),
        (259, short, [8]),  # deflate
        (262, short, [1 if channels == 1 else 2]),  # black is zero, or RGB
        (273, long, [8]),  # the strip follows the header
        (277, short, [channels]),
        (278, long, [height]),
        (279, long, [len(strip)]),
        (284, short, [1]),  # channels interleaved
        (317, short, [2]),  # horizontal differences
    ]
    if channels == 4:
        tags.append((338, short, [2]))  # the fourth channel is an unassociated alpha
    if icc:
        tags.append((34675, undefined, icc))
    padding = b"\0" * (len(strip) % 2)
    directory_at = 8 + len(strip) + len(padding)
    with path.open("wb") as file:
        file.write(b"II*\0" + struct.pack("<I", directory_at) + strip + padding)
        file.write(_directory(tags, directory_at))


def _directory(tags: list[tuple[int, int, list[int] | bytes]], at: int) -> bytes:
    """A TIFF directory that starts at byte `at`; values longer than four bytes follow it."""
    sizes = {3: "H", 4: "I"}
    entries, overflow = b"", b""
    overflow_at = at + 2 + 12 * len(tags) + 4
    for tag, kind, value in tags:
        body = value if isinstance(value, bytes) else struct.pack(f"<{len(value)}{sizes[kind]}", *value)
        if len(body) <= 4:
            field = body.ljust(4, b"\0")
        else:
            field = struct.pack("<I", overflow_at + len(overflow))
            overflow += body + b"\0" * (len(body) % 2)
        entries += struct.pack("<HHI", tag, kind, len(value)) + field
    return struct.pack("<H", len(tags)) + entries + b"\0\0\0\0" + overflow
