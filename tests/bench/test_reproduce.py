"""The paper at full size, tried with a small network and few steps: pictures, calibration, rows, tables."""

import json
from pathlib import Path

import pytest
import torch
from experiments.reproduce import app
from PIL import Image
from typer.testing import CliRunner

from leader.errors import LeaderError
from leader.presets.stored import read_stored
from leader.priors.detection import build_network
from leader.priors.networks import DDPMConfig
from tests.bench.tiny import photographs

runner = CliRunner()


@pytest.fixture
def network(tmp_path: Path) -> Path:
    torch.manual_seed(0)
    path = tmp_path / "small.pt"
    torch.save(dict(build_network(DDPMConfig(32, (1, 1, 1), 1, ())).state_dict()), path)
    path.with_suffix(".json").write_text(json.dumps({"size": 64, "schedule": "linear"}))
    return path


def test_pictures_are_chosen_and_cut(tmp_path: Path) -> None:
    folder = photographs(tmp_path / "photos", count=7, side=300)
    (tmp_path / "list.txt").write_text("photo3.JPEG 17\nphoto0.JPEG 4\n")
    words = f"pictures imagenet {folder} --list {tmp_path}/list.txt --count 2 --out {tmp_path}/o".split()
    assert runner.invoke(app, words).exit_code == 0
    made = {kind: sorted(path.name for path in (tmp_path / "o" / "imagenet" / kind).iterdir()) for kind in ("test", "held-out")}
    assert made["test"] == ["00000-photo3.png", "00001-photo0.png"], "in the order of the list"
    assert made["held-out"] == [f"{n:05d}-photo{name}.png" for n, name in enumerate((1, 2, 4, 5))], "none of the test's"
    with Image.open(folder / "photo3.png") as photo, Image.open(tmp_path / "o" / "imagenet" / "test" / made["test"][0]) as cut:
        assert cut.tobytes() == photo.resize((256, 256), Image.Resampling.BILINEAR).tobytes()
    few = runner.invoke(app, ["pictures", "celebahq", str(folder), "--count", "5", "--out", str(tmp_path / "o")])
    assert "4 are needed" in str(few.exception), "two are left to be held out"
    (tmp_path / "list.txt").write_text("photo9.png\n")
    assert "photo9" in str(runner.invoke(app, words).exception)


def test_a_trial_calibrates_runs_and_prints(network: Path, tmp_path: Path) -> None:
    out = f"--out {tmp_path}/o".split()
    trial = f"run celebahq --prior {network} --steps 1 --count 1 --device cpu --tables table2 --tasks SR --size 64"
    words = trial.split() + out
    assert isinstance(runner.invoke(app, words).exception, LeaderError), "no pictures yet"
    folder = photographs(tmp_path / "photos", count=5, side=256)
    assert runner.invoke(app, ["pictures", "celebahq", str(folder), "--count", "1", *out]).exit_code == 0
    bill = runner.invoke(app, [*words, "--dry-run"])
    assert bill.exit_code == 0 and "6 rows; 6 cells to do: 10 calls, 0 JVPs, 4 backward passes" in bill.output
    done = runner.invoke(app, words)
    assert done.exception is None, done.output
    (table,) = (tmp_path / "o" / "celebahq").glob("*.md")
    assert table.read_text().count("| DDNM + LEADer (paper) |") >= 1
    assert "not stored" in done.output and not read_stored(network)
