"""What becomes of jobs whose workers start, answer, die and freeze: played by workers whose time passes by waiting."""

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from leader.engines import Lost, pool
from leader.engines.pool import DiedError, PoolEngine, Sent, Worker, attempt
from leader.errors import LeaderError


class Played(Worker):
    """A worker that starts once there is room for it, and answers when it is awake."""

    def __init__(self) -> None:
        self.placed = self.gone = self.ended = False
        self.job: Any = None

    def give(self, function: Any, job: Any) -> None:
        self.function, self.job = function, job

    def receive(self) -> Sent:
        if self.gone:
            raise DiedError("exit code 9")
        return (*attempt(self.function, self.job)[:2], 1.0) if self.started else (None, None, 0.0)

    def end(self) -> None:
        assert not self.ended, "once"
        self.gone = self.ended = True


class PlayedEngine(PoolEngine):
    """`rooms` workers at a time; `dies(job)`: it kills its worker; `sleeps(worker)`: it neither answers nor dies."""

    attempts, retry_alone, most_deaths, silence = 3, False, 4, "no free room"
    clock = 0.0

    def __init__(self, count: int, rooms: int = 99, dies: Callable[[Any], bool] = lambda job: False) -> None:
        super().__init__()
        self.count, self.rooms, self.dies, self.threads = count, rooms, dies, 1
        self.sleeps: Callable[[Played], bool] = lambda worker: False
        self.made: list[Played] = []
        self.one_at_a_time = False

    def _open(self, function: Any) -> int:
        return self.count

    def _start(self) -> Worker:
        self.made.append(Played())
        return self.made[-1]

    def _wait_for_any(self, workers: list[Any], seconds: float | None) -> list[Any]:
        PlayedEngine.clock += 2.0
        assert len({id(worker.task) for worker in workers if worker.task and not self.sleeps(worker)}) <= self.count
        for worker in workers:
            there = sum(other.placed and not other.gone for other in self.made)
            worker.placed = worker.placed or there < self.rooms
            worker.gone = worker.gone or (worker.placed and worker.started and self.dies(worker.job))
        ready = [one for one in workers if (one.placed or one.gone) and not self.sleeps(one)]
        if not ready:
            assert seconds is not None, "it would wait for ever"
            assert PlayedEngine.clock < 10_000, "it never waits"
            PlayedEngine.clock += seconds
        turn = int(PlayedEngine.clock) // 2 % len(ready) if ready and self.one_at_a_time else None
        return ready if turn is None else [ready[turn]]

    def lose(self) -> None:
        """A machine with room for one goes, and the worker on it."""
        self.rooms -= 1
        next(worker for worker in self.made if worker.placed and not worker.gone).gone = True


class Alone(PlayedEngine):
    """The other policy."""

    attempts, retry_alone = 2, True


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PlayedEngine, "clock", 0.0)
    monkeypatch.setattr(pool, "time", SimpleNamespace(monotonic=lambda: PlayedEngine.clock))


def double(job: int) -> int:
    if job == 99:
        raise LeaderError("99 is too many")
    return 2 * job


def doubled(count: int) -> list[tuple[int, int]]:
    return [(number, 2 * number) for number in range(count)]


def test_every_job_is_answered_once_and_none_is_taken_early() -> None:
    engine, taken = PlayedEngine(3), list[int]()
    engine.one_at_a_time = True

    def jobs() -> Iterator[int]:
        for number in range(20):
            taken.append(number)
            yield number

    found: dict[int, Any] = {}
    for index, answer in engine.each(double, jobs()):
        assert len(taken) <= len(found) + 3, "jobs wait until a worker is free"
        found[index] = answer
    assert found == dict(doubled(20)) and len(engine.made) == 3
    assert sorted(engine.map(abs, [-1, 2])) == [(0, 1), (1, 2)] and len(engine.made) == 3, "kept, with another function"
    assert list(PlayedEngine(5).map(double, [1])) == [(0, 2)]
    engine.close()
    assert all(worker.ended for worker in engine.made)


def test_workers_are_ended_where_they_are_not_kept() -> None:
    narrow = PlayedEngine(3, 1)
    narrow.kept = False
    assert sorted(narrow.map(double, range(4))) == doubled(4)
    assert len(narrow.made) == 3 and all(worker.ended for worker in narrow.made), "also those that wait for room"
    left = PlayedEngine(2)
    iteration = left.each(double, range(9))
    next(iteration)
    iteration.close()  # type: ignore[attr-defined]  # a generator; the contract says Iterator
    assert [worker.ended for worker in left.made] == [False, True], "the one that is busy"
    fresh = PlayedEngine(1)
    fresh.fresh = True
    assert sorted(fresh.map(double, range(4))) == doubled(4) and len(fresh.made) == 4
    assert all(worker.ended for worker in fresh.made)


@pytest.mark.parametrize("after", range(1, 10))
@pytest.mark.parametrize("kind", [PlayedEngine, Alone])
def test_a_machine_that_goes_keeps_no_job_waiting(kind: type[PlayedEngine], after: int) -> None:
    """The worker that would take its place does not fit; its job goes to one that is there."""
    engine, found = kind(3, 3), dict[int, Any]()
    for index, answer in engine.each(double, range(10)):
        found[index] = answer
        if len(found) == after:
            engine.lose()
    assert found == dict(doubled(10))


@pytest.mark.parametrize(("kind", "times"), [(PlayedEngine, 3), (Alone, 2)])
def test_a_job_that_kills_its_workers_is_lost_and_no_other(kind: type[PlayedEngine], times: int) -> None:
    killed: list[int] = []
    once: list[int] = []

    def dies(job: int) -> bool:
        bad = job == 4 or (job == 1 and 1 not in once)
        (killed if job == 4 else once).append(job)
        return bad

    answers = list(kind(2, 2, dies).each(double, range(8)))
    found = dict(answers)
    assert found.pop(4) == Lost("exit code 9") and killed.count(4) == times
    assert found == {number: 2 * number for number in (0, 1, 2, 3, 5, 6, 7)}
    assert ({index for index, _ in answers[-2:]} == {1, 4}) == (kind is Alone), "tried again after all others"
    with pytest.raises(LeaderError, match="could not be finished: exit code 9"):
        list(kind(1, dies=lambda job: job == 1).map(double, range(3)))


@pytest.mark.parametrize("kind", [PlayedEngine, Alone])
def test_deaths_end_the_run_only_where_nothing_is_answered_between_them(kind: type[PlayedEngine]) -> None:
    engine = kind(1, 1, lambda job: True)
    with pytest.raises(LeaderError, match=r"die one after the other \(exit code 9\)"):
        list(engine.each(double, range(100)))
    first_deaths = len(engine.made) if kind is Alone else 1 + (len(engine.made) - 1) // 3
    assert first_deaths == engine.most_deaths + 2, "one more than may die; a job that kills several counts once"
    found = dict(kind(2, 2, lambda job: job % 4 == 0).each(double, range(96)))
    assert sorted(index for index, answer in found.items() if isinstance(answer, Lost)) == list(range(0, 96, 4))
    starting = kind(2)
    starting.dies = lambda job: False
    make = starting._start

    def stillborn() -> Worker:
        worker: Any = make()
        worker.gone = True
        return worker  # type: ignore[no-any-return]

    starting._start = stillborn  # type: ignore[method-assign]
    with pytest.raises(LeaderError, match="die one after the other"):
        list(starting.each(double, range(2)))


def test_a_pool_without_room_is_told() -> None:
    with pytest.raises(LeaderError, match=r"600 seconds: no free room"):
        list(PlayedEngine(2, 0).each(double, range(3)))
    engine = PlayedEngine(1, 1)
    answers = engine.each(double, range(3))
    assert next(answers) == (0, 0)
    engine.lose()
    with pytest.raises(LeaderError, match="no free room"):
        list(answers)


def test_what_a_job_raises_ends_the_run() -> None:
    engine = PlayedEngine(1)
    with pytest.raises(LeaderError, match="99 is too many"):
        list(engine.map(double, [1, 99, 2]))
    assert sorted(engine.map(double, range(2))) == doubled(2) and len(engine.made) == 1, "and its worker goes on"


class Sleepy(PlayedEngine):
    """The first worker with job 4, or every one if `always`, is frozen; if it `wakes`, until another one has its job or, where
    there is no room, waits for it.
    """

    always = wakes = woken = dies_late = False

    def __init__(self, count: int, rooms: int = 99) -> None:
        super().__init__(count, rooms)
        self.frozen: list[Played] = []
        self.sleeps = self._sleep

    def _sleep(self, worker: Played) -> bool:
        if worker.task and worker.job == 4 and worker not in self.frozen and (self.always or not self.frozen):
            self.frozen.append(worker)
        holders = [one for one in self.made if one.task and one.task is worker.task]
        shared = len(holders) > 1 or (self.rooms == 1 and len(self.made) > 1)
        self.woken = self.woken or (worker in self.frozen and self.wakes and shared)
        asleep = worker in self.frozen and not self.woken
        if worker in self.frozen and not asleep and self.dies_late:
            worker.gone = True
        return asleep


@pytest.mark.parametrize("count", [1, 3])
def test_a_frozen_worker_holds_nothing_up(count: int) -> None:
    engine, found = Sleepy(count, count + 1), list[Any]()
    for answer in engine.each(double, range(9)):
        found.append(answer)
        assert answer[0] != 4 or engine.frozen[0].ended, "not left to the end of the run"
    assert sorted(found) == doubled(9), "each once"
    assert len(engine.frozen) == 1 and engine.clock < 2 * pool.LEAST_SECONDS and len(engine.made) <= count + 1


@pytest.mark.parametrize("dies", [False, True])
@pytest.mark.parametrize("rooms", [1, 9])
@pytest.mark.parametrize("alone", [False, True])
def test_two_workers_with_one_job_give_one_answer(dies: bool, rooms: int, alone: bool) -> None:
    """The slow one answers, or dies, while its copy waits for room or is at work."""
    engine = Sleepy(1, rooms)
    engine.wakes, engine.dies_late, engine.retry_alone = True, dies, alone  # type: ignore[misc]
    assert sorted(engine.each(double, range(9))) == doubled(9)
    assert len(engine.made) == 2, "no third one got it"


def test_a_job_that_freezes_every_worker_is_given_to_no_more_than_a_few() -> None:
    engine, found = Sleepy(1), list[Any]()
    engine.always = True
    with pytest.raises(AssertionError, match="for ever"):
        for answer in engine.each(double, range(9)):
            found.append(answer)
    assert len(engine.frozen) == 1 + pool.MOST_COPIES
    assert sorted(found) == [(number, 2 * number) for number in range(9) if number != 4], "the others are done"


@pytest.mark.parametrize(("longest", "limit"), [(0.5, 60.0), (20.0, 120.0)])
def test_a_job_is_overdue_after_many_times_the_longest_one(
    monkeypatch: pytest.MonkeyPatch, longest: float, limit: float
) -> None:
    """Never within a minute, never before another one was answered; the start of a worker is no part of it."""
    engine, waits = PlayedEngine(2), list[float | None]()
    monkeypatch.setattr(Played, "receive", lambda self: (double(self.job or 0), None, longest - (self.job or 0)))
    engine.sleeps = lambda worker: bool(worker.task) and worker.job == 3 and len(engine.made) == 2
    wait = engine._wait_for_any

    def note(workers: list[Any], seconds: float | None) -> list[Any]:
        waits.append(seconds)
        return wait(workers, seconds)

    monkeypatch.setattr(engine, "_wait_for_any", note)
    assert sorted(engine.each(double, range(4))) == doubled(4)
    assert waits[:2] == [pool.WAIT_SECONDS, None] and max(one or 0 for one in waits[1:]) == limit
