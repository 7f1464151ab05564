"""A restoration in the terminal: its choices, expected time, progress and cost."""

import sys

import typer

from leader.cli.console import to_stderr
from leader.cli.errors import INTERRUPTED
from leader.progress import ProgressDisplay, format_duration
from leader.restoration.progress import RunProgress, forecast_run
from leader.restoration.restore import Preparation
from leader.restoration.restored import Restoration
from leader.restoration.second_try import run_with_second_try
from leader.result import Step
from leader.trust.maps import in_words

SHORT = 2.0
"""A run that will take less than this many seconds is not announced."""
LONG = 60.0
"""For a run that will take longer than this many seconds, faster alternatives are suggested."""
TOO_LONG = 600.0
"""On a terminal, a run that will take longer than this many seconds starts only after confirmation."""

_ORIGINS = {
    "estimated": "estimated from the picture",
    "given": "as given",
    "container": "from the container",
}
_DONE = "all steps are done, the result is examined"
_RAISED = ", raised because of the kernel's uncertainty"
_STYLES = {"fine": None, "doubtful": "yellow", "failed": "bold red"}


def run_and_tell(ready: Preparation, check: bool = True, ask: bool = False, busy: float | None = None) -> Restoration:
    """Runs a restoration; notes, noise level, time, progress, cost and verdict go to stderr. `ask`: confirm a very long run;
    `busy`: wall-clock seconds per processor second.
    """
    for note in ready.notes:
        to_stderr(note)
    call, took = announce(ready, ask, busy), 0.0

    def run(one: Preparation) -> Restoration:
        nonlocal took
        if one is not ready:
            to_stderr(f"It is run again, which takes about {format_duration(took)}: {one.notes[-1]}")
        restored = _run(one, check, call)
        took = restored.seconds
        return restored

    restored = run_with_second_try(ready, run)
    _tell_trust(restored)
    if restored.verdict is not None:
        to_stderr(f"Verdict: {restored.verdict.in_words('terminal')}", _STYLES[restored.verdict.level])
    return restored


def announce(ready: Preparation, ask: bool, busy: float | None) -> float:
    """Announces the time of a run; with `ask`, a terminal must confirm more than ten minutes. Returns seconds per network
    call.
    """
    forecast = forecast_run(ready, busy)
    seconds = forecast.seconds
    if seconds >= SHORT:
        less = ["fewer --steps", *(["--quality draft"] if ready.same and "draft" not in ready.same else [])]
        advice = f"; {', '.join(less)} or a smaller picture take less" if seconds > LONG else ""
        to_stderr(f"This will take {'at most' if forecast.most else 'about'} {format_duration(seconds)}{advice}.")
    if ask and seconds > TOO_LONG and at_terminal() and not typer.confirm("Begin?", default=False, err=True):
        to_stderr("Nothing was done; --yes starts without asking.")
        raise typer.Exit(INTERRUPTED)
    return forecast.call


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


def _run(ready: Preparation, check: bool, call: float) -> Restoration:
    raised = ready.sigma_from == "given" and ready.posed.noise is not None
    to_stderr(f"Noise level sigma = {ready.sigma:.4f} ({_ORIGINS[ready.sigma_from]}{_RAISED if raised else ''}).")
    progress = RunProgress(ready, call=call)
    with ProgressDisplay(to_stderr) as display:

        def show(step: Step) -> None:
            progress.add(step)
            display.show(progress.share, f"Restoring ({ready.task}): {progress if progress.share < 1 else _DONE}")

        restored = ready.run(show, check)
    calls = restored.result.ledger.total.calls
    to_stderr(
        f"Restored {restored.picture.size[0]} x {restored.picture.size[1]} pixels with {calls} network "
        f"call{'' if calls == 1 else 's'} in {restored.seconds:.1f} s."
    )
    return restored
