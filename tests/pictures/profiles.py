"""Colour profiles as cameras embed them, written by hand: three primaries and a gamma."""

from __future__ import annotations

import struct

ADOBE_RGB = ((0.60974, 0.31111, 0.01947), (0.20528, 0.62567, 0.06087), (0.14919, 0.06322, 0.74457))
"""Red, green and blue of Adobe RGB (1998), adapted to D50, as its profile gives them."""
DISPLAY_P3 = ((0.51512, 0.24120, -0.00105), (0.29198, 0.69225, 0.04189), (0.15710, 0.06657, 0.78407))
"""Those of Display P3."""


def rgb_profile(primaries: tuple[tuple[float, float, float], ...], gamma: float = 2.2) -> bytes:
    """An ICC profile, version 2, of a display with these primaries."""

    def fixed(value: float) -> bytes:
        return struct.pack(">i", round(value * 65536))

    def xyz(values: tuple[float, ...]) -> bytes:
        return b"XYZ \0\0\0\0" + b"".join(map(fixed, values))

    curve = b"curv\0\0\0\0" + struct.pack(">IHH", 1, round(gamma * 256), 0)
    text = b"by hand\0"
    described = b"desc\0\0\0\0" + struct.pack(">I", len(text)) + text + b"\0" * 79
    described += b"\0" * (-len(described) % 4)
    tags = {b"desc": described, b"cprt": b"text\0\0\0\0none\0\0\0\0", b"wtpt": xyz((0.9642, 1.0, 0.8249))}
    tags |= {name: xyz(values) for name, values in zip((b"rXYZ", b"gXYZ", b"bXYZ"), primaries, strict=True)}
    tags |= dict.fromkeys((b"rTRC", b"gTRC", b"bTRC"), curve)
    begin = 128 + 4 + 12 * len(tags)
    table, body = struct.pack(">I", len(tags)), b""
    for name, content in tags.items():
        table += name + struct.pack(">II", begin + len(body), len(content))
        body += content
    header = struct.pack(">I4sI4s4s4s", begin + len(body), b"none", 0x02400000, b"mntr", b"RGB ", b"XYZ ")
    header += struct.pack(">6H4s", 2024, 1, 1, 0, 0, 0, b"acsp") + b"\0" * 28
    header += b"".join(map(fixed, (0.9642, 1.0, 0.8249))) + b"\0" * 48
    return header + table + body
