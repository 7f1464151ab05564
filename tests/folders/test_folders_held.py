"""Small things of folders that larger tests pass over: each was once broken on trial and nobody noticed."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from leader.errors import LeaderError
from leader.folders import run as run_module
from leader.folders.manifest import LocalManifest, encode_line
from leader.folders.names import check_name, find_clashes, is_source_name
from leader.folders.remote import _stamp
from leader.folders.strips import colour_map
from leader.folders.work import restore_some
from tests.folders.conftest import go, results, save_picture


@pytest.mark.parametrize("name", ["a\\x.png", "C:/x.png", "a\0.png"])
def test_names_of_other_systems(name: str) -> None:
    with pytest.raises(LeaderError, match="means a folder or a drive"):
        check_name(name)
    check_name("a/b:c.png")


def test_what_a_source_is() -> None:
    assert is_source_name("a/b.PNG") and is_source_name("x.npz") and not is_source_name("a.txt")
    assert not is_source_name(".leader/strips/a.png") and not is_source_name("a/.b/c.png") and not is_source_name(".a.png")


def test_objects_are_told_apart_by_what_their_store_says() -> None:
    assert _stamp({"ETag": "a"}, 3) == _stamp({"ETag": "a"}, 3) != _stamp({"ETag": "b"}, 3)
    assert _stamp({"ETag": "a"}, 3) != _stamp({"ETag": "a"}, 4) and _stamp({"name": "a"}, 3) is None


def test_thumbnails_of_maps_have_one_scale() -> None:
    colours = np.asarray(colour_map(np.array([[0.0, 0.1, 0.2, 0.9]], np.float32)))[0]
    assert colours.tolist() == [[0, 0, 4], [183, 55, 121], [252, 253, 191], [252, 253, 191]]


def test_a_file_that_is_there_before_the_first_run_is_nobody_of_ours(tree: Path, tmp_path: Path) -> None:
    """Not even one with the right bytes: without a manifest nothing says that we made it."""
    go(tree, tmp_path / "one")
    (tmp_path / "two").mkdir()
    (tmp_path / "two/a.png").write_bytes((tmp_path / "one/a.png").read_bytes())
    outcome = go(tree, tmp_path / "two")
    assert outcome.restored == 2 and [name for name, _ in outcome.failed] == ["a.png"]


def test_a_link_in_the_way_is_nobody_of_ours(tree: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    go(tree, out)
    save_picture(tree / "d.png")
    os.symlink(tmp_path / "nothing.png", out / "d.png")
    outcome = go(tree, out)
    assert (outcome.restored, outcome.found) == (0, 3) and "force" in outcome.failed[0][1]
    assert not (tmp_path / "nothing.png").exists()


def test_a_worker_cannot_name_its_results(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lying(task: Any, names: Any) -> Any:
        return [
            replace(answer, files={kind: {**about, "name": "../evil.png"} for kind, about in answer.files.items()})
            for answer in restore_some(task, names)
        ]

    monkeypatch.setattr(run_module, "restore_some", lying)
    outcome = go(tree, tmp_path / "out")
    assert len(outcome.failed) == 3 and "not asked for" in outcome.failed[0][1]
    assert not (tmp_path / "evil.png").exists() and results(tmp_path / "out") == {}


def test_nothing_is_left_where_results_are_sent(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fsspec").filesystem("memory").store.clear()
    here = tmp_path / "tmp"
    here.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(here))
    (tree / "bad.png").write_text("no picture")
    assert go(tree, "memory://sent").restored == 3
    assert list(here.iterdir()) == []


def test_no_result_takes_the_name_of_another_ones_map() -> None:
    for names in (["a.png", "a.png.map.png"], ["a.png.map.png", "a.png"]):
        assert list(find_clashes(names, ".png")) == [names[1]] and find_clashes(names, None) == {} == find_clashes(
            names, ".npy"
        )
    assert list(find_clashes(["a.heic", "b.png", "a.heic.png"], None)) == ["a.heic.png"]


@pytest.mark.parametrize("status", ["done", "refused", "failed"])
def test_only_a_failed_picture_may_be_without_its_contents_hash(tmp_path: Path, status: str) -> None:
    files = {"picture": {"name": "a.png", "sha256": "0", "bytes": 1}}
    line = {"name": "a.png", "status": status, "settings": "s", "files": files}
    (tmp_path / "m.jsonl").write_bytes(encode_line(line) + encode_line({**line, "name": "b.png", "content": "c"}))
    manifest = LocalManifest(tmp_path / "m.jsonl")
    manifest.close()
    assert sorted(manifest.entries) == (["a.png", "b.png"] if status == "failed" else ["b.png"])
    assert manifest.damaged == ([] if status == "failed" else [1])
