"""Where jobs execute: in this process, in processes of this machine, or on a Ray cluster."""

import os

from leader.engines.base import Engine, LocalEngine, Lost
from leader.engines.processes import ProcessEngine
from leader.errors import UsageError

ENGINES = ("local", "ray")


def make_engine(
    workers: int | None = 0,
    *,
    fresh: bool = False,
    threads: int | None = 1,
    engine: str = "local",
    address: str | None = None,
    gpus: float = 0.0,
) -> Engine:
    """Creates an engine.

    workers  processes on this machine, 0 for the current process; actors if `engine` is "ray". None: one process, or as many
             actors as the cluster has room for
    fresh    a new process per job, one after the other, to measure peak memory
    threads  torch threads of each worker; None: its share of the cores here, 1 on a cluster
    address  of the Ray cluster, "auto" or HOST:PORT
    gpus     GPUs of each actor
    """
    if engine not in ENGINES:
        raise UsageError(f"There is no engine '{engine}'; use one of {', '.join(ENGINES)}.")
    if engine == "ray":
        if fresh:
            raise UsageError("Peak memory is measured in processes of this machine; use the engine 'local'.")
        from leader.engines.ray import RayEngine

        return RayEngine(workers, threads or 1, address, gpus)
    if address is not None:
        raise UsageError("An address belongs to the engine 'ray'; choose that engine, or leave the address out.")
    count = 1 if workers is None or fresh else workers
    share = threads or max(1, count_cores() // max(1, count))
    return LocalEngine(share) if count == 0 else ProcessEngine(count, share, fresh=fresh)


def count_cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


__all__ = ["ENGINES", "Engine", "LocalEngine", "Lost", "ProcessEngine", "count_cores", "make_engine"]
