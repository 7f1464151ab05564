"""leader restore FOLDER OUT_FOLDER at the command line."""

import os
import re
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from leader.cli import app
from leader.engines import Engine, ProcessEngine
from leader.engines.ray import RayEngine
from leader.errors import LeaderError
from leader.folders import run as run_module
from leader.folders.choices import FolderChoices
from leader.progress import ProgressDisplay
from leader.restoration.request import RestoreRequest
from tests.cheap_prior import CheapPrior
from tests.folders.conftest import lines, results

runner = CliRunner()
WORDS = ["--task", "denoise", "--sigma", "0.1", "--method", "ddnm", "--plugin", "none", "--steps", "2"]


def restore(source: Path | str, out: Path | str, *words: str) -> tuple[int, str]:
    done = runner.invoke(app, ["restore", str(source), str(out), *WORDS, "--jobs", "0", "--threads", "1", *words])
    return done.exit_code, done.stderr


def read_report(folder: Path) -> str:
    return (folder / "out/leader-report.html").read_text(encoding="utf-8")


@pytest.mark.skipif(sys.platform != "linux", reason="names that are not UTF-8")
def test_a_folder_and_the_second_time(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[tuple[float, str]] = []
    monkeypatch.setattr(ProgressDisplay, "show", lambda self, *about: shown.append(about))
    (tree / "bad.png").write_text("no picture")
    odd = tree / os.fsdecode(b"odd\xff.png")  # as old archives have them: not UTF-8
    odd.write_bytes((tree / "a.png").read_bytes())
    code, told = restore(tree, tmp_path / "out", "--report", "--maps", "npy")
    assert code == 1 and "4 pictures to restore" in told and "bad.png is not a picture" in told
    assert "odd\\udcff.png' is not valid UTF-8; rename it" in told and "odd\\udcff" in read_report(tmp_path)
    assert "5 pictures: 3 restored, 0 found done, 2 without a result." in told and f"{tmp_path}/out/leader-report.html" in told
    odd.unlink()
    assert re.search(r"Verdicts: 3 (fine|doubtful)\.", told)
    assert len(shown) == 4 and 0 < shown[0][0] < 0.5 and shown[-1][0] == pytest.approx(1)
    assert shown[-1][1] == "4 of 4 pictures, 1 failed"
    (tree / "bad.png").unlink()
    code, told = restore(tree, tmp_path / "out", "--maps", "npy")
    assert code == 0 and "0 restored, 3 found done" in told
    assert {"a.png", "a.png.map.npy", "sub/c.png"} < set(results(tmp_path / "out"))


def test_refused_pictures_end_with_a_code_of_their_own_and_failed_ones_before_them(tree: Path, tmp_path: Path) -> None:
    code, told = restore(tree, tmp_path / "out", "--task", "sr", "--factor", "2")
    assert code == 3 and "3 pictures: 0 restored, 0 found done, 3 not written" in told and results(tmp_path / "out") == {}
    code, told = restore(tree, tmp_path / "kept", "--task", "sr", "--factor", "2", "--keep-failed")
    assert code == 0 and "Verdicts: 3 failed." in told and len(results(tmp_path / "kept")) == 3
    (tree / "bad.png").write_text("no picture")
    assert restore(tree, tmp_path / "out", "--task", "sr", "--factor", "2")[0] == 1


def test_the_same_as_one_by_one(tree: Path, tmp_path: Path) -> None:
    restore(tree, tmp_path / "out", "--threads", "1", "--seed", "7")
    words = ["restore", str(tree / "sub/c.png"), str(tmp_path / "c.png"), *WORDS, "--threads", "1", "--seed", "7"]
    kept = runner.invoke(app, [*words, "--json", str(tmp_path / "run.json")])
    assert kept.exit_code == 0 and (tmp_path / "out/sub/c.png").read_bytes() == (tmp_path / "c.png").read_bytes()
    again = ["restore", str(tree), str(tmp_path / "again"), "--settings", str(tmp_path / "run.json"), "--jobs", "0"]
    assert runner.invoke(app, again).exit_code == 0
    assert (tmp_path / "again/sub/c.png").read_bytes() == (tmp_path / "c.png").read_bytes()
    settings = lines(tmp_path / "again")[0]["choices"]
    assert settings["run"] and settings["arguments"] == {}, "a kept run is told by itself: its tables have no short form"
    both = runner.invoke(app, [*again, "--sigma", "0.2"])
    assert both.exit_code == 2 and "--sigma" in both.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        *((["--map", "m.png"], "--maps png"), (["--figure", "f.png"], "--report"), (["--json", "r.json"], "manifest")),
        *((["--maps", "gif"], "'gif'"), (["--engine", "slurm"], "slurm"), (["--address", "auto"], "'ray'")),
        *((["--task", "denoize"], "denoise"), (["--method", "ddmn"], "Unknown method")),
    ],
)
def test_wrong_words(tree: Path, tmp_path: Path, words: list[str], says: str) -> None:
    code, told = restore(tree, tmp_path / "out", *words)
    assert code == 2 and says in told and len(told.strip().splitlines()) <= 2, told
    assert not (tmp_path / "out").exists() or results(tmp_path / "out") == {}


@pytest.mark.parametrize(
    "words", [["--jobs", "0"], ["--report"], ["--maps", "png"], ["--engine", "ray"], ["--address", "auto"]]
)
def test_words_of_folders_are_refused_for_one_picture(tree: Path, tmp_path: Path, words: list[str]) -> None:
    done = runner.invoke(app, ["restore", str(tree / "a.png"), str(tmp_path / "x.png"), *WORDS, *words])
    assert done.exit_code == 2 and words[0] in done.stderr and "folders" in done.stderr


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    done = runner.invoke(app, ["restore", str(tmp_path / "no"), str(tmp_path / "out"), *WORDS, "--jobs", "2"])
    assert done.exit_code == 1 and "There is no folder" in done.stderr and not (tmp_path / "out").exists()


def test_a_folder_without_a_task(tree: Path, tmp_path: Path) -> None:
    done = runner.invoke(app, ["restore", str(tree), str(tmp_path / "out")])
    assert done.exit_code == 2 and "--task" in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_leave_whole_files_and_say_how_to_go_on(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals, code: int
) -> None:
    """Sent to this process while the second picture is restored."""
    calls, real = [], CheapPrior._predict

    def interrupt(self: CheapPrior, x: Any, t: Any) -> Any:
        calls.append(1)
        if len(calls) == 4:
            signal.raise_signal(number)
        return real(self, x, t)

    monkeypatch.setattr(CheapPrior, "_predict", interrupt)
    monkeypatch.setattr(sys, "argv", ["/usr/bin/leader", "restore", "a folder", "out"])
    if number == signal.SIGINT:  # ignored where the tests run in the background of a shell
        signal.signal(number, signal.default_int_handler)
    before = signal.getsignal(number)
    ended, told = restore(tree, tmp_path / "out")
    assert ended == code and "Interrupted after 1 picture;" in told and "leader restore 'a folder' out" in told
    assert sorted(results(tmp_path / "out")) == ["a.png"] and signal.getsignal(number) is before
    assert not (tmp_path / "out/.leader/tmp").exists(), "nor an unfinished one"


def test_every_option_reaches_the_folder(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a value that is not the default; those of a single restoration are held there."""
    seen: dict[str, Any] = {}

    class EnoughError(LeaderError):
        pass

    def note(source: str, out: str, choices: FolderChoices, engine: Engine, **options: Any) -> None:
        seen.update(source=source, out=out, choices=choices, engine=engine, **options)
        raise EnoughError("enough")

    closed: list[Engine] = []
    monkeypatch.setattr(ProcessEngine, "close", lambda self: closed.append(self))
    monkeypatch.setattr(run_module, "run_folder", note)
    words = ["--no-check", "--keep-failed", "--keep-location", "--force", "--maps", "NPY", "--report"]
    code, _ = restore(tree, tmp_path / "out", *words, "--jobs", "3", "--threads", "2", "--seed", "7", "--no-jpeg")
    assert code == 1 and (seen["source"], seen["out"]) == (str(tree), str(tmp_path / "out"))
    assert (seen["maps"], seen["report"], seen["force"]) == (".npy", True, True)
    choices, engine = seen["choices"], seen["engine"]
    assert (choices.check, choices.keep_failed, choices.location) == (False, True, True)
    wanted = RestoreRequest("denoise", 0.1, method="ddnm", plugins=(), steps=2, threads=2, seed=7, jpeg=False)
    assert choices.request == wanted and choices.run is None
    assert isinstance(engine, ProcessEngine) and (engine.workers, engine.threads) == (3, 2) and closed == [engine]
    np.save(tmp_path / "kernel.npy", np.eye(3))
    restore(f"file://{tree}", tmp_path / "out", "--task", "deblur", "--kernel", str(tmp_path / "kernel.npy"))
    assert seen["source"] == f"file://{tree}" and np.array_equal(seen["choices"].request.kernel, np.eye(3)), "read once"
    restore(tree, tmp_path / "out", "--engine", "ray", "--address", "auto", "--device", "cuda", "--jobs", "4")
    ray = seen["engine"]
    assert isinstance(ray, RayEngine) and (ray.workers, ray.threads, ray.address, ray.gpus) == (4, 1, "auto", 1.0)
    restore(f"local://{tree}", tmp_path / "out")
    assert seen["source"] == f"local://{tree}"
    restore("memory://in", "memory://out", "--jobs", "2")
    assert (seen["source"], seen["out"]) == ("memory://in", "memory://out")
