"""Jobs in processes that may die: each takes one job at a time, so a death affects only one job.

A job whose worker died is tried once more, alone, after all others: most such deaths are due to lack of memory. A frozen worker
never answers: when its job is long overdue, it is also given to another worker (see patience.py).
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any

import torch

from leader.engines.base import Answer, Engine, Job, Lost
from leader.engines.memory import keep_freed_memory, return_freed_memory
from leader.engines.patience import Patience
from leader.errors import LeaderError

MOST_DEATHS = 3
"""This many consecutive jobs, plus one per worker, may kill their worker on the first attempt; then the jobs are not to blame.
"""
_WATCH_SECONDS = 1.0


class ProcessEngine(Engine):
    """`workers` processes with `threads` torch threads each, started when they are needed and kept until `close`.

    fresh  every process ends with its job: a process's peak memory never falls, so each measurement needs its own process
    """

    def __init__(self, workers: int = 2, threads: int = 1, *, fresh: bool = False) -> None:
        if workers < 1:
            raise LeaderError(f"At least one worker is needed; found {workers}.")
        self.workers, self.threads, self.fresh = workers, threads, fresh
        self._members: list[_Worker] = []

    def each(self, function: Callable[[Job], Answer], jobs: Iterable[Job]) -> Iterator[tuple[int, Answer | Lost]]:
        todo = enumerate(jobs)
        again: deque[tuple[int, Job]] = deque()
        overdue: deque[tuple[int, Job, bool]] = deque()
        patience = Patience()
        deaths, more = 0, True
        try:
            while True:
                while (overdue or more) and sum(worker.counts for worker in self._members) < self.workers:
                    if overdue:
                        self._find_idle().give(function, *overdue.popleft())
                    elif (following := next(todo, None)) is None:
                        more = False
                    else:
                        self._find_idle().give(function, *following)
                busy = [worker for worker in self._members if worker.busy]
                if not busy:
                    if not again:
                        return
                    self._find_idle().give(function, *again.popleft(), last=True)
                    continue
                ready = _wait_for_any(busy, patience.seconds_left(worker.since for worker in busy if worker.counts))
                for worker in busy:
                    if worker.counts and worker not in ready and patience.is_overdue(worker.since):
                        worker.counts = False
                        if patience.may_copy(worker.current_job()[0]):
                            overdue.append(worker.current_job())
                for worker in ready:
                    if worker not in self._members:
                        continue  # just terminated: another worker had its job
                    index, job, last = worker.current_job()
                    others = [other for other in self._members if other.has(index) and other is not worker]
                    try:
                        answer = worker.receive()
                    except EOFError:
                        self._members.remove(worker)
                        reason = worker.explain_death()
                        if others:
                            continue
                        if last:  # the job itself is to blame: it was tried alone
                            yield index, Lost(reason)
                            continue
                        again.append((index, job))
                        deaths += 1
                        if deaths > MOST_DEATHS + self.workers:
                            raise LeaderError(f"Workers die one after the other ({reason}); use fewer of them.") from None
                        continue
                    deaths = 0
                    patience.finish(worker.took)
                    self._end(others)
                    overdue = deque(item for item in overdue if item[0] != index)
                    if self.fresh:
                        self._members.remove(worker)
                        worker.end()
                    yield index, answer
        finally:
            self._end([worker for worker in self._members if worker.busy])

    def close(self) -> None:
        self._end(list(self._members))

    def _end(self, workers: list[_Worker]) -> None:
        for worker in workers:
            self._members.remove(worker)
            worker.end()

    def _find_idle(self) -> _Worker:
        """A worker without a job; a new one if there is none."""
        for worker in self._members:
            if not worker.busy:
                return worker
        taken = {worker.slot for worker in self._members}
        slot = next(number for number in itertools.count() if number not in taken)
        self._members.append(_Worker(slot, self.threads, return_freed_memory if self.fresh else keep_freed_memory))
        return self._members[-1]


class _Worker:
    """A worker process and its current job; slot: its number among the workers, which determines its GPU."""

    def __init__(self, slot: int, threads: int, tune_memory: Callable[[], bool]) -> None:
        # Spawned, not forked: a fork of a process with torch threads can hang, and it inherits the parent's memory.
        context = multiprocessing.get_context("spawn")
        self.slot = slot
        self.pipe, other = context.Pipe()
        self._function: Callable[[Any], Any] | None = None
        self._job: tuple[int, Any, bool] | None = None
        self.since = self.took = 0.0  # when its job was started, and the duration of its last job in seconds
        self.counts = False  # busy and not overdue
        self._process: SpawnProcess = context.Process(
            target=_work, args=(other, slot, threads, tune_memory, os.getpid()), name="leader-worker", daemon=True
        )
        self._process.start()
        other.close()  # the worker holds the only copy: its death ends the pipe

    @property
    def busy(self) -> bool:
        return self._job is not None

    def has(self, index: int) -> bool:
        """Whether it has the job at this position."""
        return self._job is not None and self._job[0] == index

    def give(self, function: Callable[[Job], Any], index: int, job: Job, last: bool = False) -> None:
        """Sends a job, and the function if it differs from that of the previous job; `last`: the job was tried before."""
        message = (None if function is self._function else function, job)
        self._function, self._job = function, (index, job, last)
        self.since, self.counts = time.monotonic(), True
        try:
            self.pipe.send(message)
        except (BrokenPipeError, ConnectionResetError):
            return  # already dead: `receive` will report it

    def current_job(self) -> tuple[int, Any, bool]:
        """Its current job: position, job, whether it was tried before."""
        assert self._job is not None
        return self._job

    def receive(self) -> Any:
        """The result it sent. Raises EOFError if the worker died, and any exception of its job."""
        try:
            kind, value, self.took = self.pipe.recv()
        except ConnectionResetError as error:
            raise EOFError from error
        self._job, self.counts = None, False
        if kind == "raised":
            raise value
        return value

    def explain_death(self) -> str:
        """How it ended, as the end of a sentence."""
        self.pipe.close()
        self._process.join()
        code = self._process.exitcode or 0
        if code == -getattr(signal, "SIGKILL", 9):
            return "its worker process was killed, most likely for lack of memory"
        return f"its worker process died ({_name_signal(-code) if code < 0 else f'exit code {code}'})"

    def end(self) -> None:
        """Terminates the process at once: an idle one has nothing to lose, and the result of a busy one is no longer needed."""
        self.pipe.close()
        self._process.kill()
        self._process.join()
        self._process.close()


def _wait_for_any(busy: list[_Worker], seconds: float | None) -> list[_Worker]:
    """The workers that have answered or died; waits for the first one, with an optional timeout in seconds."""
    ready = wait([worker.pipe for worker in busy], seconds)
    return [worker for worker in busy if worker.pipe in ready]


def _name_signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def take_gpu(slot: int) -> None:
    """Makes "cuda" mean a different GPU for each worker, as far as there are GPUs."""
    if torch.cuda.is_available():
        torch.cuda.set_device(slot % torch.cuda.device_count())


def _work(pipe: Connection, slot: int, threads: int, tune_memory: Callable[[], bool], parent: int) -> None:
    """The main loop of a worker: job after job until the pipe closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process of a terminal; the parent decides
    torch.set_num_threads(threads)
    tune_memory()
    take_gpu(slot)
    threading.Thread(target=_exit_with_parent, args=(parent,), daemon=True).start()
    function: Callable[[Any], Any] | None = None
    while True:
        try:
            new, job = pipe.recv()
        except (EOFError, OSError):
            return
        function = function if new is None else new
        assert function is not None
        begin = time.monotonic()
        try:
            message = ("answer", function(job))
        except Exception as error:
            message = ("raised", error)
        try:
            pipe.send((*message, time.monotonic() - begin))
        except (BrokenPipeError, ConnectionResetError):
            return


def _exit_with_parent(parent: int) -> None:
    """Ends this worker when its parent is gone: a killed parent cannot notify its workers."""
    while os.getppid() == parent:
        time.sleep(_WATCH_SECONDS)
    os._exit(1)
