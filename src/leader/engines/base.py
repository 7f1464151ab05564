"""The contract of an engine: a function applied to jobs, answers as they come."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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
