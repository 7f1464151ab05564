"""The command line: options that win over files, what the demo shows, what is told, and refusals before the work."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from leader.cli import app
from leader.cli.options import plugin_names
from leader.cli.settings import with_options
from leader.errors import UsageError
from leader.pictures import Picture, figures, read_picture, write_picture
from leader.restoration.degrade import degrade_file
from leader.samples import demo_photograph

runner = CliRunner()


def test_options_win_over_the_settings_file() -> None:
    file: dict[str, Any] = {"eta": 0.5, "estimator": "noise-energy", "satp": {"budget": 9.0, "eta": 3.0}}
    merged = with_options(file, ("leader",), budget=0.05, estimator="hutchinson")
    assert merged == {"eta": 0.5, "estimator": "hutchinson", "satp": {"budget": 0.05, "eta": 3.0}}
    assert with_options(file, ("leader",), estimator="none")["estimator"] is None
    assert with_options(file, ("leader",)) == file
    assert file["satp"]["budget"] == 9.0, "the file's content is not changed"
    assert with_options({}, ("leader-paper",), budget=0.05) == {"satp-paper": {"budget": 0.05}}
    with pytest.raises(UsageError, match="belongs to the plug-in 'satp'"):
        with_options({}, ("equs", "ucpm-paper"), budget=0.05)


def test_a_setting_of_zero_is_a_setting(folder: Path) -> None:
    (folder / "zero.toml").write_text("eta = 0.0\n")
    words = [
        "restore",
        "in.png",
        "out.png",
        "--task",
        "denoise",
        "--sigma",
        "0.1",
        "--steps",
        "2",
        "--settings",
        "zero.toml",
        "--keep-failed",
    ]
    result = runner.invoke(app, [*words, "--json", "-"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["settings"]["method"]["eta"] == 0.0


def test_none_stands_alone() -> None:
    assert plugin_names(["none"]) == () and plugin_names(None) is None
    assert plugin_names(["satp", "ucpm"]) == ("satp", "ucpm")
    with pytest.raises(UsageError, match="stands alone"):
        plugin_names(["none", "satp"])


def test_transparency_that_out_cannot_hold_is_refused_before_the_work(folder: Path) -> None:
    alpha = np.linspace(0, 1, 24 * 32, dtype=np.float32).reshape(24, 32)
    write_picture(folder / "alpha.png", Picture(np.full((24, 32, 3), 0.5, np.float32), alpha))
    result = runner.invoke(
        app, ["restore", "alpha.png", "out.jpg", "--task", "denoise", "--sigma", "0.1", "--steps", "2", "--keep-failed"]
    )
    assert result.exit_code == 1 and "transparency" in result.stderr and not (folder / "out.jpg").exists()
    assert "network calls" not in result.stderr, "it was found out after the work"


def test_the_calls_told_are_those_of_the_network(folder: Path) -> None:
    words = [
        "restore",
        "in.png",
        "out.png",
        "--task",
        "denoise",
        "--sigma",
        "0.1",
        "--steps",
        "3",
        "--plugin",
        "none",
        "--keep-failed",
    ]
    result = runner.invoke(app, words)
    assert "with 3 network calls" in result.stderr and "32 x 24 pixels" in result.stderr, result.output


def test_the_demo_shows_each_picture_under_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Any] = []
    monkeypatch.setattr(figures, "draw_side_by_side", lambda path, views, spread: drawn.append((path, dict(views), spread)))
    result = runner.invoke(app, ["demo", "--out", str(tmp_path / "a"), "--steps", "2", "--seed", "3"])
    assert result.exit_code == 0, result.output
    ((_, views, spread),) = drawn
    restored, degraded = (read_picture(tmp_path / "a" / f"{name}.png").pixels for name in ("restored", "degraded"))
    with demo_photograph() as original:
        truth = read_picture(original).pixels
        degrade_file(original, tmp_path / "clean.png", "sr", sigma=0.0)
    noise = (degraded - read_picture(tmp_path / "clean.png").pixels)[degraded.min(2) > 0.1]
    assert noise.std() == pytest.approx(0.02, rel=0.1), "a quarter of the size, with noise of 0.02"
    assert list(views) == ["degraded", "restored", "original"]
    assert np.array_equal(views["degraded"], degraded) and np.array_equal(views["original"], truth)
    assert np.abs(views["restored"] - restored).max() <= 0.51 / 255 and spread.shape == truth.shape[:2]


def test_the_demos_seed_draws_noise_and_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from leader.cli import running
    from leader.restoration.restore import Preparation

    monkeypatch.setattr(figures, "draw_side_by_side", lambda *_: None)
    monkeypatch.setattr(figures, "draw_map", lambda *_: None)
    monkeypatch.setattr(figures, "draw_path", lambda *_: None)
    seen: list[tuple[int, bytes]] = []
    real = running.run_and_tell

    def watched(ready: Preparation) -> Any:
        seen.append((ready.seed, ready.given.pixels.tobytes()))
        return real(ready)

    monkeypatch.setattr(running, "run_and_tell", watched)
    for seed in ("0", "3"):
        out = tmp_path / seed
        assert runner.invoke(app, ["demo", "--out", str(out), "--steps", "1", "--seed", seed]).exit_code == 0
    assert [seed for seed, _ in seen] == [0, 3] and seen[0][1] != seen[1][1]


def test_the_threads_asked_for_are_those_of_the_run(folder: Path) -> None:
    count = torch.get_num_threads() + 1
    words = [
        "restore",
        "in.png",
        "out.png",
        "--task",
        "denoise",
        "--sigma",
        "0.1",
        "--steps",
        "1",
        "--json",
        "-",
        "--keep-failed",
    ]
    result = runner.invoke(app, [*words, "--threads", str(count)])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["settings"]["threads"] == count == torch.get_num_threads() + 1


@pytest.mark.parametrize("names", [["none", "satp"], ["satp", "none"], ["none", "none"]])
def test_none_beside_other_plug_ins_is_refused(names: list[str]) -> None:
    with pytest.raises(UsageError, match="'none' stands alone"):
        plugin_names(names)
