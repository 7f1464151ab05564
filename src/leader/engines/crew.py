"""Jobs in processes that may die: each takes one job at a time, so that a death costs one job and no other.

A job whose worker died is tried once more when all others are done, alone: most such deaths are want of memory.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any, Generic

from leader.engines.base import Answer, Job, Lost
from leader.engines.pool import keep_freed_memory, start_worker
from leader.errors import LeaderError

MOST_DEATHS = 3
"""So many more than there are workers may die in a row without one answer between them; then it is not the jobs."""


class Crew:
    """`workers` processes with `threads` torch threads each."""

    def __init__(self, workers: int = 2, threads: int = 1) -> None:
        if workers < 1:
            raise LeaderError(f"At least one worker is needed; found {workers}.")
        self.workers, self.threads = workers, threads

    def each(self, function: Callable[[Job], Answer], jobs: Iterable[Job]) -> Iterator[tuple[int, Answer | Lost]]:
        todo = enumerate(jobs)
        members: list[_Member[Job, Answer]] = []
        again: deque[tuple[int, Job]] = deque()
        deaths, more = 0, True
        try:
            while True:
                while more and sum(member.busy for member in members) < self.workers:
                    following = next(todo, None)
                    if following is None:
                        more = False
                    else:
                        _free(members, function, self.threads).give(*following)
                busy = [member for member in members if member.busy]
                if not busy:
                    if not again:
                        return
                    _free(members, function, self.threads).give(*again.popleft(), last=True)
                    continue
                for member in _ready(busy):
                    index, job, last = member.taken()
                    try:
                        answer = member.answer()
                    except EOFError:
                        members.remove(member)
                        reason = member.death()
                        deaths += 1
                        if deaths > MOST_DEATHS + self.workers:
                            raise LeaderError(f"Workers die one after the other ({reason}); use fewer --jobs.") from None
                        if last:
                            yield index, Lost(reason)
                        else:
                            again.append((index, job))
                        continue
                    deaths = 0
                    yield index, answer
        finally:
            for member in members:
                member.end()

    def close(self) -> None:
        """The workers ended with the iteration."""


class _Member(Generic[Job, Answer]):
    """A worker process, and the job it has."""

    def __init__(self, function: Callable[[Job], Answer], threads: int) -> None:
        # Spawned, not forked: a fork of a process with torch threads can hang, and it inherits the parent's memory.
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe()
        self._job: tuple[int, Job, bool] | None = None
        self._process: SpawnProcess = context.Process(
            target=_work, args=(function, other, threads, os.getpid()), name="leader-worker", daemon=True
        )
        self._process.start()
        other.close()  # the worker holds the only copy: its death ends the pipe

    @property
    def busy(self) -> bool:
        return self._job is not None

    def give(self, index: int, job: Job, last: bool = False) -> None:
        """Hands over a job; `last`: it was tried before."""
        self._job = index, job, last
        try:
            self.pipe.send(job)
        except (BrokenPipeError, ConnectionResetError):
            return  # dead already: the answer will tell

    def taken(self) -> tuple[int, Job, bool]:
        """The job it has: position, job, whether it was tried before."""
        assert self._job is not None
        return self._job

    def answer(self) -> Answer:
        """What it sent. Raises EOFError where it died, and what its job raised."""
        try:
            kind, value = self.pipe.recv()
        except ConnectionResetError as error:
            raise EOFError from error
        self._job = None
        if kind == "raised":
            raise value
        done: Answer = value
        return done

    def death(self) -> str:
        """How it ended, as the end of a sentence."""
        self.pipe.close()
        self._process.join()
        code = self._process.exitcode or 0
        if code == -getattr(signal, "SIGKILL", 9):
            return "its worker process was killed, most likely for want of memory"
        return f"its worker process died ({_signal_name(-code) if code < 0 else f'exit code {code}'})"

    def end(self) -> None:
        """Ends the process at once: an idle one has nothing to lose, and what a busy one makes is not wanted any more."""
        self.pipe.close()
        self._process.kill()
        self._process.join()
        self._process.close()


def _free(members: list[_Member[Job, Answer]], function: Callable[[Job], Answer], threads: int) -> _Member[Job, Answer]:
    """A worker without a job; a new one where there is none."""
    for member in members:
        if not member.busy:
            return member
    members.append(_Member(function, threads))
    return members[-1]


def _ready(busy: list[_Member[Job, Answer]]) -> list[_Member[Job, Answer]]:
    """Those of the workers that have answered or died; waits for the first."""
    ready = wait([member.pipe for member in busy])
    return [member for member in busy if member.pipe in ready]


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _work(function: Callable[[Any], Any], pipe: Connection, threads: int, parent: int) -> None:
    """The life of a worker: job after job until the pipe ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process of a terminal; the parent decides
    start_worker(threads, keep_freed_memory, parent)
    while True:
        try:
            job = pipe.recv()
        except (EOFError, OSError):
            return
        try:
            message = ("answer", function(job))
        except Exception as error:
            message = ("raised", error)
        try:
            pipe.send(message)
        except (BrokenPipeError, ConnectionResetError):
            return
