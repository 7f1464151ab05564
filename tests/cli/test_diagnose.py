"""leader diagnose, and leader restore without a task, at the command line."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from scipy import ndimage
from typer.testing import CliRunner

from leader.cli import app
from leader.forensics.noise.estimate import NoiseEstimate, noise_behind
from leader.restoration import diagnose as diagnosing
from leader.restoration.diagnose import NothingToRepairError
from tests.restoration.test_diagnose import image, scene

runner = CliRunner()


@pytest.fixture
def photos(folder: Path) -> Path:
    image(ndimage.gaussian_filter(scene(), (2, 2, 0))).save(folder / "it's soft.png")
    image(scene()).save(folder / "clean.png")
    return folder


def test_words_json_and_a_command_that_runs(photos: Path) -> None:
    said = runner.invoke(app, ["diagnose", "it's soft.png"])
    assert said.exit_code == 0 and "Gaussian blur" in said.stdout
    command = said.stdout.splitlines()[-1].removeprefix("To repair it: ")
    content = json.loads(runner.invoke(app, ["diagnose", "it's soft.png", "--json"]).stdout)
    assert content["advice"]["command"] == command and content["file"] == "it's soft.png"
    words = shlex.split(command)
    assert words[:4] == ["leader", "restore", "it's soft.png", "restored.png"]
    run = runner.invoke(app, [*words[1:], "--steps", "2", "--method", "ddnm", "--keep-failed"])
    assert run.exit_code == 0, run.output
    assert (photos / "restored.png").exists()


def test_restore_without_a_task_does_what_is_advised(photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    estimates: list[int] = []

    def count_estimates(*given: Any) -> NoiseEstimate:
        estimates.append(1)
        return noise_behind(*given)

    monkeypatch.setattr("leader.forensics.examination.noise_behind", count_estimates)
    words = ["--steps", "2", "--quality", "draft", "--keep-failed", "--json", "run.json"]  # jpeg has an option quality too
    run = runner.invoke(app, ["restore", "it's soft.png", "out.png", *words])
    assert run.exit_code == 0, run.output
    assert "use --task deblur --kernel gaussian:" in run.output
    assert "The picture shows a Gaussian blur" in run.output, "and why"
    assert json.loads((photos / "run.json").read_text())["task"] == "deblur"
    assert len(estimates) == 1, "diagnosis and restoration ask one examination"


def test_what_made_nothing_better_is_told_and_not_written(photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise NothingToRepairError("It is left as it is.")

    monkeypatch.setattr(diagnosing, "check_advised", refuse)
    run = runner.invoke(app, ["restore", "it's soft.png", "out.png", "--steps", "2", "--method", "ddnm", "--json", "run.json"])
    assert run.exit_code == 0 and "It is left as it is." in run.stderr, "good news is no failure"
    assert not (photos / "out.png").exists() and (photos / "run.json").exists()


def test_restore_without_a_task_leaves_a_clean_picture_alone(photos: Path) -> None:
    run = runner.invoke(app, ["restore", "clean.png", "out.png"])
    assert run.exit_code == 0 and not (photos / "out.png").exists(), "good news is no failure"
    assert "Error" not in run.output and "Nothing was found to repair in clean.png; choose a task" in run.output
    assert "The picture has 192 x 192 pixels" in run.output, "and what was found"


def test_what_is_no_picture_is_refused_in_a_sentence(photos: Path) -> None:
    for name in ("text.png", "empty.png", "nowhere.png", "dot.png"):
        run = runner.invoke(app, ["diagnose", name])
        assert run.exit_code == 1 and run.output.startswith("Error: ") and len(run.output.strip().splitlines()) == 1
