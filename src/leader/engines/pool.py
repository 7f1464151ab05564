"""Jobs in other processes: a pool that stays, or a fresh process for every job."""

from __future__ import annotations

import ctypes
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
_DIED = "A worker process died, most likely for want of memory; {}."
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # names of options in glibc's malloc.h; 2^25 is the largest it takes for the latter


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
            self._pool = _executor(self.workers, self.threads, keep_freed_memory)
        waiting = {self._pool.submit(function, job): index for index, job in enumerate(jobs)}
        try:
            while waiting:
                done, _ = wait(waiting, return_when=FIRST_COMPLETED)
                for future in sorted(done, key=lambda item: waiting[item]):
                    yield waiting.pop(future), future.result()
        except BrokenProcessPool:
            self._pool = None
            raise LeaderError(_DIED.format("use fewer workers")) from None
        finally:
            for future in waiting:
                future.cancel()

    def close(self) -> None:
        """End the workers: left to the interpreter's exit, their pipes may close in the wrong order."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None


class FreshEngine:
    """A new process per job, one at a time: a process's peak memory never falls, so each needs its own."""

    def __init__(self, threads: int = 1) -> None:
        self.threads = threads

    def map(self, function: Callable[[Job], Answer], jobs: Sequence[Job]) -> Iterator[tuple[int, Answer]]:
        for index, job in enumerate(jobs):
            with _executor(1, self.threads, return_freed_memory) as pool:
                future: Future[Answer] = pool.submit(function, job)
                try:
                    answer = future.result()
                except BrokenProcessPool:
                    raise LeaderError(_DIED.format("use smaller pictures")) from None
            yield index, answer

    def close(self) -> None:
        """Every process has ended with its job."""


def _executor(workers: int, threads: int, freed: Callable[[], bool]) -> ProcessPoolExecutor:
    # Spawned, not forked: a fork of a process with torch threads can hang, and it inherits the parent's
    # memory.
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(workers, context, start_worker, (threads, freed, os.getpid()))


def start_worker(threads: int, freed: Callable[[], bool], parent: int) -> None:
    """What every worker process does first: its threads, its memory, and a watch on the process it works for."""
    torch.set_num_threads(threads)
    freed()
    threading.Thread(target=_leave_with, args=(parent,), daemon=True).start()


def keep_freed_memory() -> bool:
    """Make the C library keep what is freed instead of handing it back; False where it is not glibc.

    A network frees and asks for the same megabytes at every layer. Fetching them from the kernel each time took a third of a
    worker's time. Not for processes whose peak memory is measured.
    """
    return _tune_malloc(2**25, 2**30)


def return_freed_memory() -> bool:
    """Make the C library hand back what is freed at once; False where it is not glibc.

    A peak is then that of what was in use. Left to itself, malloc's reuse of freed blocks moves it by several per cent between
    runs that differ in a few small tensors.
    """
    return _tune_malloc(2**16, 2**16)


def trim_memory() -> bool:
    """Hand back to the system what is free now; False where the C library is not glibc, or nothing was."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if os.name == "posix" else None
    return bool(trim is not None and trim(0))


def _tune_malloc(mapped: int, trimmed: int) -> bool:
    """Blocks from `mapped` bytes on are fetched and returned one by one; the heap's end is returned from `trimmed` bytes on."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if os.name == "posix" else None
    if mallopt is None:
        return False
    return bool(mallopt(_MMAP_THRESHOLD, mapped) and mallopt(_TRIM_THRESHOLD, trimmed))


def _leave_with(parent: int) -> None:
    """Ends this worker when its parent is gone: one killed outright cannot tell its workers."""
    while os.getppid() == parent:
        time.sleep(_WATCH_SECONDS)
    os._exit(1)
