"""EXIF blocks as stored in files: TIFF directories of tags, read defensively and written in the simplest form.

Values are never interpreted: the bytes of a tag are copied unchanged, in little-endian order. A directory is read only once per
offset, so a hostile block cannot cause a loop.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Union

ASCII, SHORT, LONG, UNDEFINED = 2, 3, 4, 7
_SIZES = {1: 1, ASCII: 1, SHORT: 2, LONG: 4, 5: 8, 6: 1, UNDEFINED: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8}
"""Bytes of one value, by the kind's number; 5 and 10 are fractions of two numbers of four bytes."""
_WORDS = {**_SIZES, 5: 4, 10: 4}
"""Bytes that are swapped together between the two byte orders."""
PREFIX = b"Exif\0\0"
"""The prefix of a block in JPEG files."""
_ORDERS = {b"II*\0": "<", b"MM\0*": ">"}
EXIF_AT, GPS_AT = 34665, 34853
"""The tags of the main directory that point to the other two."""
LONGEST = 4096
"""Largest value in bytes; camera, date and exposure take less than a hundred."""


@dataclass(frozen=True)
class Tag:
    """A value: the number of its kind and its bytes, little-endian."""

    kind: int
    data: bytes

    @property
    def count(self) -> int:
        return len(self.data) // _SIZES[self.kind]


Directory = Mapping[int, Tag]
Tree = Mapping[int, Union[Tag, "Tree"]]
"""A directory whose values may be directories."""


def text(words: str) -> Tag:
    """Text as a tag; non-ASCII characters as UTF-8, which readers understand."""
    return Tag(ASCII, words.encode("utf-8") + b"\0")


def read_block(
    block: bytes, main: frozenset[int], exif: frozenset[int], gps: frozenset[int]
) -> tuple[Directory, Directory, Directory, bool]:
    """The wanted tags of the three directories of an EXIF block, and whether it could all be read; its rest is ignored."""
    body = block.removeprefix(PREFIX)
    order = _ORDERS.get(body[:4])
    if order is None or len(body) < 8:
        return {}, {}, {}, not body
    first, whole = _directory(body, struct.unpack(order + "I", body[4:8])[0], order, main | {EXIF_AT, GPS_AT})
    found: list[Directory] = []
    for pointer, wanted in ((EXIF_AT, exif), (GPS_AT, gps)):
        at, tags = first.pop(pointer, None), dict[int, Tag]()
        if at is not None and at.kind == LONG and at.count == 1:
            tags, all_there = _directory(body, struct.unpack("<I", at.data)[0], order, wanted)
            whole = whole and all_there
        found.append(tags)
    return first, found[0], found[1], whole


def _directory(body: bytes, at: int, order: str, wanted: frozenset[int]) -> tuple[dict[int, Tag], bool]:
    """The wanted tags of the directory at an offset, and whether all of them could be read."""
    if at + 2 > len(body):
        return {}, False
    (declared,) = struct.unpack_from(order + "H", body, at)
    there = min(declared, (len(body) - at - 2) // 12)
    tags: dict[int, Tag] = {}
    whole = there == declared
    for entry in range(there):
        start = at + 2 + 12 * entry
        number, kind, count = struct.unpack_from(order + "HHI", body, start)
        if number not in wanted:
            continue
        size = _SIZES.get(kind, 0) * count
        begin = start + 8 if size <= 4 else int(struct.unpack_from(order + "I", body, start + 8)[0])
        if not 0 < size <= LONGEST or begin + size > len(body):
            whole = False
            continue
        tags[number] = Tag(kind, _little(body[begin : begin + size], _WORDS[kind], order))
    return tags, whole


def _little(data: bytes, word: int, order: str) -> bytes:
    return data if order == "<" else b"".join(data[i : i + word][::-1] for i in range(0, len(data), word))


def block_of(tree: Tree) -> bytes:
    """An EXIF block, without prefix."""
    return b"II*\0" + struct.pack("<I", 8) + directory_bytes(tree, 8)


def directory_bytes(tree: Tree, at: int) -> bytes:
    """A little-endian directory to be placed at byte `at`, followed by its longer values and nested directories."""
    entries, overflow = b"", b""
    overflow_at = at + 2 + 12 * len(tree) + 4
    for number, value in sorted(tree.items()):
        if isinstance(value, Tag):
            kind, count, data = value.kind, value.count, value.data
        else:
            kind, count, data = LONG, 1, struct.pack("<I", overflow_at + len(overflow))
            overflow += directory_bytes(value, overflow_at + len(overflow))
        if len(data) <= 4:
            field = data.ljust(4, b"\0")
        else:
            field = struct.pack("<I", overflow_at + len(overflow))
            overflow += data + b"\0" * (len(data) % 2)
        entries += struct.pack("<HHI", number, kind, count) + field
    return struct.pack("<H", len(tree)) + entries + b"\0\0\0\0" + overflow
