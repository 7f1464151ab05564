"""Engines of this machine: every job answered, threads fixed, whose death costs what, what is kept and what ends."""

import os
import platform
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import torch

from leader.engines import LocalEngine, Lost, ProcessEngine, count_cores, make_engine, processes
from leader.engines.pool import DiedError
from leader.engines.ray import RayEngine
from leader.errors import LeaderError, UsageError

posix = pytest.mark.skipif(sys.platform == "win32", reason="signals")
glibc = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="an option of glibc")


def square(job: int) -> tuple[int, int, int]:
    """The square, the process and its torch threads."""
    return job * job, os.getpid(), torch.get_num_threads()


def negate(job: int) -> tuple[int, int]:
    return -job, os.getpid()


def fail_at_two(job: int) -> int:
    if job == 2:
        raise LeaderError("two is too many")
    return job


def die_sometimes(job: tuple[str, int]) -> int:
    """Kills its worker for 3 and 5 always, for 1 the first time; 4 is a Ctrl-C, which is for the parent to act on."""
    folder, number = job
    if number == 4:
        signal.raise_signal(signal.SIGINT)
    seen = Path(folder) / str(number)
    if number == 5:
        os.kill(os.getpid(), signal.SIGTERM)
    if number == 3 or (number == 1 and not seen.exists()):
        seen.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.fixture
def three_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


def test_a_local_job_has_its_threads_and_the_caller_gets_them_back(three_threads: None) -> None:
    for index, (value, process, threads) in LocalEngine(2).map(square, iter([3, 4])):
        assert (value, process, threads) == ((3 + index) ** 2, os.getpid(), 2)
        assert torch.get_num_threads() == 3, "between jobs the caller has its own threads"
    seen = []
    with pytest.raises(LeaderError, match="two is too many"):
        for index, _ in LocalEngine(1).map(fail_at_two, [0, 1, 2, 3]):
            seen.append(index)
    assert seen == [0, 1] and torch.get_num_threads() == 3


@posix
def test_processes_are_kept_between_runs_and_take_the_new_function() -> None:
    """One engine through its life: a start costs seconds."""
    engine = ProcessEngine(1, 2)
    first = dict(engine.map(square, range(3)))
    assert [first[index][0] for index in range(3)] == [0, 1, 4] and {item[2] for item in first.values()} == {2}
    (worker,) = {item[1] for item in first.values()}
    assert worker != os.getpid()
    assert dict(engine.map(negate, [5])) == {0: (-5, worker)}, "the same process, another function"
    with pytest.raises(LeaderError, match="two is too many"):
        list(engine.map(fail_at_two, [1, 2, 3]))
    assert is_alive(worker)
    engine.close()
    assert not is_alive(worker)
    with closing(engine):
        assert dict(engine.map(negate, [6]))[0][1] != worker, "a closed engine starts anew"


@posix
def test_a_death_costs_one_job_which_is_tried_again_at_the_end(tmp_path: Path) -> None:
    taken = []

    def jobs() -> Iterator[tuple[str, int]]:
        for number in range(6):
            taken.append(number)
            yield str(tmp_path), number

    with closing(ProcessEngine(2)) as engine:
        seen = []
        for item in engine.each(die_sometimes, jobs()):
            seen.append(item)
            assert len(taken) <= len(seen) + 5, "a job is taken when a worker is free"
    answers = dict(seen)
    assert len(seen) == 6 and [answers[n] for n in (0, 1, 2, 4)] == [0, 1, 2, 4]
    lost, ended = answers[3], answers[5]
    assert isinstance(lost, Lost) and "killed" in lost.reason and "memory" in lost.reason
    assert isinstance(ended, Lost) and "died (Terminated)" in ended.reason
    assert {index for index, _ in seen[-3:]} == {1, 3, 5}, "those tried again come last"


def test_which_engine_is_made() -> None:
    assert isinstance(make_engine(), LocalEngine) and make_engine().threads == 1
    assert make_engine(0, threads=None).threads == count_cores()
    many = make_engine(4 * count_cores(), threads=None)
    assert isinstance(many, ProcessEngine) and (many.workers, many.threads, many.fresh) == (4 * count_cores(), 1, False)
    one = make_engine(None, threads=None)
    assert isinstance(one, ProcessEngine) and (one.workers, one.threads) == (1, count_cores())
    assert make_engine(2, threads=3).threads == 3 and ProcessEngine(2).threads == LocalEngine().threads == 1
    assert make_engine(2, threads=None, engine="ray").threads == 1
    alone = make_engine(2, fresh=True)
    assert isinstance(alone, ProcessEngine) and (alone.workers, alone.fresh) == (1, True)
    ray = make_engine(None, threads=2, engine="ray", address="auto", gpus=0.5)
    assert isinstance(ray, RayEngine) and (ray.workers, ray.threads, ray.address, ray.gpus) == (None, 2, "auto", 0.5)
    refused: list[dict[str, Any]] = [{"engine": "slurm"}, {"address": "auto"}, {"engine": "ray", "fresh": True}]
    for wrong in refused:
        for workers in (0, 2):
            with pytest.raises(UsageError):
                make_engine(workers, **wrong)


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="cores of a process")
def test_only_cores_that_this_process_may_use_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {1, 4, 5, 6, 7, 9, 12})
    assert count_cores() == 7 and make_engine(3, threads=None).threads == 2


def count_faults(blocks: int) -> float:
    """Pages that a block of 2 MB fetches which is freed and asked for again so many times."""
    import resource

    before = 0
    for repeat in range(blocks + 1):
        torch.ones(500_000)
        if repeat == 0:
            before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    return (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / blocks


def give_memory_back(blocks: int) -> float:
    """MB by which this process shrinks when every second of `blocks` tensors of 100 kB is freed."""
    tensors = [torch.ones(25_000) for _ in range(blocks)]
    full = _resident_mb()
    del tensors[::2]
    return full - _resident_mb()


def _resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


@glibc
def test_workers_keep_freed_memory_and_fresh_ones_give_it_back() -> None:
    """A block is 488 pages. Peaks are compared to a per cent: holes must not count."""
    with closing(make_engine(1)) as engine:
        ((_, faults),) = engine.map(count_faults, [20])
    assert faults < 50
    ((_, shrunk),) = make_engine(fresh=True).map(give_memory_back, [400])
    assert shrunk == pytest.approx(20, abs=2)


GPUS: list[int] = []


def play_gpus() -> bool:
    """In a worker, before its first job: plays a machine of two GPUs."""
    torch.cuda.is_available = lambda: True
    torch.cuda.device_count = lambda: 2
    torch.cuda.set_device = GPUS.append  # type: ignore[assignment]
    return True


def tell_gpus(job: int) -> list[int]:
    return GPUS


def lose_parent(job: int) -> None:
    """What a worker sees when its parent was killed, in the middle of a long job."""
    os.getppid = lambda: 1
    time.sleep(60)


def stop_itself(job: int) -> None:
    """As by SIGSTOP from elsewhere: it never goes on."""
    os.kill(os.getpid(), signal.SIGSTOP)


@posix
def test_a_worker_takes_its_own_gpu_and_ends_with_its_parent_or_when_told_though_it_is_frozen() -> None:
    alone, frozen = processes.ProcessWorker(3, 1, play_gpus), processes.ProcessWorker(0, 1, play_gpus)
    alone.receive()  # it has started
    alone.give(tell_gpus, 0)
    assert alone.receive()[0] == [1], "the second of two"
    alone.give(lose_parent, 0)
    begin = time.monotonic()
    with pytest.raises(DiedError, match="exit code 1"):
        alone.receive()
    assert time.monotonic() - begin < 50
    process = frozen._process.pid
    frozen.give(stop_itself, 0)
    frozen.receive()
    frozen.end()
    assert process is not None and not is_alive(process)


def test_a_worker_takes_the_place_of_the_one_that_died(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that no two have one GPU while another has none."""
    monkeypatch.setattr(processes.ProcessWorker, "__init__", lambda self, slot, *_: setattr(self, "slot", slot))
    engine, slots = ProcessEngine(3), list[int]()
    for _ in range(4):
        worker: Any = engine._start()
        slots.append(worker.slot)
        engine._workers.append(worker)
        engine._workers = [one for one in engine._workers if slots != [0, 1, 2] or one is not engine._workers[0]]
    assert slots == [0, 1, 2, 0]
