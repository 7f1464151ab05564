"""A restoration in the terminal: its choices, expected time, progress and cost."""

from __future__ import annotations

import sys

import typer

from leader.cli.console import to_stderr
from leader.cli.errors import INTERRUPTED
from leader.progress import ProgressDisplay, format_duration
from leader.restoration.progress import RunProgress, predict_seconds
from leader.restoration.restore import Preparation
from leader.restoration.restored import Restoration
from leader.restoration.second_try import run_with_second_try
from leader.result import Step
from leader.trust.maps import in_words

LONG = 60.0
"""A run that will take longer than this many seconds is announced."""
TOO_LONG = 600.0
"""On a terminal, a run that will take longer than this many seconds starts only after confirmation."""

_ORIGINS = {
    "estimated": "estimated from the picture",
    "given": "as given",
    "container": "from the container",
}
_RAISED = ", raised because of the kernel's uncertainty"
_STYLES = {"fine": None, "doubtful": "yellow", "failed": "bold red"}


def run_and_tell(ready: Preparation, check: bool = True, ask: bool = False) -> Restoration:
    """Runs a restoration; notes, noise level, time, progress, cost and verdict go to stderr. `ask`: confirm a very long run."""
    for note in ready.notes:
        to_stderr(note)
    announce(ready, ask)

    def run(one: Preparation) -> Restoration:
        if one is not ready:
            to_stderr(f"It is run again: {one.notes[-1]}")
        return _run(one, check)

    restored = run_with_second_try(ready, run)
    _tell_trust(restored)
    if restored.verdict is not None:
        to_stderr(f"Verdict: {restored.verdict.in_words('terminal')}", _STYLES[restored.verdict.level])
    return restored


def announce(ready: Preparation, ask: bool) -> None:
    """Announces the time of a long run; with `ask`, a terminal must confirm more than ten minutes."""
    seconds = predict_seconds(ready)
    if seconds is None or seconds <= LONG:
        return
    to_stderr(
        f"This will take about {format_duration(seconds)}; fewer --steps, --quality draft or a smaller picture take less."
    )
    if ask and seconds > TOO_LONG and at_terminal() and not typer.confirm("Begin?", default=False, err=True):
        to_stderr("Nothing was done; --yes starts without asking.")
        raise typer.Exit(INTERRUPTED)


def at_terminal() -> bool:
    """Whether a person can be asked."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr is not None and sys.stderr.isatty()


def _tell_trust(restored: Restoration) -> None:
    """Summarises the trust map, if there is one."""
    spread = restored.uncertainty
    if restored.trust is None or spread is None:
        return
    to_stderr(in_words(spread))
    if restored.trust.note is not None:
        to_stderr(restored.trust.note)


def _run(ready: Preparation, check: bool) -> Restoration:
    raised = ready.sigma_from == "given" and ready.posed.noise is not None
    to_stderr(f"Noise level sigma = {ready.sigma:.4f} ({_ORIGINS[ready.sigma_from]}{_RAISED if raised else ''}).")
    progress = RunProgress(ready)
    with ProgressDisplay(to_stderr) as display:

        def show(step: Step) -> None:
            progress.add(step)
            display.show(progress.share, f"Restoring ({ready.task}): {progress}")

        restored = ready.run(show, check)
    calls = restored.result.ledger.total.calls
    to_stderr(
        f"Restored {restored.picture.size[0]} x {restored.picture.size[1]} pixels with {calls} network "
        f"call{'' if calls == 1 else 's'} in {restored.seconds:.1f} s."
    )
    return restored
