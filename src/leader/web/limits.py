"""The limits of one instance of the page."""

import math
from dataclasses import dataclass
from typing import Any

from leader.engines import count_cores
from leader.errors import UsageError

MEGABYTE = 1 << 20
THREADS = 2
"""Threads per job if there are enough cores: more hardly speed up a small picture."""


@dataclass(frozen=True)
class Limits:
    """The limits of one instance.

    upload_bytes   size of an uploaded file
    pixels         size of a picture, given or restored
    waiting        jobs in the queue
    jobs, threads  simultaneous jobs, and torch threads per job
    seconds        running time of one job
    keep_seconds   how long a picture or a result is kept after its last use
    kept           pictures and results kept at once; the least recently used are removed first
    """

    upload_bytes: float = 64 * MEGABYTE
    pixels: int = 16_000_000
    waiting: int = 64
    jobs: int = 1
    threads: int = 1
    seconds: float = 3600.0
    keep_seconds: float = 3600.0
    kept: int = 512

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not 0 < value < math.inf:
                raise UsageError(f"The limit '{name}' must be a number larger than 0; found {value}.")


def fit_limits(cores: int | None = None, jobs: int | None = None, threads: int | None = None, **others: Any) -> Limits:
    """Limits whose jobs times threads fill the cores; given values take precedence."""
    count = cores or count_cores()
    if threads is None:
        threads = min(THREADS, count) if jobs is None else max(1, count // max(1, jobs))
    if jobs is None:
        jobs = max(1, count // max(1, threads))
    return Limits(jobs=jobs, threads=threads, **others)
