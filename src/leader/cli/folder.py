"""leader restore FOLDER OUT_FOLDER: progress messages and exit code."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import typer

from leader.cli.console import to_stderr
from leader.cli.errors import FAILED, INTERRUPTED, NO_ANSWER
from leader.cli.options import option_names
from leader.cli.results import Results
from leader.errors import LeaderError, UsageError
from leader.files import printable
from leader.progress import ProgressDisplay
from leader.restoration.request import RestoreRequest, word

if TYPE_CHECKING:
    from leader.folders.run import FolderMeter, FolderOutcome

TERMINATED = 143


@dataclass(frozen=True)
class FolderOptions:
    """The options for folders only."""

    heading: ClassVar[str] = "For folders"

    jobs: int | None = word(
        None, "Worker processes (1), which share the cores; 0 for none.", int, short="-j", least=0, most=4096
    )
    engine: str = word("local", "Where to restore: local, or ray for a Ray cluster.")
    address: str | None = word(None, "Address of the Ray cluster: auto, or HOST:PORT.")
    maps: str | None = word(None, "Write the trust map of every picture beside it (NAME.map.png).", metavar="png|npy")
    report: bool = word(False, "Write one page with all pictures, before and after.", bool)

    def refuse(self, picture: Path) -> None:
        """Rejects these options for a single picture."""
        for item in fields(self):
            if getattr(self, item.name) == item.default:
                continue
            if not os.path.lexists(picture):
                raise LeaderError(f"There is no folder '{printable(picture)}'; give an existing one.")
            option = option_names(item.name, item.metadata["word"])[0]
            raise UsageError(f"{option} is for folders; IN is one picture, so leave it out.")


def is_folder(word: Path) -> bool:
    """Whether IN is a folder, local or at an address."""
    from leader.folders.places import is_address

    return os.path.isdir(word) or is_address(address_of(word))


def address_of(word: Path) -> str:
    """The argument as typed: a Path has one slash where an address has two."""
    text = str(word)
    scheme, colon, rest = text.partition(":/")
    if colon and scheme.isalnum() and len(scheme) > 1 and not rest.startswith("/"):
        return f"{scheme}:///{rest}" if scheme in ("file", "local") else f"{scheme}://{rest}"
    return text


def restore_folder(
    source: Path, out: Path, request: RestoreRequest, run: dict[str, Any] | None, results: Results, folder: FolderOptions
) -> None:
    """Restores a folder, reports its progress, and exits with the matching exit code."""
    from leader.engines import make_engine
    from leader.folders.choices import FolderChoices
    from leader.folders.names import REPORT, read_map_suffix
    from leader.folders.run import Watcher, run_folder
    from leader.restoration.tasks import find_task

    find_task(str(request.task))
    choices = FolderChoices(request.read_files(), run, results.check, results.keep_failed, results.keep_location)
    teller = _Teller()
    watcher = Watcher(to_stderr, teller.begin, teller.finish)
    maps, place = read_map_suffix(folder.maps), address_of(out)
    gpus = 1.0 if choices.on_gpu else 0.0
    engine = make_engine(folder.jobs, threads=request.threads, engine=folder.engine, address=folder.address, gpus=gpus)
    wanted: dict[str, Any] = {"maps": maps, "report": folder.report, "force": results.force}
    with closing(engine), terminate_as_interrupt():
        try:
            with teller.display:
                outcome = run_folder(address_of(source), place, choices, engine, watcher=watcher, **wanted)
        except KeyboardInterrupt as end:
            done = 0 if teller.meter is None else teller.meter.settled
            to_stderr(f"Interrupted after {count_pictures(done)}; what is done is kept. To go on, run the same command again:")
            to_stderr(f"  {_command()}")
            raise typer.Exit(TERMINATED if isinstance(end, Terminated) else INTERRUPTED) from end
    _tell(outcome)
    if folder.report:
        to_stderr(f"The pictures side by side: {place.rstrip('/')}/{REPORT}")
    if outcome.failed:
        raise typer.Exit(FAILED)
    if outcome.refused:
        raise typer.Exit(NO_ANSWER)


def count_pictures(pictures: int) -> str:
    """1 picture, 2 pictures."""
    return f"{pictures} picture{'' if pictures == 1 else 's'}"


class Terminated(KeyboardInterrupt):
    """SIGTERM, handled like Ctrl-C."""


@contextmanager
def terminate_as_interrupt() -> Iterator[None]:
    """During the block, SIGTERM raises `Terminated`: the run ends as after Ctrl-C."""

    def stop(*_: Any) -> None:
        raise Terminated

    try:
        before = signal.signal(signal.SIGTERM, stop)
    except ValueError:  # not the main thread, which handles signals
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class _Teller:
    """Progress on stderr; failures are printed at once."""

    def __init__(self) -> None:
        self.meter: FolderMeter | None = None
        self.display = ProgressDisplay(to_stderr)

    def begin(self, meter: FolderMeter) -> None:
        self.meter = meter
        to_stderr(f"{count_pictures(meter.total)} to restore.")

    def finish(self, name: str, error: str | None) -> None:
        if error is not None:
            to_stderr(f"{printable(name)}: {error}", style="red")
        if self.meter is not None:
            self.display.show(self.meter.share, str(self.meter))


def _tell(outcome: FolderOutcome) -> None:
    parts = [f"{outcome.restored} restored", f"{outcome.found} found done"]
    if outcome.refused:
        parts.append(f"{outcome.refused} not written because their verdict was failed (--keep-failed writes them)")
    if outcome.failed:
        parts.append(f"{len(outcome.failed)} without a result")
    to_stderr(f"{count_pictures(outcome.total)}: {', '.join(parts)}.")
    if outcome.levels:
        order = [level for level in ("fine", "doubtful", "failed") if level in outcome.levels]
        to_stderr(f"Verdicts: {', '.join(f'{outcome.levels[level]} {level}' for level in order)}.")


def _command() -> str:
    """The command line, quoted so that it can be typed again."""
    name = Path(sys.argv[0]).name
    first = "leader" if name in ("-c", "__main__.py", "") else name
    return shlex.join([first, *sys.argv[1:]])
