"""From a training state to the files that ship, calibrated on pictures that trained nothing."""

import os
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from leader.priors.inspection import inspect
from leader.priors.int8 import is_exact
from leader.priors.loading import load_prior
from leader.priors.mixed import find_rounding
from leader.priors.pyramid import PyramidPrior
from leader.train import publish as publishing
from leader.train.data import central_crops
from leader.train.fit_gaussian import fit_coarse_gaussian
from leader.train.publish import error_and_variance, fit_scale, publish, publish_state
from leader.train.run import TrainConfig, train
from leader.train.tables import fit_spectrum
from tests.sentences import refusal
from tests.train.pictures import write_pictures
from tests.train.test_run import EXPERT, MAIN, NET


def test_published_prior_is_the_same_network_and_calibrated(tmp_path: Path) -> None:
    shipped = PyramidPrior.load()
    write_pictures(tmp_path / "calib", count=2, size=(256, 256))
    prior = publish(shipped.net, shipped.coarse, tmp_path / "calib", tmp_path / "mine.safetensors", size=64)
    x = torch.randn(1, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    for t in (0, 300):
        ours, theirs = prior.predict(x, torch.tensor([t])), shipped.predict(x, torch.tensor([t]))
        assert torch.equal(ours.x0, theirs.x0)
    clean = torch.cat([central_crops(tmp_path / "calib", 64, half) for half in (True, False)])
    sigma = prior.scale.sigma[4]
    error, variance = error_and_variance(prior, clean, sigma, seed=4)
    # the same pictures and the same noise as in the fit: equal up to the rounding of the published factors
    assert float(error.mean() / variance.mean()) == pytest.approx(1.0, rel=1e-4)


def test_scale_is_fitted_on_top_of_the_present_one(tmp_path: Path) -> None:
    prior = PyramidPrior.load()
    write_pictures(tmp_path / "calib", count=1, size=(128, 128))
    clean = central_crops(tmp_path / "calib", 64, half=False)
    first = fit_scale(prior, clean, (0.05, 0.5))
    prior.scale = first
    again = fit_scale(prior, clean, (0.05, 0.5))
    assert again.factor == pytest.approx(first.factor, rel=1e-5)


def test_a_state_becomes_a_prior_that_the_command_line_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pictures = write_pictures(tmp_path / "pictures", count=2, size=(264, 260))
    train(TrainConfig(pictures, tmp_path / "run", net=NET, main=MAIN, expert=EXPERT, steps=2))
    out = tmp_path / "mine.safetensors"
    told: list[str] = []
    fitted: list[Path] = []

    def fit(images: Path, *words: Any) -> Any:
        fitted.append(images)
        return fit_coarse_gaussian(images, *words)

    monkeypatch.setattr(publishing, "fit_coarse_gaussian", fit)

    def watch(real: Any, images: Path, side: int) -> Any:
        fitted.append(images)
        return real(images, side)

    for name in ("crops_of_both_sizes", "central_crops"):
        monkeypatch.setattr(publishing, name, partial(watch, getattr(publishing, name)))
    held_out = write_pictures(tmp_path / "held out", count=1, size=(260, 264))
    published = publish_state(tmp_path / "run", pictures, held_out, out, told.append)
    held = [held_out, held_out]
    assert fitted == [pictures, *held, *([pictures] if is_exact() else [])], "variance and spectrum are fitted to the others"
    assert len(told) == len(published.scale.sigma) and "(1 of 15)" in told[0]
    assert published.net.config == NET and len(published.scale.sigma) > 1
    loaded = load_prior(out, whole=True)
    assert isinstance(loaded, PyramidPrior) and loaded.scale == published.scale
    rounding = find_rounding(out)
    assert rounding is not None and (rounding.int8 is not None) == is_exact()
    assert all(0 < error < 0.03 for error in rounding.int8 or ())  # of a range of 2
    found = inspect(out)
    assert found["family"] == "pyramid" and found["config"] == asdict(NET) and found["missing"] == []
    states = [inspect(file)["settings"] for file in (out, tmp_path / "run" / "pyramid.safetensors")]
    assert [isinstance(state, dict) and state["calibrated"] for state in states] == [True, False]


def test_what_cannot_be_published_is_told(tmp_path: Path) -> None:
    assert "holds no trained prior yet" in refusal(publish_state, tmp_path, tmp_path, tmp_path, tmp_path / "mine.safetensors")
    for name in ("pyramid.safetensors", "pyramid.json"):
        (tmp_path / name).touch()
    assert "must end in" in refusal(publish_state, tmp_path, tmp_path, tmp_path, tmp_path / "mine.pt")
    assert "nowhere does not exist" in refusal(
        publish_state, tmp_path, tmp_path, tmp_path, tmp_path / "nowhere" / "mine.safetensors"
    )
    assert "belongs to the training run" in refusal(
        publish_state, tmp_path, tmp_path, tmp_path, Path(os.path.relpath(tmp_path)) / "pyramid.safetensors"
    )


def test_the_published_spectrum_is_fitted_to_pictures_in_the_range_of_the_prior(tmp_path: Path) -> None:
    shipped = PyramidPrior.load()
    write_pictures(tmp_path / "calib", count=3, size=(140, 132))
    prior = publish(shipped.net, shipped.coarse, tmp_path / "calib", tmp_path / "mine.safetensors", size=64)
    crops = central_crops(tmp_path / "calib", 64)
    assert prior.spectrum is not None
    assert torch.allclose(prior.spectrum.colour.double(), (2 * crops - 1).double().mean((0, 2, 3)), atol=1e-4)
    assert torch.allclose(prior.spectrum.images, fit_spectrum(prior, 2 * crops - 1).images, rtol=1e-3, atol=1e-6)
