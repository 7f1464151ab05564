"""How the command line ends when something is wrong: one sentence on stderr, exit code 1, 2 or 130, no
traceback.
"""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

from leader.cli.console import to_stderr
from leader.errors import LeaderError, UsageError

FAILED, WRONG_USAGE, INTERRUPTED = 1, 2, 130


class OneSentenceGroup(TyperGroup):
    """A group of commands whose errors become one sentence."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except LeaderError as error:
            to_stderr(f"Error: {error}", style="bold red")
            raise typer.Exit(WRONG_USAGE if isinstance(error, UsageError) else FAILED) from error
        except MemoryError as error:
            to_stderr(
                "Error: The memory does not suffice; use a smaller picture or a smaller part of it.",
                style="bold red",
            )
            raise typer.Exit(FAILED) from error
        except KeyboardInterrupt as error:
            to_stderr("Interrupted; nothing was written.")
            raise typer.Exit(INTERRUPTED) from error
