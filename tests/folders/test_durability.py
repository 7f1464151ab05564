"""What is on the disk when: the order of writes, syncs and renames, and what a full disk or a meddler leaves."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from leader.errors import LeaderError
from leader.folders import remote
from leader.folders import run as run_module
from leader.folders.disk import DiskSource, DiskTarget
from leader.folders.manifest import LocalManifest
from leader.restoration.restored import Restoration
from tests.folders.conftest import go, results, save_picture


def name_of(handle: int) -> str:
    return Path(os.readlink(f"/proc/self/fd/{handle}")).name


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """(what, name of the file or folder) of every sync, rename and line of the manifest, in order."""
    seen: list[tuple[str, str]] = []
    fsync, replace, write = os.fsync, os.replace, os.write

    def note_fsync(handle: int) -> None:
        seen.append(("sync", name_of(handle)))
        fsync(handle)

    def note_replace(source: Any, target: Any, **options: Any) -> None:
        seen.append(("move", Path(target).name))
        replace(source, target, **options)

    def note_write(handle: int, data: bytes) -> int:
        seen.append(("write", name_of(handle)))
        return write(handle, data)

    monkeypatch.setattr(os, "fsync", note_fsync)
    monkeypatch.setattr(os, "replace", note_replace)
    monkeypatch.setattr(os, "write", note_write)
    return seen


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="names of open files")
def test_files_are_synced_before_they_are_moved_the_picture_last_and_its_line_after(
    tree: Path, tmp_path: Path, events: list[tuple[str, str]]
) -> None:
    for name in ("a.png", "b.png"):
        (tree / name).unlink()
    open_before = os.listdir("/proc/self/fd")
    go(tree, tmp_path / "out", maps=".npy", report=True)
    assert os.listdir("/proc/self/fd") == open_before and not (tmp_path / "out/.leader/tmp").exists(), "nothing is left"
    assert events.index(("sync", "out")) < events.index(("write", "leader-manifest.jsonl")), "the manifest's own name"
    begin = events.index(("sync", "leader-manifest.jsonl")) + 1  # of the settings
    rest = events[begin:]
    folder = {"c.png": "sub", "c.png.map.npy": "sub", "c.png.webp": "sub", "leader-report.html": "out"}
    moves = [position for position, (what, name) in enumerate(rest) if what == "move" and name in folder]
    made = {("sync", "picture.png"), ("sync", "map.npy"), ("sync", "strip.webp")}
    assert made <= set(rest[: moves[0]]), "content first"
    names = [rest[position][1] for position in moves]
    assert set(names[:2]) == {"c.png.map.npy", "c.png.webp"} and names[2:] == ["c.png", "leader-report.html"]
    for position in moves:
        assert rest[position + 1] == ("sync", folder[rest[position][1]]), "and the name of what was moved"
    picture = moves[2]
    assert ("sync", "out") in rest[:picture], "and that of the folder that was made for it"
    assert rest[picture + 2 : picture + 4] == [("write", "leader-manifest.jsonl"), ("sync", "leader-manifest.jsonl")]
    assert ("sync", "report.html") in rest[picture : moves[3]]


def test_results_are_sent_to_a_store_picture_last_and_the_line_after(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fsspec").filesystem("memory").store.clear()
    sent: list[str] = []
    real = remote.RemoteTarget.write

    def write(self: remote.RemoteTarget, data: bytes, name: str) -> None:
        sent.append(name)
        real(self, data, name)

    monkeypatch.setattr(remote.RemoteTarget, "write", write)
    monkeypatch.setattr(remote, "SEGMENT_LINES", 1)
    for name in ("a.png", "b.png"):
        (tree / name).unlink()
    go(tree, "memory://ordered", maps=".npy")
    assert sent == [".leader/manifest/00000001.jsonl", "sub/c.png.map.npy", "sub/c.png", ".leader/manifest/00000002.jsonl"]


def write_half(handle: int, data: bytes, real: Callable[[int, bytes], int] = os.write) -> int:
    return real(handle, data[: len(data) // 2])


def write_half_and_fail(handle: int, data: bytes) -> int:
    write_half(handle, data)
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("write", [write_half, write_half_and_fail])
def test_a_torn_line_is_cut_when_the_disk_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Any) -> None:
    file = tmp_path / "m.jsonl"
    manifest = LocalManifest(file)
    manifest.append({"kind": "settings", "digest": "x"})
    whole = file.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", write)
        with pytest.raises(LeaderError, match="No space left"):
            manifest.append({"kind": "settings", "digest": "y"})
    assert file.read_bytes() == whole and manifest.settings == {"x"}
    manifest.append({"kind": "settings", "digest": "z"})
    manifest.close()
    again = LocalManifest(file)
    again.close()
    assert again.settings == {"x", "z"} and again.damaged == []


def test_a_deleted_segment_lets_no_run_replace_another_ones(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = pytest.importorskip("fsspec").filesystem("memory")
    memory.store.clear()
    monkeypatch.setattr(remote, "SEGMENT_LINES", 1)
    go(tree, "memory://cut")
    first, second, *kept = sorted(memory.find("/cut/.leader/manifest"))
    memory.rm([first, second])
    memory.pipe_file("/cut/.leader/manifest/notes.jsonl", b"")  # somebody's own
    before = {name: memory.cat_file(name) for name in kept}
    save_picture(tree / "new.png")
    assert go(tree, "memory://cut").restored == 2, "the new one, and the one whose line is gone"
    assert {name: memory.cat_file(name) for name in kept} == before


def test_what_a_killed_run_left_half_done_is_removed_by_the_next(tree: Path, tmp_path: Path) -> None:
    left = tmp_path / "out/.leader/tmp/leader-killed"
    left.mkdir(parents=True)
    (left / "picture.png").write_bytes(b"half")
    assert go(tree, tmp_path / "out").restored == 3 and sorted(results(tmp_path / "out")) == ["a.png", "b.png", "sub/c.png"]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES])
def test_only_failures_in_a_row_end_the_run(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """All results after them would be computed in vain; one that is written between them says otherwise."""
    for name in ("d.png", "e.png"):
        save_picture(tree / name)
    real = DiskTarget.keep
    bad: set[str] = {"a.png", "d.png", "sub/c.png"}
    kept: dict[str, bytes] = {}

    def keep(self: DiskTarget, file: Path, name: str) -> None:
        if name in bad:
            raise OSError(number, os.strerror(number))
        real(self, file, name)

    monkeypatch.setattr(DiskTarget, "keep", keep)
    outcome = go(tree, tmp_path / "some")
    assert outcome.restored == 2 and {name for name, _ in outcome.failed} == bad
    assert os.strerror(number) in outcome.failed[0][1]
    for name in ("b.png", "e.png"):
        kept[name] = (tree / name).read_bytes()
        (tree / name).write_text("no picture")
    assert len(go(tree, tmp_path / "between").failed) == 5, "nor are those that have another picture's fault between them"
    for name, content in kept.items():
        (tree / name).write_bytes(content)
    bad |= {"b.png", "e.png"}
    with pytest.raises(LeaderError, match=f"{run_module.MOST_WRITE_FAILURES} results in a row"):
        go(tree, tmp_path / "all")
    assert results(tmp_path / "all") == {}
    bad.clear()
    assert go(tree, tmp_path / "all").restored == 5


@pytest.mark.parametrize(
    ("place", "name", "number"),
    [
        *((Restoration, "save", errno.ENOSPC), (Restoration, "save explained", errno.ENOSPC)),
        *((DiskSource, "fetch", errno.EROFS), (DiskSource, "fetch", errno.EDQUOT), (remote, "hash_blocks", errno.ENOSPC)),
    ],
)
def test_a_worker_that_cannot_write_ends_the_run_too(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: Any, name: str, number: int
) -> None:
    def fail(*words: Any) -> None:
        full = OSError(number, os.strerror(number))
        if name == "save explained":
            raise LeaderError(f"It could not be written ({os.strerror(number)}).") from full
        raise full

    monkeypatch.setattr(place, name.split()[0], fail)
    with pytest.raises(LeaderError, match=rf"results in a row could not be written.*{os.strerror(number)}"):
        go(f"local://{tree}" if place is remote else tree, tmp_path / "out")
    assert results(tmp_path / "out") == {}
