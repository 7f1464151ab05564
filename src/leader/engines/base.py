"""The contract of an engine: a function applied to jobs, answers as they come."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

Job = TypeVar("Job")
Answer = TypeVar("Answer")


class Engine(Protocol):
    """Runs jobs that do not depend on one another.

    threads  torch threads each job gets: an image gives the same bits wherever this number is the same
    """

    threads: int

    def map(self, function: Callable[[Job], Answer], jobs: Sequence[Job]) -> Iterator[tuple[int, Answer]]:
        """(position of the job, its answer) in the order of completion.

        `function` and jobs must be picklable (a module's function, plain data). An exception of a job ends
        the iteration; what came before it has been handed out.
        """
        ...

    def close(self) -> None:
        """End what the engine keeps running; it may be used again afterwards."""
        ...


@dataclass(frozen=True)
class Lost:
    """Stands for the answer of a job whose worker died every time it was tried.

    reason  the end of a sentence: "the worker process died (signal 9), ..."
    """

    reason: str


class Workers(Protocol):
    """An engine for any number of jobs, of which some may kill their worker.

    threads  as in `Engine`
    """

    threads: int

    def each(self, function: Callable[[Job], Answer], jobs: Iterable[Job]) -> Iterator[tuple[int, Answer | Lost]]:
        """(position of the job, its answer or Lost) in the order of completion.

        Jobs are taken from the iterable only when a worker is about to be free, so that any number of them takes no memory.
        Every worker gets `function` once. A worker that dies costs its own job alone, which is tried again. An exception of
        a job ends the iteration, and leaving the iteration ends the workers.
        """
        ...

    def close(self) -> None:
        """End what is kept besides the workers."""
        ...
