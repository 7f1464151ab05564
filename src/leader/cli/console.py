"""Output of the command line: results to stdout; progress, notes and errors to stderr. rich respects NO_COLOR and pipes."""

import os
import sys
from collections.abc import Sequence

from leader.errors import LeaderError
from leader.messages import render


def to_stderr(text: str, style: str | None = None) -> None:
    """One line for the person at the terminal; notes are worded for one."""
    from rich.console import Console
    from rich.text import Text

    try:
        Console(stderr=True, soft_wrap=True).print(Text(render(text, "terminal"), style=style or ""))
    except OSError:
        let_go(sys.stderr)  # a full disk behind stderr must not lose a restoration, and there is nowhere left to report it


def to_stdout(text: str) -> None:
    """One line of the result."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        raise  # the reader closed the pipe: not an error
    except OSError as error:
        let_go(sys.stdout)
        raise LeaderError(f"The results cannot be printed ({error.strerror}); the files already named are complete.") from error


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table on a terminal; tab-separated lines in a pipe."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    if not console.is_terminal:
        for row in rows:
            to_stdout("\t".join(row))
        return
    drawn = Table(box=None, header_style="bold", pad_edge=False)
    for column in columns:
        drawn.add_column(column)
    for row in rows:
        drawn.add_row(*(Text(cell) for cell in row))
    console.print(drawn)


def accept_any_letter() -> None:
    """Makes stdout escape characters outside its encoding, as stderr does by default."""
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")


def let_go(stream: object) -> None:
    """Discards what a stream still buffers, so that Python's final flush cannot fail."""
    fileno = getattr(stream, "fileno", None)
    if fileno is None:
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, fileno())
    except OSError:
        return  # a stream without a file (io.UnsupportedOperation is an OSError) has no final flush either
    finally:
        os.close(nowhere)
