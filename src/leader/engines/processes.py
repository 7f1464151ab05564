"""Jobs in processes that may die. A job whose worker died is tried once more, alone, after all others: most such deaths are due
to lack of memory.
"""

import itertools
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any

import torch

from leader.engines.memory import keep_freed_memory, return_freed_memory
from leader.engines.pool import DiedError, PoolEngine, Sent, Worker, attempt
from leader.errors import LeaderError

_WATCH_SECONDS = 1.0


class ProcessEngine(PoolEngine):
    """`workers` processes with `threads` torch threads each, started when they are needed and kept until `close`.

    fresh  every process ends with its job: a process's peak memory never falls, so each measurement needs its own process
    """

    attempts, retry_alone, most_deaths = 2, True, 3
    silence = "this machine is too busy"

    def __init__(self, workers: int = 2, threads: int = 1, *, fresh: bool = False) -> None:
        if workers < 1:
            raise LeaderError(f"At least one worker is needed; found {workers}.")
        super().__init__()
        self.workers, self.threads, self.fresh = workers, threads, fresh

    def _open(self, function: Callable[[Any], Any]) -> int:
        return self.workers

    def _start(self) -> Worker:
        taken = {worker.slot for worker in self._workers if isinstance(worker, ProcessWorker)}
        slot = next(number for number in itertools.count() if number not in taken)
        return ProcessWorker(slot, self.threads, return_freed_memory if self.fresh else keep_freed_memory)

    def _wait_for_any(self, workers: list[Any], seconds: float | None) -> list[Any]:
        ready = wait([worker.pipe for worker in workers], seconds)
        return [worker for worker in workers if worker.pipe in ready]


class ProcessWorker(Worker):
    """A worker process; slot: its number among the workers, which determines its GPU."""

    def __init__(self, slot: int, threads: int, tune_memory: Callable[[], bool]) -> None:
        # Spawned, not forked: a fork of a process with torch threads can hang, and it inherits the parent's memory.
        context = multiprocessing.get_context("spawn")
        self.slot = slot
        self.pipe, other = context.Pipe()
        self._function: Callable[[Any], Any] | None = None
        self._process: SpawnProcess = context.Process(
            target=_work, args=(other, slot, threads, tune_memory, os.getpid()), name="leader-worker", daemon=True
        )
        self._process.start()
        other.close()  # the worker holds the only copy: its death ends the pipe

    def give(self, function: Callable[[Any], Any], job: Any) -> None:
        message = (None if function is self._function else function, job)
        self._function = function
        try:
            self.pipe.send(message)
        except (BrokenPipeError, ConnectionResetError):
            return  # already dead: `receive` will report it

    def receive(self) -> Sent:
        try:
            sent: Sent = self.pipe.recv()
        except (EOFError, ConnectionResetError) as error:
            self._process.join()
            code = self._process.exitcode or 0
            if code == -getattr(signal, "SIGKILL", 9):
                raise DiedError("its worker process was killed, most likely for lack of memory") from error
            how = signal.strsignal(-code) if code < 0 else f"exit code {code}"
            raise DiedError(f"its worker process died ({how})") from error
        return sent

    def end(self) -> None:
        self.pipe.close()
        self._process.kill()
        self._process.join()
        self._process.close()


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
    function: Callable[[Any], Any] = len
    try:
        pipe.send((None, None, 0.0))  # it has started
        while True:
            new, job = pipe.recv()
            function = new or function
            pipe.send(attempt(function, job))
    except (EOFError, OSError):
        return


def _exit_with_parent(parent: int) -> None:
    """Ends this worker when its parent is gone: a killed parent cannot notify its workers."""
    while os.getppid() == parent:
        time.sleep(_WATCH_SECONDS)
    os._exit(1)
