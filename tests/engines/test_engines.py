from __future__ import annotations

import os
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from leader.engines import Engine, FreshEngine, LocalEngine, PoolEngine, make_engine
from leader.errors import LeaderError


def noted(job: int) -> tuple[int, int, int]:
    """The square, the process and its torch threads."""
    return job * job, os.getpid(), torch.get_num_threads()


def failing(job: int) -> int:
    if job == 2:
        raise ValueError("two")
    return job


def test_make_engine_chooses() -> None:
    assert isinstance(make_engine(1), LocalEngine)
    assert isinstance(make_engine(2), PoolEngine)
    assert isinstance(make_engine(2, fresh=True), FreshEngine)


@pytest.mark.parametrize("make", [LocalEngine, PoolEngine, FreshEngine])
def test_engines_agree_and_fix_the_threads(make: Callable[[], Engine]) -> None:
    jobs = [3] if make is FreshEngine else [3, 1]  # a start costs seconds
    answers = dict(make().map(noted, jobs))
    assert [answers[index][0] for index in range(len(jobs))] == [job * job for job in jobs]
    assert {threads for _, _, threads in answers.values()} == {1}
    processes = {process for _, process, _ in answers.values()}
    if make is LocalEngine:
        assert processes == {os.getpid()}
    else:
        assert os.getpid() not in processes


def test_an_exception_ends_the_run_after_what_came_before() -> None:
    seen = []
    with pytest.raises(ValueError, match="two"):
        for index, _ in LocalEngine().map(failing, [0, 1, 2, 3]):
            seen.append(index)
    assert seen == [0, 1]


def dying(job: int) -> None:
    os._exit(job)


def test_a_pool_is_kept_and_a_dead_worker_is_told() -> None:
    engine = PoolEngine(1)
    first, second = (next(engine.map(noted, [job]))[1][1] for job in (1, 2))
    assert first == second
    with pytest.raises(LeaderError, match="worker process died"):
        list(engine.map(dying, [3]))
    assert next(engine.map(noted, [4]))[1][1] != first
    engine.close()
    engine.close()
    assert next(engine.map(noted, [5]))[1][1] != first, "a closed engine starts anew"
    engine.close()


def test_a_fresh_process_that_dies_is_told() -> None:
    with pytest.raises(LeaderError, match="worker process died"):
        list(FreshEngine().map(dying, [3]))


ORPHANS = """
import os, sys, time
from pathlib import Path
from typing import Any
sys.path.insert(0, sys.argv[1])
from orphans import wait_here
from leader.engines import PoolEngine

if __name__ == "__main__":
    list(PoolEngine(1).map(wait_here, [sys.argv[2]]))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_workers_leave_when_their_parent_is_killed(tmp_path: Path) -> None:
    (tmp_path / "orphans.py").write_text(
        "import os, time\nfrom pathlib import Path\n\n"
        "def wait_here(path):\n    Path(path).write_text(str(os.getpid()))\n    time.sleep(900)\n"
    )
    script, note = tmp_path / "parent.py", tmp_path / "pid"
    script.write_text(ORPHANS)
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]),
    }
    parent = subprocess.Popen([sys.executable, str(script), str(tmp_path), str(note)], env=environment)
    _wait_for(lambda: note.exists() and note.read_text() != "", 300)
    worker = int(note.read_text())
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    _wait_for(lambda: not Path(f"/proc/{worker}").exists(), 120)


def _wait_for(condition: Callable[[], bool], seconds: float) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


FAULTS = """
import resource, sys, torch
from leader import load_prior
from leader.engines.pool import keep_freed_memory
torch.set_num_threads(1)
if sys.argv[1] == "keep":
    assert keep_freed_memory()
prior, x, t = load_prior("embedded"), torch.rand(1, 3, 128, 128), torch.tensor([0])
for repeat in range(7):
    if repeat == 2:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    prior.predict(x, t)
print((resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / 5)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="an option of glibc")
def test_workers_keep_freed_memory() -> None:
    """One layer's output is 384 pages, a pass has a dozen: with memory kept, a pass fetches less than one such layer."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_TUNABLES"))}
    done = subprocess.run([sys.executable, "-c", FAULTS, "keep"], capture_output=True, text=True, check=True, env=plain)
    assert float(done.stdout) < 384


def memory_given_back(blocks: int) -> float:
    """MB by which this process shrinks when every second of `blocks` tensors of 100 kB is freed."""
    tensors = [torch.ones(25_000) for _ in range(blocks)]
    full = _resident_mb()
    del tensors[::2]
    return full - _resident_mb()


def _resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="an option of glibc")
def test_fresh_processes_give_memory_back() -> None:
    """Peaks are compared to a per cent: holes between blocks in use must not count."""
    ((_, shrunk),) = make_engine(fresh=True).map(memory_given_back, [400])
    assert shrunk == pytest.approx(20, abs=2)


@pytest.mark.parametrize(
    ("options", "says"),
    [({"engine": "slurm"}, "local, ray"), ({"address": "auto"}, "--engine ray"), ({"engine": "ray", "fresh": True}, "Peak")],
)
def test_engines_that_cannot_be(options: dict[str, Any], says: str) -> None:
    with pytest.raises(LeaderError, match=says):
        make_engine(2, **options)
