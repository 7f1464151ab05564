"""Damage that knows the format of a picture: markers, chunks, directories and boxes stay readable and say something wrong."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from random import Random

from tools.fuzz.damage import NUMBERS

PNG = b"\x89PNG\r\n\x1a\n"
BOMB = zlib.compress(bytes(64 << 20), 9)
"""64 MB of zeros, packed."""
Piece = tuple[bytes, bytes]
"""Name and body of a chunk or box."""


def spoiled_structure(data: bytes, rng: Random) -> bytes:
    """The picture with one to three parts of its structure changed; as it is where its format is not known here."""
    change = _changer(data)
    for _ in range(rng.choice((1, 1, 2, 3))):
        data = data if change is None else change(data, rng)
    return data


def _changer(data: bytes) -> Callable[[bytes, Random], bytes] | None:
    if data.startswith(PNG):
        return _change_png
    if data.startswith(b"\xff\xd8"):
        return _change_jpeg
    if data[:4] in (b"II*\0", b"MM\0*"):
        return _change_tiff
    if data.startswith(b"RIFF"):
        return _change_riff
    return _change_boxes if data[4:8] in (b"ftyp", b"jP  ") else None


def _number(rng: Random, order: str = ">", size: str = "I") -> bytes:
    most = (1 << (8 * struct.calcsize(size))) - 1
    return struct.pack(order + size, rng.choice((*NUMBERS, rng.randrange(1 << 16))) & most)


def _put(data: bytes, at: int, new: bytes) -> bytes:
    return data[:at] + new + data[at + len(new) :]


def _shuffle(pieces: list[Piece], rng: Random) -> None:
    """One piece twice, lost, or elsewhere."""
    at = rng.randrange(len(pieces))
    kind, piece = rng.randrange(3), pieces[at]
    if kind == 0:
        pieces.insert(rng.randrange(len(pieces) + 1), piece)
    elif kind == 1:
        del pieces[at]
    else:
        pieces.insert(rng.randrange(len(pieces)), pieces.pop(at))


def _change_png(data: bytes, rng: Random) -> bytes:
    pieces, at = list[Piece](), 8
    while at + 12 <= len(data):
        length = int.from_bytes(data[at : at + 4], "big")
        pieces.append((data[at + 4 : at + 8], data[at + 8 : at + 8 + length]))
        at += 12 + length
    if not pieces:
        return data
    kind = rng.randrange(8)
    name, body = pieces[0]
    if kind == 0:  # a size that is not that of the pixels
        pieces[0] = (name, _put(body, rng.choice((0, 4)), _number(rng)))
    elif kind == 1:  # depth, colours, packing, filter, interlacing
        pieces[0] = (name, _put(body, rng.randrange(8, 13), bytes([rng.choice((0, 1, 2, 3, 4, 6, 8, 16, 255))])))
    elif kind == 2:
        bomb = rng.choice((b"iCCPx\0\0", b"zTXtx\0\0", b"iTXtx\0\1\0\0\0"))
        pieces.insert(1, (bomb[:4], bomb[4:] + (BOMB if rng.random() < 0.5 else rng.randbytes(40))))
    elif kind == 3:
        holes = rng.choice((0, 1, 2, 5, 6, 300))
        pieces.insert(rng.choice((1, len(pieces))), (b"tRNS", rng.randbytes(holes)))
    elif kind == 4:
        extra = rng.choice((b"PLTE", b"gAMA", b"cHRM", b"eXIf", b"acTL", b"fcTL", b"IHDR", b"IEND", b"IDAT", b"sRGB", b"bKGD"))
        pieces.insert(rng.randrange(len(pieces) + 1), (extra, rng.randbytes(rng.choice((0, 1, 4, 13, 26)))))
    else:
        _shuffle(pieces, rng)
    parts = [PNG]
    for name, body in pieces:
        crc = zlib.crc32(name + body) if kind < 7 or rng.random() < 0.7 else rng.randrange(1 << 32)
        length = len(body) if kind != 6 or rng.random() < 0.7 else rng.choice(NUMBERS)
        parts.append(struct.pack(">I", length) + name + body + struct.pack(">I", crc))
    return b"".join(parts)


def _change_jpeg(data: bytes, rng: Random) -> bytes:
    marks, at = list[int](), 2
    while at + 4 <= len(data) and data[at] == 0xFF:
        marks.append(at)
        if data[at + 1] == 0xDA:
            break
        at += 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    if not marks:
        return data
    kind, chosen = rng.randrange(7), rng.choice(marks)
    length = int.from_bytes(data[chosen + 2 : chosen + 4], "big")
    frame = next((mark for mark in marks if 0xC0 <= data[mark + 1] <= 0xC2), chosen)
    if kind == 0:
        return _put(data, chosen + 2, _number(rng, size="H"))  # the length of a segment
    if kind == 1:
        return _put(data, chosen + 1, bytes([rng.randrange(0xC0, 0xFF)]))  # another kind of segment
    if kind == 2:
        return _put(data, frame + rng.choice((5, 7)), _number(rng, size="H"))  # height, width
    if kind == 3:
        return _put(data, frame + rng.randrange(9, 20), rng.randbytes(1))  # components, sampling, tables
    if kind == 4:
        return data[:chosen] + data[chosen + 2 + length :]
    if kind == 5:
        return data[:chosen] + data[chosen : chosen + 2 + length] * rng.choice((2, 50)) + data[chosen + 2 + length :]
    body = rng.choice((b"Exif\0\0" + _exif(rng), b"ICC_PROFILE\0" + rng.randbytes(20), b"JFIF\0" + rng.randbytes(9)))
    return data[:2] + rng.choice((b"\xff\xe1", b"\xff\xe2")) + struct.pack(">H", len(body) + 2) + body + data[2:]


def _exif(rng: Random) -> bytes:
    """A directory of a few tags with types, counts and places that may be anything."""
    tags = b"".join(
        struct.pack(
            "<HHII",
            rng.choice((274, 34665, 34853, 271, 306, 40961)),
            rng.randrange(14),
            rng.choice(NUMBERS),
            rng.choice(NUMBERS),
        )
        for _ in range(rng.randrange(1, 6))
    )
    return b"II*\0\x08\0\0\0" + struct.pack("<H", len(tags) // 12) + tags + struct.pack("<I", rng.choice((0, 8, 2**31)))


def _change_tiff(data: bytes, rng: Random) -> bytes:
    order = "<" if data[:2] == b"II" else ">"
    start = int(struct.unpack(order + "I", data[4:8])[0])
    if rng.random() < 0.1 or start + 2 > len(data):
        return _put(data, 4, _number(rng, order))  # the place of the first directory
    count = int(struct.unpack(order + "H", data[start : start + 2])[0])
    end = start + 2 + 12 * count
    kind = rng.randrange(5)
    if kind == 0:  # a next directory that is this one, or nowhere
        return _put(data, end, struct.pack(order + "I", rng.choice((start, 8, len(data), 2**31, len(data) - 4))))
    if kind == 1:
        return _put(data, start, _number(rng, order, "H"))
    entry = start + 2 + 12 * rng.randrange(max(1, count))
    if kind == 2:
        return _put(
            data,
            entry,
            struct.pack(order + "H", rng.choice((256, 257, 258, 259, 262, 273, 277, 278, 279, 284, 317, 330, 34675))),
        )
    return (
        _put(data, entry + rng.choice((4, 8)), _number(rng, order))
        if kind == 3
        else _put(data, entry + 2, _number(rng, order, "H"))
    )


def _change_riff(data: bytes, rng: Random) -> bytes:
    places, at = [4], 12
    while at + 8 <= len(data):
        places.append(at + 4)
        at += 8 + (int.from_bytes(data[at + 4 : at + 8], "little") + 1) // 2 * 2
    chosen = rng.choice(places)
    kind = rng.randrange(4)
    if kind == 0:
        return _put(data, chosen, _number(rng, "<"))  # the size of a chunk, or of all
    if kind == 1 and chosen > 4:
        return _put(data, chosen - 4, rng.choice((b"VP8 ", b"VP8L", b"VP8X", b"ANIM", b"ANMF", b"ALPH", b"EXIF", b"ICCP")))
    if kind == 2:
        return _put(data, places[-1] + rng.randrange(4, 16), rng.randbytes(3))  # flags and sizes of the canvas
    return data[:12] + b"EXIF" + struct.pack("<I", 30) + rng.randbytes(30) + data[12:]


def _change_boxes(data: bytes, rng: Random) -> bytes:
    places = list[tuple[int, int]]()
    _find_boxes(data, 0, len(data), places, 0)
    if not places:
        return data
    at, length = rng.choice(places)
    kind = rng.randrange(5)
    if kind == 0:
        return _put(data, at, _number(rng))  # a size: 0 means to the end, 1 that a long one follows
    if kind == 1:
        return _put(
            data, at + 4, rng.choice((b"free", b"meta", b"iloc", b"iprp", b"ipco", b"ispe", b"pixi", b"av1C", b"hvcC", b"iref"))
        )
    if kind == 2:
        return data[:at] + data[at : at + length] * 2 + data[at + length :]
    if kind == 3:
        return data[:at] + data[at + length :]
    return _put(data, min(len(data) - 4, at + 8 + rng.randrange(max(1, length - 8))), _number(rng))


def _find_boxes(data: bytes, at: int, end: int, places: list[tuple[int, int]], depth: int) -> None:
    while at + 8 <= end and depth < 6:
        length = int.from_bytes(data[at : at + 4], "big")
        if not 8 <= length <= end - at:
            return
        places.append((at, length))
        name = data[at + 4 : at + 8]
        if name in (b"meta", b"iprp", b"ipco", b"iinf", b"jp2h"):
            skipped = {b"meta": 12, b"iinf": 14}.get(name, 8)
            _find_boxes(data, at + skipped, at + length, places, depth + 1)
        at += length
