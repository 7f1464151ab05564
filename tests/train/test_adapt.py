"""`leader adapt`: everything fitted to a prior of one's own by one command that can be stopped."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

from leader import Problem, Sampler, load_prior, operators
from leader.cli import app
from leader.presets.stored import read_stored, stored_file
from leader.priors import variance_head
from leader.train import pruning, trust_fit, trust_runs, variance
from leader.train.adapt import Adaptation, _fit_referee, list_companions, plan_adaptation
from leader.train.data import Images, central_crops
from leader.trust.referee import Referee
from tests.sentences import refusal
from tests.train.pictures import write_pictures

MINE = """
from tests.cheap_prior import CheapPrior

from leader.priors import Prediction


class Mine(CheapPrior):
    name, source, size = "mine", None, (32, 32)

    def _predict(self, x, t):
        answer = super()._predict(x, t)
        return Prediction(answer.x0, answer.eps)
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: a prior of one's own, and six pictures of which one is too small for it."""
    (tmp_path / f"{tmp_path.name}.py").write_text(MINE)  # a name of its own: modules are kept
    write_pictures(tmp_path / "photos", count=5, size=(70, 80))
    Image.new("RGB", (20, 90)).save(tmp_path / "photos" / "small.png")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setattr("leader.train.defaults.FEWEST_RUNS", 3)
    return tmp_path


def name_prior() -> str:
    return f"{Path.cwd().name}:Mine"


def run(*words: str) -> Any:
    return CliRunner().invoke(app, ["adapt", name_prior(), "--data", "photos", "--minutes", "0.02", *words])


def test_a_stopped_adaptation_goes_on_and_all_of_it_is_used(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, set[str]] = {}
    real_fit, real_runs = variance.fit_variance, trust_runs.make_runs

    def watch_fit(prior: Any, images: Any, *words: Any) -> Any:
        seen["head"] = {file.name for file in images}
        return real_fit(prior, images, *words)

    def watch_runs(prior: Any, images: Images, cases: Any, store: Path, *words: Any) -> Any:
        assert not isinstance(images, Path) and {case.side for case in cases if case.task != "jpeg"} == {32}
        seen[store.name] = {file.name for file in images}
        if len(seen) == 2 and not (place / "Mine.adapting" / "stopped").exists():
            (place / "Mine.adapting" / "stopped").touch()
            raise KeyboardInterrupt
        return real_runs(prior, images, cases, store, *words)

    monkeypatch.setattr(variance, "fit_variance", watch_fit)
    monkeypatch.setattr(trust_runs, "make_runs", watch_runs)
    monkeypatch.setattr(pruning.Calibrated, "missed", (0.05, 0.1))
    first = run()
    assert (
        first.exit_code == 130 and "will take about" in first.output and "1 of 6 pictures are smaller than 32" in first.output
    )
    head = variance_head.head_file(place / "Mine").read_bytes()
    second = run()
    assert second.exit_code == 0, second.output
    assert "pictures, though the budgets 0.05, 0.1 are missed" in first.output + second.output
    assert "about" in second.output and "head 1 s" in first.output and "head 1 s" not in second.output, (
        "only what is left counts"
    )
    assert "1 of 5, head: done before" in second.output and variance_head.head_file(place / "Mine").read_bytes() == head
    assert seen["head"] == seen["fitting"] == {"0.png", "1.png", "2.png", "4.png"} and seen["held-out"] == {"3.png"}
    assert not (place / "Mine.adapting").exists()

    prior = load_prior(name_prior())
    assert all(list_companions(prior).values()) and prior.source == "head" and prior.spectrum is not None
    crops = 2 * central_crops([place / "photos" / name for name in sorted(seen["fitting"])], 32).double() - 1
    colours = [crops[:count].mean((0, 2, 3)) for count in (3, 4)]
    assert any(torch.allclose(prior.spectrum.colour, colour, atol=1e-4) for colour in colours), "of pictures in its range"
    eta = read_stored(place / "Mine")[0]["settings"]["satp"]["eta"]
    operator = operators.AveragePoolSR((3, 32, 32), 4)
    problem = Problem(torch.full((1, 3, 8, 8), 0.5), operator, 0.0)
    chosen = Sampler(prior, "ddnm", ["satp"], 5).plan(problem).settings["plugins"][0]
    assert chosen["eta"] == eta and Sampler(prior, "ddnm", ["satp"], 5, satp={"eta": 9.0}).plan(problem).settings["plugins"][0][
        "eta"
    ] == pytest.approx(9.0), "what is given wins over what is fitted"
    plain = Sampler(prior, "ddnm", ["satp"], 5, use_presets=False).plan(problem).settings["plugins"][0]
    assert plain["eta"] == 2.0


def test_what_was_begun_with_another_seed_is_forgotten(place: Path) -> None:
    store = place / "Mine.adapting"
    store.mkdir()
    (store / "steps.json").write_text(json.dumps({"belongs": ["seed 0"], "done": {"head": 1.0}}))
    (store / "fitting").mkdir()
    (store / "fitting" / "00000.npz").write_bytes(b"of other pictures")
    found = run("--seed", "4")
    assert found.exit_code == 0 and "is discarded" in found.output and "done before" not in found.output


def test_the_referee_shares_its_time_between_runs_and_fit(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seconds: list[float] = []

    def take(runs: Any, workers: Any, time: float) -> list[Path]:
        seconds.append(time)
        return []

    def fit(lessons: Any, settings: trust_fit.FitSettings, say: Any) -> Referee:
        seconds.append(settings.seconds)
        return Referee()

    monkeypatch.setattr(trust_runs, "make_timed_runs", take)
    monkeypatch.setattr(trust_fit, "fit_referee", fit)
    _fit_referee(plan_adaptation(name_prior(), place / "photos", 10.0), 8.0, None, lambda text: None)
    assert seconds == [6.0, 2.0]


def test_a_long_adaptation_is_told_as_such(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_adaptation(name_prior(), place / "photos", 10.0)
    assert sum(plan.predict_seconds().values()) == pytest.approx(10.0, abs=5.0)
    slow = Adaptation(**{**vars(plan), "network": _Slow(plan.network)})
    parts = slow.predict_seconds()
    assert parts["head"] == pytest.approx(2.5) and parts["eta"] >= 300 * 0.05, "the eta alone takes 300 calls"


class _Slow:
    """A network of 50 ms a call."""

    def __init__(self, base: Any) -> None:
        self.size, self.channels, self.schedule = base.size, base.channels, base.schedule

    def predict(self, x: Any, t: Any) -> None:
        import time

        time.sleep(0.05)


def test_what_cannot_be_adapted_is_refused(place: Path) -> None:
    assert "at least 4" in refusal(plan_adaptation, name_prior(), write_pictures(place / "few", count=3), 10.0)
    stored_file(place / "Mine").write_text("preset = 3")
    assert "Mine" in refusal(read_stored, place / "Mine")
