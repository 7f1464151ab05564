"""The output of a restoration on the command line: its files, and whether they are checked, kept and replaced.

No command replaces an existing file without being asked (`check_outputs`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from leader.cli.console import to_stderr, to_stdout
from leader.restoration.request import word

if TYPE_CHECKING:
    from leader.restoration.restored import Restoration
import os
import sys
from collections.abc import Mapping

from leader.errors import UsageError
from leader.files import check_writable, printable

STDOUT = Path("-")


@dataclass(frozen=True)
class Results:
    """The files besides OUT, None if not requested, and what may be written."""

    heading: ClassVar[str] = "Files and verdict"

    map_files: list[Path] | None = word(
        None,
        "Write the trust map: colours (.png, .pdf), numbers (.npy, .16.png) or the faded picture (.fade.png).",
        Path,
        "--map",
        repeated=True,
    )
    figure: Path | None = word(None, "Write before, after and the trust map side by side.", Path)
    json: Path | None = word(None, "Write every setting of the run, which --settings repeats; - for stdout.", Path)
    check: bool = word(True, "Check the result: is it plausible, and explained by the noise?", bool, "--check/--no-check")
    keep_failed: bool = word(False, "Write OUT even if the verdict is failed, which otherwise ends with exit code 3.", bool)
    keep_location: bool = word(False, "Keep the location of the picture (GPS), which is removed by default.", bool)
    yes: bool = word(False, "Start runs of more than ten minutes without asking.", bool, short="-y")
    force: bool = word(False, "Replace files that exist.", bool, short="-f")

    def check_files(self, out: Path, inputs: dict[str, Path]) -> None:
        """Rejects, before any work is done, files that cannot or must not be written."""
        from leader.pictures import check_format
        from leader.pictures.figures import check_figure, check_map

        check_format(out)
        maps = {"--map" if number == 0 else f"--map {number + 1}": path for number, path in enumerate(self.map_files or ())}
        kept = None if self.json == STDOUT else self.json
        check_outputs(inputs, {"OUT": out, **maps, "--figure": self.figure, "--json": kept}, self.force)
        for path in maps.values():
            check_map(path)
        if self.figure is not None:
            check_figure(self.figure)

    def write(self, out: Path, restored: Restoration) -> None:
        """Writes all files, and prints each name on stdout once it is complete."""
        restored.save(out, self.keep_location)
        self._name(out)
        if restored.picture.metadata.gps and not self.keep_location:
            to_stderr("The location of the picture was removed from the result; --keep-location keeps it.")
        for path in self.map_files or ():
            restored.save_map(path)
            self._name(path)
        if self.figure is not None:
            from leader.pictures.figures import draw_side_by_side, with_holes

            views = [("given", restored.given.pixels), ("restored", restored.array)]
            mask = restored.posed.options.get("mask")
            if mask is not None:
                views.insert(1, ("filled in", with_holes(restored.given.pixels, mask.numpy() > 0)))
            words = "" if restored.verdict is None else f"Verdict: {restored.verdict.in_words('terminal')}"
            draw_side_by_side(self.figure, views, restored.uncertainty, words)
            self._name(self.figure)
        self.write_run(restored)

    def write_run(self, restored: Restoration) -> None:
        """Writes only the run, if requested."""
        if self.json is None:
            return
        if self.json == STDOUT:
            to_stdout(_run_as_text(restored))
            return
        write_run(self.json, restored)
        self._name(self.json)

    def _name(self, path: Path) -> None:
        (to_stderr if self.json == STDOUT else to_stdout)(str(path))


def write_run(path: Path, restored: Restoration) -> None:
    """Everything about a run, so that --settings can repeat it."""
    from leader.files import replacing

    with replacing(path) as temporary:
        temporary.write_text(_run_as_text(restored) + "\n", encoding="utf-8")


def _run_as_text(restored: Restoration) -> str:
    return json.dumps(restored.summary(), indent=2, default=str)


Identity = tuple[int, int, str]


def existing_files(words: Mapping[str, str | Path | None]) -> dict[str, Path]:
    """The values (option -> value) that name a file or folder, unlike gaussian:2 or embedded."""
    return {option: Path(word) for option, word in words.items() if word is not None and os.path.exists(word)}


def check_outputs(inputs: Mapping[str, Path], outputs: Mapping[str, Path | None], force: bool = False) -> None:
    """Rejects, before any work is done, outputs that cannot be written, name the same file twice, are inputs of the command, or
    already exist (unless `force`).

    inputs   what each file is ("IN", "--mask") -> its path
    outputs  the same for the files to write; None if not requested
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
            raise UsageError(f"{printable(path)} already exists; choose another name, or add --force to replace it.")
        seen[identity] = (name, path)


def _identity(path: Path) -> Identity:
    """A key that is equal for two names of one file: links, ./a and a, A and a on case-insensitive systems."""
    try:
        found = os.stat(path)
        return found.st_dev, found.st_ino, ""
    except FileNotFoundError:  # no file yet, or a broken link: use the folder and the name
        folder = os.stat(path.parent)
    name = path.name.casefold() if sys.platform in ("win32", "darwin") else path.name
    return folder.st_dev, folder.st_ino, name
