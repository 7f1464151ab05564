"""The paper at full size, tried with a small network and few steps: pictures, calibration, rows, tables."""

import json
from pathlib import Path

import pytest
import torch
from experiments.reproduce import app
from experiments.search import choose_settings, draw_strengths
from PIL import Image
from typer.testing import CliRunner

from leader.bench.records import Store
from leader.bench.running import Answer
from leader.engines import make_engine
from leader.errors import LeaderError
from leader.presets.stored import read_stored
from leader.priors.detection import build_network
from leader.priors.networks import DDPMConfig
from tests.bench.test_run import run_cell_empty
from tests.bench.tiny import photographs, tiny

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


def test_the_best_trial_is_chosen_and_none_is_run_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = tiny(tmp_path).restricted("DDPG", "Motion").cells()
    trials = [{}, {"gamma": 2.0}, {"gamma": 9.0, "zeta": 0.9}, {"gamma": 200.0}]
    store = Store(tmp_path / "records", "search")
    best = choose_settings(cells, trials, store, make_engine())
    records = list(store.all())
    assert len(records) == len(trials) * len(cells)
    means = [
        sum(one["psnr"] - 10 * one["lpips"] for one in records[at : at + len(cells)])
        for at in range(0, len(records), len(cells))
    ]
    assert best == trials[means.index(max(means))] and means.index(max(means)) > 0
    monkeypatch.setattr("experiments.search.run_cell", None)
    assert choose_settings(cells, trials, Store(tmp_path / "records", "search"), make_engine()) == best
    monkeypatch.setattr("experiments.search.run_cell", lambda cell: Answer({**run_cell_empty(cell), "error": "no luck"}, {}))
    assert choose_settings(cells, [{"gamma": 3.0}, {}], store, make_engine()) == {}, "a trial that fails is never the best"


def test_strengths_are_drawn_alike_within_their_range() -> None:
    first, *drawn = draw_strengths("0/ddnm/leader-paper/SR", 30)
    found = [one["ucpm-paper"]["lam"] for one in drawn]
    assert first == {} and draw_strengths("0/ddnm/leader-paper/SR", 30)[1:] == drawn
    assert 0.02 <= min(found) < 0.05 and 0.2 < max(found) <= 0.5
