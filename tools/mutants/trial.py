"""Runs tests in forks of a process that has imported torch and the like, but nothing of the package: on a copy of the
tree, with a limit of time and one of memory, the output in a file.
"""

import cProfile
import json
import multiprocessing
import os
import resource
import shutil
import signal
import sys
import threading
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(
    ["torch", "scipy.linalg", "PIL.Image", "pytest", "hypothesis", "safetensors.torch", "typer.testing", "matplotlib.figure"]
)
SOURCE = Path("src") / "leader"
MEMORY = 12 << 30
"""Bytes a fork may address: a bug that asks for more fails, instead of the machine."""
SPAWNS = ("subprocess.Popen", "os.posix_spawn", "os.fork", "os.forkpty")
PYTEST = ("-m", "not slow and not browser", "-x", "-q", "-p", "no:cacheprovider", "--no-header", "--tb=line")


class Tree:
    """A copy of the repository in a folder of its own; tests run there, and bugs are planted there."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.root, self.folder, self.copy = root, folder, folder / "tree"
        left_out = shutil.ignore_patterns(".git", ".venv", "out", "__pycache__", ".*_cache", ".hypothesis")
        shutil.copytree(root, self.copy, ignore=left_out)

    def run(self, tests: list[str], timeout: float, texts: dict[str, str] | None = None) -> tuple[int | None, str]:
        """Exit code of these tests in this order, up to the first that fails (None: no end in time), and that test.

        `texts` are changed files of the package.
        """
        for file, text in (texts or {}).items():
            (self.copy / SOURCE / file).write_text(text, encoding="utf-8")
        try:
            code, report = self._fork(tests, timeout, traced=False)
        finally:
            for file in texts or {}:
                shutil.copyfile(self.root / SOURCE / file, self.copy / SOURCE / file)
        return code, report.get("failed", "")

    def trace(self, file: str, timeout: float) -> dict[str, Any]:
        """What the tests of a file reach (functions), take (seconds) and start (processes), and which fail."""
        return self._fork([file], timeout, traced=True)[1]

    def _fork(self, tests: list[str], timeout: float, traced: bool) -> tuple[int | None, dict[str, Any]]:
        report = self.folder / "report.json"
        report.unlink(missing_ok=True)
        process = FORKS.Process(target=_run_pytest, args=(self.copy, self.folder, tests, traced))
        process.start()
        process.join(timeout)
        code = process.exitcode
        if process.pid is not None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # also what tests have started and left behind
        process.kill()
        process.join()
        return code, json.loads(report.read_text()) if report.is_file() else {}


def _run_pytest(copy: Path, folder: Path, tests: list[str], traced: bool) -> None:
    """In a fork: the package of the copy, pytest in its folder."""
    os.setsid()
    handle = os.open(folder / "printed.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(handle, 1)
    os.dup2(handle, 2)
    os.chdir(copy)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    # No byte code is kept: two bugs in one file can have the same size and second, which is all Python looks at.
    os.environ |= {
        "PYTHONPATH": f"{copy / 'src'}:{copy}",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    sys.dont_write_bytecode = True
    sys.path[:0] = [str(copy / "src"), str(copy)]
    from hypothesis import Phase, settings

    # A counterexample is enough here; the smallest one would take seconds.
    settings.register_profile("mutants", phases=[Phase.explicit, Phase.generate], database=None)
    settings.load_profile("mutants")
    host: Any = _Tracer(copy, folder) if traced else _Chooser(tests, folder)
    files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
    options = [option for option in PYTEST if not (traced and option == "-x")]
    code = int(pytest.main([*options, "--basetemp", str(folder / "tmp"), "--rootdir", str(copy), *files], plugins=[host]))
    sys.stdout.flush()
    os._exit(code)


class _Chooser:
    """Lets pytest run only the tests asked for, in their order, and notes the first that fails."""

    def __init__(self, tests: list[str], folder: Path) -> None:
        self.tests, self.folder = tests, folder

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        found = {item.nodeid: item for item in items}
        if any("::" in test for test in self.tests):
            items[:] = [found[test] for test in self.tests if test in found]

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            (self.folder / "report.json").write_text(json.dumps({"failed": report.nodeid}))


class _Tracer:
    """Notes the functions of the package that a test file enters, in every thread, and what each of its tests takes."""

    def __init__(self, copy: Path, folder: Path) -> None:
        self.prefix, self.folder = f"{copy / SOURCE}/", folder
        self.threads: dict[int, CodeType] = {}
        self.seconds: dict[str, float] = defaultdict(float)
        self.failing: set[str] = set()
        self.spawned: set[str] = set()
        sys.addaudithook(lambda event, _: self.spawned.add(event))
        threading.setprofile(self._enter)
        self.profiler = cProfile.Profile(builtins=False, subcalls=False)  # in C: hardly slower than without
        self.profiler.enable()

    def _enter(self, frame: FrameType, event: str, argument: object) -> None:
        self.threads[id(frame.f_code)] = frame.f_code

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.seconds[report.nodeid] += report.duration
        if report.failed:
            self.failing.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        self.profiler.disable()
        codes = [entry.code for entry in self.profiler.getstats() if isinstance(entry.code, CodeType)]
        inside = (code for code in (*codes, *self.threads.values()) if code.co_filename.startswith(self.prefix))
        names = {
            f"{code.co_filename.removeprefix(self.prefix)}::{getattr(code, 'co_qualname', code.co_name).partition('.<')[0]}"
            for code in inside
        }
        found = {"tests": self.seconds, "failing": sorted(self.failing), "functions": sorted(names)}
        spawns = not self.spawned.isdisjoint(SPAWNS)
        (self.folder / "report.json").write_text(json.dumps({**found, "spawns": spawns}))
