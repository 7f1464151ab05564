"""The proofs of benchmarks/folders.py in small, and the simulation of large clusters."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"


def program(name: str) -> Any:
    """A benchmark, which is a program and not part of a package."""
    sys.path.insert(0, str(FOLDER))
    try:
        return import_module(name)
    finally:
        sys.path.remove(str(FOLDER))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="signals and /proc")
def test_killed_runs_end_in_the_same_bytes() -> None:
    figures = program("folders").kill(count=8, side=32, kills=3, seed=1)
    assert figures["exit_code"] == 0 and figures["same_files"] and figures["same_lines"]
    assert figures["restored_twice_once_recorded"] == figures["temporary_files"] == 0
