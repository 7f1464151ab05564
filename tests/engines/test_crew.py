"""Workers that may die: whose death costs what."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from leader.engines import Crew, LocalEngine, Lost, Workers
from leader.errors import LeaderError

posix = pytest.mark.skipif(sys.platform == "win32", reason="signals")


def squared(job: int) -> tuple[int, int, int]:
    return job * job, os.getpid(), torch.get_num_threads()


def fragile(job: tuple[str, int]) -> int:
    """Kills its worker for 3 always, for 1 the first time."""
    folder, number = job
    seen = Path(folder) / str(number)
    if number == 3 or (number == 1 and not seen.exists()):
        seen.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def raising(job: int) -> int:
    if job == 1:
        raise LeaderError("one is too many")
    return job


def dying(job: int) -> int:
    os._exit(9)


@pytest.mark.parametrize("workers", [LocalEngine(1), Crew(2, 1)])
def test_every_job_is_answered_once(workers: Workers) -> None:
    answers = dict(workers.each(squared, iter(range(5))))
    values = [answer for _, answer in sorted(answers.items()) if not isinstance(answer, Lost)]
    assert [value for value, _, _ in values] == [0, 1, 4, 9, 16]
    assert {threads for _, _, threads in values} == {1}
    processes = {process for _, process, _ in values}
    assert (os.getpid() in processes) == isinstance(workers, LocalEngine) and len(processes) <= 2


@posix
def test_a_death_costs_one_job_which_is_tried_again_at_the_end(tmp_path: Path) -> None:
    seen = list(Crew(2).each(fragile, ((str(tmp_path), number) for number in range(6))))
    answers = dict(seen)
    assert len(seen) == 6 and [answers[n] for n in (0, 1, 2, 4, 5)] == [0, 1, 2, 4, 5]
    assert isinstance(answers[3], Lost) and "killed" in answers[3].reason and "memory" in answers[3].reason
    assert {index for index, _ in seen[-2:]} == {1, 3}, "those tried again come last"


def test_an_exception_of_a_job_reaches_the_caller() -> None:
    with pytest.raises(LeaderError, match="one is too many"):
        list(Crew(1).each(raising, range(3)))


def test_workers_that_die_whatever_they_get_end_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leader.engines.crew.MOST_DEATHS", 0)  # a start costs seconds
    with pytest.raises(LeaderError, match=r"exit code 9.*fewer --jobs"):
        list(Crew(1).each(dying, range(100)))


def test_jobs_are_taken_when_a_worker_is_free() -> None:
    taken = []

    def jobs() -> Iterator[int]:
        for number in range(50):
            taken.append(number)
            yield number

    iteration = Crew(2).each(squared, jobs())
    next(iteration)
    assert len(taken) <= 3
    iteration.close()  # type: ignore[attr-defined]  # a generator; the contract says Iterator


@posix
def test_leaving_the_iteration_ends_the_workers() -> None:
    iteration = Crew(1).each(slow, [0.0, 600.0])
    _, process = next(iteration)
    assert isinstance(process, int)
    begin = time.monotonic()
    iteration.close()  # type: ignore[attr-defined]
    assert time.monotonic() - begin < 60
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


def slow(seconds: float) -> int:
    time.sleep(seconds)
    return os.getpid()
