"""Colour pictures with 16 bits per channel, which Pillow reads and writes only in 8 bits.

Reading: Pillow's decoders keep one byte of each 16-bit sample, chosen by the byte order they are given.
Decoding a file twice, with the true and with the swapped order, gives the high and the low bytes. Writing:
PNG and TIFF, deflated, without a library; TIFF of 8 bits too.
"""

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
from leader.pictures.exif import LONG, SHORT, UNDEFINED, Tag, Tree, block_of, directory_bytes

Deep = NDArray[np.uint16]
Shallow = NDArray[np.uint8]

_SWAPPED = {"B": "L", "L": "B", "N": "B" if sys.byteorder == "little" else "L"}
_SERVED = ("RGB;16", "RGBA;16")
BITS, PLANES = 258, 284
"""Tags of a TIFF: bits of each channel; 1 if channels are interleaved, 2 if they lie one after the other."""


def is_deep(image: Image.Image) -> bool:
    """Whether this freshly opened file holds 16-bit colour that Pillow would reduce to 8 bits.

    In a TIFF whose channels lie one after the other only the tags tell: Pillow takes each byte for a sample.
    """
    tiles = getattr(image, "tile", ())
    raw = any(";16" in raw_mode(tile) or (tile[0].startswith("ppm") and tile[3][1] > 255) for tile in tiles)
    packed = image.format == "BMP"  # three samples in 16 bits
    return (raw or _has_deep_planes(image)) and image.mode in ("RGB", "RGBA", "CMYK") and not packed


def check_jpeg2000(image: Any, name: str) -> None:
    """Rejects a freshly opened JPEG 2000 file that Pillow decodes wrongly: in colour it turns deep white black, and shears the
    channels that are smaller than the picture.
    """
    image.fp.seek(0)
    _, _, header = image.fp.read().partition(b"\xff\x4f\xff\x51")
    channels = int.from_bytes(header[36:38], "big")
    for at in range(38, 38 + 3 * channels, 3):
        depth, *steps = header[at : at + 3]
        if steps != [1, 1] or ((depth & 127) >= 8 and channels > 1):
            raise LeaderError(
                f"{name} holds colours of more than 8 bits, or in fewer pixels than brightness, which cannot be read without "
                "loss from JPEG 2000; convert it to a 16-bit PNG or TIFF."
            )


def _has_deep_planes(image: Image.Image) -> bool:
    """Whether this is a TIFF of 16-bit channels that lie one after the other."""
    tags = getattr(image, "tag_v2", {})
    return bool(tags.get(PLANES) == 2 and max(tags.get(BITS, (8,))) > 8)


def read_deep(image: Image.Image, path: Path, formats: Sequence[str]) -> Deep:
    """The 16-bit samples [H, W, 3 or 4] of a file for which `is_deep` holds; Pillow's `formats` may open it again.

    image  the file, freshly opened; decoded afterwards, so that Pillow has turned it if it turns files of this format
    """
    modes = {raw_mode(tile) for tile in image.tile} if isinstance(image, ImageFile.ImageFile) else set()
    served = all(mode[:-1] in _SERVED for mode in modes) and not _has_deep_planes(image)
    if not served or "transparency" in image.info:
        raise LeaderError(
            f"{printable(path)} holds 16-bit samples in a layout that cannot be read without loss; "
            "convert it to 16-bit RGB or RGBA."
        )
    high = np.asarray(image).astype(np.uint16)
    with Image.open(path, formats=tuple(formats)) as again:
        assert isinstance(again, ImageFile.ImageFile)
        again.tile = [_with_swapped_order(tile) for tile in again.tile]
        low = np.asarray(again)
    deep: Deep = high << 8 | low
    return deep


def raw_mode(tile: Any) -> str:
    """How Pillow names the samples of a tile as they are stored."""
    args = tile[3]
    return str(args[0] if isinstance(args, tuple) and args else args)


def _with_swapped_order(tile: Any) -> Any:
    args, mode = tile[3], raw_mode(tile)
    swapped = mode[:-1] + _SWAPPED[mode[-1]]
    new = (swapped, *args[1:]) if isinstance(args, tuple) else swapped
    return tile._replace(args=new) if hasattr(tile, "_replace") else (*tile[:3], new)


def write_deep_png(path: Path, samples: Deep, icc: bytes | None, tags: Tree | None = None) -> None:
    """samples [H, W, 1, 3 or 4] as a 16-bit PNG, with the tags of EXIF."""
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
        if tags:
            file.write(_chunk(b"eXIf", block_of(tags)))
        file.write(_chunk(b"IDAT", zlib.compress(lines.tobytes(), 6)))
        file.write(_chunk(b"IEND", b""))


def _chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def write_tiff(path: Path, samples: Deep | Shallow, icc: bytes | None, tags: Tree | None = None) -> None:
    """samples [H, W, 1 to 4] as a TIFF of 8 or 16 bits, with the tags of EXIF, which Pillow loses: little endian, one
    deflated strip with horizontal differences.
    """
    height, width, channels = samples.shape
    differences = samples.copy()
    differences[:, 1:] -= samples[:, :-1]
    strip = zlib.compress(np.ascontiguousarray(differences.astype(samples.dtype.newbyteorder("<"))).tobytes(), 6)
    tree: dict[int, Tag | Tree] = {
        **(tags or {}),
        256: _numbers(LONG, width),
        257: _numbers(LONG, height),
        BITS: _numbers(SHORT, *[8 * samples.itemsize] * channels),
        259: _numbers(SHORT, 8),  # deflate
        262: _numbers(SHORT, 1 if channels <= 2 else 2),  # black is zero, or RGB
        273: _numbers(LONG, 8),  # the strip follows the header
        277: _numbers(SHORT, channels),
        278: _numbers(LONG, height),
        279: _numbers(LONG, len(strip)),
        PLANES: _numbers(SHORT, 1),  # channels interleaved
        317: _numbers(SHORT, 2),  # horizontal differences
    }
    if channels in (2, 4):
        tree[338] = _numbers(SHORT, 2)  # the last channel is an unassociated alpha
    if icc:
        tree[34675] = Tag(UNDEFINED, icc)
    padding = b"\0" * (len(strip) % 2)
    directory_at = 8 + len(strip) + len(padding)
    with path.open("wb") as file:
        file.write(b"II*\0" + struct.pack("<I", directory_at) + strip + padding)
        file.write(directory_bytes(tree, directory_at))


def _numbers(kind: int, *values: int) -> Tag:
    return Tag(kind, struct.pack(f"<{len(values)}{'H' if kind == SHORT else 'I'}", *values))
