"""Before a long run: how long it will take, and beyond ten minutes a question on a terminal, which --yes answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

from leader.cli import ahead, app
from leader.restoration import ahead as estimate
from leader.restoration.restore import Preparation, prepare
from tests.cheap_prior import CheapPrior, photograph

runner = CliRunner()
WORDS = ["restore", "in.png", "out.png", "--task", "denoise", "--steps", "2", "--no-check", "-f"]


def ready(**choices: Any) -> Preparation:
    return prepare(photograph(16, 24), "denoise", sigma=0.1, prior=CheapPrior(), steps=10, plugins=(), **choices)


def ticking(seconds: float) -> object:
    """A clock that moves on by so many seconds whenever it is read."""
    now = [0.0]

    def clock() -> float:
        now[0] += seconds
        return now[0]

    return clock


def test_the_estimate_is_work_times_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    assert estimate.seconds_ahead(ready()) is None, "short runs are not measured"
    monkeypatch.setattr(estimate, "WORTH_ASKING", 1)
    assert [cost for _, cost in ready().work()] == [16 * 24] * 10
    pace = 2.0 / 256**2  # the call on 256 x 256 pixels takes two seconds
    expected = pace * (10 * 16 * 24 + 0.2 * 10 * 16 * 24)
    assert estimate.seconds_ahead(ready(), ticking(2.0)) == pytest.approx(expected)  # type: ignore[arg-type]
    assert estimate.seconds_ahead(ready(average=3), ticking(2.0)) == pytest.approx(3 * expected)  # type: ignore[arg-type]


def test_the_threads_of_the_run_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimate, "WORTH_ASKING", 1)
    used: list[int] = []

    class Noted(CheapPrior):
        def _predict(self, x: torch.Tensor, t: torch.Tensor) -> object:  # type: ignore[override]
            used.append(torch.get_num_threads())
            return super()._predict(x, t)

    before = torch.get_num_threads()
    made = prepare(photograph(16, 24), "denoise", sigma=0.1, prior=Noted(), steps=3, plugins=(), threads=before + 1)
    estimate.seconds_ahead(made)
    assert used == [before + 1] and torch.get_num_threads() == before


@pytest.mark.parametrize(
    ("seconds", "terminal", "answer", "words", "begun", "asked"),
    [
        (None, True, "", [], True, False),
        (59.0, True, "", [], True, False),
        (599.0, True, "", [], True, False),
        (601.0, True, "y\n", [], True, True),
        (601.0, True, "n\n", [], False, True),
        (601.0, True, "\n", [], False, True),
        (601.0, True, "", ["--yes"], True, False),
        (601.0, False, "", [], True, False),
    ],
)
def test_a_very_long_run_wants_an_answer(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    seconds: float | None,
    terminal: bool,
    answer: str,
    words: list[str],
    begun: bool,
    asked: bool,
) -> None:
    monkeypatch.setattr(ahead, "seconds_ahead", lambda ready: seconds)
    monkeypatch.setattr(ahead, "_at_a_terminal", lambda: terminal)
    result = runner.invoke(app, [*WORDS, *words], input=answer)
    assert ("Begin?" in result.output) is asked
    assert ("This will take about 10 minutes" in result.stderr) is (seconds is not None and seconds > 60)
    assert Path("out.png").exists() is begun
    assert result.exit_code == (0 if begun else 130), result.output
    assert ("Nothing was done" in result.stderr) is not begun


def test_no_terminal_behind_a_pipe(folder: Path) -> None:
    assert not ahead._at_a_terminal()
