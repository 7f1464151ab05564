"""A restoration at the terminal: what was chosen, how far it is, what it took."""

from __future__ import annotations

from leader.cli.console import to_stderr
from leader.cli.progress import progress_bar
from leader.restoration.restore import Preparation, Restoration
from leader.restoration.second_try import run_with_second_try

_ORIGINS = {
    "estimated": "estimated from the picture",
    "given": "as given",
    "container": "from the container",
}


_STYLES = {"fine": None, "doubtful": "yellow", "failed": "bold red"}


def run_and_tell(ready: Preparation, check: bool = True) -> Restoration:
    """Runs a restoration; notes, noise level, progress, cost and verdict go to stderr."""
    for note in ready.notes:
        to_stderr(note)
    restored = run_with_second_try(ready, lambda one: _run(one, check))
    if restored.verdict is not None:
        to_stderr(f"Verdict: {restored.verdict.in_words()}", _STYLES[restored.verdict.level])
    return restored


def _run(ready: Preparation, check: bool) -> Restoration:
    to_stderr(f"Noise level sigma = {ready.sigma:.4f} ({_ORIGINS[ready.sigma_from]}).")
    with progress_bar(ready, f"Restoring ({ready.task})") as on_step:
        restored = ready.run(on_step, check)
    calls = restored.result.ledger.total.calls
    to_stderr(
        f"Restored {restored.picture.size[0]} x {restored.picture.size[1]} pixels with {calls} network calls "
        f"in {restored.seconds:.1f} s."
    )
    return restored
