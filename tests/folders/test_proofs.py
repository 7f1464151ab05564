"""The proofs of benchmarks/folders.py in small, and the simulation of large clusters."""

from __future__ import annotations

import sys
from collections.abc import Callable
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


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="signals and /proc")
def test_memory_stays_flat() -> None:
    figures = program("folders").memory(count=60)
    assert figures["pictures"] == 60 and figures["worker_growth"] < 0.1 and figures["parent_growth"] < 0.1


def _counting(real: Callable[[Any, str], Any], asked: list[str]) -> Callable[[Any, str], Any]:
    def counted(self: Any, word: str) -> Any:
        asked.append(word)
        return real(self, word)

    return counted


def test_done_files_are_found_in_linear_time(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted, not timed: how often the disk is asked, and every line read once."""
    from leader.folders.disk import DiskSource, DiskTarget
    from tests.folders.conftest import go, save_picture

    asked: list[str] = []
    for kind, name in ((DiskTarget, "size"), (DiskSource, "sha256"), (DiskTarget, "sha256")):
        monkeypatch.setattr(kind, name, _counting(getattr(kind, name), asked))
    counts = []
    for number in (5, 10):
        source = tmp_path / f"in{number}"
        source.mkdir()
        for index in range(number):
            save_picture(source / f"{index}.png")
        go(source, tmp_path / f"out{number}")
        asked.clear()
        assert go(source, tmp_path / f"out{number}").found == number
        counts.append(len(asked))
    assert counts[1] == 2 * counts[0]
