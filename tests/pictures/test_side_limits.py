"""The longest side that each format is said to hold can be written and read again, and one more cannot."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from leader.errors import LeaderError
from leader.pictures import Picture, check_format, read_picture, write_picture
from leader.pictures.formats import FORMATS


@pytest.mark.parametrize("suffix", [suffix for suffix, row in FORMATS.items() if row.side is not None])
def test_the_longest_side_of_a_format(tmp_path: Path, suffix: str) -> None:
    side, file = FORMATS[suffix].side, tmp_path / f"long{suffix}"
    assert side is not None
    write_picture(file, Picture(np.zeros((16, side, 3), np.float32)))
    assert read_picture(file).size == (side, 16)
    with pytest.raises(LeaderError, match=str(side)):
        check_format(file, False, (16, side + 1))
