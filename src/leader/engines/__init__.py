"""Where jobs execute: in this process, in a pool of processes, or each in a fresh process."""

from __future__ import annotations

from leader.engines.base import Engine
from leader.engines.local import LocalEngine
from leader.engines.pool import FreshEngine, PoolEngine


def make_engine(workers: int = 1, *, fresh: bool = False, threads: int = 1) -> Engine:
    """`workers` processes (1: this one); `fresh`: a new process per job, one after the other, for peak
    memory.
    """
    if fresh:
        return FreshEngine(threads)
    return LocalEngine(threads) if workers <= 1 else PoolEngine(workers, threads)


__all__ = ["Engine", "FreshEngine", "LocalEngine", "PoolEngine", "make_engine"]
