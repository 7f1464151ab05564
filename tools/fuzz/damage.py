"""Ways to spoil what was well: bytes, texts, JSON, PNG; and values nobody expects. All follow from the generator given."""

from __future__ import annotations

import copy
import json
import re
import struct
import zlib
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
    kind = rng.randrange(9)
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
    elif kind == 6:
        order = rng.choice("<>")
        found[at : at + 4] = struct.pack(f"{order}I", rng.choice(NUMBERS))
    elif kind == 7 and others:
        other = rng.choice(others)
        start = rng.randrange(len(other) + 1)
        found[at:] = other[start:]
    else:
        found[at : at + 2] = struct.pack(rng.choice("<>") + "H", rng.choice(NUMBERS) & 0xFFFF)
    return found


def mended_png(data: bytes) -> bytes:
    """A PNG whose checksums fit its chunks again, so that damage goes deeper than the first check."""
    if not data.startswith(b"\x89PNG\r\n\x1a\n"):
        return data
    out, at = bytearray(data[:8]), 8
    while at + 12 <= len(data):
        length = int.from_bytes(data[at : at + 4], "big")
        body = data[at + 4 : at + 8 + length]
        out += data[at : at + 4] + body + struct.pack(">I", zlib.crc32(body))
        at += 12 + length
    return bytes(out)


def spoiled_text(text: str, rng: Random) -> str:
    """The text with one to four words replaced, lines lost or doubled, now and then cut short."""
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
            lines.insert(
                at, f"{rng.choice(('x', 'size', 'seeds', 'steps', '[form.small]', '[[rows]]'))} = {rng.choice(WORDS)}\n"
            )
        else:
            lines[at] = _with_other_word(lines[at], rng)
        text = "".join(lines)
    return text


def _with_other_word(line: str, rng: Random) -> str:
    places = list(re.finditer(r'"[^"]*"|[\w.+-]+|\[[^\[\]]*\]|\{[^{}]*\}', line))
    if not places:
        return line
    chosen = places[-1] if rng.random() < 0.5 else rng.choice(places)
    return line[: chosen.start()] + rng.choice(WORDS) + line[chosen.end() :]


def spoiled_json(content: Any, rng: Random) -> Any:
    """The content of a JSON file with one to three values replaced, removed or wrapped."""
    out = copy.deepcopy(content)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        places = list(_places(out))
        if not places:
            return rng.choice(VALUES)
        inside, key = rng.choice(places)
        kind = rng.random()
        if kind < 0.15:
            del inside[key]
        elif kind < 0.25 and isinstance(inside, dict):
            inside[rng.choice(("x", "", "size", "type", key + "s" if isinstance(key, str) else "y"))] = rng.choice(VALUES)
        elif kind < 0.3:
            inside[key] = [inside[key]]
        else:
            inside[key] = copy.deepcopy(rng.choice(VALUES))
    return out


def _places(content: Any) -> Any:
    """Every (container, key) in nested lists and dicts."""
    items = (
        list(content.items()) if isinstance(content, dict) else list(enumerate(content)) if isinstance(content, list) else []
    )
    for key, value in items:
        yield content, key
        yield from _places(value)


def json_text(content: Any, rng: Random) -> bytes:
    """JSON as bytes, seldom in a way that is no JSON at all."""
    kind = rng.randrange(24)
    if kind == 0:
        return b"[" * rng.choice((1000, 100_000))
    if kind == 1:
        return b'{"a":' * rng.choice((1000, 100_000)) + b"1"
    text = json.dumps(content, ensure_ascii=rng.random() < 0.5)
    if kind == 2:
        return text.encode("utf-16")
    if kind == 3:
        return text.encode("latin-1", "replace") + b"\xe9"
    if kind == 4:
        return spoiled(text.encode(errors="replace"), rng)
    return text.encode(errors="surrogatepass")
