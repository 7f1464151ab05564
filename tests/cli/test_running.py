"""What is said before and during a long run, and the question beyond ten minutes, which --yes answers."""

import itertools
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from leader import progress
from leader.cli import app, running
from leader.restoration.progress import Forecast, RunProgress
from leader.restoration.restore import Preparation
from leader.restoration.restored import Restoration
from leader.trust.maps import in_words

runner = CliRunner()
WORDS = ["restore", "in.png", "out.png", "--task", "denoise", "--steps", "6", "--no-check", "-f", "--plugin", "none"]


@pytest.mark.parametrize(
    ("seconds", "terminal", "answer", "words", "begun", "asked"),
    [
        *((1.9, True, "", [], True, False), (59.0, True, "", [], True, False), (599.0, True, "", [], True, False)),
        *((601.0, True, "y\n", [], True, True), (601.0, True, "\n", [], False, True)),
        *((601.0, True, "", ["--yes"], True, False), (601.0, False, "", [], True, False)),
    ],
)
def test_a_very_long_run_wants_an_answer(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    seconds: float,
    terminal: bool,
    answer: str,
    words: list[str],
    begun: bool,
    asked: bool,
) -> None:
    loads: list[float] = []

    def forecast(ready: Preparation, busy: float) -> Forecast:
        loads.append(busy)
        return Forecast(seconds, 0.1, False)

    monkeypatch.setattr(running, "forecast_run", forecast)
    monkeypatch.setattr(running, "at_terminal", lambda: terminal)
    result = runner.invoke(app, [*WORDS, *words], input=answer)
    assert ("Begin?" in result.stderr) is asked and "Begin?" not in result.stdout
    assert loads[0] >= 1, "what else the machine does counts"
    assert ("This will take about" in result.stderr) is (seconds >= 2)
    assert ("about 10 min; fewer --steps, --quality draft or a smaller picture take less." in result.stderr) is (seconds > 60)
    assert Path("out.png").exists() is begun and result.exit_code == (0 if begun else 130), result.output


def test_nobody_is_asked_behind_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    for ends in itertools.product((False, True), repeat=2):
        for name, end in zip(("stdin", "stderr"), ends):
            monkeypatch.setattr(sys, name, SimpleNamespace(isatty=lambda end=end: end))
        assert running.at_terminal() == all(ends)


def test_steps_are_told_now_and_then(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "ProgressDisplay", lambda say: progress.ProgressDisplay(say, every=0.0))
    told = runner.invoke(app, WORDS).stderr
    assert [f"step {number} of 6, at most" in told for number in (1, 3, 5, 6)] == [True, True, True, False], told
    assert "all steps are done, the result is examined" in told


def test_how_far_to_trust_it_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Preparation.finish

    def finish(self: Preparation, *words: Any) -> Restoration:
        made = real(self, *words)
        assert made.uncertainty is not None
        spread.append(made.uncertainty)
        return replace(made, trust=unchecked)

    spread: list[Any] = []
    unchecked: Any = SimpleNamespace(note="It was not checked.")
    monkeypatch.setattr(Preparation, "finish", finish)
    told = runner.invoke(app, [*WORDS, "--sigma", "0.1"]).stderr.splitlines()
    assert told[-2:] == [in_words(spread[0]), "It was not checked."], told


def test_what_would_take_less_is_told_and_only_that(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "forecast_run", lambda ready, busy: Forecast(90.0, 0.1, True))
    calls: list[float] = []

    class Noted(RunProgress):
        def __init__(self, ready: Preparation, call: float) -> None:
            calls.append(call)
            super().__init__(ready, call=call)

    monkeypatch.setattr(running, "RunProgress", Noted)
    words = ["restore", "in.png", "out.png", "-f", "--no-check", "--task", "denoise", "--sigma", "0.1"]
    tried = {"best": "steps, --quality draft or a smaller", "draft": "steps or a smaller"}
    for quality, less in tried.items():
        told = runner.invoke(app, [*words, "--quality", quality]).stderr
        assert f"This will take at most 2 min; fewer --{less} picture take less." in told, told
    named = runner.invoke(app, [*words, "--method", "ddnm"]).stderr
    assert "fewer --steps or a smaller picture" in named, "a method has no quality"
    assert calls == [0.1] * 3, "the time left begins with what was measured"


def test_a_long_look_at_the_picture_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from leader.cli import restore

    shown: list[str] = []

    def display(say: Callable[[str], None], text: str) -> progress.ProgressDisplay:
        shown.append(text)
        return progress.ProgressDisplay(say)

    monkeypatch.setattr(restore, "ProgressDisplay", display)
    runner.invoke(app, WORDS)
    assert shown == ["The picture is being examined."]


def test_a_second_run_says_why_it_begins_and_how_long_it_takes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from leader.trust import Verdict

    monkeypatch.setattr("leader.restoration.second_try.larger_sigma_may_help", lambda numbers: True)
    monkeypatch.setattr("leader.restoration.second_try.improves", lambda later, earlier: False)
    monkeypatch.setattr("leader.restoration.restore.judge", lambda numbers: Verdict("failed"))
    monkeypatch.setattr(running, "format_duration", lambda seconds: "as before" if seconds > 0 else "nothing")
    told = runner.invoke(
        app, ["restore", "in.png", "out.png", "--task", "colourise", "--steps", "3", "--plugin", "none"]
    ).stderr
    assert told.count("It is run again, which takes about as before: Sigma was estimated as") == 2, told
