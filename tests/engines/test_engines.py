"""Engines of this machine: every job answered, threads fixed, whose death costs what, what is kept and what ends."""

from __future__ import annotations

import multiprocessing
import os
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest
import torch

from leader.engines import LocalEngine, Lost, ProcessEngine, count_cores, make_engine, patience, processes
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


def sleep_for(seconds: float) -> int:
    time.sleep(seconds)
    return os.getpid()


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
def test_leaving_the_iteration_ends_the_workers_that_are_busy() -> None:
    with closing(ProcessEngine(2)) as engine:
        iteration = engine.each(sleep_for, [0.0, 600.0])
        _, idle = next(iteration)
        (busy,) = {process.pid for process in multiprocessing.active_children() if process.name == "leader-worker"} - {idle}
        begin = time.monotonic()
        iteration.close()  # type: ignore[attr-defined]  # a generator; the contract says Iterator
        assert time.monotonic() - begin < 60 and busy is not None and not is_alive(busy) and is_alive(int(str(idle)))


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
    assert isinstance(ended, Lost) and "died (SIGTERM)" in ended.reason
    assert {index for index, _ in seen[-3:]} == {1, 3, 5}, "those tried again come last"


class PlayedWorker:
    """A worker without a process: a job below 0 kills it."""

    started = 0
    slots: list[int]

    def __init__(self, slot: int, threads: int, tune: Callable[[], bool]) -> None:
        type(self).started += 1
        self.slots.append(slot)
        self.slot = slot
        self.pipe, self._job = self, cast("tuple[int, int, bool] | None", None)
        self.since = self.took = 0.0

    @property
    def busy(self) -> bool:
        return self._job is not None

    @property
    def counts(self) -> bool:
        return self.busy

    def has(self, index: int) -> bool:
        return self._job is not None and self._job[0] == index

    def give(self, function: Any, index: int, job: int, last: bool = False) -> None:
        self._job, self.since = (index, job, last), time.monotonic()

    def current_job(self) -> Any:
        return self._job

    def receive(self) -> int:
        assert self._job is not None
        (_, job, _), self._job = self._job, None
        if job < 0:
            raise EOFError
        return job

    def explain_death(self) -> str:
        return "exit code 9"

    def end(self) -> None: ...


def freeze_once(job: dict[str, Any]) -> tuple[int, int]:
    """The first worker that gets job 3 stops, as by SIGSTOP from elsewhere, and never goes on."""
    folder, number = job["folder"], job["number"]
    seen = Path(folder) / "stopped"
    if number == 3 and not seen.exists():
        seen.write_text(str(os.getpid()))
        os.kill(os.getpid(), signal.SIGSTOP)
    time.sleep(0.01)
    return number, os.getpid()


@posix
def test_a_worker_that_is_frozen_holds_nothing_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its job is given to another one when it is long overdue, the first answer counts, and the frozen process is ended."""
    monkeypatch.setattr(patience, "LEAST_SECONDS", 4.0)
    with closing(ProcessEngine(2)) as engine:
        assert len(list(engine.each(negate, [1, 2]))) == 2, "both are there: their start is no part of this"
        answers = list(engine.each(freeze_once, [{"folder": tmp_path, "number": number} for number in range(7)]))
        frozen = int((tmp_path / "stopped").read_text())
        assert sorted(index for index, _ in answers) == list(range(7)), "each once"
        found = {index: cast("tuple[int, int]", answer) for index, answer in answers}
        assert all(found[number][0] == number for number in range(7)) and found[3][1] != frozen
        assert not is_alive(frozen)
        assert dict(engine.each(negate, [5]))[0][0] == -5  # type: ignore[index]


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> type[PlayedWorker]:
    monkeypatch.setattr(processes, "_Worker", PlayedWorker)
    monkeypatch.setattr(processes, "wait", lambda pipes, seconds: pipes[:1])
    monkeypatch.setattr(PlayedWorker, "started", 0)
    monkeypatch.setattr(PlayedWorker, "slots", [], raising=False)
    return PlayedWorker


class SlowWorker(PlayedWorker):
    """The first one that gets job 1, or every one if `always`, answers nothing until it is `awake`; time passes by waiting."""

    clock = 0.0
    always = False
    slow: list[SlowWorker]
    ended: list[PlayedWorker]
    awake: Callable[[SlowWorker], bool]
    dies = False

    counts = False

    def give(self, function: Any, index: int, job: int, last: bool = False) -> None:
        super().give(function, index, job, last)
        self.since, self.counts = self.clock, True
        if index == 1 and (self.always or not self.slow):
            self.slow.append(self)

    def receive(self) -> int:
        self.counts = False
        if self.dies and self in self.slow[:1]:
            raise EOFError
        return super().receive()

    def end(self) -> None:
        self.ended.append(self)


@pytest.fixture
def slow(played: type[PlayedWorker], monkeypatch: pytest.MonkeyPatch) -> type[SlowWorker]:
    def wait(workers: list[SlowWorker], seconds: float | None) -> list[SlowWorker]:
        SlowWorker.clock += 100.0 if SlowWorker.clock == 0 else 2.0  # a process takes its time to start
        ready = [one for one in workers if one not in one.slow or SlowWorker.awake(one)]
        if ready:
            return ready
        if seconds is None or SlowWorker.clock > 10_000:
            raise LeaderError("it would wait for ever" if seconds is None else "it never waits")
        SlowWorker.clock += seconds
        return []

    for name, value in (("clock", 0.0), ("always", False), ("slow", []), ("ended", []), ("dies", False), ("started", 0)):
        monkeypatch.setattr(SlowWorker, name, value, raising=False)
    monkeypatch.setattr(SlowWorker, "awake", staticmethod(lambda one: False), raising=False)
    monkeypatch.setattr(processes, "_Worker", SlowWorker)
    monkeypatch.setattr(processes, "wait", wait)
    monkeypatch.setattr(processes, "Patience", lambda: patience.Patience(lambda: SlowWorker.clock))
    return SlowWorker


def test_a_frozen_worker_leaves_room_for_another_and_is_ended_when_that_one_answers(slow: type[SlowWorker]) -> None:
    seen = []
    for index, _ in ProcessEngine(1).each(abs, range(4)):
        seen.append(index)
        if index == 1:
            assert slow.ended == slow.slow and len(slow.slow) == 1, "it is not left to the end of the run"
    assert sorted(seen) == [0, 1, 2, 3] and slow.started == 2
    assert slow.clock < 100 + 3 * patience.LEAST_SECONDS, "its start is no part of a job"


@pytest.mark.parametrize("dies", [False, True])
def test_two_workers_with_one_job_give_one_answer(slow: type[SlowWorker], monkeypatch: pytest.MonkeyPatch, dies: bool) -> None:
    """The slow one answers together with its copy, or dies while the copy is at work."""
    monkeypatch.setattr(slow, "awake", staticmethod(lambda one: slow.started > 1))
    monkeypatch.setattr(slow, "dies", dies)
    assert sorted(ProcessEngine(1).each(abs, range(4))) == [(n, n) for n in range(4)]


def test_a_job_that_freezes_every_worker_is_given_to_no_more_than_a_few(slow: type[SlowWorker]) -> None:
    slow.always = True
    with pytest.raises(LeaderError, match="for ever"):
        list(ProcessEngine(2).each(abs, range(4)))
    assert len(slow.slow) == 1 + patience.MOST_COPIES


def test_deaths_end_the_run_only_where_nothing_is_answered_between_them(played: type[PlayedWorker]) -> None:
    with pytest.raises(LeaderError, match="die one after the other"):
        list(ProcessEngine(1).each(abs, [-1] * 100))
    assert played.started == processes.MOST_DEATHS + 2, "one more than may die"
    answers = dict(ProcessEngine(1).each(abs, [-1, 1] * 20))
    assert [answers[2 * n + 1] for n in range(20)] == [1] * 20
    with pytest.raises(LeaderError, match="could not be finished: exit code 9"):
        list(ProcessEngine(1).map(abs, [1, -1]))
    assert all(isinstance(answers[2 * n], Lost) for n in range(20)), "nor do their second deaths, one after the other"


def test_a_worker_takes_the_place_of_the_one_that_died(played: type[PlayedWorker]) -> None:
    """So that no two have one GPU while another has none."""
    assert len(dict(ProcessEngine(2).each(abs, [-1, 1, 2, 3]))) == 4 and played.slots[:3] == [0, 1, 0]


def test_a_fresh_engine_has_a_process_for_every_job(played: type[PlayedWorker]) -> None:
    assert dict(ProcessEngine(1).each(abs, range(4))) == {n: n for n in range(4)} and played.started == 1
    assert dict(ProcessEngine(1, fresh=True).each(abs, range(4))) == {n: n for n in range(4)} and played.started == 5


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


PARENT = """
import sys
from tests.engines.test_engines import note_and_wait
from leader.engines import ProcessEngine

if __name__ == "__main__":
    list(ProcessEngine(1).map(note_and_wait, [sys.argv[1]]))
"""


def note_and_wait(path: str) -> None:
    Path(path).write_text(str(os.getpid()))
    time.sleep(900)


@pytest.mark.slow
@posix
def test_workers_leave_when_their_parent_is_killed(tmp_path: Path) -> None:
    script, note = tmp_path / "parent.py", tmp_path / "pid"
    script.write_text(PARENT)
    here = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path.cwd()), os.environ.get("PYTHONPATH", "")])}
    parent = subprocess.Popen([sys.executable, str(script), str(note)], env=here)
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


@posix
def test_a_worker_takes_its_own_gpu_and_ends_with_its_parent() -> None:
    worker = processes._Worker(3, 1, play_gpus)
    worker.give(tell_gpus, 0, 0)
    assert worker.receive() == [1], "the second of two"
    worker.give(lose_parent, 1, 0)
    begin = time.monotonic()
    with pytest.raises(EOFError):
        worker.receive()
    assert "exit code 1" in worker.explain_death() and time.monotonic() - begin < 50


def test_workers_take_gpus_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    monkeypatch.setattr(torch.cuda, "set_device", taken.append)
    for slot in range(5):
        processes.take_gpu(slot)
    assert taken == [0, 1, 2, 0, 1]
