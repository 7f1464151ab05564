"""Runs mutants: a copy of the package with one line changed, and the tests that may notice, the likeliest and fastest first."""

from __future__ import annotations

import datetime
import math
import os
import re
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import SimpleQueue

from tools.mutants.mutant import Mutant, StaleError
from tools.mutants.nursery import COLD, FORKS, MARKS, Nursery, enter
from tools.mutants.outcomes import BROKEN, HUNG, NOTICED, STALE, UNNOTICED, Outcome, Outcomes, id_of, key_of
from tools.mutants.patch import changed
from tools.mutants.reach import Reach, place_of, store

SOURCE = Path("src") / "leader"
PYTEST = ("-m", MARKS, "-x", "-q", "-p", "no:cacheprovider", "--no-header", "--tb=line")
BY_TEXT = "tests/bench/test_version.py::"
"""These look at the text of the package and would notice any change: for what is not of their room they do not count."""
BEYOND = 60.0
"""Seconds of tests that a mutant does not name, but which reach the function it changes, that are tried in the end."""


class Place:
    """A copy of the package in a folder of its own, one file at a time changed in it, and the process that runs the tests."""

    def __init__(self, root: Path, folder: Path, tests: Iterable[str] = ("tests",)) -> None:
        self.root, self.folder, self.source = root, folder, folder / SOURCE
        shutil.copytree(root / SOURCE, self.source, ignore=shutil.ignore_patterns("__pycache__"))
        self.nursery = Nursery(root, folder, tuple(tests))
        self._passing: dict[str, bool] = {}

    @contextmanager
    def holding(self, mutant: Mutant, text: str) -> Iterator[None]:
        path = self.source / mutant.file
        before = path.read_text(encoding="utf-8")
        path.write_text(text, encoding="utf-8")
        try:
            yield
        finally:
            path.write_text(before, encoding="utf-8")

    def tried(self, file: str, before: str, after: str, tests: list[str], timeout: float) -> tuple[str, str]:
        """Status and the test that noticed."""
        code, failed = self.nursery.tried(file, before, after, tests, timeout)
        if code == COLD:
            functions = list(dict.fromkeys(test.partition("[")[0] for test in tests))
            return judge(*self._cold(functions, timeout + 20))
        assert not isinstance(code, str)
        return (NOTICED, failed) if failed else judge(code, "")

    def passes(self, test: str, file: str, before: str) -> bool:
        """Whether a test passes where there is no bug; asked once a test. Otherwise it says nothing of a mutant."""
        if test not in self._passing:
            known = test in self.nursery.collected
            self._passing[test] = not known or self.nursery.tried(file, before, before, [test], 300)[0] == 0
        return self._passing[test]

    def _cold(self, tests: Iterable[str], timeout: float) -> tuple[int | None, str]:
        """Exit code (None: no end in time) and output of pytest in a process that loads the package anew."""
        printed = self.folder / "printed-cold.txt"
        process = FORKS.Process(target=_pytest, args=(self.root, self.source.parent, printed, tuple(tests)))
        process.start()
        process.join(timeout)
        code = process.exitcode
        if process.pid is not None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # also the processes that tests have started and left behind
        process.kill()
        process.join()
        return code, printed.read_text(encoding="utf-8", errors="replace")


def _pytest(root: Path, source: Path, printed: Path, tests: tuple[str, ...]) -> None:
    """In a fork: pytest against the package in `source`, its output into the file `printed`."""
    enter(root, source, printed)
    import pytest

    code = int(pytest.main([*PYTEST, "--basetemp", str(printed.parent / "tmp-cold"), *tests]))
    os._exit(code)


def make_map(place: Place, reach: Reach, wanted: Iterable[str], end: float, say: Callable[[str], None]) -> None:
    """Maps the wanted test files that are not mapped as they are now (see reach.py), those begun before `end`."""
    files: dict[str, list[str]] = {}
    for test in place.nursery.collected:
        if _named(test, wanted):
            files.setdefault(test.partition("::")[0], []).append(test)
    for file, tests in files.items():
        kept = place_of(reach.folder, place.root, file)
        if kept.is_file():
            continue
        if time.monotonic() > end:
            say("Not all test files are mapped yet.")
            break
        code, found = place.nursery.mapped(tests, 600)
        if code != 0:
            say(f"{file} could not be mapped ({code})")
            continue
        seen = {test: (seconds, set(names)) for test, (seconds, names) in found["seen"].items()}
        store(kept, seen, found["spawning"], found["failing"])
        reach.add(kept)
        say(f"mapped    {sum(seconds for seconds, _ in seen.values()):6.1f} s  {file}")


def run_all(
    mutants: list[Mutant],
    root: Path,
    folder: Path,
    outcomes: Outcomes,
    reach: Reach,
    *,
    jobs: int = 2,
    timeout: float = 300,
    again: bool = False,
    minutes: float = math.inf,
    narrow: bool = False,
    say: Callable[[Mutant, Outcome], None] | None = None,
) -> list[Outcome | None]:
    """The outcomes of the mutants, in their order; those that still stand are taken from the file.

    None for those that were not begun in these `minutes`. `narrow`: only tests that a mutant names are tried.
    """
    end = time.monotonic() + 60 * minutes
    places: SimpleQueue[Place] = SimpleQueue()
    made: list[Place] = []
    mapping = threading.Lock()

    def one(mutant: Mutant) -> Outcome | None:
        outcome = _known(mutant, root, outcomes, again)
        if outcome is None:
            if time.monotonic() > end:
                return None
            place = places.get()
            try:
                with mapping:  # on the way, what is not mapped yet
                    make_map(place, reach, [test.partition("::")[0] for test in mutant.tests], math.inf, print)
                outcome = _outcome(mutant, root, place, outcomes, reach, timeout)
            finally:
                places.put(place)
            if outcome.status != BROKEN:
                outcomes.add(outcome)
        if say is not None:
            say(mutant, outcome)
        return outcome

    named = sorted({test.partition("::")[0] for mutant in mutants for test in mutant.tests}) if narrow else ["tests"]
    if any(_known(mutant, root, outcomes, again) is None for mutant in mutants):
        for number in range(jobs):
            made.append(Place(root, folder / str(number), named))
            places.put(made[-1])
    try:
        with ThreadPoolExecutor(jobs) as pool:
            return list(pool.map(one, mutants))
    finally:
        for place in made:
            place.nursery.close()


def _texts(mutant: Mutant, root: Path) -> tuple[str, str]:
    """The file without and with the bug."""
    path = root / SOURCE / mutant.file
    if not path.is_file():
        raise StaleError("there is no such file")
    before = path.read_text(encoding="utf-8")
    return before, mutant.applied(before)


def _known(mutant: Mutant, root: Path, outcomes: Outcomes, again: bool) -> Outcome | None:
    """An outcome that need not be found out: stale, or noticed by a test that stands, in a function that stands."""
    try:
        before, after = _texts(mutant, root)
    except StaleError as error:
        return _dated(mutant, STALE, str(error), "")
    stored = outcomes.get(mutant)
    if again or stored is None:
        return None
    return stored if stored.key == key_of(before, after, stored.status, stored.by, root) else None


def _dated(mutant: Mutant, status: str, by: str, key: str, seconds: float = 0.0) -> Outcome:
    today = datetime.date.today().isoformat()
    return Outcome(id_of(mutant), mutant.file, mutant.breaks, status, by, key, today, round(seconds, 1))


def _outcome(mutant: Mutant, root: Path, place: Place, outcomes: Outcomes, reach: Reach, timeout: float) -> Outcome:
    before, after = _texts(mutant, root)
    stored = outcomes.get(mutant)
    began = time.monotonic()
    status, by = UNNOTICED, "no test reaches it"
    with place.holding(mutant, after):
        names = functions_of(before, after, mutant.file)
        for tests in chosen(mutant, names, place.nursery.collected, reach, stored.by if stored else ""):
            limit = min(timeout, 30 + 10 * sum(reach.seconds.get(test, 1.0) for test in tests))
            status, by = place.tried(mutant.file, before, after, tests, limit)
            if status != UNNOTICED:
                break
    if status == NOTICED and not place.passes(by, mutant.file, before):
        status, by = BROKEN, f"{by} fails without any mutant"
    return _dated(mutant, status, by, key_of(before, after, status, by, root), time.monotonic() - began)


def functions_of(before: str, after: str, file: str) -> list[str]:
    """The functions a bug changes, the innermost first, as the map names them; none where it changes something else."""
    codes = changed(before, after, file)
    return [f"{file}::{getattr(code, 'co_qualname', code.co_name)}" for code in (codes or {}).values()]


def chosen(mutant: Mutant, names: list[str], collected: list[str], reach: Reach, before: str) -> Iterator[list[str]]:
    """Tests to try, part by part: what noticed the mutant before; what it names; whatever else reaches the function.

    Of what it names, those that reach the function come first, then those the map cannot speak of (other processes, results
    that an earlier test of the file has left in a cache, constants). Tests that fail without any mutant are never asked.
    """
    asked: set[str] = set()
    text_counts = mutant.file.startswith("bench/")
    there = [test for test in collected if test not in reach.failing and (text_counts or not test.startswith(BY_TEXT))]
    reaching = reach.reaching(names) if names else reach.reaching_file(mutant.file)
    named = [test for test in there if _named(test, mutant.tests)]
    files = {test.partition("::")[0] for test in reaching}
    unsure = [
        test
        for test in named
        if not names or test in reach.spawning or test not in reach.seconds or test.partition("::")[0] in files
    ]
    others = _within([test for test in there if test in reaching], reach, mutant.file)
    parts = [
        [test for test in there if test == before],
        _fast_first([test for test in named if test in reaching], reach),
        _fast_first(unsure, reach),
        others,
    ]
    for part in parts:
        left = [test for test in part if test not in asked]
        asked |= set(left)
        if left:
            yield left


def _named(test: str, names: Iterable[str]) -> bool:
    return any(test == name or test.startswith((f"{name}/", f"{name}::", f"{name}[")) for name in names)


def _fast_first(tests: list[str], reach: Reach) -> list[str]:
    """File by file, so that fixtures are made once: the fastest file first, and in it the fastest test."""
    totals: dict[str, float] = {}
    for test in tests:
        totals[test.partition("::")[0]] = totals.get(test.partition("::")[0], 0.0) + reach.seconds.get(test, 1.0)
    return sorted(
        tests, key=lambda test: (totals[test.partition("::")[0]], test.partition("::")[0], reach.seconds.get(test, 1.0))
    )


def _within(tests: list[str], reach: Reach, file: str) -> list[str]:
    """As many as fit into BEYOND seconds: those of the same room and name first, then the fastest."""
    room, stem = file.rpartition("/")[0], Path(file).stem

    def near(test: str) -> int:
        return (f"tests/{room}" not in test) + (stem not in test.partition("::")[0])

    kept: list[str] = []
    spent = 0.0
    for test in sorted(tests, key=lambda test: (near(test), reach.seconds.get(test, 1.0))):
        spent += reach.seconds.get(test, 1.0)
        if spent > BEYOND and kept:
            break
        kept.append(test)
    close = [test for test in kept if near(test) == 0]
    return [*_fast_first(close, reach), *_fast_first([test for test in kept if near(test) != 0], reach)]


def judge(code: int | None, printed: str) -> tuple[str, str]:
    """What pytest's exit says of a mutant, and the test that noticed it first."""
    if code is None:
        return HUNG, "no end in time"
    if code == 0:
        return UNNOTICED, ""
    if code in (1, 2):  # a test failed, or could not even be collected
        first = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", printed, re.MULTILINE)
        return NOTICED, first[1] if first else "an error before the first test"
    if code < 0:
        return NOTICED, f"a crash by signal {-code}"
    if code == 5:
        return UNNOTICED, "no test was left to run"
    return BROKEN, (printed.strip().splitlines() or ["pytest said nothing"])[-1]
