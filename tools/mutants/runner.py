"""Runs mutants: a copy of the package with one line changed, its tests against that copy, a line of JSON for the outcome."""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import SimpleQueue

from tools.mutants.mutant import Mutant, StaleError, digest

NOTICED, UNNOTICED, STALE, HUNG, BROKEN = "noticed", "unnoticed", "stale", "hung", "broken"
SOURCE = Path("src") / "leader"
PYTEST = ("-m", "not slow", "-x", "-q", "-p", "no:cacheprovider", "--durations=0", "--no-header", "--tb=line")


@dataclass(frozen=True)
class Outcome:
    """What became of a mutant: its status, the first test that failed or why there is none, and the seconds it took."""

    key: str
    mutant: str
    status: str
    by: str
    seconds: float


class Results:
    """Outcomes by key in a file of JSON lines, the last one of a key counting."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._known: dict[str, Outcome] = {}
        self._noticed_by: dict[str, str] = {}
        if path.is_file():
            text = path.read_text(encoding="utf-8")
            if text and not text.endswith("\n"):
                path.write_text(text + "\n", encoding="utf-8")  # an interruption cut the last line short
            for line in text.splitlines():
                outcome = _parsed(line)
                if outcome is not None:
                    self._remember(outcome)

    def get(self, key: str) -> Outcome | None:
        return self._known.get(key)

    def noticed_by(self, mutant: str) -> str | None:
        """The test that noticed this mutant last, in whatever state file and tests were then."""
        return self._noticed_by.get(mutant)

    def _remember(self, outcome: Outcome) -> None:
        self._known[outcome.key] = outcome
        if "::" in outcome.by:
            self._noticed_by[outcome.mutant] = outcome.by

    def add(self, outcome: Outcome) -> None:
        with self._lock:
            self._remember(outcome)
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(outcome)) + "\n")


def _parsed(line: str) -> Outcome | None:
    """A stored outcome; None for a line that an interruption cut short."""
    try:
        return Outcome(**json.loads(line))
    except (ValueError, TypeError):
        return None


class Tree:
    """A copy of the package in a folder of its own; one file at a time is changed in it."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.root, self.source = root, folder / SOURCE
        shutil.copytree(root / SOURCE, self.source, ignore=shutil.ignore_patterns("__pycache__"))

    @contextmanager
    def holding(self, mutant: Mutant, text: str) -> Iterator[None]:
        path = self.source / mutant.file
        before = path.read_text(encoding="utf-8")
        path.write_text(text, encoding="utf-8")
        try:
            yield
        finally:
            path.write_text(before, encoding="utf-8")

    def pytest(self, tests: Iterable[str], timeout: float) -> tuple[int | None, str]:
        """pytest's exit code and what it printed; None where it did not end in time."""
        printed = self.source.parent / "printed.txt"
        process = _FORKS.Process(target=_pytest, args=(self.root, self.source.parent, printed, tuple(tests)))
        process.start()
        process.join(timeout)
        code = process.exitcode
        if process.pid is not None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # also the processes that tests have started and left behind
        process.kill()
        process.join()
        return code, printed.read_text(encoding="utf-8", errors="replace")


_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(
    ["torch", "scipy.linalg", "PIL.Image", "pytest", "hypothesis", "safetensors.torch", "typer.testing", "matplotlib.figure"]
)
"""Tests run in forks of a process that has imported what takes seconds, and nothing of the package or its tests."""


def _pytest(root: Path, source: Path, printed: Path, tests: tuple[str, ...]) -> None:
    """In a fork: pytest against the package in `source`, its output into the file `printed`."""
    os.setsid()
    handle = os.open(printed, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(handle, 1)
    os.dup2(handle, 2)
    os.chdir(root)
    # No byte code is kept: two mutants of one file can have the same size and second, which is all Python looks at.
    settings = {"PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    os.environ.update(settings)
    sys.dont_write_bytecode = True
    sys.path[:0] = [str(source)]
    import pytest

    code = int(pytest.main([*PYTEST, *tests]))
    sys.stdout.flush()
    os._exit(code)


def run_all(
    mutants: list[Mutant],
    root: Path,
    folder: Path,
    results: Results,
    *,
    jobs: int = 2,
    timeout: float = 300,
    again: bool = False,
    say: Callable[[Mutant, Outcome], None] | None = None,
) -> list[Outcome]:
    """The outcomes of the mutants, in their order; those stored for the same file and tests are taken from there."""
    os.environ |= {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    trees: SimpleQueue[Tree] = SimpleQueue()
    for number in range(jobs):
        trees.put(Tree(root, folder / str(number)))

    def one(mutant: Mutant) -> Outcome:
        outcome = _outcome(mutant, root, trees, results, timeout, again)
        if say is not None:
            say(mutant, outcome)
        return outcome

    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(one, mutants))


def _outcome(mutant: Mutant, root: Path, trees: SimpleQueue[Tree], results: Results, timeout: float, again: bool) -> Outcome:
    path = root / SOURCE / mutant.file
    try:
        if not path.is_file():
            raise StaleError("there is no such file")
        text = mutant.applied(path.read_text(encoding="utf-8"))
    except StaleError as error:
        return Outcome("", mutant.place, STALE, str(error), 0.0)
    key = digest(mutant, text, root)
    known = results.get(key)
    if known is not None and not again:
        return known
    tree = trees.get()
    began = time.monotonic()
    try:
        with tree.holding(mutant, text):
            status, by = _tried(tree, mutant, results.noticed_by(mutant.place), timeout)
    finally:
        trees.put(tree)
    outcome = Outcome(key, mutant.place, status, by, round(time.monotonic() - began, 1))
    if status != BROKEN:
        results.add(outcome)
    return outcome


def _tried(tree: Tree, mutant: Mutant, before: str | None, timeout: float) -> tuple[str, str]:
    """Status and first failing test; the test that noticed the mutant before goes first, for it most likely does again."""
    if before is not None:
        status, by = judge(*tree.pytest([before], timeout))
        if status == NOTICED:
            return status, by
    return judge(*tree.pytest(mutant.tests, timeout))


def judge(code: int | None, printed: str) -> tuple[str, str]:
    """What pytest's exit says of a mutant, and the test that noticed it first."""
    if code is None:
        return HUNG, "no end in time"
    if code == 0:
        return UNNOTICED, ""
    if code in (1, 2):  # a test failed, or could not even be collected
        first = re.search(r"^(?:FAILED|ERROR) (\S+)", printed, re.MULTILINE)
        return NOTICED, first[1] if first else "an error before the first test"
    if code < 0:
        return NOTICED, f"a crash by signal {-code}"
    return BROKEN, (printed.strip().splitlines() or ["pytest said nothing"])[-1]


def sound(mutants: list[Mutant], root: Path, folder: Path, timeout: float) -> str | None:
    """Whether the tests pass on the package as it is: None, or the first that does not. Else every mutant seems noticed."""
    tests = sorted({test for mutant in mutants for test in mutant.tests})
    covered = [
        test for test in tests if not any(test != other and test.startswith((f"{other}/", f"{other}::")) for other in tests)
    ]
    code, printed = Tree(root, folder / "sound").pytest(covered, timeout)
    return None if code == 0 else judge(code, printed)[1] or "the tests did not end"
