"""The interface of an engine: a function applied to jobs, results in order of completion; and the simplest engine, this
process.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import torch

from leader.errors import LeaderError

Job = TypeVar("Job")
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Lost:
    """The result of a job whose worker died on every attempt.

    reason  the end of a sentence: "the worker process died (signal 9), ..."
    """

    reason: str


class Engine(ABC):
    """Runs any number of independent jobs; some of them may kill their worker.

    threads  torch threads per job: an image gives the same bits wherever this number is the same
    """

    threads: int

    @abstractmethod
    def each(self, function: Callable[[Job], Answer], jobs: Iterable[Job]) -> Iterator[tuple[int, Answer | Lost]]:
        """(position of the job, its answer or Lost) in the order of completion.

        `function` and jobs must be picklable (a module's function, plain data); every worker gets `function` once. Jobs are
        taken from the iterable only when a worker is about to be free, so memory does not grow with their number. If a worker
        dies, only its own job is affected, and it is tried again. An exception in a job ends the iteration; earlier results
        have been yielded. Leaving the iteration terminates busy workers.
        """

    def map(self, function: Callable[[Job], Answer], jobs: Iterable[Job]) -> Iterator[tuple[int, Answer]]:
        """`each` for callers that need every result: a lost job raises."""
        for index, answer in self.each(function, jobs):
            if isinstance(answer, Lost):
                raise LeaderError(f"A job could not be finished: {answer.reason}.")
            yield index, answer

    @abstractmethod
    def close(self) -> None:
        """Stops everything the engine keeps running; it can be used again afterwards."""


class LocalEngine(Engine):
    """This process, with a fixed number of torch threads while a job runs."""

    def __init__(self, threads: int = 1) -> None:
        self.threads = threads

    def each(self, function: Callable[[Job], Answer], jobs: Iterable[Job]) -> Iterator[tuple[int, Answer | Lost]]:
        for index, job in enumerate(jobs):
            with limit_threads(self.threads):
                answer = function(job)
            yield index, answer

    def close(self) -> None:
        """Nothing is kept running."""


@contextmanager
def limit_threads(count: int) -> Iterator[None]:
    """Runs the block with this number of torch threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
