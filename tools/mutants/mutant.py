"""A mutant: one line of the package changed, and the tests that must notice. The list is in list/*.toml, one file a room.

tests = ["tests/operators"]       what is run for the mutants of this file, unless a mutant names its own

[[mutant]]
file = "operators/blur.py"        below src/leader
find = 'A @ x'                    text of one line that occurs once in the file (or once below the text `below`)
put = 'A.T @ x'                   what takes its place
breaks = "the adjoint"            a few words for people
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

KEYS = {"file", "find", "put", "breaks", "tests", "below"}


class StaleError(Exception):
    """The text a mutant changes is not there, is not alone, or no longer gives valid Python."""


@dataclass(frozen=True)
class Mutant:
    """A bug: in `file` (below the package), the text `find` becomes `put`; `tests` are given to pytest.

    One made by `made.py` says which `line` it changes (from 1), whole.
    """

    room: str
    file: str
    find: str
    put: str
    breaks: str
    tests: tuple[str, ...]
    below: str = ""
    line: int = 0

    @property
    def place(self) -> str:
        """What tells it from all others."""
        return f"{self.file}: {self.below or self.line or ''} {self.find} -> {self.put}"

    def applied(self, source: str) -> str:
        """The source with the bug in it; StaleError where it does not fit."""
        mutated = self._in_line(source) if self.line else self._by_text(source)
        try:
            compile(mutated, self.file, "exec")
        except SyntaxError as error:
            raise StaleError(f"the change is not valid Python ({error.msg})") from error
        return mutated

    def _in_line(self, source: str) -> str:
        lines = source.split("\n")
        if self.line > len(lines) or lines[self.line - 1] != self.find:
            raise StaleError(f"line {self.line} is another")
        lines[self.line - 1] = self.put
        return "\n".join(lines)

    def _by_text(self, source: str) -> str:
        head, mark, rest = source.partition(self.below) if self.below else ("", "", source)
        if self.below and not mark:
            raise StaleError(f"'{self.below}' is not there")
        count = rest.count(self.find)
        if count != 1 and not (self.below and count):
            raise StaleError(f"'{self.find}' occurs {count} times")
        return head + mark + rest.replace(self.find, self.put, 1)


def read_list(folder: Path) -> list[Mutant]:
    """All mutants of a folder of lists, room by room."""
    mutants = [mutant for path in sorted(folder.glob("*.toml")) for mutant in _read_room(path)]
    counts = Counter(mutant.place for mutant in mutants)
    twice = sorted(place for place, count in counts.items() if count > 1)
    if twice:
        raise SystemExit(f"These mutants are listed twice: {twice}.")
    return mutants


def _read_room(path: Path) -> list[Mutant]:
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    usual = content.get("tests", [])
    return [_checked(path, entry, usual) for entry in content.get("mutant", [])]


def _checked(path: Path, entry: dict[str, Any], usual: list[str]) -> Mutant:
    tests = tuple(entry.get("tests", usual))
    wrong = entry.keys() - KEYS
    lacking = KEYS - {"tests", "below"} - entry.keys()
    if wrong or lacking or not tests:
        raise SystemExit(f"{path.name}: {entry.get('breaks', entry)} has {sorted(wrong)} too much or lacks {sorted(lacking)}.")
    if entry["find"] == entry["put"] or "\n" in entry["find"] or not entry["find"].strip():
        raise SystemExit(f"{path.name}: '{entry['breaks']}' must change something in one line.")
    file, find, put, breaks = (str(entry[name]) for name in ("file", "find", "put", "breaks"))
    return Mutant(path.stem, file, find, put, breaks, tests, below=str(entry.get("below", "")))
