"""A process that has loaded the package and collected the tests; it forks one child a mutant, which runs the tests chosen.

A child puts the bug in (see patch.py) and starts at once: neither imports nor collection are paid again.
"""

from __future__ import annotations

import cProfile
import json
import multiprocessing
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from tools.mutants.patch import Key, changed, key_of, put_in

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(
    ["torch", "scipy.linalg", "PIL.Image", "pytest", "hypothesis", "safetensors.torch", "typer.testing", "matplotlib.figure"]
)
"""Tests run in forks of a process that has imported what takes seconds, and nothing of the package or its tests."""
MARKS = "not slow and not browser"
OTHERS = ("tests/tools", "tests/benchmarks")
"""Tests of what is not the package."""
COLD = "cold"
"""The answer where a bug cannot be put into a process that has loaded the package."""
MEMORY = 12 << 30
"""Bytes a child may address: a bug that asks for more fails, instead of the machine."""
SPAWNS = ("subprocess.Popen", "os.posix_spawn", "os.fork", "os.forkpty")


class Nursery:
    """The process, seen from outside."""

    def __init__(self, root: Path, folder: Path, tests: tuple[str, ...]) -> None:
        self.source, self.reports = folder / "src", folder / "report.json"
        self._connection, theirs = FORKS.Pipe()
        self._process = FORKS.Process(target=_grow, args=(theirs, root, self.source, folder, tests))
        self._process.start()
        theirs.close()
        try:
            self.collected: list[str] = self._connection.recv()
        except EOFError:
            printed = (folder / "printed.txt").read_text(encoding="utf-8", errors="replace")
            raise SystemExit(f"The tests could not be collected:\n{printed[-2000:]}") from None

    def tried(self, file: str, before: str, after: str, tests: list[str], timeout: float) -> tuple[int | str | None, str]:
        """Exit code of the tests with the bug in, None where they did not end in time, or COLD; and the test that failed."""
        path = str(self.source / "leader" / file)
        self.reports.unlink(missing_ok=True)
        self._connection.send({"path": path, "before": before, "after": after, "tests": tests, "timeout": timeout})
        code: int | str | None = self._connection.recv()
        return code, json.loads(self.reports.read_text())["failed"] if self.reports.is_file() else ""

    def mapped(self, tests: list[str], timeout: float) -> tuple[int | None, dict[str, Any]]:
        """What these tests reach: exit code, and per test seconds and functions (see _Tracer)."""
        self.reports.unlink(missing_ok=True)
        self._connection.send({"tests": tests, "timeout": timeout})
        code: int | None = self._connection.recv()
        return code, json.loads(self.reports.read_text()) if self.reports.is_file() else {}

    def close(self) -> None:
        with suppress(OSError):
            self._connection.send(None)
        self._process.join(10)
        self._process.kill()


def enter(root: Path, source: Path, printed: Path) -> None:
    """In a fresh fork: this package, this folder, output into a file."""
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
    _no_shrinking()


def _no_shrinking() -> None:
    """A counterexample is enough here; the smallest one would take seconds."""
    from hypothesis import Phase, settings

    settings.register_profile("mutants", phases=[Phase.explicit, Phase.generate], database=None)
    settings.load_profile("mutants")


def _grow(connection: Connection, root: Path, source: Path, folder: Path, tests: tuple[str, ...]) -> None:
    """The process from inside: collects, then serves until None comes."""
    enter(root, source, folder / "printed.txt")
    import pytest

    place = ["--basetemp", str(folder / "tmp"), "--rootdir", str(root)]
    others = [f"--ignore={folder}" for folder in OTHERS]
    options = ["-m", MARKS, "-q", "-s", "-p", "no:cacheprovider", "--no-header", "--tb=line", *place, *others]
    with _Tracer(source) as tracer:
        pytest.main([*options, *tests], plugins=[_Host(connection, folder, tracer)])


class _Tracer:
    """Notes the functions of the package that are entered, in every thread."""

    def __init__(self, source: Path) -> None:
        self.prefix = f"{source}/leader/"
        self._profiler = cProfile.Profile(builtins=False, subcalls=False)  # in C: hardly slower than without
        self._elsewhere: dict[int, CodeType] = {}

    def __enter__(self) -> _Tracer:
        threading.setprofile(self._enter)
        self._profiler.enable()
        return self

    def __exit__(self, *_: object) -> None:
        self._profiler.disable()
        threading.setprofile(None)

    def _enter(self, frame: FrameType, event: str, argument: object) -> None:
        self._elsewhere[id(frame.f_code)] = frame.f_code

    def taken(self) -> list[CodeType]:
        """What has been entered since the last time."""
        entered = {id(entry.code): entry.code for entry in self._profiler.getstats() if isinstance(entry.code, CodeType)}
        entered |= dict(self._elsewhere)
        self._profiler.clear()
        self._elsewhere.clear()
        return [code for code in entered.values() if code.co_filename.startswith(self.prefix)]

    def name(self, code: CodeType) -> str:
        return f"{code.co_filename.removeprefix(self.prefix)}::{getattr(code, 'co_qualname', code.co_name)}"


class _Host:
    """pytest's loop over tests replaced by one over requests."""

    def __init__(self, connection: Connection, folder: Path, tracer: _Tracer) -> None:
        self.connection, self.folder, self.tracer = connection, folder, tracer
        self.failed = ""

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed and not self.failed:
            self.failed = report.nodeid

    def pytest_runtestloop(self, session: Any) -> bool:
        self.tracer.__exit__()
        spent = {(code.co_filename, *key_of(code)) for code in self.tracer.taken()}
        items = {item.nodeid: item for item in session.items}
        self.connection.send(list(items))
        while (asked := self.connection.recv()) is not None:
            codes: dict[Key, CodeType] | None = {}
            if "path" in asked and _loaded(asked["path"]):
                codes = changed(asked["before"], asked["after"], asked["path"])
            if codes is None or any((asked["path"], *key) in spent for key in codes):
                self.connection.send(COLD)
                continue
            chosen = [items[test] for test in asked["tests"]]
            self.connection.send(self._forked(chosen, codes, asked.get("path"), asked["timeout"]))
        return True

    def _forked(self, items: list[Any], codes: dict[Key, CodeType], path: str | None, timeout: float) -> int | str | None:
        """The exit code of a child that runs these tests; None where it does not end in time."""
        child = os.fork()
        if child == 0:
            code = 1
            try:
                code = self._run(items, codes, path)
            finally:
                os._exit(code)
        deadline = time.monotonic() + timeout
        ended = False
        while not ended and time.monotonic() < deadline:
            pid, status = os.waitpid(child, os.WNOHANG)
            ended = pid != 0
            if not ended:
                time.sleep(0.01)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child, signal.SIGKILL)  # also the processes that tests have started and left behind
        if not ended:
            os.waitpid(child, 0)
            return None
        code = os.waitstatus_to_exitcode(status)
        return COLD if code == 90 else code

    def _run(self, items: list[Any], codes: dict[Key, CodeType], path: str | None) -> int:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        if path is None:
            return self._map(items)
        if not put_in(codes, path):
            return 90
        for _ in _each(items):
            if self.failed:
                break
        (self.folder / "report.json").write_text(json.dumps({"failed": self.failed}))
        return 1 if self.failed else 0

    def _map(self, items: list[Any]) -> int:
        """Runs all and writes what each test reaches; what fixtures of a file's tests reach counts for all of them."""
        seen: dict[str, tuple[float, list[str]]] = {}
        failing: list[str] = []
        spawning: list[str] = []
        spawned: list[str] = []
        sys.addaudithook(lambda event, _: spawned.append(event) if event in SPAWNS else None)
        setup: set[str] = set()
        with self.tracer:
            began = _worked()
            items[0].config.pluginmanager.register(_Setup(self.tracer, setup))
            for item in _each(items):
                names = [self.tracer.name(code) for code in self.tracer.taken()]
                seen[item.nodeid] = (_worked() - began, names)
                if self.failed:
                    failing.append(item.nodeid)
                if spawned:
                    spawning.append(item.nodeid)
                    spawned.clear()
                self.failed, began = "", _worked()
        shared = sorted(setup)
        report = {
            "seen": {test: (seconds, sorted({*names, *shared})) for test, (seconds, names) in seen.items()},
            "spawning": spawning,
            "failing": failing,
        }
        (self.folder / "report.json").write_text(json.dumps(report))
        return 0


class _Setup:
    """Notes what fixtures reach."""

    def __init__(self, tracer: _Tracer, names: set[str]) -> None:
        self.tracer, self.names = tracer, names

    def pytest_runtest_call(self) -> None:
        self.names.update(self.tracer.name(code) for code in self.tracer.taken())


def _each(items: list[Any]) -> Iterator[Any]:
    """Runs tests one after the other."""
    for item, following in zip(items, [*items[1:], None], strict=True):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        yield item


def _worked() -> float:
    """Seconds of computing of this process and those it has started and seen end."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _loaded(path: str) -> bool:
    return any(getattr(module, "__file__", None) == path for module in list(sys.modules.values()))
