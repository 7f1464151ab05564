"""Which test reaches which function of the package, and how long it takes: a hint which tests to try on a mutant, and when.

The map is made by running test files once, when they are needed or all of them (`--map`), and kept in out/. Where it is out
of date a mutant may seem unnoticed; nothing can seem noticed by it, because that takes a test that fails.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Reach:
    """The map: per test its seconds, per function (file::qualified name) its tests, and what failed without any mutant."""

    folder: Path
    seconds: dict[str, float] = field(default_factory=dict)
    tests: dict[str, set[str]] = field(default_factory=dict)
    spawning: set[str] = field(default_factory=set)
    failing: set[str] = field(default_factory=set)

    def read(self) -> Reach:
        for path in sorted(self.folder.glob("*.json")):
            self.add(path)
        return self

    def add(self, path: Path) -> None:
        """Takes in the map of one test file."""
        stored = json.loads(path.read_text(encoding="utf-8"))
        for test, entry in stored["tests"].items():
            self.seconds[test] = entry["seconds"]
            for number in entry["functions"]:
                self.tests.setdefault(stored["functions"][number], set()).add(test)
        self.spawning |= set(stored["spawning"])
        self.failing |= set(stored["failing"])

    def reaching(self, names: list[str]) -> set[str]:
        """The tests that reach the first of these functions that any test reaches (given from the inside out)."""
        return next((self.tests[name] for name in names if name in self.tests), set())

    def reaching_file(self, file: str) -> set[str]:
        """The tests that reach anything in a file of the package."""
        return {test for name, tests in self.tests.items() if name.startswith(f"{file}::") for test in tests}


def place_of(folder: Path, root: Path, test_file: str) -> Path:
    """Where the map of a test file is kept: another place when the file changes."""
    digest = hashlib.sha256((root / test_file).read_bytes()).hexdigest()[:12]
    return folder / f"{test_file.replace('/', '.')}-{digest}.json"


def store(path: Path, seen: dict[str, tuple[float, set[str]]], spawning: list[str], failing: list[str]) -> None:
    """Writes the map of one test file, in place of those it had before."""
    functions = sorted({name for _, names in seen.values() for name in names})
    number = {name: index for index, name in enumerate(functions)}
    tests = {
        test: {"seconds": round(seconds, 3), "functions": sorted(number[name] for name in names)}
        for test, (seconds, names) in seen.items()
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    for old in path.parent.glob(f"{path.name.rpartition('-')[0]}-*.json"):
        old.unlink()
    content = {"functions": functions, "tests": tests, "spawning": spawning, "failing": failing}
    path.write_text(json.dumps(content), encoding="utf-8")
