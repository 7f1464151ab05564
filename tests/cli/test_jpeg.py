"""leader degrade and leader restore with the task jpeg, and --no-jpeg."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from leader.cli import app
from leader.pictures import read_picture
from tests.forensics.jpegs import jpeg, photograph

runner = CliRunner()


def test_degraded_restored_and_repeated(folder: Path) -> None:
    photograph(3, side=64).save("good.png")
    made = runner.invoke(app, ["degrade", "good.png", "blocky.jpg", "--task", "jpeg", "--quality", "30"])
    assert made.exit_code == 0, made.output
    history = read_picture(folder / "blocky.jpg").history
    assert history is not None and history.quality == 30 and history.sampling == (2, 2)
    words = ["restore", "blocky.jpg", "clean.png", "--task", "jpeg", "--json", "run.json", "--keep-failed"]
    first = runner.invoke(app, words)
    assert first.exit_code == 0, first.output
    assert "JPEG of quality 30" in first.output
    run = json.loads((folder / "run.json").read_text())
    assert run["operator"] == "jpeg" and run["options"] == {}
    again = runner.invoke(app, ["restore", "blocky.jpg", "again.png", "--settings", "run.json", "--keep-failed"])
    assert again.exit_code == 0, again.output
    assert (folder / "clean.png").read_bytes() == (folder / "again.png").read_bytes()


@pytest.mark.parametrize("quality", ["0", "101", "many"])
def test_qualities_that_are_none(folder: Path, quality: str) -> None:
    assert runner.invoke(app, ["degrade", "in.png", "out.jpg", "--task", "jpeg", "--quality", quality]).exit_code == 2
    assert not (folder / "out.jpg").exists()


def test_a_picture_without_traces_and_no_container(folder: Path) -> None:
    photograph(3, noise=4, side=64).save("noisy.png")
    result = runner.invoke(app, ["restore", "noisy.png", "out.png", "--task", "jpeg"])
    assert result.exit_code != 0 and not (folder / "out.png").exists()
    result = runner.invoke(app, ["degrade", "in.png", "out.npz", "--task", "jpeg"])
    assert result.exit_code != 0 and not (folder / "out.npz").exists()


def test_no_jpeg(folder: Path) -> None:
    image = jpeg(photograph(3), 20, 2)
    image.save("low.jpg", quality="keep")
    levels = []
    for option in ("--jpeg", "--no-jpeg"):
        words = [
            "restore",
            "low.jpg",
            "out.png",
            "--task",
            "denoise",
            "--steps",
            "2",
            "--json",
            "-",
            "--keep-failed",
            "--force",
        ]
        result = runner.invoke(app, [*words, option])
        assert result.exit_code == 0, result.output
        levels.append(json.loads(result.stdout)["sigma"])
    assert levels[1] < 0.7 * levels[0]
    assert runner.invoke(app, ["restore", "low.jpg", "other.png", "--task", "jpeg", "--no-jpeg"]).exit_code != 0
