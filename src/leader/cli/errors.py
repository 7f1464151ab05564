"""How the command line reports errors: one sentence on stderr and an exit code, no traceback.

1    the request failed (LeaderError): a damaged picture, a full disk, too little memory
2    the command is wrong (UsageError, and errors of the parser)
3    the verdict of a restored picture is failed, so it was not written (`leader restore` without --keep-failed)
70   a bug in this package; LEADER_TRACEBACK=1 shows where
130  interrupted
"""

import errno
import os
import sys
import traceback
from typing import Any

import typer
from typer.core import TyperGroup

from leader.cli.console import accept_any_letter, let_go, to_stderr
from leader.errors import LeaderError, UsageError, no_memory

FAILED, WRONG_USAGE, NO_ANSWER, BUG, INTERRUPTED = 1, 2, 3, 70, 130
TRACEBACK = "LEADER_TRACEBACK"

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


class OneSentenceGroup(TyperGroup):
    """The commands; any error in, before or after them becomes one sentence."""

    def main(self, *args: Any, **options: Any) -> Any:
        """Runs a command line; exits through SystemExit with the exit code."""
        accept_any_letter()
        try:
            super().main(*args, **options)
            code: Any = 0
        except SystemExit as end:
            code = end.code
        except Exception as error:  # from outside a command: parsing, help on a full disk
            code = _tell(error)
        sys.exit(_flush_stdout(code))

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Prints the commands by group."""
        from leader.cli.help import print_overview

        print_overview(ctx, self)

    def invoke(self, ctx: Any) -> Any:
        """Runs a command inside typer's own handling of its usage errors."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:  # typer would exit without a message
            to_stderr("Interrupted; files are written whole or not at all.")
            raise typer.Exit(INTERRUPTED) from error


def _tell(error: Exception) -> int:
    """Reports an error and returns the exit code."""
    if isinstance(error, LeaderError):
        to_stderr(f"Error: {error}", style="bold red")
        return WRONG_USAGE if isinstance(error, UsageError) else FAILED
    if isinstance(error, MemoryError):
        to_stderr(f"Error: {no_memory()}", style="bold red")
        return FAILED
    if isinstance(error, OSError) and error.errno in _FULL:
        let_go(sys.stdout)
        place = "stdout" if error.filename is None else str(error.filename)
        to_stderr(f"Error: Writing to {place} failed ({error.strerror}); make room and try again.", style="bold red")
        return FAILED
    if os.environ.get(TRACEBACK):
        traceback.print_exception(error)
    words = " ".join(str(error).split())[:300]
    to_stderr(
        f"Error: {type(error).__name__}: {words} (this is a bug in leader, please report it; run with {TRACEBACK}=1 for the "
        "traceback).",
        style="bold red",
    )
    return BUG


def _flush_stdout(code: Any) -> Any:
    """Flushes stdout; a failure there must not end silently with exit code 0."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        return code or _tell(error)
    return code
