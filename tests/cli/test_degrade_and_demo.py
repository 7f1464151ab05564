"""leader degrade and leader demo: every option is seen in what they write."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from leader import metrics
from leader.cli import app
from leader.pictures import Picture, figures, read_picture, write_picture
from leader.restoration.degrade import degrade_file
from leader.samples import demo_photograph
from tests.cheap_prior import photograph

runner = CliRunner()

SEEN: list[tuple[str, list[str], dict[str, Any]]] = [
    ("o.png", ["--task", "sr"], {"task": "sr"}),
    ("o.png", ["--task", "sr", "--factor", "2"], {"task": "sr", "factor": 2}),
    ("o.png", ["--task", "sr", "--factor", "2", "--down", "average"], {"task": "sr", "factor": 2, "down": "average"}),
    ("o.png", ["--task", "denoise", "--sigma", "0.5"], {"task": "denoise", "sigma": 0.5}),
    ("o.png", ["--task", "denoise", "--sigma", "0.1"], {"task": "denoise", "sigma": 0.1}),
    ("o.png", ["--task", "denoise", "--sigma", "0.1", "--seed", "4"], {"task": "denoise", "sigma": 0.1, "seed": 4}),
    ("o.png", ["--task", "deblur", "--kernel", "gaussian:1.5"], {"task": "deblur", "kernel": "gaussian:1.5"}),
    ("o.png", ["--task", "inpaint", "--mask", "random:0.5"], {"task": "inpaint", "mask": "random:0.5"}),
    ("o.npz", ["--task", "cs"], {"task": "cs"}),
    ("o.npz", ["--task", "cs", "--ratio", "0.5"], {"task": "cs", "ratio": 0.5}),
    ("o.npz", ["--task", "cs", "--ratio", "0.5", "--order", "sequency"], {"task": "cs", "ratio": 0.5, "order": "sequency"}),
    ("o.npz", ["--task", "cs", "--seed", "2"], {"task": "cs", "seed": 2}),
    ("o.jpg", ["--task", "jpeg", "--quality", "30"], {"task": "jpeg", "quality": 30}),
]


def test_every_option_of_degrade(folder: Path) -> None:
    write_picture(folder / "square.png", Picture(photograph(64, 64).permute(1, 2, 0).numpy()))
    seen: dict[bytes, str] = {}
    for out, words, arguments in SEEN:
        result = runner.invoke(app, ["degrade", "square.png", out, *words, "--force"])
        assert result.exit_code == 0 and result.stdout.strip() == out, result.output
        twin = f"python{Path(out).suffix}"
        notes = degrade_file("square.png", twin, **arguments)
        assert result.stderr.splitlines() == notes and (arguments.get("sigma") != 0.5 or "clipped" in notes[0])
        written = (folder / out).read_bytes()
        assert written == (folder / twin).read_bytes(), words
        assert written not in seen, f"{words} and {seen[written]} wrote the same"
        seen[written] = str(words)
    for quality in ("0", "101"):
        assert runner.invoke(app, ["degrade", "square.png", "no.jpg", "--task", "jpeg", "--quality", quality]).exit_code == 2


@pytest.mark.parametrize(
    ("task", "extra"),
    [("cs", []), ("inpaint", ["--mask", "random:0.5"]), ("deblur-motion", ["--kernel", "motion:2"])],
)
def test_degrade_then_restore(folder: Path, task: str, extra: list[str]) -> None:
    write_picture(folder / "square.png", Picture(photograph(64, 64).permute(1, 2, 0).numpy()))
    made = runner.invoke(app, ["degrade", "square.png", "m.npz", "--task", task, "--sigma", "0.05", *extra])
    assert made.exit_code == 0, made.output
    done = runner.invoke(app, ["restore", "m.npz", "out.png", "--steps", "2", "--keep-failed"])
    assert done.exit_code == 0, done.output
    assert "0.0500 (from the container)" in done.stderr
    refused = runner.invoke(app, ["degrade", "in.png", "no.png", "--task", "cs"])
    assert refused.exit_code == 2 and not (folder / "no.png").exists()


def test_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written, drawn = {}, list[Any]()
    real = figures.draw_side_by_side

    def draw(path: Path, views: Any, spread: Any) -> None:
        drawn.append((dict(views), spread))
        real(path, views, spread)

    monkeypatch.setattr(figures, "draw_side_by_side", draw)
    for folder, words in (("a", ["--steps", "3"]), ("b", ["--steps", "4", "--seed", "1"])):
        out = tmp_path / folder
        result = runner.invoke(app, ["demo", "--out", str(out), *words])
        assert result.exit_code == 0, result.output
        names = {"degraded.png", "restored.png", "uncertainty.png", "figure.png", "path.png", "run.json"}
        assert {path.name for path in out.iterdir()} == names
        assert {Path(line).name for line in result.stdout.split()} == names
        assert read_picture(out / "restored.png").size == tuple(4 * n for n in read_picture(out / "degraded.png").size)
        written[folder] = json.loads((out / "run.json").read_text())
    assert [written[name]["seed"] for name in "ab"] == [0, 1]
    assert [written[name]["settings"]["steps"] for name in "ab"] == [3, 4]
    assert (tmp_path / "a/degraded.png").read_bytes() != (tmp_path / "b/degraded.png").read_bytes(), "the seed draws noise"
    views, spread = drawn[1]
    with demo_photograph() as original:
        truth = read_picture(original).pixels
        degrade_file(original, tmp_path / "clean.png", "sr", sigma=0.0)
    near = float(metrics.psnr(*(torch.from_numpy(pixels).permute(2, 0, 1)[None] for pixels in (views["restored"], truth))))
    assert f"PSNR {near:.2f} dB" in result.stderr and near < 60
    degraded, clean = (read_picture(tmp_path / name).pixels for name in ("b/degraded.png", "clean.png"))
    assert list(views) == ["degraded", "restored", "original"] and spread.shape == truth.shape[:2]
    assert np.array_equal(views["degraded"], degraded) and np.array_equal(views["original"], truth)
    assert (degraded - clean)[degraded.min(2) > 0.1].std() == pytest.approx(0.02, rel=0.1)
