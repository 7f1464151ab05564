"""SATP's eta for a prior: on curves whose answer is known, and from the command."""

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from leader.cli import trust as command
from leader.cli.settings import read_settings
from leader.plugins import SATP
from leader.presets import find
from leader.priors import loading
from leader.priors.base import Prediction
from leader.problem import Problem
from leader.schedule import uniform_grid
from leader.train import pruning
from leader.train.pruning import RANGES, Curve, calibrate_eta, calls, curves, outside
from tests.cheap_prior import CheapPrior
from tests.sentences import refusal
from tests.train.pictures import write_pictures


class Headless(CheapPrior):
    """One that says nothing of its variance."""

    source: str | None = None

    def _predict(self, x: torch.Tensor, t: torch.Tensor) -> Prediction:
        return replace(super()._predict(x, t), variance=None)


def constant(value: float) -> Curve:
    return Curve(uniform_grid(100), (value,) * 100)


@pytest.mark.parametrize(("jump", "wanted"), [(1, 100), (2, 51), (3, 34), (99, 2)])
def test_calls_of_a_constant_uncertainty(jump: int, wanted: int) -> None:
    """Jumps of j from position 0, and the last time before the clean image is visited: 1 + ceil(99 / j)."""
    satp = SATP(budget=0.01, eta=1.0)
    assert calls(constant(0.01 / (jump + 0.5)), satp) == wanted == 1 + -(-99 // jump)
    assert calls(constant(0.01 / (jump + 0.5)), SATP(budget=0.0)) == 100


def test_the_eta_that_fits_is_found() -> None:
    """U falls geometrically over the path; of the candidates one meets every range, and scaling U scales eta."""
    values = [10 ** (-0.2 - 2.1 * position / 99) for position in range(100)]
    first, second = (
        calibrate_eta([Curve(uniform_grid(100), tuple(scale * value for value in values))]) for scale in (1.0, 10.0)
    )
    assert second.eta == pytest.approx(10 * first.eta, rel=0.07), "one candidate is 6 % above the other"
    total = {c.eta: sum(outside(m, RANGES[b]) for b, m in c.calls.items()) for c in (first, second)}
    for factor in (0.5, 2.0):
        other = calibrate_eta([Curve(uniform_grid(100), tuple(values))], [factor * first.eta])
        assert sum(outside(m, RANGES[b]) for b, m in other.calls.items()) >= total[first.eta]


def test_curves_hold_what_satp_would_read() -> None:
    """Every picture and task has a curve of the whole path, by the estimator that SATP gets: not the cheap stand-in of runs
    in which nothing reads Sigma.
    """
    clean = torch.rand((2, 3, 16, 16), generator=torch.Generator().manual_seed(0))
    told: list[str] = []
    found = curves(Headless(), clean, say=told.append, steps=7)
    assert len(found) == 6 and len(told) == 3
    assert all(len(curve.values) == 7 == curve.grid.visits for curve in found)
    by_name = curves(Headless(), clean, estimator="hutchinson", steps=7)
    energy = curves(Headless(), clean, estimator="noise-energy", steps=7)
    assert [curve.values for curve in found] == [curve.values for curve in by_name]
    assert found[0].values != energy[0].values


def test_curves_are_of_tasks_with_the_noise_they_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    problems: list[Problem] = []

    class Noted(Problem):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            problems.append(self)

    monkeypatch.setattr(pruning, "Problem", Noted)
    clean = torch.full((2, 3, 64, 32), 0.5)
    curves(CheapPrior(), clean, steps=2)
    found = [float(problem.residual(2 * clean - 1).std()) / 2 for problem in problems]
    assert found == pytest.approx([0.0, 0.05, 0.05], rel=0.1, abs=1e-6)


def test_curves_are_those_of_a_whole_path() -> None:
    """Near the end this prior is so sure that SATP would jump: every time is visited all the same."""
    for curve in curves(CheapPrior(), torch.full((1, 3, 16, 16), 0.5)):
        assert len(curve.values) == 100 and calls(curve, SATP(budget=0.01, eta=2.0)) < 100


def test_the_forecast_is_that_of_every_step_of_every_task(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("time.monotonic", itertools.count().__next__)
        assert pruning.predict_seconds(CheapPrior(), torch.full((2, 3, 16, 16), 0.5)) == 3 * 100 * 2


def test_the_command_prints_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    asked: list[tuple[int, int, str]] = []

    def recorded(prior: Any, clean: torch.Tensor, estimator: str, say: Any) -> list[Curve]:
        asked.append((len(clean), clean.shape[-1], estimator))
        return [Curve(uniform_grid(100), tuple(10 ** (-0.2 - 2.1 * position / 99) for position in range(100)))]

    monkeypatch.setattr(pruning, "curves", recorded)
    prior = CheapPrior()
    devices: list[str] = []

    def load(name: str, device: str) -> CheapPrior:
        devices.append(device)
        return prior

    monkeypatch.setattr(loading, "load_prior", load)
    pictures = write_pictures(tmp_path / "pictures", count=3, size=(160, 140))
    command.calibrate_satp(images=pictures, count=2, size=48, estimator="difference")
    told = capsys.readouterr()
    assert asked == [(2, 48, "difference")]
    (tmp_path / "satp.toml").write_text(told.out)
    settings = read_settings(tmp_path / "satp.toml")
    assert settings["satp"] == settings["satp-paper"] and settings["satp"]["eta"] > 0
    assert "B = 0.01: " in told.err and "wanted 92 to 98" in told.err
    assert "is not a folder" in refusal(command.calibrate_satp, images=tmp_path / "absent")
    assert "no weights file" in refusal(command.calibrate_satp, images=pictures, store=True)
    prior.home = tmp_path / "weights.pt"
    command.calibrate_satp(images=pictures, count=1, size=48, store=True, device="cpu:0")
    assert devices == ["cpu", "cpu", "cpu:0"] and str(tmp_path / "weights.pt.presets.toml") in capsys.readouterr().err
    assert find("cheap", "ddpg", "cs", 0.05, prior.home)["satp-paper"]["eta"] == settings["satp"]["eta"]
