"""Files are written whole or not at all, and like any other file."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from leader.errors import LeaderError
from leader.files import check_writable, replacing


def test_a_failed_block_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "picture.png"
    path.write_text("old")
    with pytest.raises(ZeroDivisionError), replacing(path) as temporary:
        temporary.write_text("half")
        raise ZeroDivisionError
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["picture.png"]


def test_a_finished_file_has_the_usual_permissions(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        with replacing(tmp_path / "a.txt") as temporary:
            temporary.write_text("new")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a.txt").stat().st_mode) == 0o640
    assert os.listdir(tmp_path) == ["a.txt"]


@pytest.mark.parametrize(("length", "fits"), [(255, True), (256, False), (3000, False)])
def test_names_as_long_as_file_systems_allow(tmp_path: Path, length: int, fits: bool) -> None:
    path = tmp_path / ("é" * ((length - 4) // 2) + "x" * ((length - 4) % 2) + ".png")
    assert len(path.name.encode()) == length
    if fits:
        check_writable(path)
    else:
        with pytest.raises(LeaderError, match=f"has {length} bytes"):
            check_writable(path)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="there is no /proc")
def test_a_folder_that_takes_no_files_though_its_permissions_say_so(tmp_path: Path) -> None:
    """The kernel's folders let nobody make a file, whatever os.access says; asking leaves no trace elsewhere."""
    with pytest.raises(LeaderError, match="cannot be written; choose another place"):
        check_writable(Path("/proc/a.png"))
    check_writable(tmp_path / "a.png")
    assert os.listdir(tmp_path) == []
