"""Which tests reach which function and how long they take, found out once a test file and kept in out/.

Where the map is out of date a bug may seem unnoticed; nothing can seem noticed by it, because that takes a test that fails.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

from tools.mutants.trial import Tree

ELSEWHERE = ("tests/tools/", "tests/benchmarks/")
"""Tests of what is not the package."""
SECONDS = 60.0
"""Of tests that are tried on a bug, the nearest and fastest first."""


class Reach:
    """The map. Functions are named file::qualified name, tests as pytest names them."""

    def __init__(self, folder: Path, within: str = "tests/") -> None:
        self.folder, self.within = folder, within
        self.seconds: dict[str, float] = {}
        self.tests: dict[str, set[str]] = defaultdict(set)
        self.spawning: set[str] = set()
        self.failing: set[str] = set()

    def missing(self, root: Path) -> list[str]:
        """Takes in what is kept; returns the test files that are new or have changed since."""
        files = [path.relative_to(root).as_posix() for path in sorted((root / "tests").rglob("test_*.py"))]
        left = []
        for file in files:
            if file.startswith(self.within) and not file.startswith(ELSEWHERE):
                place = self._place(root, file)
                if place.is_file():
                    self._add(json.loads(place.read_text(encoding="utf-8")))
                else:
                    left.append(file)
        return left

    def make(self, tree: Tree, file: str) -> float | None:
        """Traces one test file and keeps what it reaches; the seconds it took, None where it did not end."""
        found = tree.trace(file, 600)
        if not found:
            return None
        self.folder.mkdir(parents=True, exist_ok=True)
        place = self._place(tree.root, file)
        for old in self.folder.glob(f"{place.name.rpartition('-')[0]}-*.json"):
            old.unlink()
        place.write_text(json.dumps(found), encoding="utf-8")
        self._add(found)
        return float(sum(entry["seconds"] for entry in found["tests"].values()))

    def choose(self, functions: list[tuple[str, str]]) -> list[str]:
        """The tests to try on a bug in these functions: nearest files first, and of those the fastest.

        Where no test is known to reach a function (it is new, runs at import, or only in other processes), those that reach
        anything of its file; tests of its room that start processes always come too, for nobody saw what they reach there.
        """
        reaching: set[str] = set()
        for file, owner in functions:
            direct = self.tests.get(f"{file}::{owner}", set())
            files = {test.partition("::")[0] for test in direct}  # what an earlier test of a file has left in a cache
            direct = direct | {test for test in self.seconds if test.partition("::")[0] in files}
            if not direct:
                direct = {test for name, tests in self.tests.items() if name.startswith(f"{file}::") for test in tests}
            room = f"tests/{file.rpartition('/')[0]}/".replace("//", "/")
            reaching |= direct | {test for test in self.spawning if test.startswith(room)}
        stems = [Path(file).stem.strip("_") for file, _ in functions]
        rooms = [f"tests/{file.partition('/')[0]}/" for file, _ in functions]

        def rank(test: str) -> tuple[int, float]:
            name = test.partition("::")[0]
            known = any(test in self.tests.get(f"{file}::{owner}", ()) for file, owner in functions)
            near = name.startswith(tuple(rooms)) + any(stem in Path(name).stem for stem in stems)
            return -near - 2 * known, self.seconds[test]

        kept: list[str] = []
        spent = 0.0
        for test in sorted(reaching - self.failing, key=rank):
            spent += self.seconds[test]
            if kept and spent > SECONDS:
                break
            kept.append(test)
        return kept

    def _add(self, found: dict[str, Any]) -> None:
        for test, entry in found["tests"].items():
            self.seconds[test] = entry["seconds"]
            for name in (*entry["functions"], *found["shared"]):
                self.tests[name.partition(".<locals>")[0]].add(test)
        self.spawning |= set(found["spawning"])
        self.failing |= set(found["failing"])

    def _place(self, root: Path, file: str) -> Path:
        digest = hashlib.sha256((root / file).read_bytes()).hexdigest()[:12]
        return self.folder / f"{file.replace('/', '.')}-{digest}.json"
