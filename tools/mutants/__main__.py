"""`python -m tools.mutants --count 300 --seed 1`: plants random bugs one after the other in a copy of the tree, runs the tests
that reach them, prints those that no test noticed and the share noticed. A second run continues where the first was stopped.
"""

import argparse
import datetime
import hashlib
import json
import os
import tempfile
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue

from tools.mutants.draw import Bug, draw_bugs
from tools.mutants.reach import Reach
from tools.mutants.trial import SOURCE, Tree

ROOT = Path(__file__).resolve().parents[2]
NOTICED, UNNOTICED, HUNG, BROKEN = "noticed", "unnoticed", "hung", "broken"
"""`hung` counts as noticed: the tests did not end in time. `broken`: the test that fails does so without the bug too."""


class Record:
    """Outcomes kept in a file, one line each. What was noticed stands; the rest is tried again once a test has changed."""

    def __init__(self, path: Path, root: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        files = sorted((root / "tests").rglob("*.py"))
        self.tests = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        path.write_text(text[: text.rfind("\n") + 1], encoding="utf-8")  # the last line may have been cut short
        kept = [json.loads(line) for line in text.split("\n")[:-1]]
        standing = [entry for entry in kept if entry["status"] == NOTICED or entry["tests"] == self.tests]
        self.known = {entry["bug"]: (entry["status"], entry["by"]) for entry in standing}

    def add(self, bug: str, status: str, by: str) -> None:
        """Keeps an outcome."""
        entry = {"bug": bug, "status": status, "by": by, "tests": self.tests, "on": datetime.date.today().isoformat()}
        self.known[bug] = status, by
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")


@dataclass
class Bench:
    """Copies of the tree to work in, the map of the tests, what is known already, and which tests pass without any bug."""

    root: Path
    trees: SimpleQueue[Tree]
    reach: Reach
    record: Record
    timeout: float
    passing: dict[str, bool] = field(default_factory=dict)

    def map_tests(self, file: str) -> None:
        """Finds out what a test file reaches."""
        tree = self.trees.get()
        self.reach.make(tree, file)
        print(f"mapped: {file}" if file in self.reach.found else f"could not be mapped: {file}", flush=True)
        self.trees.put(tree)

    def try_bug(self, bug: Bug) -> tuple[str, str]:
        """Status of a bug and the test that noticed it, or why none did."""
        name = bug.identity(self.root / SOURCE)
        if name not in self.record.known:
            tree = self.trees.get()
            try:
                status, by = self._run(bug, tree)
            finally:
                self.trees.put(tree)
            places = " and ".join(f"{file}::{owner}" for file, owner in bug.functions)
            print(f"{status:9}  {bug.kind}: {places}  {by}", flush=True)
            self.record.add(name, status, by)
        return self.record.known[name]

    def _run(self, bug: Bug, tree: Tree) -> tuple[str, str]:
        tests = self.reach.choose(bug.functions)
        if not tests:
            return UNNOTICED, "no test reaches it"
        limit = min(self.timeout, 30 + 10 * sum(tests.values()))
        code, failed = tree.run(list(tests), limit, bug.texts(self.root / SOURCE))
        if code is None:
            return HUNG, f"no end within {limit:.0f} s"
        if code in (0, 5):
            return UNNOTICED, f"{len(tests)} tests passed"
        if failed and failed not in self.passing:
            self.passing[failed] = tree.run([failed], self.timeout)[0] == 0
        if failed and not self.passing[failed]:
            return BROKEN, f"{failed} fails without the bug"
        return NOTICED, failed or "an error before the first test"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__)
    parser.add_argument("--count", type=int, default=300, help="bugs to plant (300)")
    parser.add_argument("--seed", type=int, default=1, help="of the draw (1)")
    parser.add_argument("--room", help="a folder of the package, or core; all of them unless given")
    parser.add_argument("--jobs", type=int, default=2, help="bugs at a time (2)")
    parser.add_argument("--timeout", type=float, default=300, help="most seconds for the tests of one bug (300)")
    parser.add_argument("--seconds", type=float, default=60, help="of tests tried on a bug, by the pace of their mapping (60)")
    parser.add_argument("--tests", default="tests/", help="try only tests whose file's path begins with this (tests/)")
    parser.add_argument("--list", action="store_true", help="print the bugs and run nothing")
    parser.add_argument("--root", type=Path, default=ROOT, help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    os.environ |= {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    source, out = asked.root / SOURCE, asked.root / "out" / "mutants"
    bugs = draw_bugs(source, asked.count, asked.seed, asked.room)
    if asked.list:
        for bug in bugs:
            print(f"{bug.kind}\n{bug.diff(source)}\n")
        return 0
    record = Record(out / f"{asked.room or 'all'}-{asked.seed}.jsonl", asked.root)
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder, ThreadPoolExecutor(asked.jobs) as pool:
        bench = Bench(asked.root, SimpleQueue(), Reach(out / "reach", asked.tests, asked.seconds), record, asked.timeout)
        for number in range(asked.jobs):
            bench.trees.put(Tree(asked.root, Path(folder) / str(number)))
        list(pool.map(bench.map_tests, bench.reach.missing(asked.root)))
        for test in bench.reach.failing:
            print(f"fails without any bug and is not asked: {test}")
        outcomes = list(pool.map(bench.try_bug, bugs))
    _print_summary(bugs, outcomes, source)
    return 0


def _print_summary(bugs: list[Bug], outcomes: list[tuple[str, str]], source: Path) -> None:
    rooms: dict[str, Counter[str]] = {}
    for bug, (status, by) in zip(bugs, outcomes):
        rooms.setdefault(bug.room, Counter())[status] += 1
        if status in (UNNOTICED, BROKEN):
            print(f"\n{status}: {bug.kind}; {by}\n{bug.diff(source)}")
    print(f"\n{'room':14} {'bugs':>6} {'noticed':>8}")
    for room, counts in sorted(rooms.items()):
        others = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()) if status != NOTICED)
        print(f"{room:14} {counts.total():6} {counts[NOTICED] + counts[HUNG]:8}  {others}".rstrip())
    noticed = sum(counts[NOTICED] + counts[HUNG] for counts in rooms.values())
    print(f"{'all':14} {len(bugs):6} {noticed:8}  {100 * noticed / max(len(bugs), 1):.1f} %")


if __name__ == "__main__":
    raise SystemExit(main())
