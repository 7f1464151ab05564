"""Which test files reach which function and how long their tests take, found out once a file and kept in out/.

Where the map is out of date a bug may seem unnoticed; nothing can seem noticed by it, because that takes a test that fails.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

from tools.mutants.trial import Tree

ELSEWHERE = ("tests/tools/", "tests/benchmarks/")
"""Tests of what is not the package."""


class Reach:
    """The map: what `Tree.trace` found for each test file. Functions are named file::qualified name.

    seconds  of tests that are tried on a bug, the nearest and fastest files first
    """

    def __init__(self, folder: Path, within: str = "tests/", seconds: float = 60.0) -> None:
        self.folder, self.within, self.seconds = folder, within, seconds
        self.found: dict[str, dict[str, Any]] = {}

    def missing(self, root: Path) -> list[str]:
        """Takes in what is kept; returns the test files that are new or have changed since."""
        files = [path.relative_to(root).as_posix() for path in sorted((root / "tests").rglob("test_*.py"))]
        files = [file for file in files if file.startswith(self.within) and not file.startswith(ELSEWHERE)]
        for file in files:
            if (place := self._place(root, file)).is_file():
                self.found[file] = json.loads(place.read_text(encoding="utf-8"))
        return [file for file in files if file not in self.found]

    def make(self, tree: Tree, file: str) -> None:
        """Traces one test file and keeps what it reaches."""
        if found := tree.trace(file, 600):
            self.found[file] = found
            self.folder.mkdir(parents=True, exist_ok=True)
            self._place(tree.root, file).write_text(json.dumps(found), encoding="utf-8")

    @property
    def failing(self) -> list[str]:
        """Tests that fail without any bug."""
        return sorted(test for found in self.found.values() for test in found["failing"])

    def choose(self, functions: list[tuple[str, str]]) -> dict[str, float]:
        """The tests to try on a bug in these functions, with their seconds: nearest files first, and of those the fastest.

        Where no test is known to reach a function (it is new, or runs only in other processes) those that reach anything
        of its file. Files of its room that start processes always come too, for nobody saw what they reach there.
        """
        near: dict[str, int] = {}
        for path, owner in functions:
            reaching = [file for file, found in self.found.items() if f"{path}::{owner}" in found["functions"]]
            if not reaching:
                reaching = [file for file, found in self.found.items() if f"\n{path}::" in "\n" + "\n".join(found["functions"])]
            room = f"tests/{path.rpartition('/')[0]}/" if "/" in path else "tests/test_"
            reaching += [file for file, found in self.found.items() if found["spawns"] and file.startswith(room)]
            stem = Path(path).stem.strip("_")
            for file in reaching:
                near[file] = max(near.get(file, 0), file.startswith(room) + 2 * (stem in Path(file).stem))
        chosen: dict[str, float] = {}
        for file in sorted(near, key=lambda file: (-near[file], sum(self.found[file]["tests"].values()))):
            tests = {test: seconds for test, seconds in self.found[file]["tests"].items() if test not in self.failing}
            if not chosen or sum(chosen.values()) + sum(tests.values()) <= self.seconds:
                chosen |= dict(sorted(tests.items(), key=lambda item: item[1]))
        return chosen

    def _place(self, root: Path, file: str) -> Path:
        digest = hashlib.sha256((root / file).read_bytes()).hexdigest()[:12]
        return self.folder / f"{file.replace('/', '.')}-{digest}.json"
