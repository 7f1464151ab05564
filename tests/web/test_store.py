"""The store: files with names of our own, for their client alone, gone after a while."""

from pathlib import Path

import pytest

from leader.errors import LeaderError
from leader.web.store import Store


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_an_entry_is_found_by_its_client_alone() -> None:
    store = Store(60, 10)
    entry = store.new("a")
    assert store.find(entry.token, "a") is entry
    for token, client in ((entry.token, "b"), (entry.token, ""), ("../" + entry.token, "a"), (None, "a"), ("0" * 32, "a")):
        with pytest.raises(LeaderError, match="no longer here"):
            store.find(token, client)
    store.close()


def test_what_nobody_asks_for_is_removed_and_what_is_asked_for_stays() -> None:
    clock = Clock()
    store = Store(60, 10, clock)
    old, used = store.new("a"), store.new("a")
    old.picture.write_bytes(b"x")
    clock.now = 50
    store.find(used.token, "a")
    clock.now = 100
    store.sweep()
    assert not old.folder.exists()
    assert store.find(used.token, "a") is used
    store.close()


def test_the_oldest_go_where_there_are_too_many() -> None:
    clock = Clock()
    store = Store(60, 2, clock)
    entries = []
    for _ in range(3):
        clock.now += 1
        entries.append(store.new("a"))
        clock.now += 1
        store.find(entries[0].token, "a")
    assert [entry.folder.exists() for entry in entries] == [True, False, True], "those that were not asked for longest"
    assert len(store) == 2
    store.close()


def test_the_folder_is_private_and_removed_in_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    store = Store(60, 2)
    store.new("a").picture.write_bytes(b"x")
    assert store.root.stat().st_mode & 0o077 == 0
    store.close()
    assert not list(tmp_path.iterdir())
