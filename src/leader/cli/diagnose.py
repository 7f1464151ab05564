"""leader diagnose: what is wrong with a picture, and the command that would repair it."""

import json
from pathlib import Path
from typing import Annotated

import typer

from leader.cli.console import to_stdout

EXAMPLES = """
Examples:

    leader diagnose photo.jpg

    leader diagnose photo.jpg --json
"""


def diagnose(
    picture: Annotated[Path, typer.Argument(metavar="PICTURE", help="The picture to examine.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Says what is wrong with a picture, and the command that would repair it."""
    from leader.files import check_readable
    from leader.restoration.diagnose import diagnose as look_at

    check_readable(picture, "picture")
    found = look_at(picture)
    to_stdout(json.dumps(found.as_dict(), indent=2) if as_json else found.in_words("terminal"))
