"""Jobs one after the other in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import torch

from leader.engines.base import Answer, Engine, Job, Lost


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
