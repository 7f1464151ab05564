"""Files a command reads and files it writes: no result takes the place of something else unasked."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from leader.errors import UsageError
from leader.files import check_writable, printable

Identity = tuple[int, int, str]


def existing_files(words: Mapping[str, str | Path | None]) -> dict[str, Path]:
    """Those words (option -> its value) that name a file or folder; others (gaussian:2, embedded) name none."""
    return {option: Path(word) for option, word in words.items() if word is not None and os.path.exists(word)}


def check_outputs(inputs: Mapping[str, Path], outputs: Mapping[str, Path | None], force: bool = False) -> None:
    """Refuses, before any work is done, outputs that cannot be written, are one file by two names, are files
    the command reads, or exist already (unless `force`).

    inputs   what each file is ("IN", "--mask") -> its path
    outputs  the same for the files to write; None where none was asked for
    """
    seen = {_identity(path): (name, path) for name, path in inputs.items()}
    for name, path in outputs.items():
        if path is None:
            continue
        check_writable(path)
        identity = _identity(path)
        if identity in seen:
            other, twin = seen[identity]
            raise UsageError(
                f"{name} ({printable(path)}) and {other} ({printable(twin)}) are the same file; give every file a name of "
                "its own."
            )
        if not force and os.path.lexists(path):
            raise UsageError(f"{printable(path)} exists already; choose another name, or add --force to replace it.")
        seen[identity] = (name, path)


def _identity(path: Path) -> Identity:
    """Equal for two names of one file: links, ./a and a, A and a where the system does not tell them apart."""
    try:
        found = os.stat(path)
        return found.st_dev, found.st_ino, ""
    except FileNotFoundError:  # nothing there yet, or a link to nothing: the folder and the name tell
        folder = os.stat(path.parent)
    name = path.name.casefold() if sys.platform in ("win32", "darwin") else path.name
    return folder.st_dev, folder.st_ino, name
