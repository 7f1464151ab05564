"""leader restore FOLDER OUT_FOLDER at the command line."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from leader.cli import app
from leader.cli.folder import FolderWords, address_of, cores, make_workers
from leader.engines import Crew, LocalEngine
from leader.errors import UsageError
from tests.folders.conftest import results, save_picture

runner = CliRunner()
START = "from leader.cli import main; main()"
WORDS = ["--task", "denoise", "--sigma", "0.1", "--method", "ddnm", "--plugin", "none", "--steps", "2"]


def restore(source: Path | str, out: Path | str, *words: str) -> tuple[int, str]:
    done = runner.invoke(app, ["restore", str(source), str(out), *WORDS, "--jobs", "0", *words])
    return done.exit_code, done.stderr


def test_a_folder_and_the_second_time(tree: Path, tmp_path: Path) -> None:
    (tree / "bad.png").write_text("no picture")
    code, told = restore(tree, tmp_path / "out", "--report", "--maps", "npy")
    assert code == 1 and "4 pictures to restore" in told and "bad.png is not a picture" in told
    assert "4 pictures: 3 restored, 0 found done, 1 without a result." in told and "leader-report.html" in told
    (tree / "bad.png").unlink()
    code, told = restore(tree, tmp_path / "out", "--maps", "npy")
    assert code == 0 and "0 restored, 3 found done" in told
    assert {"a.png", "a.png.map.npy", "sub/c.png"} < set(results(tmp_path / "out"))


def test_the_same_as_one_by_one(tree: Path, tmp_path: Path) -> None:
    restore(tree, tmp_path / "out", "--threads", "1", "--seed", "7")
    words = ["restore", str(tree / "sub/c.png"), str(tmp_path / "c.png"), *WORDS, "--threads", "1", "--seed", "7"]
    kept = runner.invoke(app, [*words, "--json", str(tmp_path / "run.json")])
    assert kept.exit_code == 0 and (tmp_path / "out/sub/c.png").read_bytes() == (tmp_path / "c.png").read_bytes()
    again = ["restore", str(tree), str(tmp_path / "again"), "--settings", str(tmp_path / "run.json"), "--jobs", "0"]
    assert runner.invoke(app, again).exit_code == 0
    assert (tmp_path / "again/sub/c.png").read_bytes() == (tmp_path / "c.png").read_bytes()
    both = runner.invoke(app, [*again, "--sigma", "0.2"])
    assert both.exit_code == 2 and "--sigma" in both.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--map", "m.png"], "--maps png"),
        (["--figure", "f.png"], "--report"),
        (["--json", "r.json"], "manifest"),
        (["--maps", "gif"], "found 'gif'"),
        (["--engine", "slurm"], "local, ray"),
        (["--address", "auto"], "--engine ray"),
        (["--task", "denoize"], "denoise"),
        (["--method", "ddmn"], "Unknown method"),
    ],
)
def test_wrong_words(tree: Path, tmp_path: Path, words: list[str], says: str) -> None:
    code, told = restore(tree, tmp_path / "out", *words)
    assert code == 2 and says in told and len(told.strip().splitlines()) <= 2, told
    assert not (tmp_path / "out").exists() or results(tmp_path / "out") == {}


@pytest.mark.parametrize("words", [["--jobs", "2"], ["--report"], ["--maps", "png"], ["--engine", "ray"]])
def test_words_of_folders_are_refused_for_one_picture(tree: Path, tmp_path: Path, words: list[str]) -> None:
    done = runner.invoke(app, ["restore", str(tree / "a.png"), str(tmp_path / "x.png"), *WORDS, *words])
    assert done.exit_code == 2 and words[0] in done.stderr and "folders" in done.stderr


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    done = runner.invoke(app, ["restore", str(tmp_path / "no"), str(tmp_path / "out"), *WORDS, "--jobs", "2"])
    assert done.exit_code == 1 and "There is no folder" in done.stderr and not (tmp_path / "out").exists()


def test_a_folder_without_a_task_and_one_without_pictures(tree: Path, tmp_path: Path) -> None:
    done = runner.invoke(app, ["restore", str(tree), str(tmp_path / "out")])
    assert done.exit_code == 2 and "--task" in done.stderr
    (tmp_path / "empty").mkdir()
    code, told = restore(tmp_path / "empty", tmp_path / "out")
    assert code == 1 and "No pictures" in told


@pytest.mark.parametrize(
    ("typed", "address"),
    [("s3://bucket/a", "s3://bucket/a"), ("memory://x", "memory://x"), ("file:///tmp/a", "file:///tmp/a"), ("a/b", "a/b")],
)
def test_addresses_survive_being_paths(typed: str, address: str) -> None:
    assert address_of(Path(typed)) == address


def test_threads_are_divided() -> None:
    assert isinstance(make_workers(FolderWords(jobs=0), None), LocalEngine)
    one, many = make_workers(FolderWords(), None), make_workers(FolderWords(jobs=4 * cores()), None)
    assert isinstance(one, Crew) and (one.workers, one.threads) == (1, cores())
    assert isinstance(many, Crew) and (many.workers, many.threads) == (4 * cores(), 1)
    assert make_workers(FolderWords(jobs=2), 3).threads == 3
    with pytest.raises(UsageError):
        make_workers(FolderWords(engine="cloud"), None)


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), pytest.param(signal.SIGTERM, 143, marks=pytest.mark.slow)])
def test_signals_leave_whole_files_and_say_how_to_go_on(tmp_path: Path, number: signal.Signals, code: int) -> None:
    """The embedded prior in a worker process, interrupted while it works."""
    source, out = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    save_picture(source / "a.png", 16, 16)
    save_picture(source / "b.png", 192, 192)
    words = ["restore", str(source), str(out), "--task", "denoise", "--sigma", "0.1", "--method", "ddnm", "--steps", "100"]
    process = subprocess.Popen(
        [sys.executable, "-c", START, *words, "--jobs", "1", "--plugin", "none"],
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    end = time.monotonic() + 300
    while not _second_begun(out) and time.monotonic() < end and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(number)  # b.png would take a minute
    _, told = process.communicate(timeout=300)
    assert process.returncode == code and "Traceback" not in told, told
    assert "Interrupted after 1 picture;" in told and f"leader restore {source} {out}" in told
    assert sorted(results(out)) == ["a.png"]


def _second_begun(out: Path) -> bool:
    """a.png has its line, and the folder of another picture is there: that of a.png went before its line came."""
    manifest = out / "leader-manifest.jsonl"
    return manifest.exists() and '"a.png"' in manifest.read_text() and any((out / ".leader/tmp").glob("leader-*"))
