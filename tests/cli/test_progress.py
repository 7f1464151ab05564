"""Progress: a line now and then without a terminal, a warning before a long run, an honest time left."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from leader.cli import app, progress
from leader.cli.progress import Announcer, duration, where
from leader.restoration.progress import WorkLeft
from leader.restoration.restore import Preparation, prepare
from tests.cheap_prior import CheapPrior, photograph

runner = CliRunner()


def run(ready: Preparation, seconds: float, every: float | None = progress.SILENCE) -> list[str]:
    """What is said during a run each of whose steps takes so many seconds."""
    now, said = [0.0], list[str]()
    announcer = Announcer(WorkLeft(ready, clock=lambda: now[0]), said.append, clock=lambda: now[0])
    for step in ready.sampler.iterate(ready.problem):
        now[0] += seconds
        announcer(step, every)
    return said


@pytest.fixture
def ready() -> Preparation:
    return prepare(photograph(16, 16), "denoise", sigma=0.1, prior=CheapPrior(), steps=20, plugins=())


def test_short_runs_are_silent(ready: Preparation) -> None:
    assert run(ready, 0.1) == []


def test_a_line_every_ten_seconds(ready: Preparation) -> None:
    said = run(ready, 2.5)
    assert [line.split(",")[0] for line in said] == ["step 4 of 20", "step 8 of 20", "step 12 of 20", "step 16 of 20"]
    assert said[1].endswith("at most 0:30 left")


def test_a_long_run_is_announced_once(ready: Preparation) -> None:
    said = run(ready, 60)
    assert said[0].startswith("This will take up to 19 minutes") and "--steps" in said[0]
    assert sum("will take" in line for line in said) == 1
    assert said[1].startswith("step 2 of 20, at most 18:00 left")
    assert run(ready, 60, every=None) == said[:1], "on a terminal the bar shows the rest"


def test_jumps_count_as_steps_done() -> None:
    """With SATP the position on the grid counts, not the number of calls."""
    ready = prepare(photograph(16, 16), "denoise", sigma=0.1, prior=CheapPrior(), steps=20, settings={"satp": {"budget": 1e3}})
    left = WorkLeft(ready)
    steps = 0
    for step in ready.sampler.iterate(ready.problem):
        left.step(step)
        steps += 1
    assert steps < 20 and where(left).startswith("step 20 of 20, at most 0:00")


def test_work_is_counted_by_position_and_weight() -> None:
    """From 0 at the start to 1 at the end; a jump takes all that it leaves out, and steps still ahead cost a + b work."""
    ready = prepare(photograph(16, 16), "denoise", sigma=0.1, prior=CheapPrior(), steps=20, plugins=())
    step = next(ready.sampler.iterate(ready.problem))
    now = [0.0]
    left = WorkLeft(ready, clock=lambda: now[0])
    assert left.done == 0 and left.seconds_left is None
    now[0] = 3.0
    left.step(replace(step, jump=torch.tensor([5])))
    assert left.position == 5 and left.done == pytest.approx(5 / 20)
    assert left.seconds_left == pytest.approx(15 * 3.0)  # every step alike: as long as the first
    left.step(replace(step, u=torch.tensor([-1])))
    assert left.done == 1 and left.seconds_left == 0


def test_durations() -> None:
    assert [duration(s) for s in (61, 150, 3500, 9000)] == ["1 minute", "2 minutes", "58 minutes", "2.5 hours"]


def test_lines_reach_stderr_where_there_is_no_terminal(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Announcer.__call__, "__defaults__", (0.0,))
    result = runner.invoke(
        app, ["restore", "in.png", "out.png", "--task", "denoise", "--steps", "4", "--plugin", "none", "--keep-failed"]
    )
    assert result.exit_code == 0, result.output
    assert "step 1 of 4, at most" in result.stderr and result.stdout == "out.png\n"
