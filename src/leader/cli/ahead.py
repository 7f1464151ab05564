"""What is said, and asked, before a long run begins."""

from __future__ import annotations

import sys

import typer

from leader.cli.console import to_stderr
from leader.cli.progress import LONG, duration
from leader.restoration.ahead import seconds_ahead
from leader.restoration.restore import Preparation

TOO_LONG = 600.0
"""A run that will take longer than this many seconds is begun on a terminal only after a question."""
DECLINED = 130
"""The exit code of a run that was interrupted, which one that was declined shares."""


def tell_time(ready: Preparation, ask: bool) -> bool:
    """Says how long a long run will take; whether it was said. `ask` wants an answer on a terminal beyond ten minutes."""
    seconds = seconds_ahead(ready)
    if seconds is None or seconds <= LONG:
        return False
    to_stderr(f"This will take about {duration(seconds)}; fewer --steps, --quality draft or a smaller picture take less.")
    if ask and seconds > TOO_LONG and _at_a_terminal() and not typer.confirm("Begin?", default=False, err=True):
        to_stderr("Nothing was done; --yes begins without a question.")
        raise typer.Exit(DECLINED)
    return True


def _at_a_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr is not None and sys.stderr.isatty()
