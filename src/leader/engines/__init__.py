"""Where jobs execute: in this process, in a pool of processes, or each in a fresh process."""

from __future__ import annotations

from leader.engines.base import Engine, Lost, Workers
from leader.engines.crew import Crew
from leader.engines.local import LocalEngine
from leader.engines.pool import FreshEngine, PoolEngine
from leader.errors import UsageError

ENGINES = ("local", "ray")


def make_engine(
    workers: int = 1, *, fresh: bool = False, threads: int = 1, engine: str = "local", address: str | None = None
) -> Engine:
    """`workers` processes (1: this one), or actors of the Ray cluster at `address` where `engine` is "ray".

    fresh  a new process per job, one after the other, for peak memory
    """
    if engine not in ENGINES:
        raise UsageError(f"There is no engine '{engine}'; use one of {', '.join(ENGINES)}.")
    if engine == "ray":
        if fresh:
            raise UsageError("Peak memory is measured in processes of this machine; leave out --engine ray.")
        from leader.engines.ray import RayEngine

        return RayEngine(workers, threads, address)
    if address is not None:
        raise UsageError("An --address belongs to --engine ray; add that, or leave it out.")
    if fresh:
        return FreshEngine(threads)
    return LocalEngine(threads) if workers <= 1 else PoolEngine(workers, threads)


__all__ = ["ENGINES", "Crew", "Engine", "FreshEngine", "LocalEngine", "Lost", "PoolEngine", "Workers", "make_engine"]
