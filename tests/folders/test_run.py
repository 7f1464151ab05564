"""A folder restored: names kept, done work found again, bad files told, nothing half-written."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import leader
from leader import defaults
from leader.engines import LocalEngine
from leader.errors import LeaderError, UsageError
from leader.folders import disk, remote, work
from leader.folders import run as run_module
from leader.folders.choices import FolderChoices
from leader.folders.disk import DiskTarget
from leader.folders.names import check_name, find_clashes, is_source_name, name_results
from leader.folders.places import FoundFile
from leader.folders.work import restore_some
from leader.pictures import Picture, formats, read_picture, write_picture
from leader.pictures.exif import ASCII, Tag
from leader.pictures.metadata import Metadata
from leader.priors import loading
from leader.restoration.request import RestoreRequest
from leader.trust import Verdict
from tests.cheap_prior import CheapPrior
from tests.folders.conftest import ARGUMENTS, NAMES, go, lines, results, save_picture


def test_a_folder_gives_what_single_restorations_give(tree: Path, tmp_path: Path, cheap: list[str]) -> None:
    out = tmp_path / "out"
    outcome = go(tree, out, maps=".npy")
    assert (outcome.restored, outcome.found, outcome.failed) == (3, 0, [])
    assert cheap == ["embedded"], "the prior is loaded once"
    for name in ("a.png", "b.png", "sub/c.png"):
        single = leader.restore(tree / name, threads=1, **ARGUMENTS)
        single.save(tmp_path / "single.png")
        assert (out / name).read_bytes() == (tmp_path / "single.png").read_bytes()
        spread = np.load(out / f"{name}.map.npy")
        assert single.uncertainty is not None and np.array_equal(spread, single.uncertainty)
        (line,) = [line for line in lines(out) if line.get("name") == name]
        kept = line["run"]
        assert not {"trace", "versions"} & set(kept)
        expected = json.loads(json.dumps(single.summary(), default=str))
        for left_out in ("trace", "versions", "options", "seconds"):
            expected.pop(left_out)
            kept.pop(left_out, None)
        assert kept == expected
    assert sorted(results(out)) == sorted(
        ["a.png", "a.png.map.npy", "b.png", "b.png.map.npy", "sub/c.png", "sub/c.png.map.npy"]
    ), "nothing temporary is left"


def test_done_pictures_are_found_by_content_and_settings(tree: Path, tmp_path: Path, cheap: list[str]) -> None:
    out = tmp_path / "out"
    go(tree, out)
    before, manifest = results(out), (out / "leader-manifest.jsonl").read_bytes()
    cheap.clear()
    again = go(tree, out)
    assert (again.restored, again.found) == (0, 3) and sum(again.levels.values()) == 3
    assert results(out) == before and (out / "leader-manifest.jsonl").read_bytes() == manifest and cheap == []

    os.utime(tree / "a.png", (0, 0))  # a date is no content
    save_picture(tree / "b.png", 20)  # the same name, another picture
    assert (go(tree, out).restored, (out / "a.png").read_bytes()) == (1, before["a.png"])
    assert (out / "b.png").read_bytes() != before["b.png"]

    (out / "sub/c.png").unlink()
    assert go(tree, out).restored == 1 and (out / "sub/c.png").read_bytes() == before["sub/c.png"]
    assert go(tree, out, {"seed": 4}).restored == 3 and results(out)["a.png"] != before["a.png"]
    assert go(tree, out, {"threads": 1, "seed": 4}).found == 3, "threads change roundings at most"
    told = [line for line in lines(out) if line.get("kind") == "settings"]
    assert [line["choices"]["arguments"]["seed"] for line in told] == [3, 4], "once, however many runs there are"
    assert told[0]["choices"]["arguments"]["sigma"] == 0.1 and told[0]["choices"]["leader"] == leader.__version__
    assert [line["settings"] for line in lines(out) if "name" in line] == [told[0]["digest"]] * 5 + [told[1]["digest"]] * 3
    unchecked = go(tree, out, {"seed": 5}, check=False)
    assert (unchecked.restored, unchecked.levels, len(work._models)) == (3, {}, 1), "one prior at a time is kept"


def test_where_a_picture_was_taken_is_kept_only_if_asked_for(tree: Path, tmp_path: Path) -> None:
    place = Metadata(gps={1: Tag(ASCII, b"N\0")})
    write_picture(tree / "a.jpg", Picture(np.full((12, 16, 3), 0.5, np.float32), metadata=place), location=True)
    for keep in (False, True):
        go(tree, tmp_path / str(keep), location=keep)
        assert bool(read_picture(tmp_path / str(keep) / "a.jpg").metadata.gps) == keep


def test_maps_asked_for_later_are_made(tree: Path, tmp_path: Path) -> None:
    go(tree, tmp_path / "out")
    assert go(tree, tmp_path / "out", maps=".npy").restored == 3
    assert go(tree, tmp_path / "out", maps=".npy").found == 3 and (tmp_path / "out/sub/c.png.map.npy").exists()


def test_bad_files_are_told_and_do_not_stop_the_rest(tree: Path, tmp_path: Path) -> None:
    (tree / "aa.png").write_text("no picture")
    (tree / "empty.jpg").write_bytes(b"")
    os.symlink(tree / "gone.png", tree / "dangling.png")
    told: list[tuple[str, str | None, float]] = []
    meters: list[run_module.FolderMeter] = []
    watcher = run_module.Watcher(listed=meters.append, finished=lambda name, error: told.append((name, error, meters[0].share)))
    sizes = [(tree / name).stat().st_size for name in ("a.png", "aa.png", "b.png", "empty.jpg", "sub/c.png")]
    outcome = go(tree, tmp_path / "out", watcher=watcher)
    assert {name: error for name, error, _ in told} == {
        **dict.fromkeys(("a.png", "b.png", "sub/c.png")),
        **dict(outcome.failed),
    }
    assert (meters[0].settled, meters[0].failed) == (5, 2)
    weights = [1 + size / (sum(sizes) / 5) for size in sizes]
    assert [share for *_, share in told] == pytest.approx([sum(weights[:n]) / 10 for n in range(1, 6)])
    assert outcome.restored == 3 and [name for name, _ in outcome.failed] == ["aa.png", "empty.jpg"]
    assert all("tmp" not in text and ".leader" not in text for _, text in outcome.failed), outcome.failed
    count = len(lines(tmp_path / "out"))
    save_picture(tree / "empty.jpg")
    again = go(tree, tmp_path / "out")
    assert (again.restored, again.found, len(again.failed)) == (1, 3, 1)
    assert len(lines(tmp_path / "out")) == count + 1, "what was told before is not told twice"
    for content in (b"broken", (tree / "b.png").read_bytes()):
        (tree / "a.png").write_bytes(content)
        last = go(tree, tmp_path / "out")
    assert last.restored == 1 and [name for name, _ in last.failed] == ["aa.png"], "the result of before is ours to replace"
    go(tree, tmp_path / "out", {"seed": 4})
    (tree / "aa.png").write_bytes(b"")
    go(tree, tmp_path / "out", {"seed": 4})
    assert len([line for line in lines(tmp_path / "out") if line.get("name") == "aa.png"]) == 3, "for each settings and fault"


@pytest.mark.parametrize("error", [LeaderError("It is too dark."), MemoryError(), ZeroDivisionError("by zero")])
def test_only_an_error_of_the_program_is_called_a_bug(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:

    def prepare(self: RestoreRequest, *words: Any, **options: Any) -> Any:
        raise error

    monkeypatch.setattr(RestoreRequest, "prepare", prepare)
    told = {text for _, text in go(tree, tmp_path / "out").failed}
    (text,) = told
    assert text.endswith(".") and ("bug" in text) == isinstance(error, ArithmeticError)


def test_what_this_program_did_not_write_is_not_replaced_unasked(tree: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    (out / "sub").mkdir(parents=True)
    go(tree, tmp_path / "one", maps=".npy")
    (out / "a.png").write_bytes((tmp_path / "one/a.png").read_bytes())  # the right bytes: nothing says that we made it
    (out / "b.png.map.npy").write_text("mine")
    os.symlink(tmp_path / "nothing.png", out / "sub/c.png")
    (out / "leader-manifest.jsonl").touch()  # nor does an empty one
    first = go(tree, out, maps=".npy")
    assert [name for name, _ in first.failed] == list(NAMES) and all("force" in text for _, text in first.failed)
    (out / "a.png").write_text("mine")
    second = go(tree, out, maps=".npy")
    assert sorted(name for name, _ in second.failed) == list(NAMES) and not (tmp_path / "nothing.png").exists()
    assert all("force" in text for _, text in second.failed), "nor is work done for a link"
    assert (out / "a.png").read_text() == (out / "b.png.map.npy").read_text() == "mine"
    assert go(tree, out, force=True).restored == 3 and (out / "a.png").read_bytes()[:4] == b"\x89PNG"


def test_what_was_edited_since_is_not_replaced_unasked(tree: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    go(tree, out)
    edited = bytes(reversed((out / "a.png").read_bytes()))  # of the same size
    (out / "a.png").write_bytes(edited)
    (out / "b.png").write_text("edited")
    same = go(tree, out)
    assert same.found == 2 and [name for name, _ in same.failed] == ["b.png"], "nor taken for the result by its name"
    (out / "sub/c.png.map.npy").write_text("mine")
    outcome = go(tree, out, {"seed": 4}, maps=".npy")
    assert sorted(name for name, _ in outcome.failed) == list(NAMES) and (out / "b.png").read_text() == "edited"
    assert (out / "a.png").read_bytes() == edited and (out / "sub/c.png.map.npy").read_text() == "mine"
    assert go(tree, out, {"seed": 4}, force=True).restored == 3 and (out / "a.png").read_bytes() != edited


@pytest.mark.parametrize("options", [{"device": "cpu", "dtype": "float32"}, {}])
def test_the_prior_is_loaded_where_and_as_it_was_asked_for(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, str]
) -> None:
    asked: list[dict[str, Any]] = []

    def load(name: str, **words: Any) -> CheapPrior:
        asked.append(words)
        return CheapPrior()

    monkeypatch.setattr(loading, "load_prior", load)
    go(tree, tmp_path / "out", options)
    assert asked == [{"dtype": defaults.DTYPE, **options}]


def test_a_file_without_a_line_is_taken_over_where_its_bytes_agree(tree: Path, tmp_path: Path) -> None:
    """What a run that was killed between a result and its line leaves."""
    out = tmp_path / "out"
    go(tree, out)
    manifest = out / "leader-manifest.jsonl"
    kept = manifest.read_bytes().splitlines(keepends=True)
    manifest.write_bytes(b"".join(kept[:-1]) + kept[-1][:40])  # the last line is torn
    again = go(tree, out)
    assert (again.restored, again.found, again.failed) == (1, 2, [])
    assert [line["name"] for line in lines(out)[1:]] == ["a.png", "b.png", "sub/c.png"]
    manifest.write_bytes(b"".join(kept[:-1]))
    (out / "sub/c.png").write_text("edited")
    third = go(tree, out)
    assert [name for name, _ in third.failed] == ["sub/c.png"] and (out / "sub/c.png").read_text() == "edited"


def test_a_damaged_line_costs_its_own_picture(tree: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    told: list[str] = []
    go(tree, out)
    manifest = out / "leader-manifest.jsonl"
    kept = manifest.read_text().splitlines()
    kept[1] = kept[1][:50] + "#" + kept[1][51:90]
    files = json.loads(kept[2])["files"]["picture"]
    strange = [{}, {"map": files}, {"picture": {**files, "bytes": 1e999}}, {"picture": {"name": "b.png", "sha256": ""}}]
    nameless = {**json.loads(kept[2]), "content": None}, {**json.loads(kept[2]), "content": None, "status": "refused"}
    kept[2:3] = [json.dumps({**json.loads(kept[2]), "files": one}) for one in strange] + [json.dumps(one) for one in nameless]
    later = json.dumps({**json.loads(kept[-1]), "leader": "folder 2", "status": "failed"})
    manifest.write_text("\n".join([*kept, later, "[" * 100_000, "[1]", '{"kind":"picture"}']) + "\n")
    again = go(tree, out, watcher=run_module.Watcher(note=told.append), report=True)  # which reads lines by their place
    assert (again.restored, again.found) == (2, 1)
    assert [text.split()[1] for text in told] == ["2", "3", "4", "5", "6", "7", "8", "10", "11", "12", "13"]


@pytest.mark.parametrize("where", ["in", "in/..", "."])
def test_results_never_take_the_place_of_pictures(tree: Path, tmp_path: Path, where: str) -> None:
    with pytest.raises(UsageError, match="place"):
        go(tree, tmp_path / where)


@pytest.mark.parametrize("where", ["restored", "sub/restored"])
def test_an_output_folder_inside_the_source_is_no_source(tree: Path, where: str) -> None:
    left: list[int] = []

    def count_unfinished(name: str, error: str | None) -> None:
        left.append(len(list((tree / where / ".leader/tmp").iterdir())))

    assert go(tree, tree / where, watcher=run_module.Watcher(finished=count_unfinished)).restored == 3
    assert left == [0, 0, 0], "what a worker made is moved or removed before the next one begins"
    mask = os.umask(0)
    os.umask(mask)
    assert (tree / where / "a.png").stat().st_mode & 0o777 == 0o666 & ~mask, "for whom new files are here"
    again = go(tree, tree / where)
    assert (again.restored, again.found) == (0, 3)


@pytest.mark.parametrize("by_handle", [True, False])
def test_links_lead_nowhere_else(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_handle: bool) -> None:
    """Also where a system opens no file relative to an open folder."""
    monkeypatch.setattr(disk, "_BY_HANDLE", by_handle)
    out, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    for folder in (out, elsewhere):
        folder.mkdir()
    os.symlink(elsewhere, out / "sub")
    os.symlink(elsewhere, tree / "linked")
    os.symlink(elsewhere / "a.png", out / "a.png")
    told: list[str] = []
    outcome = go(tree, out, watcher=run_module.Watcher(note=told.append), force=True)
    assert list(elsewhere.iterdir()) == []
    assert [name for name, _ in outcome.failed] == ["sub/c.png"] and " link" in outcome.failed[0][1]
    assert any("linked" in text for text in told) and not (out / "a.png").is_symlink()
    (out / "sub").unlink()
    assert go(tree, out).restored == 1
    save_picture(tree / "sub/d.png", 20)
    assert go(tree, out).restored == 1 and {"a.png", "b.png", "sub/c.png", "sub/d.png"} == set(results(out))


def test_names_that_lead_out_are_refused(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk gives no such names; an object store may."""
    bad = [
        "../x.png",
        "/x.png",
        "a/../../x.png",
        "a//x.png",
        "a/./x.png",
        "",
        "a\\x.png",
        "C:/x.png",
        "C:x.png",
        "a\0.png",
        "\udcff.png",
    ]
    bad += [".leader/x.png", "leader-manifest.jsonl", "leader-report.html"]
    found = [FoundFile(name, 1) for name in ("a.png", *bad)]
    monkeypatch.setattr(disk.DiskSource, "walk", lambda self: iter(found))
    told: list[str] = []
    outcome = go(tree, tmp_path / "out", watcher=run_module.Watcher(finished=lambda name, error: told.append(name)))
    assert {name for name, _ in outcome.failed} == set(bad) and all("rename it" in why for _, why in outcome.failed)
    assert sorted(told) == sorted([*bad, "a.png"]) and sorted(results(tmp_path / "out")) == ["a.png"]
    for name in ("a/b:c.png", "Screenshot 12:30:05.png"):
        check_name(name)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="links and pipes")
def test_a_file_that_cannot_be_looked_at_costs_itself_alone(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.symlink("a-loop.png", tree / "a-loop.png")
    os.symlink("itself", tree / "itself")
    os.symlink("nothing.png", tree / "gone.png")
    os.mkfifo(tree / "pipe.png")
    for name in ("locked", "vanishing"):
        (tree / name).mkdir()
    told: list[str] = []
    real = os.scandir

    def scan(folder: Any) -> Any:
        errors = {"locked": PermissionError(13, "Permission denied"), "vanishing": FileNotFoundError()}
        if isinstance(folder, Path) and folder.name in errors:
            raise errors[folder.name]
        return real(folder)

    monkeypatch.setattr(os, "scandir", scan)
    assert go(tree, tmp_path / "out", watcher=run_module.Watcher(note=told.append)).restored == 3
    names = ["a-loop.png", "gone.png", "itself", "locked/", "pipe.png", "vanishing/"]
    assert sorted(text.split()[0] for text in told) == names, "each once"


def test_a_link_to_a_picture_is_that_picture(tree: Path, tmp_path: Path) -> None:
    os.symlink(tree / "a.png", tree / "link.png")
    sizes = {item.name: item.size for item in disk.DiskSource(tree).walk()}
    assert sizes["link.png"] == sizes["a.png"] == (tree / "a.png").stat().st_size
    assert go(tree, tmp_path / "out").restored == 4 and not (tmp_path / "out/link.png").is_symlink()


def test_workers_may_stand_elsewhere(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Elsewhere(LocalEngine):
        def each(self, function: Any, jobs: Any) -> Any:
            os.chdir("/")
            return super().each(function, jobs)

    monkeypatch.chdir(tmp_path)
    assert go("in", "out", workers=Elsewhere(1), report=True).restored == 3


def test_a_folder_where_a_result_belongs_costs_that_one(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "out/a.png").mkdir(parents=True)
    (tmp_path / "out/sub").write_text("a file")
    outcome = go(tree, tmp_path / "out")
    assert outcome.restored == 1 and [name for name, _ in outcome.failed] == ["a.png", "sub/c.png"]
    assert all("bug" not in text and "out" in text for _, text in outcome.failed), outcome.failed


@pytest.mark.parametrize("module", [disk, remote])
def test_a_file_that_no_picture_can_be_is_not_read_to_its_end(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: Any
) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 20)
    outcome = go(tree if module is disk else f"local://{tree}", tmp_path / "out")
    assert [text for _, text in outcome.failed] == [
        f"{name} has more than 20 bytes; no picture is that large." for name in NAMES
    ]


def test_a_result_that_its_format_cannot_hold_is_refused_before_the_work(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    picture = Picture(np.full((24, 32, 3), 0.5, np.float32), np.eye(24, 32, dtype=np.float32))
    write_picture(tree / "clear.png", picture)
    (tree / "clear.png").rename(tree / "clear.jpg")
    save_picture(tree / "wide.webp", 16, 24)
    monkeypatch.setitem(formats.FORMATS, ".webp", replace(formats.FORMATS[".webp"], side=47))
    for name in NAMES:
        (tree / name).unlink()
    monkeypatch.setattr(CheapPrior, "_predict", None)
    (_, clear), (_, wide) = go(tree, tmp_path / "out", {"task": "sr", "factor": 2}).failed
    assert "transparency" in clear and "at most 47 pixels on a side" in wide


def test_a_failed_picture_is_tried_again_and_judged_again(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leader.restoration.second_try.larger_sigma_may_help", lambda numbers: True)
    monkeypatch.setattr("leader.restoration.second_try.improves", lambda later, earlier: False)
    monkeypatch.setattr("leader.restoration.restore.judge", lambda numbers: Verdict("failed"))
    noisy = np.random.default_rng(0).normal(0.5, 0.1, (40, 56, 3)).astype(np.float32)
    write_picture(tree / "a.png", Picture(noisy))
    assert go(tree, tmp_path / "out", {"sigma": None}).restored == 3
    tries = lines(tmp_path / "out")[1]["run"]["tries"]
    assert [item["sigma"] / tries[0]["sigma"] for item in tries] == [1.0, 2.0, 4.0]
    monkeypatch.setattr("leader.restoration.second_try.improves", lambda later, earlier: True)
    before = (tmp_path / "out/a.png").read_bytes()
    go(tree, tmp_path / "out", {"sigma": None, "seed": 3, "steps": 3})
    (kept,) = [line["run"] for line in lines(tmp_path / "out")[4:] if line.get("name") == "a.png"]
    assert kept["sigma"] == pytest.approx(4 * tries[0]["sigma"]), "the result of the last run, where it is better"
    assert (tmp_path / "out/a.png").read_bytes() != before


def test_a_folder_without_pictures_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    os.symlink("nothing.png", tmp_path / "in/gone.png")
    told: list[str] = []
    with pytest.raises(LeaderError, match="No pictures were found"):
        go(tmp_path / "in", tmp_path / "out", watcher=run_module.Watcher(note=told.append))
    assert not (tmp_path / "out").exists() and len(told) == 1 and "broken symbolic link" in told[0]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes")
def test_a_source_that_vanishes_or_changes(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = restore_some

    def meddling(task: Any, names: Any) -> Any:
        if names == ("a.png",):
            for name in ("b.png", "p.png"):
                (tree / name).unlink()
            os.mkfifo(tree / "p.png")
            save_picture(tree / "sub/c.png", 30)
        answers = real(task, names)
        if names == ("a.png",):
            save_picture(tree / "a.png", 31)
        return answers

    save_picture(tree / "p.png")
    monkeypatch.setattr(run_module, "restore_some", meddling)
    outcome = go(tree, tmp_path / "out")
    told = dict(outcome.failed)
    assert outcome.restored == 2 and set(told) == {"b.png", "p.png"}
    assert "vanished" in told["b.png"] and "pipe" in told["p.png"]
    monkeypatch.undo()
    again = go(tree, tmp_path / "out")
    assert (again.restored, again.found) == (1, 1), "the line holds the content that was restored"


def test_a_second_run_into_the_folder_is_refused(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    for name in (".leader", "leader-manifest.jsonl"):
        (tmp_path / "elsewhere").mkdir(exist_ok=True)
        os.symlink(tmp_path / "elsewhere", tmp_path / "out" / name)
        with pytest.raises(LeaderError, match="symbolic links"):
            go(tree, tmp_path / "out")
        (tmp_path / "out" / name).unlink()
    assert not list((tmp_path / "elsewhere").iterdir())
    manifest = DiskTarget(tmp_path / "out").open()
    (tmp_path / "out/leader-manifest.jsonl").write_text("half a line")
    with pytest.raises(LeaderError, match="Another run"):
        go(tree, tmp_path / "out")
    assert (tmp_path / "out/leader-manifest.jsonl").read_text() == "half a line", "which the first run is writing"
    manifest.close()
    (tmp_path / "out/.leader/tmp").rmdir()
    (tmp_path / "out/.leader/tmp").write_text("in the way of what is temporary")
    with pytest.raises(LeaderError, match="cannot be emptied"):
        go(tree, tmp_path / "out")
    (tmp_path / "out/.leader/tmp").unlink()
    assert go(tree, tmp_path / "out").restored == 3, "a run that was refused holds nothing"


def test_refused_pictures_are_not_written_and_not_tried_again(tree: Path, tmp_path: Path) -> None:
    out, failing = tmp_path / "out", {"task": "sr", "factor": 2}
    outcome = go(tree, out, failing, keep_failed=False)
    assert outcome.refused == 3 and results(out) == {}
    assert {line["run"]["verdict"]["level"] for line in lines(out)[1:]} == {"failed"}, "and its line says why"
    ahead: list[int] = []
    watcher = run_module.Watcher(listed=lambda meter: ahead.append(meter.total))
    again = go(tree, out, failing, keep_failed=False, watcher=watcher)
    assert (again.refused, again.found, ahead) == (3, 0, [0]), "told again, not computed again"
    assert go(tree, out, failing).restored == 3, "with --keep-failed they are"


def test_the_results_of_an_earlier_run_are_told_of_refused_pictures_and_stay_ours(tree: Path, tmp_path: Path) -> None:
    out, failing = tmp_path / "out", {"task": "sr", "factor": 2}
    go(tree, out)
    before, notes = results(out), list[str]()
    assert go(tree, out, failing, keep_failed=False, watcher=run_module.Watcher(note=notes.append)).refused == 3
    assert (
        results(out) == before and len(notes) == 3 and all("of an earlier run, with other settings" in note for note in notes)
    )
    again = go(tree, out, {"seed": 4})
    assert (again.restored, again.failed) == (3, []) and results(out) != before


def test_masks_and_kernels_are_read_once(tree: Path, tmp_path: Path) -> None:
    known = np.ones((16, 24), np.float32)
    known[4:9, 3:8] = 0
    np.save(tmp_path / "mask.npy", known)
    words = {"task": "inpaint", "mask": tmp_path / "mask.npy", "sigma": 0.0}
    request = RestoreRequest(**{**ARGUMENTS, **words})
    chosen = FolderChoices(request.read_files())
    known[0] = 0
    np.save(tmp_path / "mask.npy", known)
    other = FolderChoices(request.read_files())
    assert chosen.digest != other.digest and RestoreRequest(kernel="gaussian:2").read_files().kernel == "gaussian:2"
    for name in ("b.png", "sub/c.png"):
        (tree / name).unlink()
    run_module.run_folder(str(tree), str(tmp_path / "out"), other, LocalEngine(1))
    leader.restore(tree / "a.png", **{**ARGUMENTS, **words}, threads=1).save(tmp_path / "single.png")
    assert (tmp_path / "out/a.png").read_bytes() == (tmp_path / "single.png").read_bytes()
    assert "mask" not in lines(tmp_path / "out")[1]["run"]["options"], "the settings hold it, once for all pictures"


def test_what_a_source_is_and_how_its_results_are_called() -> None:
    assert name_results("a/B.JPG", ".npy") == {"picture": "a/B.JPG", "map": "a/B.JPG.map.npy"}
    assert name_results("x.npz", None) == {"picture": "x.npz.png"}
    assert name_results("y.HEIC", ".svg") == {"picture": "y.HEIC.png", "map": "y.HEIC.map.svg"}
    assert is_source_name("a/b.PNG") and is_source_name("x.NPZ") and is_source_name("c.gif") and not is_source_name("a.txt")
    assert not is_source_name(".leader/strips/a.png") and not is_source_name("a/.b/c.png") and not is_source_name(".a.png")


def test_only_unfinished_results_are_moved(tmp_path: Path) -> None:
    (tmp_path / "mine.png").write_bytes(b"mine")
    target = DiskTarget(tmp_path / "other")
    target.open().close()
    with pytest.raises(LeaderError, match="not in the folder of unfinished results"):
        target.keep(tmp_path / "mine.png", "a.png")
    assert (tmp_path / "mine.png").exists()


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


@pytest.mark.parametrize("error", [LeaderError("It is damaged."), UsageError("It is damaged.")])
def test_a_prior_that_cannot_be_used_ends_a_run_without_results_and_costs_the_rest_of_another(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: LeaderError
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise error

    go(tree, tmp_path / "some")
    save_picture(tree / "d.png")
    work._models.clear()
    monkeypatch.setattr(loading, "load_prior", refuse)
    with pytest.raises(type(error), match="damaged"):
        go(tree, tmp_path / "none")
    outcome = go(tree, tmp_path / "some")
    assert outcome.found == 3 and outcome.failed == [("d.png", "It is damaged.")]
    monkeypatch.undo()
    monkeypatch.setattr(loading, "load_prior", lambda name, **options: CheapPrior())
    wrong = {UsageError: "words", LeaderError: "prior"}[type(error)]
    said = work.PictureAnswer("failed", "It is damaged.", wrong=wrong)  # by another worker
    real = restore_some
    monkeypatch.setattr(run_module, "restore_some", lambda task, names: [said] if names != ("a.png",) else real(task, names))
    outcome = go(tree, tmp_path / "later")
    assert outcome.restored == 1 and [name for name, _ in outcome.failed] == ["b.png", "d.png", "sub/c.png"]
