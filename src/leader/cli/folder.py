"""leader restore FOLDER OUT_FOLDER: what is told while a folder is restored, and how it ends."""

from __future__ import annotations

import os
import shlex
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from leader.cli.console import to_stderr
from leader.errors import LeaderError, UsageError
from leader.files import printable

if TYPE_CHECKING:
    from leader.folders.choices import Choices
    from leader.folders.progress import FolderMeter
    from leader.folders.run import Outcome

SILENCE = 10.0
"""Seconds between two lines where no bar can be drawn."""
_TERMINATED = 143


@dataclass(frozen=True)
class FolderWords:
    """The words of the command line that only folders have."""

    jobs: int | None = None
    engine: str = "local"
    address: str | None = None
    maps: str | None = None
    report: bool = False

    def refuse(self, picture: Path) -> None:
        """Refuses them where one picture is restored."""
        given = {
            "--jobs": self.jobs is not None,
            "--engine": self.engine != "local",
            "--address": self.address is not None,
            "--maps": self.maps is not None,
            "--report": self.report,
        }
        for option, is_given in given.items():
            if is_given and not os.path.lexists(picture):
                raise LeaderError(f"There is no folder '{printable(picture)}'; give an existing one.")
            if is_given:
                raise UsageError(f"{option} is for folders; IN is one picture, so leave it out.")


def is_folder(word: Path) -> bool:
    """Whether IN is a folder, here or at an address."""
    from leader.folders.places import is_address

    return os.path.isdir(word) or is_address(address_of(word))


def address_of(word: Path) -> str:
    """The word as it was typed: a Path has one slash where an address has two."""
    text = str(word)
    scheme, colon, rest = text.partition(":/")
    if colon and scheme.isalnum() and len(scheme) > 1 and not rest.startswith("/"):
        return f"{scheme}:///{rest}" if scheme in ("file", "local") else f"{scheme}://{rest}"
    return text


def restore_folder(source: str, out: str, choices: Choices, words: FolderWords, threads: int | None, force: bool) -> None:
    """Restores a folder, tells how it goes, and leaves with the exit code that says how it went."""
    from leader.folders.names import REPORT, map_suffix
    from leader.folders.run import Watcher, run_folder

    teller = _Teller()
    watcher = Watcher(teller.note, teller.listed, teller.finished)
    maps = map_suffix(words.maps)
    workers = words.engine_for(threads, 1.0 if choices.on_gpu else 0.0)
    with closing(workers), terminated_as_interrupt():
        try:
            outcome = run_folder(source, out, choices, workers, maps=maps, report=words.report, force=force, watcher=watcher)
        except KeyboardInterrupt as end:
            teller.stop()
            done = 0 if teller.meter is None else teller.meter.finished
            to_stderr(f"Interrupted after {counted(done)}; what is done is kept. To go on, run the same command again:")
            to_stderr(f"  {_command()}")
            raise typer.Exit(_TERMINATED if isinstance(end, Terminated) else 130) from end
        finally:
            teller.stop()
    _tell(outcome)
    if words.report:
        to_stderr(f"The pictures side by side: {out.rstrip('/')}/{REPORT}")
    if outcome.failed:
        raise typer.Exit(1)
    if outcome.refused:
        raise typer.Exit(3)


def counted(pictures: int) -> str:
    """1 picture, 2 pictures."""
    return f"{pictures} picture{'' if pictures == 1 else 's'}"


class Terminated(KeyboardInterrupt):
    """SIGTERM, dealt with like Ctrl-C."""


@contextmanager
def terminated_as_interrupt() -> Iterator[None]:
    """While the block runs, SIGTERM raises `Terminated`: the run ends as after Ctrl-C."""

    def stop(*_: Any) -> None:
        raise Terminated

    try:
        before = signal.signal(signal.SIGTERM, stop)
    except ValueError:  # not the main thread: signals are somebody else's
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class _Teller:
    """Progress on stderr: a bar on a terminal, a line now and then elsewhere; what failed at once."""

    def __init__(self) -> None:
        self.meter: FolderMeter | None = None
        self._bar: Any = None
        self._last = time.monotonic()

    def note(self, text: str) -> None:
        to_stderr(text)

    def listed(self, meter: FolderMeter) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        self.meter = meter
        to_stderr(f"{counted(meter.total)} to restore.")
        console = Console(stderr=True)
        if console.is_terminal:
            self._bar = Progress(BarColumn(), TextColumn("{task.description}"), console=console, transient=True)
            self._task = self._bar.add_task(meter.words(), total=max(1, meter.total))
            self._bar.start()

    def finished(self, name: str, error: str | None) -> None:
        if error is not None:
            to_stderr(f"{printable(name)}: {error}", style="red")
        if self.meter is None:
            return
        if self._bar is not None:
            self._bar.update(self._task, completed=self.meter.finished, description=self.meter.words())
        elif time.monotonic() - self._last >= SILENCE:
            self._last = time.monotonic()
            to_stderr(self.meter.words())

    def stop(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


def _tell(outcome: Outcome) -> None:
    parts = [f"{outcome.restored} restored", f"{outcome.found} found done"]
    if outcome.refused:
        parts.append(f"{outcome.refused} not written, since their verdict was failed (--keep-failed writes them)")
    if outcome.failed:
        parts.append(f"{len(outcome.failed)} without a result")
    to_stderr(f"{counted(outcome.total)}: {', '.join(parts)}.")
    if outcome.levels:
        order = [level for level in ("fine", "doubtful", "failed") if level in outcome.levels]
        to_stderr(f"Verdicts: {', '.join(f'{outcome.levels[level]} {level}' for level in order)}.")


def _command() -> str:
    """The command line as it could be typed again."""
    name = Path(sys.argv[0]).name
    first = "leader" if name in ("-c", "__main__.py", "") else name
    return shlex.join([first, *sys.argv[1:]])
