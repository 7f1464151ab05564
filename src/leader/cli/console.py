"""Where the command line writes: results to stdout, progress, notes and errors to stderr. NO_COLOR and pipes
are respected by rich.
"""

from __future__ import annotations

from collections.abc import Sequence


def to_stderr(text: str, style: str | None = None) -> None:
    """One line for the person at the terminal."""
    from rich.console import Console
    from rich.text import Text

    Console(stderr=True, soft_wrap=True).print(Text(text, style=style or ""))


def to_stdout(text: str) -> None:
    """One line of the result."""
    from rich.console import Console
    from rich.text import Text

    Console(soft_wrap=True).print(Text(text))


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table on a terminal; tab-separated lines in a pipe."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    if not console.is_terminal:
        for row in rows:
            print("\t".join(row))
        return
    drawn = Table(box=None, header_style="bold", pad_edge=False)
    for column in columns:
        drawn.add_column(column)
    for row in rows:
        drawn.add_row(*(Text(cell) for cell in row))
    console.print(drawn)
