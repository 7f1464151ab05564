"""A directory of EXIF as bytes: what TIFF asks of it."""

from __future__ import annotations

import struct

from leader.pictures.exif import Tag, directory_bytes


def test_long_values_begin_at_even_bytes_and_are_whole() -> None:
    values = {1: b"abcde", 2: b"abcdefg", 3: b"abcdef"}
    made = directory_bytes({number: Tag(2, data) for number, data in values.items()}, 8)
    assert struct.unpack_from("<H", made)[0] == 3
    for place, (number, data) in enumerate(values.items()):
        entry = struct.unpack_from("<HHII", made, 2 + 12 * place)
        assert entry[:3] == (number, 2, len(data)) and entry[3] % 2 == 0
        assert made[entry[3] - 8 :][: len(data)] == data
