"""A restoration at the terminal: what was chosen, how far it is, what it took."""

from __future__ import annotations

from leader.cli.console import to_stderr
from leader.cli.progress import progress_bar
from leader.restoration.restore import Preparation, Restoration

_ORIGINS = {
    "estimated": "estimated from the picture",
    "given": "as given",
    "container": "from the container",
}


def run_and_tell(ready: Preparation) -> Restoration:
    """Runs a restoration; notes, noise level, progress and cost go to stderr."""
    for note in ready.notes:
        to_stderr(note)
    to_stderr(f"Noise level sigma = {ready.sigma:.4f} ({_ORIGINS[ready.sigma_from]}).")
    with progress_bar(ready, f"Restoring ({ready.task})") as on_step:
        restored = ready.run(on_step)
    calls = restored.result.ledger.total.calls
    to_stderr(
        f"Restored {restored.picture.size[0]} x {restored.picture.size[1]} pixels with {calls} network calls "
        f"in {restored.seconds:.1f} s."
    )
    return restored
