"""Files: what is refused before it is opened, and writing whole or not at all."""

import hashlib
import io
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from leader.errors import LeaderError
from leader.files import (
    append_line,
    check_readable,
    check_writable,
    drop_torn_end,
    hash_blocks,
    printable,
    remove_abandoned,
    replacing,
    sha256_of,
    sha256_once,
)


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "good").write_bytes(b"abc")
    (tmp_path / "link").symlink_to(tmp_path / "good")
    assert check_readable(tmp_path / "link").st_size == 3
    for name, says in (
        ("pipe", "pipe or a device"),
        ("loop", "symbolic link to itself"),
        (".", "is a folder"),
        ("none", "no file"),
        ("good/inside", "no file"),
        ("x" * 300, "too long"),
        ("zero\0byte", "no file"),
    ):
        with pytest.raises(LeaderError, match=says) as caught:
            check_readable(tmp_path / name)
        assert len(str(caught.value).splitlines()) == 1
    with pytest.raises(LeaderError, match="pipe or a device"):
        check_readable(Path("/dev/zero"))


def test_names_that_cannot_be_written_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "file").write_bytes(b"")
    for name, says in (
        ("x" * 256, "256 bytes; at most 255"),
        ("\u00e4" * 128, "256 bytes"),
        ("loop", "symbolic link to itself"),
        ("pipe", "pipe or a device"),
        (".", "is a folder"),
        ("file/inside", "is not a folder"),
        ("none/inside", "does not exist"),
        (os.fsdecode(b"latin-\xe4.png"), "not valid UTF-8"),
    ):
        with pytest.raises(LeaderError, match=says) as caught:
            check_writable(tmp_path / name)
        str(caught.value).encode("utf-8")  # the sentence can be printed
    check_writable(tmp_path / ("x" * 255))


def test_the_longest_name_is_written(tmp_path: Path) -> None:
    """No temporary name is longer than the name itself."""
    path = tmp_path / ("x" * 251 + ".png")
    with replacing(path) as temporary:
        temporary.write_bytes(b"whole")
    assert path.read_bytes() == b"whole" and len(list(tmp_path.iterdir())) == 1


def test_names_are_shown_on_one_line() -> None:
    assert printable(Path("a b\u00e4.png")) == "a b\u00e4.png"
    assert printable("two\nlines\x1b[31m") == "two\\nlines\\x1b[31m"
    printable(os.fsdecode(b"\xff")).encode("utf-8")


@pytest.mark.parametrize("durable", [False, True])
def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path, durable: bool) -> None:
    path = tmp_path / "a.txt"
    with replacing(path, durable=durable) as temporary:
        temporary.write_text("first")
        assert not path.exists() and temporary.parent == tmp_path
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask
    with pytest.raises(RuntimeError), replacing(path, durable=durable) as temporary:
        temporary.write_text("half")
        raise RuntimeError
    assert path.read_text() == "first" and [item.name for item in tmp_path.iterdir()] == ["a.txt"]


def test_durable_files_are_synced_before_they_replace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    sync, replace = os.fsync, os.replace

    def noted_sync(handle: int) -> None:
        order.append("sync")
        sync(handle)

    def noted_replace(source: Path, target: Path) -> None:
        order.append("replace")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", noted_sync)
    monkeypatch.setattr(os, "replace", noted_replace)
    for durable in (False, True):
        with replacing(tmp_path / "a", durable=durable) as temporary:
            temporary.write_text("x")
    append_line(tmp_path / "lines", b"x\n")
    assert order == ["replace", "sync", "replace", "sync"]


def test_sha256(tmp_path: Path) -> None:
    (tmp_path / "abc").write_bytes(b"abc")
    assert sha256_of(tmp_path / "abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    seen = set()
    for content, changed in ((b"abc", 5), (b"abd", 6), (b"abcd", 6)):  # dates in billionths of a second
        (tmp_path / "abc").write_bytes(content)
        os.utime(tmp_path / "abc", ns=(0, changed))
        seen.add(sha256_once(tmp_path / "abc"))
    (tmp_path / "twin").write_bytes(b"cdef")
    os.utime(tmp_path / "twin", ns=(0, 6))
    seen.add(sha256_once(tmp_path / "twin"))
    assert len(seen) == 4, "another date, another size or another file is another content"
    block = bytes(range(256)) * (1 << 12)  # as many bytes as are read at once
    copy = io.BytesIO()
    assert hash_blocks(io.BytesIO(block + b"rest"), copy, len(block) + 4) == hashlib.sha256(block + b"rest").hexdigest()
    assert copy.getvalue() == block + b"rest"
    with pytest.raises(LeaderError, match="more than"):
        hash_blocks(io.BytesIO(block + b"rest"), None, len(block) + 3)


def test_a_finished_file_has_the_usual_permissions(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        with replacing(tmp_path / "a.txt") as temporary:
            temporary.write_text("new")
    finally:
        assert os.umask(before) == 0o027, "asking for it changes nothing"
    assert stat.S_IMODE((tmp_path / "a.txt").stat().st_mode) == 0o640
    assert os.listdir(tmp_path) == ["a.txt"]


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="there is no /proc")
def test_a_folder_that_takes_no_files_though_its_permissions_say_so(tmp_path: Path) -> None:
    """The kernel's folders let nobody make a file, whatever os.access says; asking leaves no trace elsewhere."""
    with pytest.raises(LeaderError, match="cannot be written; choose another place"):
        check_writable(Path("/proc/a.png"))
    check_writable(tmp_path / "a.png")
    assert os.listdir(tmp_path) == []


KILLED = """
import os, signal, sys
from pathlib import Path
from leader.files import replacing
with replacing(Path(sys.argv[1])) as temporary:
    temporary.write_bytes(b"half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="elsewhere nothing can be proven of a process")
def test_what_a_killed_process_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    ended = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "out.png")], timeout=60)
    (left,) = tmp_path.iterdir()
    assert ended.returncode == -signal.SIGKILL and left.name.startswith(".leader-") and left.suffix == ".png"
    machine, pid = left.name.split("-")[1:3]
    elsewhere = tmp_path / left.name.replace(machine, "0" * 12)
    older = tmp_path / ".leader-x1y2z3.png"
    for path in (elsewhere, older):
        path.write_bytes(b"of another machine, or of nobody known")
    with replacing(tmp_path / "new.png") as mine:
        assert not left.exists(), "the next run in this folder removes it"
        mine.write_bytes(b"new")
        remove_abandoned(tmp_path)
        assert mine.exists(), "this process is alive"
        recycled = tmp_path / mine.name.replace(f"-{os.getpid()}-", "-1-")
        recycled.write_bytes(b"process 1 has another start")
        remove_abandoned(tmp_path)
        assert not recycled.exists(), "a number that was given to another process since"
    assert {path.name for path in tmp_path.iterdir()} == {"new.png", elsewhere.name, older.name}
    assert int(pid) > 0


@pytest.mark.parametrize("lines", [0, 1, 5000])
@pytest.mark.parametrize("torn", [b"", b"torn", b"x" * 100_000])
def test_what_a_crash_cut_short_is_cut_off_and_nothing_else(tmp_path: Path, lines: int, torn: bytes) -> None:
    whole = b"".join(b"line %d of a long file\n" % number for number in range(lines))
    (tmp_path / "file").write_bytes(whole + torn)
    drop_torn_end(tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == whole
    drop_torn_end(tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_a_line_that_does_not_fit_on_the_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    append_line(tmp_path / "file", b"first\n")
    real = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda handle, data: real(handle, data[:3]))
        with pytest.raises(OSError, match="No space left"):
            append_line(tmp_path / "file", b"second\n")
    append_line(tmp_path / "file", b"third\n")
    assert (tmp_path / "file").read_bytes() == b"first\nthird\n"
