"""What one instance of the page gives to its visitors, and where it stops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from leader.engines import count_cores
from leader.errors import UsageError

MEGABYTE = 1 << 20
THREADS = 2
"""Threads that one job uses where there are enough cores: more make a small picture hardly faster."""


@dataclass(frozen=True)
class Limits:
    """Of one instance.

    upload_bytes   of a file that is handed in
    pixels         of a picture, given or restored
    waiting        jobs that may stand in the queue
    jobs, threads  jobs at once, and threads of torch for each
    seconds        that one job may run
    keep_seconds   that a picture or a result is kept after it was last asked for
    kept           pictures and results kept at once; beyond them the ones longest not asked for go first
    """

    upload_bytes: int = 64 * MEGABYTE
    pixels: int = 16_000_000
    waiting: int = 64
    jobs: int = 1
    threads: int = 1
    seconds: float = 3600.0
    keep_seconds: float = 3600.0
    kept: int = 512

    def __post_init__(self) -> None:
        for name in ("upload_bytes", "pixels", "waiting", "jobs", "threads", "seconds", "keep_seconds", "kept"):
            value = getattr(self, name)
            if not value > 0:
                raise UsageError(f"The limit '{name}' must be larger than 0; found {value}.")


def fit_limits(cores: int | None = None, jobs: int | None = None, threads: int | None = None, **others: Any) -> Limits:
    """Limits whose jobs times threads fill the cores; what is given wins."""
    count = cores or count_cores()
    if threads is None:
        threads = min(THREADS, count) if jobs is None else max(1, count // max(1, jobs))
    if jobs is None:
        jobs = max(1, count // max(1, threads))
    return Limits(jobs=jobs, threads=threads, **others)
