"""A progress bar that counts work, see `leader.restoration.progress`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from leader.restoration.progress import WorkLeft
from leader.restoration.restore import Preparation
from leader.result import Step


@contextmanager
def progress_bar(ready: Preparation, label: str) -> Iterator[Callable[[Step], None]]:
    """Shows a bar on stderr while the block runs; hands out the callback for its steps. Silent where stderr
    is no terminal.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    console = Console(stderr=True)
    left = WorkLeft(ready)
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[left]}"))
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bar:
        task = bar.add_task(label, total=1.0, left="")

        def on_step(step: Step) -> None:
            left.step(step)
            bar.update(task, completed=left.done, left=f"step {step.index + 1}, {_clock_text(left.seconds_left)}")

        yield on_step


def _clock_text(seconds: float | None) -> str:
    if seconds is None:
        return ""
    whole = round(seconds)
    return f"at most {whole // 60}:{whole % 60:02d} left"
