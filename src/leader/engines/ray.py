"""Jobs on the machines of a Ray cluster: long-lived actors, so each loads its prior once. A job whose actor or machine died is
given to another actor at once, up to three times in all.
"""

import socket
from collections.abc import Callable
from typing import Any

from leader.engines.pool import DiedError, PoolEngine, Sent, Worker, attempt
from leader.errors import LeaderError

CONNECT_SECONDS = 10.0
"""How long a cluster may take to answer at all."""


class RayEngine(PoolEngine):
    """Actors with `threads` cores each.

    workers  how many; None: as many as the cluster has cores (or GPUs) for
    address  "auto" or HOST:PORT of a running cluster; None: one that is running here, or a new one on this machine
    gpus     GPUs of each actor, 0.5 for two actors that share one
    """

    attempts, retry_alone, most_deaths, kept = 3, False, 12, False
    silence = "the cluster has no free room, or leader is not installed on its machines"

    def __init__(self, workers: int | None = None, threads: int = 1, address: str | None = None, gpus: float = 0.0) -> None:
        super().__init__()
        self.workers, self.threads, self.address, self.gpus = workers, threads, address, gpus
        self._joined = False

    def close(self) -> None:
        """Leaves the cluster if this engine joined it; the actors ended with the iteration."""
        if self._joined:
            _ray().shutdown()
            self._joined = False

    def _open(self, function: Callable[[Any], Any]) -> int:
        self._ray = _ray()
        self._connect(self._ray)
        self._function = self._ray.put(function)  # sent to every machine once
        return self._count(self._ray)

    def _start(self) -> Worker:
        kind = self._ray.remote(_Actor).options(num_cpus=self.threads, num_gpus=self.gpus, max_restarts=0)
        return _RayWorker(self._ray, kind.remote(self._function, self.threads))

    def _wait_for_any(self, workers: list[Any], seconds: float | None) -> list[Any]:
        ready, _ = self._ray.wait([worker.sent for worker in workers], num_returns=1, timeout=seconds)
        return [worker for worker in workers if worker.sent in ready]

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


class _RayWorker(Worker):
    """An actor; `sent`: the reference of what it sends next."""

    def __init__(self, ray: Any, actor: Any) -> None:
        self._ray, self._actor = ray, actor
        self.sent = actor.is_started.remote()

    def give(self, function: Callable[[Any], Any], job: Any) -> None:
        self.sent = self._actor.do.remote(job)

    def receive(self) -> Sent:
        try:
            sent: Sent = self._ray.get(self.sent)
        except self._ray.exceptions.RayError as error:
            raise DiedError(f"its worker on the cluster died ({_name_error(error)})") from error
        return sent

    def end(self) -> None:
        try:
            self._ray.kill(self._actor)
        except (self._ray.exceptions.RayError, ValueError):
            return  # gone already


class _Actor:
    """The actor that runs on the machines of the cluster."""

    def __init__(self, function: Callable[[Any], Any], threads: int) -> None:
        import torch

        from leader.engines.memory import keep_freed_memory

        torch.set_num_threads(threads)
        keep_freed_memory()
        self._function = function

    def is_started(self) -> Sent:
        """Returns once the actor has started."""
        return None, None, 0.0

    def do(self, job: Any) -> Sent:
        return attempt(self._function, job)


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
