"""What `leader train` and `leader fit-variance` say."""

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from leader.cli.training import fit_variance, publish, train, training_line
from leader.errors import LeaderError
from tests.train.pictures import write_pictures


@pytest.mark.slow
def test_training_from_the_shell_ends_in_time_and_leaves_a_prior(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pictures = write_pictures(tmp_path / "pictures", count=3, size=(700, 700))
    train(images=pictures, state=tmp_path / "run", hours=0.1 / 3600)
    told = capsys.readouterr()
    assert "Training starts at step 0" in told.err and "Training ends at step 1" in told.err
    assert told.out.strip() == str(tmp_path / "run")
    assert (tmp_path / "run" / "pyramid.safetensors").exists() and (tmp_path / "run" / "pyramid.json").exists()


def test_a_line_of_the_log_says_how_long_and_how_well() -> None:
    record: dict[str, Any] = {"step": 40, "seconds": 60.0, "main_denoising": 0.25, "main_ratio": 0.9, "expert_denoising": 0.5}
    told = training_line({"kind": "train", **record}, 3660.0)
    assert "step 40, 1:00:00 left" in told and "loss main 0.2500, expert 0.5000; squared error / variance 0.90" in told
    checks = {"sigma": [5.0, 50.0], "psnr": [38.5, 25.25], "ratio": [1.0, 1.1]}
    assert "5.0: 38.50 dB (1.00), 50.0: 25.25 dB (1.10)" in training_line({"kind": "validation", **record, **checks}, 100.0)
    for kind, said in (
        ("start", "starts at step 40, 0:40 left."),
        ("resume", "goes on at step 40, "),
        ("end", "ends at step 40."),
    ):
        assert said in training_line({"kind": kind, **record}, 100.0)


def test_mistakes_are_told_before_any_work(tmp_path: Path) -> None:
    with pytest.raises(LeaderError, match="absent is not a folder"):
        train(images=tmp_path / "absent", state=tmp_path / "run")
    pictures = write_pictures(tmp_path / "pictures", count=1)
    with pytest.raises(LeaderError, match="found 'nothing'"):
        train(images=pictures, state=tmp_path / "run", start="nothing")
    with pytest.raises(LeaderError, match="absent is not a folder"):
        publish(state=tmp_path / "absent", images=pictures, calibration=pictures, out=tmp_path / "mine.safetensors")
    with pytest.raises(LeaderError, match="use --out"):
        fit_variance(prior="embedded", images=pictures)
    with pytest.raises(LeaderError, match="absent"):
        fit_variance(prior=str(tmp_path / "absent"), images=pictures)


def test_a_head_never_replaces_another_file(tmp_path: Path) -> None:
    pictures = write_pictures(tmp_path / "pictures", count=1)
    other = tmp_path / "photo.png"
    other.write_bytes(b"x")
    weights = tmp_path / "weights.safetensors"
    save_file({"a": torch.zeros(1)}, weights)
    for out, told in (
        (other, "must end in"),
        (weights, "is not a variance head"),
        (tmp_path / "nowhere" / "h.variance.safetensors", "does not exist"),
    ):
        with pytest.raises(LeaderError, match=told):
            fit_variance(prior="embedded", images=pictures, out=out, minutes=0.001)
    with pytest.raises(LeaderError, match="minutes"):
        fit_variance(prior="embedded", images=pictures, out=tmp_path / "h.variance.safetensors", minutes=float("nan"))
    assert other.read_bytes() == b"x" and list(load_file(weights)) == ["a"]
