"""The desk: one job per client, a line of limited length, jobs that stop when told to."""

import math
import threading
import time
from dataclasses import fields
from typing import Any

import pytest

from leader.errors import LeaderError, UsageError
from leader.web import jobs
from leader.web.jobs import BUSY, LOST, Desk, Job
from leader.web.limits import Limits, fit_limits


def _until_over(job: Job) -> None:
    end = time.monotonic() + 120
    while not job.over:
        assert time.monotonic() < end
        time.sleep(0.005)


def _steps_for_ever(job: Job) -> None:
    while True:
        job.check()
        time.sleep(0.005)


def test_every_thread_of_jobs_begins_as_told() -> None:
    begun: list[str] = []
    desk = Desk(Limits(jobs=2), lambda: begun.append(threading.current_thread().name))
    both = threading.Barrier(2)
    jobs = [desk.submit(client, lambda _: both.wait(60)) for client in ("a", "b")]
    for job in jobs:
        _until_over(job)
    desk.close()
    assert [job.state for job in jobs] == ["done"] * 2 and len(set(begun)) == len(begun) == 2


def test_one_job_per_client_and_a_line_of_limited_length() -> None:
    desk = Desk(Limits(waiting=2))
    gate = threading.Event()
    first = desk.submit("a", lambda one: gate.wait(120))
    while first.state == "waiting":
        time.sleep(0.005)
    others = [desk.submit(client, lambda one: None) for client in ("b", "c")]
    assert [desk.ahead(job) for job in others] == [0, 1]
    for busy in ("a", "b"):  # at work, and in line
        with pytest.raises(LeaderError, match="One picture at a time") as told:
            desk.submit(busy, lambda one: None)
    assert str(told.value) == BUSY
    with pytest.raises(LeaderError, match="2 pictures are already waiting"):
        desk.submit("d", lambda one: None)
    gate.set()
    for job in (first, *others):
        _until_over(job)
        assert job.state == "done"
    _until_over(desk.submit("a", lambda one: None))  # and then it may come again
    desk.close()


def test_stopping_ends_a_job_that_runs_and_one_that_waits_at_once() -> None:
    desk = Desk(Limits())
    running = desk.submit("a", _steps_for_ever)
    seen: list[str] = []
    waiting = desk.submit("b", lambda one: seen.append("never"))
    desk.stop("b")
    assert waiting.state == "stopped"
    again = desk.submit("b", lambda one: seen.append("now"))  # the place in line is free again
    desk.stop("a")
    _until_over(running)
    _until_over(again)
    assert (running.state, again.state) == ("stopped", "done")
    desk._run(waiting, lambda one: seen.append("never"))  # its turn comes: it left the line, and nothing is done
    assert (waiting.state, waiting.began, seen) == ("stopped", None, ["now"])
    last = desk.submit("a", _steps_for_ever)
    while last.state == "waiting":
        time.sleep(0.005)
    desk.close()
    assert last.state == "stopped"


def test_a_job_that_takes_too_long_is_refused_in_a_sentence() -> None:
    desk = Desk(Limits(seconds=0.05))
    job = desk.submit("a", _steps_for_ever)
    _until_over(job)
    assert job.state == "refused"
    assert "took longer" in job.error
    desk.close()
    slow = Desk(Limits(seconds=0.2))
    first, second = slow.submit("a", lambda one: time.sleep(0.4)), slow.submit("b", lambda one: one.check())
    for job in (first, second):
        _until_over(job)
    assert second.state == "done", "waiting in line does not count"
    slow.close()
    young, old = (Job("a", 10.0, began=time.monotonic() - age) for age in (5, 15))
    young.check()
    with pytest.raises(LeaderError, match="10 seconds"):
        old.check()


def test_an_error_of_ours_is_logged_and_told_without_its_text(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(job: Job) -> None:
        raise KeyError("/a/path/of/ours")

    def refused(job: Job) -> None:
        raise LeaderError("This cannot be done.")

    trimmed: list[int] = []
    monkeypatch.setattr(jobs, "trim_memory", lambda: trimmed.append(1))
    desk = Desk(Limits())
    first = desk.submit("a", broken)
    _until_over(first)
    second = desk.submit("a", refused)
    _until_over(second)
    assert (first.error, second.error) == (LOST, "This cannot be done.")
    assert "/a/path/of/ours" in caplog.text and len(trimmed) == 2, "memory is given back after every job"
    desk.close()


@pytest.mark.parametrize(
    ("given", "jobs", "threads"),
    [
        *(({"cores": 1}, 1, 1), ({"cores": 2}, 1, 2), ({"cores": 8}, 4, 2), ({"cores": 8, "jobs": 8}, 8, 1)),
        *(({"cores": 8, "threads": 4}, 2, 4), ({"cores": 9, "jobs": 2}, 2, 4), ({"cores": 2, "jobs": 3, "threads": 5}, 3, 5)),
    ],
)
def test_concurrency_is_fitted_to_the_cores(given: dict[str, int], jobs: int, threads: int) -> None:
    found = fit_limits(**given)
    assert (found.jobs, found.threads) == (jobs, threads)


@pytest.mark.parametrize("name", [item.name for item in fields(Limits)])
def test_limits_must_be_larger_than_zero(name: str) -> None:
    wrong: Any
    for wrong in (0, math.nan, math.inf):
        with pytest.raises(UsageError, match=f"'{name}' must be a number larger than 0; found {wrong}"):
            Limits(**{name: wrong})
