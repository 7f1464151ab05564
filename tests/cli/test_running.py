"""What is said before and during a long run, and the question beyond ten minutes, which --yes answers."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from leader import progress
from leader.cli import app, running

runner = CliRunner()
WORDS = ["restore", "in.png", "out.png", "--task", "denoise", "--steps", "6", "--no-check", "-f", "--plugin", "none"]


@pytest.mark.parametrize(
    ("seconds", "terminal", "answer", "words", "begun", "asked"),
    [
        *((None, True, "", [], True, False), (59.0, True, "", [], True, False), (599.0, True, "", [], True, False)),
        *((601.0, True, "y\n", [], True, True), (601.0, True, "\n", [], False, True)),
        *((601.0, True, "", ["--yes"], True, False), (601.0, False, "", [], True, False)),
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
    monkeypatch.setattr(running, "predict_seconds", lambda ready: seconds)
    monkeypatch.setattr(running, "at_terminal", lambda: terminal)
    result = runner.invoke(app, [*WORDS, *words], input=answer)
    assert ("Begin?" in result.output) is asked
    assert ("about 10 min" in result.stderr) is (seconds is not None and seconds > 60)
    assert Path("out.png").exists() is begun and result.exit_code == (0 if begun else 130), result.output


def test_nobody_is_asked_behind_a_pipe(folder: Path) -> None:
    assert not running.at_terminal()


def test_steps_are_told_now_and_then(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "ProgressDisplay", lambda say: progress.ProgressDisplay(say, every=0.0))
    told = runner.invoke(app, WORDS).stderr
    assert [f"step {number} of 6, at most" in told for number in (1, 3, 6, 7)] == [True, True, True, False], told
