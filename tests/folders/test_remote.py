"""Folders behind an address: the same results as on a disk."""

import errno
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from leader.errors import LeaderError, UsageError
from leader.folders import remote
from leader.folders import run as run_module
from leader.folders.places import is_address, local_path, open_source
from tests.folders.conftest import go, results, save_picture

fsspec = pytest.importorskip("fsspec")


@pytest.fixture
def memory(tree: Path) -> Iterator[Any]:
    """The tree in a store of objects that lives in this process."""
    store = fsspec.filesystem("memory")
    store.store.clear()
    for path in tree.rglob("*.*"):
        store.pipe_file(f"/in/{path.relative_to(tree)}", path.read_bytes())
    yield store
    store.store.clear()


def objects(store: Any, root: str = "/out/") -> dict[str, bytes]:
    return {path.removeprefix(root): store.cat_file(path) for path in store.find(root) if "/.leader/" not in path}


def test_what_an_address_is() -> None:
    assert is_address("s3://bucket/x") and is_address("memory://x") and not is_address("C://x") and not is_address("a/b")
    assert is_address("git+ssh://x") and local_path("file://server/share") == Path("server/share")
    assert (
        local_path("file:///tmp/a%20b") == Path("/tmp/a b") and local_path("s3://b/x") is None and local_path("a") == Path("a")
    )


def test_a_store_gives_what_a_disk_gives(tree: Path, tmp_path: Path, memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert {(item.name, item.size) for item in open_source("memory://in").walk()} == {
        (name, (tree / name).stat().st_size) for name in ("a.png", "b.png", "sub/c.png")
    }
    go(tree, tmp_path / "out", maps=".npy", report=True)
    assert go("memory://in", "memory://out", maps=".npy", report=True).restored == 3
    there, here = objects(memory), results(tmp_path / "out")
    assert set(there) == {name for name in here if not name.startswith(".leader/")}
    assert all(there[name] == here[name] for name in there if name != "leader-report.html")
    with monkeypatch.context() as patch:
        patch.setattr(remote.RemoteSource, "sha256", None)  # what the store says of an object spares reading it
        told: list[str] = []
        again = go("memory://in/", "memory://out/", maps=".npy", watcher=run_module.Watcher(note=told.append))
        assert again.found == 3 and told == [], "thumbnails are no lines"
    with pytest.raises(UsageError, match="replace the pictures"):
        go("memory://in", "memory://in/")
    assert go(f"file://{tree}", "memory://out", maps=".npy").found == 3, "the same content from another place"


def test_changed_objects_are_restored_again(tmp_path: Path, memory: Any) -> None:
    go("memory://in", "memory://out")
    before = objects(memory)
    save_picture(tmp_path / "new.png", 40)
    memory.pipe_file("/in/b.png", (tmp_path / "new.png").read_bytes())
    memory.rm_file("/out/sub/c.png")
    outcome = go("memory://in", "memory://out")
    assert (outcome.restored, outcome.found) == (2, 1)
    after = objects(memory)
    assert after["b.png"] != before["b.png"] and {**after, "b.png": b""} == {**before, "b.png": b""}


@pytest.mark.parametrize("stamp", ["ETag", "created", None])
def test_what_a_store_says_of_an_object_is_believed(
    tmp_path: Path, memory: Any, monkeypatch: pytest.MonkeyPatch, stamp: str | None
) -> None:
    """A hash, or a date with the size: another object may have the same date. Without either, its content counts. Listed anew
    for every run.
    """
    listed, asked = type(memory).find, list[str]()

    def find(self: Any, path: str, **options: Any) -> Any:
        assert asked and not asked.clear(), "a listing may be an old one"  # type: ignore[func-returns-value]
        found = {name: {**about, "created": stamp and "today"} for name, about in listed(self, path, **options).items()}
        hashes = {name: {"ETag": sha256(memory.cat_file(name)).hexdigest()} for name in found}
        return {name: {**about, **(hashes[name] if stamp == "ETag" else {})} for name, about in found.items()}

    with monkeypatch.context() as patch:
        patch.setattr(type(memory), "find", find)
        patch.setattr(type(memory), "invalidate_cache", lambda self: asked.append("anew"))
        go("memory://in", "memory://out")
        content = memory.cat_file("/in/b.png")
        memory.pipe_file("/in/b.png", content + b"!" if stamp == "created" else content[:-1] + b"!")
        again = go("memory://in", "memory://out")
        assert (again.restored, again.found) == (1, 2)


def test_a_store_with_folders(tree: Path, tmp_path: Path) -> None:
    save_picture(tree / "D.PNG")
    assert go(f"local://{tree}", f"local://{tmp_path}/there", maps=".npy").restored == 4
    assert {"sub/c.png.map.npy", "D.PNG", "D.PNG.map.npy"} < set(results(tmp_path / "there"))


def test_lines_are_sent_in_segments_and_a_lost_one_costs_its_pictures(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "SEGMENT_LINES", 2)
    go("memory://in", "memory://out")
    segments = sorted(memory.find("/out/.leader/manifest"))
    assert len(segments) == 2
    memory.pipe_file(segments[1], b"{torn\n" + memory.cat_file(segments[1]).splitlines()[0] + b"\n{torn")
    assert remote.RemoteTarget("memory://out").open().line("b.png")["name"] == "b.png"
    outcome = go("memory://in", "memory://out")
    assert (outcome.restored, outcome.found) == (1, 2)
    assert len(memory.find("/out/.leader/manifest")) == 3, "no segment is written twice"
    errors, write = [OSError("the line is busy")], type(memory).pipe_file

    def fail_once(self: Any, path: str, data: bytes) -> None:
        if "manifest" in path and errors:
            raise errors.pop()
        write(self, path, data)

    monkeypatch.setattr(type(memory), "pipe_file", fail_once)
    with pytest.raises(LeaderError, match="busy"):
        go("memory://in", "memory://shaky")
    assert go("memory://in", "memory://shaky").found == 1, "its lines are sent once more in the end"


def test_a_line_that_is_old_enough_is_sent_alone(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "SEGMENT_SECONDS", 0.0)
    go("memory://in", "memory://out")
    assert len(memory.find("/out/.leader/manifest")) == 4, "the settings, and each of the three pictures"
    go("memory://in", "memory://out", {"seed": 4})
    listed = type(memory).find
    monkeypatch.setattr(type(memory), "find", lambda *words, **options: dict(reversed(listed(*words, **options).items())))
    assert go("memory://in", "memory://out", {"seed": 4}).found == 3, "the last line counts, in whatever order they are listed"


def test_the_age_of_a_segment_is_that_of_its_first_line(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    manifest = remote.RemoteTarget("memory://out").open()
    sent = []
    for now in (100.0, 104.0, 106.0, 107.0, 110.0, 113.0):
        manifest.append({"kind": "settings", "digest": str(now)})
        sent.append(len(memory.find("/out/.leader/manifest")))
    assert sent == [0, 0, 1, 1, 1, 2]


def test_objects_that_nobody_recorded_are_not_replaced_unasked(memory: Any) -> None:
    memory.pipe_file("/out/a.png", b"mine")
    outcome = go("memory://in", "memory://out")
    assert [name for name, _ in outcome.failed] == ["a.png"] and memory.cat_file("/out/a.png") == b"mine"


@pytest.mark.parametrize("address", ["nosuch://bucket/x", "memory://nothing"])
def test_addresses_that_lead_nowhere(tmp_path: Path, address: str) -> None:
    with pytest.raises(LeaderError):
        go(address, tmp_path / "out")


def test_a_bucket_that_does_not_exist_is_told(tree: Path, memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stores with buckets raise FileNotFoundError where there is none."""

    def refuse(*_: Any, **__: Any) -> None:
        raise FileNotFoundError("The specified bucket does not exist")

    monkeypatch.setattr(type(memory), "find", refuse)
    with pytest.raises(LeaderError, match="There is no memory://nowhere/in"):
        go("memory://nowhere/in", "memory://nowhere/out")
    monkeypatch.setattr(type(memory), "pipe_file", refuse)
    with pytest.raises(LeaderError, match="There is no memory://nowhere/out"):
        go(f"file://{tree}", "memory://nowhere/out")


class DeniedError(Exception):
    """Every store has errors of its own."""


@pytest.mark.parametrize("error", [DeniedError("the key\nis too old"), OSError(errno.EIO, "")])
def test_what_a_store_raises_is_one_sentence_with_its_address(
    tree: Path, memory: Any, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def deny(*_: Any, **__: Any) -> None:
        raise error

    go(tree, "memory://there", report=True)
    read = type(memory).cat_file
    with monkeypatch.context() as patch:
        patch.setattr(type(memory), "cat_file", lambda self, path: deny() if "strips" in path else read(self, path))
        assert go(tree, "memory://there", report=True).found == 3, "a page without thumbnails"
    for name, source, out in (("pipe_file", str(tree), "memory://out"), ("open", "memory://in", str(tree.parent / "out"))):
        with monkeypatch.context() as patch:
            patch.setattr(type(memory), name, deny)
            with pytest.raises(LeaderError, match=r"memory://\w+ cannot be used \((the key is too old|\[Errno 5\])\)"):
                for _, text in go(source, out).failed:
                    raise LeaderError(text)
