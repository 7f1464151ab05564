"""Jobs in other processes: a pool that stays, or a fresh process for every job."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool

import torch

from leader.engines.base import Answer, Job
from leader.errors import LeaderError

_WATCH_SECONDS = 1.0


class PoolEngine:
    """`workers` processes with `threads` torch threads each. On two cores two workers with one thread
    are fastest.
    """

    def __init__(self, workers: int = 2, threads: int = 1) -> None:
        self.workers = workers
        self.threads = threads
        self._pool: ProcessPoolExecutor | None = None  # started by the first jobs, kept for the next

    def map(self, function: Callable[[Job], Answer], jobs: Sequence[Job]) -> Iterator[tuple[int, Answer]]:
        if not jobs:
            return
        if self._pool is None:
            self._pool = _executor(self.workers, self.threads)
        waiting = {self._pool.submit(function, job): index for index, job in enumerate(jobs)}
        try:
            while waiting:
                done, _ = wait(waiting, return_when=FIRST_COMPLETED)
                for future in sorted(done, key=lambda item: waiting[item]):
                    yield waiting.pop(future), future.result()
        except BrokenProcessPool:
            self._pool = None
            raise LeaderError(
                "A worker process died, most likely for want of memory; use fewer workers."
            ) from None
        finally:
            for future in waiting:
                future.cancel()


class FreshEngine:
    """A new process per job, one at a time: a process's peak memory never falls, so each needs its own."""

    def __init__(self, threads: int = 1) -> None:
        self.threads = threads

    def map(self, function: Callable[[Job], Answer], jobs: Sequence[Job]) -> Iterator[tuple[int, Answer]]:
        for index, job in enumerate(jobs):
            with _executor(1, self.threads) as pool:
                future: Future[Answer] = pool.submit(function, job)
                yield index, future.result()


def _executor(workers: int, threads: int) -> ProcessPoolExecutor:
    # Spawned, not forked: a fork of a process with torch threads can hang, and it inherits the parent's
    # memory.
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(workers, context, _start_worker, (threads, os.getpid()))


def _start_worker(threads: int, parent: int) -> None:
    torch.set_num_threads(threads)
    threading.Thread(target=_leave_with, args=(parent,), daemon=True).start()


def _leave_with(parent: int) -> None:
    """Ends this worker when its parent is gone: one killed outright cannot tell its workers."""
    while os.getppid() == parent:
        time.sleep(_WATCH_SECONDS)
    os._exit(1)
