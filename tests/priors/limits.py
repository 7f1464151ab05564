"""Room and time for a hostile file: one gigabyte beyond what the process has, and twenty seconds."""

import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

SECONDS, BYTES = 20, 1 << 30


@contextmanager
def bounded() -> Iterator[None]:
    """Ends what takes longer with a TimeoutError, and lets what takes more memory fail."""

    def late(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"still running after {SECONDS} s")

    pages = int(Path("/proc/self/statm").read_text().split()[0])
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    before = signal.signal(signal.SIGALRM, late)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + BYTES, hard))
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
