"""Jobs on the machines of a Ray cluster: long-lived actors, so each loads its prior once.

An actor has one job at a time and gets the next one when it answers, so memory does not grow with the number of jobs. A job
whose actor or machine died is given to another actor, up to three times in all. An actor gets its first job after it has
started: an actor that waits for room because a machine is gone does not block a job. Neither does a frozen actor: a job that is
long overdue is also given to another one (see patience.py).
"""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from leader.engines.base import Answer, Engine, Job, Lost
from leader.engines.patience import Patience
from leader.errors import LeaderError

ATTEMPTS = 3
"""How many times a job may lose its actor."""
WAIT_SECONDS = 600.0
"""How long the run waits while no actor has a job: on a full cluster it would wait forever."""
CONNECT_SECONDS = 10.0
"""How long a cluster may take to answer at all."""
MOST_DEATHS = 12
"""This many consecutive deaths, plus one per actor, end the run; a job that kills several actors counts once."""


class RayEngine(Engine):
    """Actors with `threads` cores each.

    workers  how many; None: as many as the cluster has cores (or GPUs) for
    address  "auto" or HOST:PORT of a running cluster; None: one that is running here, or a new one on this machine
    gpus     GPUs of each actor, 0.5 for two actors that share one
    """

    def __init__(self, workers: int | None = None, threads: int = 1, address: str | None = None, gpus: float = 0.0) -> None:
        self.workers, self.threads, self.address, self.gpus = workers, threads, address, gpus
        self._joined = False

    def each(self, function: Callable[[Job], Answer], jobs: Iterable[Job]) -> Iterator[tuple[int, Answer | Lost]]:
        ray = _ray()
        self._connect(ray)
        pool = _Pool(ray, self._actor_class(ray), function, self.threads, self._count(ray))
        try:
            yield from pool.answers(enumerate(jobs))
        finally:
            pool.end()

    def close(self) -> None:
        """Leaves the cluster if this engine joined it; the actors ended with the iteration."""
        if self._joined:
            _ray().shutdown()
            self._joined = False

    def _connect(self, ray: Any) -> None:
        """Joins the cluster, unless this process is already in one."""
        if ray.is_initialized():
            return
        if self.address:
            _check_address(self.address)
        own = {} if self.address else {"include_dashboard": False}  # a running cluster takes no options
        try:
            ray.init(address=self.address, log_to_driver=False, logging_level="ERROR", **own)
        except ConnectionError as error:
            raise _no_cluster(self.address) from error
        except (ValueError, RuntimeError) as error:
            if self.address is None:
                raise
            words = " ".join(str(error).split())[:200]
            raise LeaderError(f"The Ray cluster at '{self.address}' cannot be joined ({words}).") from error
        self._joined = True

    def _count(self, ray: Any) -> int:
        if self.workers is not None:
            return max(1, self.workers)
        there = ray.cluster_resources()
        by_cores = int(there.get("CPU", 1) // self.threads)
        by_gpus = int(there.get("GPU", 0) // self.gpus) if self.gpus else by_cores
        if min(by_cores, by_gpus) < 1:
            raise LeaderError(
                f"The cluster has {there.get('CPU', 0):g} cores and {there.get('GPU', 0):g} GPUs; a worker with {self.threads} "
                f"threads and {self.gpus:g} GPUs does not fit."
            )
        return min(by_cores, by_gpus)

    def _actor_class(self, ray: Any) -> Any:
        return ray.remote(_Actor).options(num_cpus=self.threads, num_gpus=self.gpus, max_restarts=0)


class _Actor:
    """The actor that runs on the machines of the cluster."""

    def __init__(self, function: Callable[[Any], Any], threads: int) -> None:
        import torch

        from leader.engines.memory import keep_freed_memory

        torch.set_num_threads(threads)
        keep_freed_memory()
        self._function = function

    def is_started(self) -> bool:
        """Returns once the actor has started."""
        return True

    def do(self, job: Any) -> Any:
        """(result, None), or (None, exception): an exception in a job does not kill its actor."""
        try:
            return self._function(job), None
        except Exception as error:
            return None, error


@dataclass
class _Given:
    """A job held by an actor: its position, how often its actor died, since when, and whether it is overdue."""

    actor: Any
    index: int
    job: Any
    died: int
    since: float
    overdue: bool = False


class _Pool:
    """The actors and their jobs."""

    def __init__(
        self, ray: Any, kind: Any, function: Callable[[Any], Any], threads: int, count: int, patience: Patience | None = None
    ) -> None:
        self._ray, self._kind, self._threads, self._count = ray, kind, threads, count
        self._function = ray.put(function)  # sent to every machine once
        self._has: dict[Any, _Given] = {}  # by reference
        self._starting: dict[Any, Any] = {}  # reference -> actor
        self._idle: list[Any] = []
        self._deaths = 0
        self._patience = patience or Patience()

    def answers(self, jobs: Iterator[tuple[int, Job]]) -> Iterator[tuple[int, Any]]:
        """(position, answer or Lost) in the order of completion."""
        waiting: deque[tuple[int, Any, int]] = deque()
        more = True
        while True:
            while more and len(waiting) + self._count_busy() < self._count:
                following = next(jobs, None)
                if following is None:
                    more = False
                else:
                    waiting.append((*following, 0))
            if not waiting and not self._has:
                return
            self._give_jobs(waiting)
            reference = self._wait_for_any()
            waiting.extendleft(self._find_overdue(reference))
            if reference is None:
                continue
            if reference in self._starting:
                self._take_in(reference)
                continue
            given = self._has.pop(reference)
            index, died = given.index, given.died
            try:
                answer, raised = self._ray.get(reference)
            except self._ray.exceptions.RayError as error:
                self._count_death(given.actor, error, first=died == 0)
                if index in (other.index for other in self._has.values()) or index in (item[0] for item in waiting):
                    continue  # another actor has it too
                if died + 1 >= ATTEMPTS:
                    yield index, Lost(f"its worker on the cluster died {died + 1} times ({_name_error(error)})")
                else:
                    waiting.appendleft((index, given.job, died + 1))
                continue
            self._deaths = 0
            self._patience.finish(self._patience.now() - given.since)
            self._idle.append(given.actor)
            self._drop_copies(index)
            waiting = deque(item for item in waiting if item[0] != index)
            if raised is not None:
                raise raised
            yield index, answer

    def _count_busy(self) -> int:
        """Jobs that are with an actor and not overdue."""
        return sum(not given.overdue for given in self._has.values())

    def _find_overdue(self, ready: Any) -> list[tuple[int, Any, int]]:
        """Jobs that have become overdue, for other actors."""
        found = []
        for reference, given in self._has.items():
            if reference != ready and not given.overdue and self._patience.is_overdue(given.since):
                given.overdue = True
                if self._patience.may_copy(given.index):
                    found.append((given.index, given.job, given.died))
        return found

    def _drop_copies(self, index: int) -> None:
        """Terminates actors whose job was answered by another actor."""
        for reference in [key for key, given in self._has.items() if given.index == index]:
            self._kill(self._has.pop(reference).actor)

    def _give_jobs(self, waiting: deque[tuple[int, Any, int]]) -> None:
        """Gives jobs to idle actors, and starts as many actors as there are jobs."""
        while waiting and self._idle:
            index, job, died = waiting.popleft()
            actor = self._idle.pop()
            self._has[actor.do.remote(job)] = _Given(actor, index, job, died, self._patience.now())
        while len(self._starting) < min(len(waiting), self._count - self._count_busy()):
            actor = self._kind.remote(self._function, self._threads)
            self._starting[actor.is_started.remote()] = actor

    def _wait_for_any(self) -> Any:
        """The reference of the next event (an answer, a start or a death); None if a job is overdue."""
        alone = not self._has
        left = self._patience.seconds_left(given.since for given in self._has.values() if not given.overdue)
        ready, _ = self._ray.wait([*self._starting, *self._has], num_returns=1, timeout=WAIT_SECONDS if alone else left)
        if not ready and alone:
            raise LeaderError(
                f"No worker of the cluster answered within {WAIT_SECONDS:.0f} seconds: the cluster has no free room, or "
                "leader is not installed on its machines."
            )
        return ready[0] if ready else None

    def _take_in(self, reference: Any) -> None:
        """An actor that has started, or died while starting."""
        actor = self._starting.pop(reference)
        try:
            self._ray.get(reference)
        except self._ray.exceptions.RayError as error:
            self._count_death(actor, error, first=True)
        else:
            self._idle.append(actor)

    def _count_death(self, actor: Any, error: Exception, first: bool) -> None:
        """Counts a death, only the `first` one of a job; too many in a row end the run."""
        self._deaths += first
        self._kill(actor)
        if self._deaths > MOST_DEATHS + self._count:
            raise LeaderError(f"Workers of the cluster die one after the other ({_name_error(error)}).") from error

    def _kill(self, actor: Any) -> None:
        try:
            self._ray.kill(actor)
        except (self._ray.exceptions.RayError, ValueError):
            return  # gone already

    def end(self) -> None:
        """Ends all actors, whatever they are doing."""
        for actor in [*self._idle, *self._starting.values(), *(given.actor for given in self._has.values())]:
            self._kill(actor)


def _check_address(address: str) -> None:
    """Rejects HOST:PORT if nothing answers there: Ray itself would try for many minutes."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if not host or not port.isdigit():
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise _no_cluster(address) from error


def _no_cluster(address: str | None) -> LeaderError:
    return LeaderError(f"There is no Ray cluster at '{address}'; start one with `ray start --head`, or leave the address out.")


def _name_error(error: BaseException) -> str:
    """NodeDiedError, OutOfMemoryError, ...: the name says enough."""
    cause = getattr(error, "cause", None)
    name = type(cause if isinstance(cause, BaseException) else error).__name__
    return name if name != "ActorUnavailableError" else "the machine does not answer"


def _ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise LeaderError("The engine 'ray' needs Ray; install it with: pip install 'leader-ir[cluster]'.") from error
    return ray
