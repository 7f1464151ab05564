"""Colours that a file describes by numbers of ITU-T H.273 instead of a profile: cICP of PNG, nclx of AVIF and HEIC."""

import struct
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

_LIKE_SRGB = {1, 2, 5, 6, 7}
_P3 = 12
"""Primaries: of sRGB, not specified, of television before; of Display P3."""
_USUAL = {1, 2, 6, 13, 14, 15}
"""Curves: of sRGB, not specified, and of television, which viewers take for that of sRGB."""
_P3_PRIMARIES, _D65 = ((0.68, 0.32), (0.265, 0.69), (0.15, 0.06)), (0.3127, 0.329)
_D50 = np.array([0.9642, 1.0, 0.8249])
"""x and y of red, green and blue; of white; and the white of profiles, X, Y, Z."""
_BRADFORD = np.array([[0.8951, 0.2664, -0.1614], [-0.7502, 1.7135, 0.0367], [0.0389, -0.0685, 1.0296]])
_SRGB_CURVE = (2.4, 1 / 1.055, 0.055 / 1.055, 1 / 12.92, 0.04045)
"""Of ICC's curve type 3: (a v + b)^g from d on, c v below it, as g, a, b, c, d."""


def profile_of(primaries: int, transfer: int) -> tuple[bytes | None, bool]:
    """The profile that these numbers stand for, None for sRGB, which needs none, and whether they are understood."""
    usual = transfer in _USUAL
    return display_p3() if usual and primaries == _P3 else None, usual and primaries in {*_LIKE_SRGB, _P3}


def read_cicp(file: BinaryIO) -> bytes | None:
    """The four numbers of the cICP chunk of an open PNG: primaries, curve, matrix, full range; the file stays where it was."""
    before = file.tell()
    file.seek(8)
    found = None
    while len(head := file.read(8)) == 8 and head[4:] != b"IDAT":
        length = int.from_bytes(head[:4], "big")
        if head[4:] == b"cICP" and length == 4:
            found = file.read(4)
            break
        file.seek(length + 4, 1)
    file.seek(before)
    return found


def display_p3() -> bytes:
    """An ICC profile of Display P3, version 4."""

    def numbers(kind: bytes, values: NDArray[np.float64], more: bytes = b"") -> bytes:
        return kind + bytes(4) + more + np.round(values.reshape(-1) * 65536).astype(">i4").tobytes()

    def words(text: str) -> bytes:
        coded = text.encode("utf-16-be")
        return b"mluc" + bytes(4) + struct.pack(">II2s2sII", 1, 12, b"en", b"US", len(coded), 28) + coded

    def tristimulus(x: float, y: float) -> list[float]:
        return [x / y, 1.0, (1 - x - y) / y]

    white = np.array(tristimulus(*_D65))
    adapted = np.linalg.inv(_BRADFORD) @ np.diag((_BRADFORD @ _D50) / (_BRADFORD @ white)) @ _BRADFORD
    primaries = np.array([tristimulus(x, y) for x, y in _P3_PRIMARIES]).T
    columns = adapted @ (primaries * np.linalg.solve(primaries, white))
    curve = numbers(b"para", np.array(_SRGB_CURVE), b"\0\3\0\0")
    tags = {
        b"desc": words("Display P3"),
        b"cprt": words("CC0"),
        b"wtpt": numbers(b"XYZ ", _D50),
        b"chad": numbers(b"sf32", adapted),
        **{name + b"XYZ": numbers(b"XYZ ", columns[:, at]) for at, name in enumerate((b"r", b"g", b"b"))},
        **dict.fromkeys((b"rTRC", b"gTRC", b"bTRC"), curve),
    }
    table, body = struct.pack(">I", len(tags)), b""
    for name, value in tags.items():
        table += struct.pack(">4sII", name, 128 + 4 + 12 * len(tags) + len(body), len(value))
        body += value + bytes(-len(value) % 4)
    size = 128 + len(table) + len(body)
    head = struct.pack(">I4xI", size, 4 << 24) + b"mntrRGB XYZ " + bytes(12) + b"acsp" + bytes(28)
    return head + np.round(_D50 * 65536).astype(">i4").tobytes() + bytes(48) + table + body
