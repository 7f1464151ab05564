"""A restoration at the terminal: what was chosen, how far it is, what it took."""

from __future__ import annotations

from leader.cli.ahead import tell_time
from leader.cli.console import to_stderr
from leader.cli.progress import progress_bar
from leader.restoration.restore import Preparation
from leader.restoration.restored import Restoration
from leader.restoration.second_try import run_with_second_try
from leader.trust.maps import in_words

_ORIGINS = {
    "estimated": "estimated from the picture",
    "given": "as given",
    "container": "from the container",
}
_RAISED = ", raised by the doubt of the kernel"

_STYLES = {"fine": None, "doubtful": "yellow", "failed": "bold red"}


def run_and_tell(ready: Preparation, check: bool = True, ask: bool = False) -> Restoration:
    """Runs a restoration; notes, noise level, time, progress, cost and verdict go to stderr. `ask` before a very long run."""
    for note in ready.notes:
        to_stderr(note)
    told = tell_time(ready, ask)
    restored = run_with_second_try(ready, lambda one: _run(one, check, told))
    _tell_trust(restored)
    if restored.verdict is not None:
        to_stderr(f"Verdict: {restored.verdict.in_words('terminal')}", _STYLES[restored.verdict.level])
    return restored


def _tell_trust(restored: Restoration) -> None:
    """How much of the picture is known how well, where that was measured."""
    spread = restored.uncertainty
    if restored.trust is None or spread is None:
        return
    to_stderr(in_words(spread))
    if restored.trust.note is not None:
        to_stderr(restored.trust.note)


def _run(ready: Preparation, check: bool, told: bool) -> Restoration:
    raised = ready.sigma_from == "given" and ready.posed.noise is not None
    to_stderr(f"Noise level sigma = {ready.sigma:.4f} ({_ORIGINS[ready.sigma_from]}{_RAISED if raised else ''}).")
    with progress_bar(ready, f"Restoring ({ready.task})", told) as on_step:
        restored = ready.run(on_step, check)
    calls = restored.result.ledger.total.calls
    to_stderr(
        f"Restored {restored.picture.size[0]} x {restored.picture.size[1]} pixels with {calls} network "
        f"call{'' if calls == 1 else 's'} in {restored.seconds:.1f} s."
    )
    return restored
