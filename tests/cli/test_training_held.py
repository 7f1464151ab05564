"""What `leader fit-variance` hands on, and how a stdout that cannot take the answer ends."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from leader.cli import errors, training
from leader.priors import loading
from leader.priors.spectrum import Spectrum, beside
from leader.train import variance
from tests.cheap_prior import CheapPrior
from tests.train.pictures import write_pictures


def test_minutes_and_seed_reach_the_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[variance.FitSettings] = []

    class EnoughError(Exception):
        pass

    def fit(prior: Any, images: Any, target: Any, settings: variance.FitSettings, say: Any = None) -> Any:
        asked.append(settings)
        raise EnoughError

    monkeypatch.setattr(variance, "fit_variance", fit)
    monkeypatch.setattr(loading, "load_prior", lambda *_, **__: CheapPrior())
    pictures, out = write_pictures(tmp_path / "pictures", count=1), tmp_path / "x.variance.safetensors"
    with pytest.raises(EnoughError):
        training.fit_variance(prior="embedded", images=pictures, out=out, minutes=2.5, seed=11)
    assert asked[0].seconds == 150 and asked[0].seed == 11


@pytest.mark.parametrize("folder", [True, False])
def test_a_spectrum_lies_where_loading_looks_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: bool) -> None:
    """A diffusers folder, or a file with dots in its name."""
    source = tmp_path / "some.model.pt"
    source.mkdir() if folder else source.touch()
    made = Spectrum(*(torch.ones(1),) * 7)
    monkeypatch.setattr(
        variance, "fit_variance", lambda *_, **__: (None, SimpleNamespace(answers=1, steps=1, seconds=1, ratio=1))
    )
    monkeypatch.setattr(loading, "load_prior", lambda *_, **__: CheapPrior())
    monkeypatch.setattr("leader.priors.adapters.HeadedPrior", lambda prior, head: prior)
    monkeypatch.setattr("leader.train.spectrum.fit_spectrum", lambda *_: made)
    training.fit_variance(prior=str(source), images=write_pictures(tmp_path / "pictures", count=2), minutes=1.0)
    assert beside(source).is_file(), [str(path) for path in tmp_path.rglob("*.json")]


class Broken(io.StringIO):
    """A stdout whose reader has gone."""

    def flush(self) -> None:
        raise BrokenPipeError

    def fileno(self) -> int:
        raise OSError


def test_a_broken_pipe_is_no_success(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", Broken())
    assert errors._flushed(0) == errors.FAILED and errors._flushed(2) == 2
