"""Ways to spoil what was well: bytes, pieces of a format, texts, JSON; and values nobody expects. All by a generator."""

import copy
import json
import re
import struct
import zlib
from collections.abc import Iterator
from random import Random
from typing import Any

VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, 2, 3, 7, 16, 64, -1, -7, 0.5, -0.5, 1e-308, 1e308, 1e9, -1e9, 25, 255, 1000, 1001),
    *(10**6, 10**9, 10**18, 2**31, 2**63, 2**64, -(2**31), 10**400, float("nan"), float("inf"), float("-inf")),
    *("", " ", "x", "1", "nan", "none", "auto", "embedded", "é", "\u0000", "a" * 3000, "../..", "/", "gaussian:1", "ddnm"),
    *([], [1], [[1, 2], [3]], ["a"], [None], [1e308] * 3, [0] * 50, {}, {"a": 1}, {"budget": "x"}, {"": {}}),
)
"""What a value in JSON may be replaced by."""
WORDS: tuple[str, ...] = (
    *("0", "1", "2", "-1", "0.5", "1e308", "-1e308", "1e-400", "inf", "-inf", "nan", "1e18", "99999999999999999999999", "007"),
    *("true", "false", "[]", "[1]", '[1, "a"]', "[[1], [[2]]]", "{}", "{ a = 1 }", '""', '"x"', "'é'", "1979-05-27"),
    *('"nan"', '"none"', "x", "=", "#", "[", "]", '"', "\\", "null", "None", '"ddnm"', '"leader"', '["leader"]', '["none"]'),
    *("[" * 300, '"' + "a" * 3000 + '"', "1" * 5000, '"\\ud800"', "0x7fffffffffffffff", "1_000_000_000", "12:00:00"),
)
"""What a word in a text file may be replaced by."""
NUMBERS = (0, 1, 2, 255, 256, 65535, 65536, 2**24, 2**31 - 1, 2**31, 2**32 - 1)
PNG = b"\x89PNG\r\n\x1a\n"
CONTAINERS = {b"meta": 12, b"iinf": 14, b"iprp": 8, b"ipco": 8, b"jp2h": 8}
"""Boxes that hold boxes, and where the first of these begins."""
EXTRA_CHUNKS = (b"iCCPx\0\0", b"zTXtx\0\0", b"iTXtx\0\1\0\0\0", b"tRNS", b"PLTE", b"gAMA", b"eXIf", b"acTL", b"IHDR", b"IDAT")
BOMB = zlib.compress(bytes(64 << 20), 9)
"""64 MB of zeros, packed."""


def spoiled(data: bytes, rng: Random, *others: bytes) -> bytes:
    """The bytes with one to six things wrong; `others` lend pieces."""
    found = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 3, 6))):
        found = _one_damage(found, rng, others)
    return bytes(found)


def _one_damage(found: bytearray, rng: Random, others: tuple[bytes, ...]) -> bytearray:
    if not found:
        return bytearray(rng.randbytes(rng.randrange(40)))
    # headers are where the sense lies: half of all places are among the first hundred bytes
    at = rng.randrange(len(found)) if rng.random() < 0.5 else rng.randrange(min(len(found), 100))
    kind = rng.randrange(8)
    if kind == 0:
        found[at] ^= 1 << rng.randrange(8)
    elif kind == 1:
        found[at] = rng.choice((0, 1, 127, 128, 255, rng.randrange(256)))
    elif kind == 2:
        del found[at : at + rng.choice((1, 4, 16, 200))]
    elif kind == 3:
        found[at:at] = found[at : at + rng.choice((1, 8, 64, 1000))]
    elif kind == 4:
        found[at:at] = rng.randbytes(rng.choice((1, 2, 8, 100)))
    elif kind == 5:
        del found[rng.randrange(len(found)) :]
    elif kind == 6 and others:
        other = rng.choice(others)
        found[at:] = other[rng.randrange(len(other) + 1) :]
    else:
        _put_number(found, at, rng)
    return found


def _put_number(found: bytearray, at: int, rng: Random) -> None:
    size = rng.choice((2, 4))
    number = rng.choice((*NUMBERS, rng.randrange(1 << 16))) % (1 << 8 * size)
    found[at : at + size] = number.to_bytes(size, rng.choice(("little", "big")))


def find_pieces(data: bytes) -> list[tuple[int, int]]:
    """(begin, end) of the chunks, segments, directory entries or boxes of a picture; none of an unknown format."""

    def number(at: int, size: int, big: bool = True) -> int:
        return int.from_bytes(data[at : at + size], "big" if big else "little")

    pieces, at, boxes = list[tuple[int, int]](), 0, data[4:8] in (b"ftyp", b"jP  ")
    if data.startswith(PNG):
        at = 8
    elif data.startswith(b"RIFF"):
        at = 12
    elif data.startswith(b"\xff\xd8"):
        at = 2
    elif data[:4] in (b"II*\0", b"MM\0*"):
        at = number(4, 4, data[0] == 77) + 2
    elif not boxes:
        return []
    while at + 8 <= len(data):
        if data.startswith(PNG):
            length = 12 + number(at, 4)
        elif data.startswith(b"RIFF"):
            length = 8 + (number(at + 4, 4, False) + 1) // 2 * 2
        elif boxes:
            length = max(8, number(at, 4))
        elif data[at] == 0xFF and data.startswith(b"\xff\xd8"):
            length = 2 + number(at + 2, 2)
        elif data.startswith(b"\xff\xd8"):
            break  # the scan
        else:
            length = 12
        pieces.append((at, min(len(data), at + length)))
        at += CONTAINERS.get(data[at + 4 : at + 8], length) if boxes else length
    return pieces


def spoiled_structure(data: bytes, rng: Random) -> bytes:
    """The picture with one to three of its pieces lost, doubled, moved or saying something wrong, sums of PNG right again."""
    for _ in range(rng.choice((1, 1, 2, 3))):
        pieces = find_pieces(data)
        if not pieces:
            return data
        begin, end = rng.choice(pieces)
        piece, rest, elsewhere = data[begin:end], data[:begin] + data[end:], rng.choice(pieces)[0]
        kind = rng.randrange(8)
        if kind == 0:
            data = rest
        elif kind == 1:
            data = data[:end] + piece * rng.choice((1, 50)) + data[end:]
        elif kind == 2:
            data = rest[:elsewhere] + piece + rest[elsewhere:]
        elif kind == 3 and data.startswith(PNG):
            body = rng.choice(EXTRA_CHUNKS) + rng.choice((BOMB, rng.randbytes(rng.choice((0, 1, 4, 26)))))
            data = data[:end] + struct.pack(">I", len(body) - 4) + body + bytes(4) + data[end:]
        else:  # sizes, names and what follows right behind them
            changed = bytearray(piece)
            _put_number(changed, rng.randrange(min(len(piece), 24)), rng)
            data = data[:begin] + bytes(changed) + data[end:]
    return mended_png(data) if rng.random() < 0.8 else data


def mended_png(data: bytes) -> bytes:
    """A PNG whose checksums fit its chunks again, so that damage goes deeper than the first check."""
    if not data.startswith(PNG):
        return data
    out, at = bytearray(PNG), 8
    while at + 12 <= len(data):
        length = int.from_bytes(data[at : at + 4], "big")
        body = data[at + 4 : at + 8 + length]
        out += data[at : at + 4] + body + struct.pack(">I", zlib.crc32(body))
        at += 12 + length
    return bytes(out)


def spoiled_text(text: str, rng: Random) -> str:
    """The text with one to four words replaced, lines lost, doubled or added, now and then cut short."""
    for _ in range(rng.choice((1, 1, 2, 4))):
        lines = text.splitlines(keepends=True) or [""]
        kind, at = rng.randrange(10), rng.randrange(len(lines))
        if kind == 0:
            del lines[at]
        elif kind == 1:
            lines.insert(at, rng.choice(lines))
        elif kind == 2:
            lines[at] = lines[at][: rng.randrange(len(lines[at]) + 1)]
        elif kind == 3:
            name = rng.choice(("x", "size", "seeds", "steps", "[form.small]", "[[rows]]"))
            lines.insert(at, f"{name} = {rng.choice(WORDS)}\n")
        elif places := list(re.finditer(r'"[^"]*"|[\w.+-]+|\[[^\[\]]*\]|\{[^{}]*\}', lines[at])):
            chosen = places[-1] if rng.random() < 0.5 else rng.choice(places)
            lines[at] = lines[at][: chosen.start()] + rng.choice(WORDS) + lines[at][chosen.end() :]
        text = "".join(lines)
    return text


def spoiled_json(content: Any, rng: Random) -> bytes:
    """The content of a JSON file with one to three values replaced, removed or wrapped; seldom no JSON at all."""
    out = copy.deepcopy(content)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        places = list(_places(out))
        if not places:
            out = rng.choice(VALUES)
            break
        inside, key = rng.choice(places)
        kind = rng.random()
        if kind < 0.15:
            del inside[key]
        elif kind < 0.25 and isinstance(inside, dict):
            inside[rng.choice(("x", "", "size", "type", f"{key}s"))] = rng.choice(VALUES)
        else:
            inside[key] = [inside[key]] if kind < 0.3 else copy.deepcopy(rng.choice(VALUES))
    text = json.dumps(out, ensure_ascii=rng.random() < 0.5)
    return rng.choice(
        (
            *[text.encode(errors="surrogatepass")] * 20,
            *(
                b"[" * 100_000,
                b'{"a":' * 100_000 + b"1",
                text.encode("utf-16", "replace"),
                text.encode("latin-1", "replace") + b"\xe9",
            ),
            spoiled(text.encode(errors="replace"), rng),
        )
    )


def _places(content: Any) -> Iterator[tuple[Any, Any]]:
    """Every (container, key) in nested lists and dicts."""
    items = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for key, value in list(items):
        yield content, key
        yield from _places(value)
