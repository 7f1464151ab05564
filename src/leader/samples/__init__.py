"""Photographs that come with the package."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path

DEMO = "BuddiesOfBudgie_5bf63903e7.png"


@contextmanager
def demo_photograph() -> Iterator[Path]:
    """The path of the photograph of `leader demo`, for as long as the block lasts."""
    with resources.as_file(resources.files(__name__) / "test" / DEMO) as path:
        yield path
