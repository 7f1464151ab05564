"""Distances that were computed before: a table is printed again without the pictures and without the Inception network.

The restored pictures of a table take megabytes and are not shipped; what the table needs of them are a few numbers a row. They
are kept by what made them: the requests of both sets, with the scores of their pictures, and the revision of the distances. So
a record that is run again with the same outcome keeps its distances, one whose picture changed does not.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from leader.bench.records import Record, canonical, digest, write_atomically
from leader.errors import LeaderError

FOLDER = "distances"
_SCORES = ("psnr", "ssim", "lpips", "residual", "residual_raw")
"""What tells one restored picture of a cell from another."""


class StoredDistances:
    """Numbers by key, in `folder`/distances/`name`.json."""

    def __init__(self, folder: Path, name: str) -> None:
        self.path = folder / FOLDER / f"{name}.json"
        self._found: dict[str, list[list[float]]] = {}
        self._asked: dict[str, list[list[float]]] = {}
        if self.path.is_file():
            self._found = _read(self.path)

    def find(self, key: str) -> list[list[float]] | None:
        """The lists of numbers kept under this key."""
        if key in self._found:
            self._asked[key] = self._found[key]
        return self._found.get(key)

    def keep(self, key: str, numbers: Sequence[Sequence[float]]) -> list[list[float]]:
        """Writes lists of numbers down at once, and returns them as the file tells them: to nine digits."""
        rounded = [[float(f"{value:.9g}") for value in values] for values in numbers]
        self._found[key] = self._asked[key] = rounded
        self._write(self._found)
        return rounded

    def finish(self) -> None:
        """Writes the file anew: what was asked for, in that order, then the rest by key, which other tasks may ask for."""
        self._write({**self._asked, **dict(sorted(self._found.items()))})

    def _write(self, numbers: Mapping[str, list[list[float]]]) -> None:
        lines = [f"{canonical(key)}: {canonical(lists)}" for key, lists in numbers.items()]
        data = ("{\n" + ",\n".join(lines) + "\n}\n").encode()
        if lines and not (self.path.is_file() and self.path.read_bytes() == data):
            write_atomically(self.path, data)


def key_of(sets: Sequence[Sequence[Record]], parts: int, revision: int) -> str:
    """The key of the distances between sets of records whose pictures are cut into parts x parts."""
    told = [[[digest(record["asked"]), *(record.get(name) for name in _SCORES)] for record in one] for one in sets]
    return digest([told, parts, revision])


def _read(path: Path) -> dict[str, list[list[float]]]:
    try:
        found: Any = json.loads(path.read_bytes())
        return {str(key): [[float(value) for value in values] for values in lists] for key, lists in found.items()}
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise LeaderError(f"'{path}' does not hold stored distances; remove it, and the table computes them again.") from error
