"""Workers that may die or freeze: each has one job at a time, so a death affects only that job.

A job whose worker died is given to another one, and is lost after a few deaths. A worker that was stopped, or whose machine
hangs, does not die and never answers: a job that is long overdue is also given to another worker, and the first answer counts,
so a job that is merely slow loses nothing. A worker gets its first job after it has started: one that waits for room blocks no
job.
"""

import math
import time
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from leader.engines.base import Answer, Engine, Job, Lost
from leader.errors import LeaderError

TIMES = 6.0
"""A job is overdue after this multiple of the longest job so far."""
LEAST_SECONDS = 60.0
"""No job is overdue before this many seconds."""
MOST_COPIES = 2
"""How often an overdue job is given to another worker: a slow job must not occupy all of them."""
WAIT_SECONDS = 600.0
"""How long the run waits while no worker has a job: on a full cluster it would wait forever."""
Sent = tuple[Any, Exception | None, float]


class DiedError(Exception):
    """A worker died; how, as the end of a sentence."""


@dataclass(eq=False)
class Task:
    """A job and its position; how many workers it has cost, and how often it was overdue."""

    index: int
    job: Any
    deaths: int = 0
    late: int = 0


class Worker:
    """A worker and its task, if it has one; `since`: when it got it."""

    started = False
    task: Task | None = None
    since = 0.0
    overdue = False

    @abstractmethod
    def give(self, function: Callable[[Any], Any], job: Any) -> None:
        """Sends it a job."""

    @abstractmethod
    def receive(self) -> Sent:
        """The outcome of `attempt`, and before the first job anything, when it has started. Raises DiedError."""

    @abstractmethod
    def end(self) -> None:
        """Terminates it at once: an idle one has nothing to lose, and the result of a busy one is no longer needed."""


def attempt(function: Callable[[Any], Any], job: Any) -> Sent:
    """(answer, None, seconds), or (None, exception, 0): an exception in a job does not kill its worker."""
    begin = time.monotonic()
    try:
        return function(job), None, time.monotonic() - begin
    except Exception as error:
        return None, error, 0.0


class PoolEngine(Engine):
    """An engine of workers.

    attempts     how many workers a job may cost
    retry_alone  whether it is tried again after all others, alone, or at once
    most_deaths  this many consecutive jobs, plus one per worker, may cost their first worker; then the jobs are not to blame
    silence      why no worker may start, as the end of a sentence
    kept         whether idle workers are kept for the next run; fresh: whether every worker ends with its job
    """

    attempts: ClassVar[int]
    retry_alone: ClassVar[bool]
    most_deaths: ClassVar[int]
    silence: ClassVar[str]
    kept, fresh = True, False

    def __init__(self) -> None:
        self._workers: list[Worker] = []

    @abstractmethod
    def _open(self, function: Callable[[Any], Any]) -> int:
        """Prepares a run; returns the number of workers."""

    @abstractmethod
    def _start(self) -> Worker:
        """A new worker, which `_wait_for_any` reports when it has started."""

    @abstractmethod
    def _wait_for_any(self, workers: list[Any], seconds: float | None) -> list[Any]:
        """Those that have started, answered or died; waits for the first one, with an optional timeout."""

    def each(self, function: Callable[[Job], Answer], jobs: Iterable[Job]) -> Iterator[tuple[int, Answer | Lost]]:
        count, todo, more = self._open(function), enumerate(jobs), True
        waiting, last = deque[Task](), deque[Task]()
        limit, longest, deaths = math.inf, 0.0, 0
        try:
            while True:
                while more and len(waiting) + self._count_busy() < count:
                    following = next(todo, None)
                    if following is None:
                        more = False
                    else:
                        waiting.append(Task(*following))
                if not waiting and not any(worker.task for worker in self._workers):
                    if not last:
                        return
                    waiting.append(last.popleft())
                self._give_tasks(function, waiting)
                ready = self._wait(limit, waiting)
                for worker in ready:
                    if worker not in self._workers:
                        continue  # just terminated: another worker had its task
                    task, worker.task = worker.task, None
                    try:
                        answer, raised, seconds = worker.receive()
                    except DiedError as error:
                        self._remove(worker)
                        deaths += task is None or task.deaths == 0
                        if deaths > self.most_deaths + count:
                            raise LeaderError(f"Workers die one after the other ({error}); use fewer of them.") from error
                        if task is None or task in waiting or self._find_holders(task):
                            continue
                        task.deaths += 1
                        if task.deaths >= self.attempts:
                            yield task.index, Lost(str(error))
                        elif self.retry_alone:
                            last.append(task)
                        else:
                            waiting.appendleft(task)
                        continue
                    worker.started = True
                    if task is None:
                        continue
                    deaths, longest = 0, max(longest, seconds)
                    limit = max(LEAST_SECONDS, TIMES * longest)
                    for other in [*self._find_holders(task), *([worker] if self.fresh else [])]:
                        self._remove(other)
                    waiting = deque(one for one in waiting if one is not task)
                    if raised is not None:
                        raise raised
                    yield task.index, answer
        finally:
            for worker in [one for one in self._workers if one.task or not self.kept]:
                self._remove(worker)

    def close(self) -> None:
        while self._workers:
            self._remove(self._workers[-1])

    def _give_tasks(self, function: Callable[[Any], Any], waiting: deque[Task]) -> None:
        """Gives tasks to idle workers, and starts as many workers as there are tasks."""
        for worker in self._workers:
            if waiting and worker.started and worker.task is None:
                worker.task, worker.since, worker.overdue = waiting.popleft(), time.monotonic(), False
                worker.give(function, worker.task.job)
        starting = sum(not worker.started for worker in self._workers)
        for _ in range(len(waiting) - starting):
            self._workers.append(self._start())

    def _wait(self, limit: float, waiting: deque[Task]) -> list[Worker]:
        """The workers of the next event; tasks held for `limit` seconds are overdue, their copies the first of `waiting`."""
        busy = [worker for worker in self._workers if worker.task]
        first = min((worker.since for worker in busy if not worker.overdue), default=math.inf)
        seconds = max(0.0, first + limit - time.monotonic()) if busy else WAIT_SECONDS
        there = [worker for worker in self._workers if worker.task or not worker.started]
        ready = self._wait_for_any(there, None if seconds == math.inf else seconds)
        if not ready and not busy:
            raise LeaderError(f"No worker answered within {WAIT_SECONDS:.0f} seconds: {self.silence}.")
        for worker in busy:
            late = worker not in ready and not worker.overdue and time.monotonic() - worker.since >= limit
            if late and worker.task is not None:
                worker.overdue = True
                worker.task.late += 1
                if worker.task.late <= MOST_COPIES:
                    waiting.appendleft(worker.task)
        return ready

    def _count_busy(self) -> int:
        """Workers with a task that is not overdue."""
        return sum(worker.task is not None and not worker.overdue for worker in self._workers)

    def _find_holders(self, task: Task) -> list[Worker]:
        return [worker for worker in self._workers if worker.task is task]

    def _remove(self, worker: Worker) -> None:
        self._workers.remove(worker)
        worker.end()
