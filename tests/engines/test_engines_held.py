"""Engines: the threads a job gets and the caller gets back, and workers that end when they are told to."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from concurrent.futures import Future
from types import SimpleNamespace

import pytest
import torch

from leader.engines import FreshEngine, LocalEngine, PoolEngine, make_engine, pool


@pytest.fixture
def three_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


def threads_of(job: int) -> int:
    return torch.get_num_threads()


def pid_of(job: int) -> int:
    return os.getpid()


def test_a_local_job_has_its_threads_and_the_caller_gets_his_back(three_threads: None) -> None:
    found = []
    for position, answer in LocalEngine(2).map(threads_of, [0, 1]):
        found.append((position, answer))
        assert torch.get_num_threads() == 3, "between jobs the caller has his own threads"
    assert found == [(0, 2), (1, 2)]
    assert list(LocalEngine(2).each(threads_of, iter([0, 1]))) == found
    assert torch.get_num_threads() == 3


def test_threads_are_given_back_after_an_error(three_threads: None) -> None:
    def failing(job: int) -> int:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        list(LocalEngine(1).map(failing, [0]))
    assert torch.get_num_threads() == 3


def test_close_ends_the_workers() -> None:
    engine = PoolEngine(1)
    (worker,) = [answer for _, answer in engine.map(pid_of, [0])]
    assert worker != os.getpid()
    engine.close()
    end = time.monotonic() + 120
    while _alive(worker) and time.monotonic() < end:
        time.sleep(0.05)
    assert not _alive(worker)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_which_engine_is_made() -> None:
    assert isinstance(make_engine(1, fresh=True), FreshEngine)
    assert isinstance(make_engine(3, fresh=True), FreshEngine)
    assert isinstance(make_engine(1), LocalEngine)
    assert isinstance(make_engine(3), PoolEngine)


@pytest.mark.parametrize(("system", "freed", "expected"), [("posix", 1, True), ("posix", 0, False), ("nt", 1, False)])
def test_memory_is_handed_back_where_the_c_library_can(
    monkeypatch: pytest.MonkeyPatch, system: str, freed: int, expected: bool
) -> None:
    asked: list[int] = []

    class Library:
        def __init__(self, name: None) -> None: ...

        def malloc_trim(self, kept: int) -> int:
            asked.append(kept)
            return freed

    monkeypatch.setattr(pool, "ctypes", SimpleNamespace(CDLL=Library))
    monkeypatch.setattr(pool, "os", SimpleNamespace(name=system))
    assert pool.trim_memory() is expected
    assert asked == ([0] if system == "posix" else [])


def test_who_leaves_the_iteration_takes_back_the_jobs_that_have_not_begun() -> None:
    engine = PoolEngine(1)
    handed_in: list[Future[int]] = []

    class Idle:
        """Answers the first job at once and begins no other."""

        def submit(self, function: object, job: int) -> Future[int]:
            handed_in.append(Future())
            if job == 0:
                handed_in[-1].set_result(10)
            return handed_in[-1]

    engine._pool = Idle()  # type: ignore[assignment]
    answers = engine.map(pid_of, [0, 1, 2])
    assert next(answers) == (0, 10)
    answers.close()  # type: ignore[attr-defined]
    assert [future.cancelled() for future in handed_in] == [False, True, True]
