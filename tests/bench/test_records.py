import json
import os
import resource
from pathlib import Path

import pytest

from leader.bench.records import Store, canonical, digest, read_lines, write_atomically
from leader.errors import LeaderError


def record(key: str, cell: str = "", **numbers: float) -> dict[str, object]:
    return {"key": key, "asked": {"cell": cell or key}, "revisions": {}, "package": "1", **numbers}


def test_equal_values_have_equal_digests_whatever_their_order() -> None:
    assert digest({"a": 1, "b": [1.5, None]}) == digest({"b": [1.5, None], "a": 1})
    assert digest({"a": 1}) != digest({"a": 2})
    with pytest.raises(ValueError, match="JSON"):
        canonical({"a": float("nan")})


def test_a_torn_last_line_is_dropped_and_the_rest_survives(tmp_path: Path) -> None:
    store = Store(tmp_path, "x")
    with store.writing():
        store.append(record("a", psnr=1.0))
        store.append(record("b", psnr=2.0))
    whole = store.path.read_bytes()
    for cut in range(1, len(whole.splitlines()[1]) + 1):
        store.path.write_bytes(whole[:-cut])
        again = Store(tmp_path, "x")
        assert set(again.own) == {"a"}
        with again.writing():
            again.append(record("c"))
        assert [item["key"] for item in read_lines(store.path)] == ["a", "c"] == list(Store(tmp_path, "x").own)


def test_a_full_disk_is_told_in_a_sentence_and_leaves_no_torn_line(tmp_path: Path) -> None:
    """The limit of the process stands for the disk: the system takes a part of the line, then nothing."""
    store = Store(tmp_path, "x")
    with store.writing():
        store.append(record("a", psnr=1.0))
        before, limits = store.path.read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 20, limits[1]))
        try:
            with pytest.raises(LeaderError, match="make room"):
                store.append(record("b", psnr=2.0))
            assert store.path.read_bytes() == before
            with pytest.raises(LeaderError):
                store.append(record("b"), {"b-restored.png": bytes(5000)})
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        store.append(record("b", psnr=2.0))
    assert [item["key"] for item in read_lines(store.path)] == ["a", "b"]


def test_a_broken_line_elsewhere_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text('{"key": "a", "ce\n' + canonical(record("b")) + "\n")
    with pytest.raises(LeaderError, match="Line 1"):
        Store(tmp_path, "x")
    (tmp_path / "x.jsonl").rename(tmp_path / ".x.jsonl")
    assert not list(Store(tmp_path, "x").all()), "a dot begins what was not finished"


def test_the_finished_file_does_not_depend_on_the_order_of_arrival(tmp_path: Path) -> None:
    texts = []
    for number, order in enumerate((["a", "b", "c"], ["c", "a", "b"])):
        store = Store(tmp_path / str(number), "x")
        with store.writing():
            for key in order:
                store.append(record(key))
            store.finish(["b", "c", "a"])
        texts.append(store.path.read_bytes())
    assert texts[0] == texts[1]
    assert [item["key"] for item in read_lines(store.path)] == ["b", "c", "a"]


def test_a_finished_file_holds_once_what_the_pictures_of_a_run_share(tmp_path: Path) -> None:
    def asked(index: int, **more: object) -> dict[str, object]:
        return {"image": f"hash{index}", "index": index, "method": "ddnm", "sigma": 0.0, "options": {}, **more}

    several = [
        *({**record(f"a{index}", psnr=20.0 + index), "asked": asked(index)} for index in range(3)),
        {**record("b"), "asked": asked(0, sigma=0)},  # written differently, so a request of its own
        {**record("c"), "asked": asked(1, sigma=0, options={"seed": 1}), "pictures": {"restored": "c-restored.png"}},
        {**record("d"), "asked": asked(2, sigma=0), "commit": "abc"},
        {**record("e"), "asked": asked(1, sigma=0, steps=5), "commit": "abc"},
        {**record("f"), "asked": asked(5)},
        *({**record(key), "asked": asked(3, steps=9, seed=seed)} for key, seed in (("g", 1), ("h", 1.0))),
    ]
    store = Store(tmp_path, "x")
    with store.writing():
        for item in several:
            store.append(item)
        store.finish([str(item["key"]) for item in several])
    lines = [json.loads(line) for line in store.path.read_text().splitlines()]
    assert [line.get("like") for line in lines] == [None, "a0", "a0", None, "b", None, None, "a0", None, "g"]
    assert lines[1] == {"key": "a1", "like": "a0", "asked": {"image": "hash1", "index": 1}, "psnr": 21.0}
    assert list(map(canonical, Store(tmp_path, "x").own.values())) == list(map(canonical, several))
    store.path.write_text("\n".join(map(canonical, lines[1:])) + "\n")
    with pytest.raises(LeaderError, match="is like no record before it"):
        Store(tmp_path, "x")


@pytest.mark.parametrize("order", [("new", "old"), ("old", "new")])
def test_finishing_drops_what_was_replaced_and_with_prune_all_others(tmp_path: Path, order: tuple[str, str]) -> None:
    store = Store(tmp_path, "x")
    with store.writing():
        for item in (*(record(key, "same") for key in order), record("p", "twice"), record("b", "twice"), record("a")):
            store.append(item)
        store.finish(["new"])
        assert list(store.own) == ["new", "a", "b"], "of those that nobody names the last one stored"
        store.finish(["new"], prune=True)
    assert [item["key"] for item in read_lines(store.path)] == ["new"]


def test_a_neighbour_s_record_is_found_and_left_where_it_is(tmp_path: Path) -> None:
    first = Store(tmp_path, "first")
    with first.writing():
        first.append(record("a", psnr=3.0))
    second = Store(tmp_path, "second")
    found = second.find("a")
    assert found is not None and found["psnr"] == 3.0 and second.find("b") is None
    assert second.find_earlier({"cell": "a"}) == found and second.find_earlier({"cell": "b"}) is None
    with second.writing():
        second.append(record("b"))
        assert second.find_earlier({"cell": "b"}) == record("b"), "also one that was just stored"
        second.finish(["a", "b"])
        assert [item["key"] for item in read_lines(second.path)] == ["b"]
        second.append(record("a", psnr=4.0))
    own = Store(tmp_path, "second").find("a")
    assert own is not None and own["psnr"] == 4.0, "its own comes first"


def test_a_record_is_whole_with_all_of_its_pictures(tmp_path: Path) -> None:
    store, names = Store(tmp_path, "x"), {"restored": "a-restored.png", "path": "a-path.png"}
    drawn = record("a") | {"pictures": names}
    with store.writing():
        store.append(drawn, {name: name.encode() for name in names.values()})
    assert store.has_pictures(drawn) and store.picture(drawn, "path").read_bytes() == b"a-path.png"
    store.picture(drawn, "path").unlink()
    assert not store.has_pictures(drawn)


def test_places_that_cannot_be_written_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LeaderError, match="cannot be written"):
        write_atomically(tmp_path / "file" / "table.md", b"x")
    with pytest.raises(LeaderError, match="Records cannot be written"), Store(tmp_path / "file" / "records", "x").writing():
        pass
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    write_atomically(tmp_path / "new" / "table.md", b"x")
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["table.md"] and len(synced) == 1
    store = Store(tmp_path, "x")
    (tmp_path / "pictures").write_text("in the way")
    with store.writing(), pytest.raises(LeaderError, match="cannot be written"):
        store.append(record("a"), {"a-restored.png": b"x"})
    assert not list(read_lines(store.path)), "no record without its pictures"


def test_two_writers_are_refused(tmp_path: Path) -> None:
    store = Store(tmp_path, "x")
    with store.writing(), pytest.raises(LeaderError, match="Another run"), Store(tmp_path, "x").writing():
        pass
    with Store(tmp_path, "x").writing():
        pass  # free again
