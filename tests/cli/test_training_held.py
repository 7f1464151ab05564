"""What `leader fit-variance` hands on, and how a stdout that cannot take the answer ends."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from leader.cli import errors, training
from leader.priors import loading
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


class Broken(io.StringIO):
    """A stdout whose reader has gone."""

    def flush(self) -> None:
        raise BrokenPipeError

    def fileno(self) -> int:
        raise OSError


def test_a_broken_pipe_is_no_success(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", Broken())
    assert errors._flushed(0) == errors.FAILED and errors._flushed(2) == 2
