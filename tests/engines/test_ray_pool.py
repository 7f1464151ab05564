"""The pool of actors against a cluster that is played: rooms that vanish, workers that die, one that never comes."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from leader.engines import Lost
from leader.engines import ray as module
from leader.engines.patience import Patience
from leader.engines.ray import RayEngine, _Actor, _Pool
from leader.errors import LeaderError


class PlayedError(Exception):
    """Stands for RayError."""


class Call:
    """`actor.do` or `actor.is_started`; `remote` makes a reference, which stands for itself."""

    def __init__(self, actor: PlayedActor, name: str) -> None:
        self.actor, self.name, self.words = actor, name, ()

    def remote(self, *words: Any) -> Call:
        made = Call(self.actor, self.name)
        made.words = words
        return made

    def answer(self) -> Any:
        if self.actor.gone:
            raise PlayedError("gone")
        return getattr(self.actor.real, self.name)(*self.words)


class PlayedActor:
    """An actor that is there once the cluster has room for it."""

    def __init__(self, function: Callable[[Any], Any], threads: int) -> None:
        self.real = _Actor(function, threads)
        self.do, self.is_started = Call(self, "do"), Call(self, "is_started")
        self.placed = self.gone = False


class Cluster:
    """Plays Ray: `rooms` actors at a time; `dies(job)` says whether a job kills its actor."""

    exceptions = SimpleNamespace(RayError=PlayedError)

    def __init__(self, rooms: int, dies: Callable[[Any], bool] = lambda job: False) -> None:
        self.rooms, self.dies = rooms, dies
        self.actors: list[PlayedActor] = []
        self.most_at_once = 0

    def remote(self, function: Callable[[Any], Any], threads: int) -> PlayedActor:
        self.actors.append(PlayedActor(function, threads))
        return self.actors[-1]

    def put(self, value: Any) -> Any:
        return value

    def kill(self, actor: PlayedActor) -> None:
        if actor.gone:
            raise ValueError("gone already")
        actor.gone = True

    def lose(self) -> None:
        """A machine with room for one goes, and the actor on it."""
        self.rooms -= 1
        next(actor for actor in self.actors if actor.placed and not actor.gone).gone = True

    def wait(self, references: list[Call], num_returns: int, timeout: float | None) -> tuple[list[Call], list[Call]]:
        for actor in self.actors:
            there = sum(other.placed and not other.gone for other in self.actors)
            actor.placed = actor.placed or (not actor.gone and there < self.rooms)
        at_work = [reference for reference in references if reference.name == "do"]
        self.most_at_once = max(self.most_at_once, len(at_work))
        for reference in references:
            if reference.actor.placed and reference.words and self.dies(reference.words[0]):
                reference.actor.gone = True
            if reference.actor.placed or reference.actor.gone:
                return [reference], [other for other in references if other is not reference]
        assert timeout is not None, "nothing can come any more, and it waits for ever"
        return [], references

    def get(self, reference: Call) -> Any:
        return reference.answer()


def double(job: int) -> int:
    if job == 99:
        raise LeaderError("99 is too many")
    return 2 * job


def pool(cluster: Cluster, count: int) -> _Pool:
    return _Pool(cluster, cluster, double, 1, count)


def test_every_job_is_answered_and_none_is_fetched_early() -> None:
    cluster, taken = Cluster(3), []

    def jobs() -> Iterator[tuple[int, int]]:
        for number in range(20):
            taken.append(number)
            yield number, number

    found: dict[int, Any] = {}
    crew = pool(cluster, 3)
    for index, answer in crew.answers(jobs()):
        assert len(taken) <= len(found) + 4, "jobs wait until a worker is free"
        found[index] = answer
    crew.end()
    assert found == {number: 2 * number for number in range(20)}
    assert len(cluster.actors) == 3 and cluster.most_at_once == 3 and all(actor.gone for actor in cluster.actors)
    narrow = Cluster(1)
    crew = pool(narrow, 3)
    assert len(list(crew.answers(enumerate(range(4))))) == 4
    crew.end()
    assert len(narrow.actors) > 1 and all(actor.gone for actor in narrow.actors), "also those that wait for room"


@pytest.mark.parametrize("after", range(1, 10))
def test_a_machine_that_goes_keeps_no_job_waiting(after: int) -> None:
    """The actor that would take its place finds does not fit; its job goes to one that is there."""
    cluster, found = Cluster(3), {}
    for index, answer in pool(cluster, 3).answers(enumerate(range(10))):
        found[index] = answer
        if len(found) == after:
            cluster.lose()
    assert found == {number: 2 * number for number in range(10)}


def test_a_job_that_kills_three_workers_is_lost_and_no_other() -> None:
    times: list[int] = []

    def dies(job: int) -> bool:
        times.append(job)
        return job == 4

    found = dict(pool(Cluster(2, dies), 2).answers(enumerate(range(8))))
    lost = found.pop(4)
    assert isinstance(lost, Lost) and "died 3 times (PlayedError)" in lost.reason and times.count(4) == 3
    assert found == {number: 2 * number for number in (0, 1, 2, 3, 5, 6, 7)}


def test_jobs_that_kill_their_workers_do_not_end_the_run_while_others_are_answered() -> None:
    found = dict(pool(Cluster(2, lambda job: job % 4 == 0), 2).answers(enumerate(range(96))))
    assert [index for index, answer in found.items() if isinstance(answer, Lost)] == list(range(0, 96, 4))


def test_deaths_without_end_and_a_cluster_without_room_are_told() -> None:
    with pytest.raises(LeaderError, match="die one after the other"):
        list(pool(Cluster(2, lambda job: True), 2).answers(enumerate(range(100))))
    ten = dict(pool(Cluster(2, lambda job: True), 2).answers(enumerate(range(10))))
    assert all(isinstance(answer, Lost) for answer in ten.values()), "a job that kills several counts once"
    with pytest.raises(LeaderError, match=r"600 seconds.*no free room"):
        list(pool(Cluster(0), 2).answers(enumerate(range(3))))
    cluster = Cluster(1)
    answers = pool(cluster, 1).answers(enumerate(range(3)))
    assert next(answers) == (0, 0)
    cluster.lose()
    with pytest.raises(LeaderError, match="no free room"):
        list(answers)


@pytest.fixture
def joined(monkeypatch: pytest.MonkeyPatch) -> Any:
    """An engine's way to a played cluster of 5 cores and 2 GPUs; keeps what its actors ask for."""
    cluster: Any = Cluster(8)
    cluster.is_initialized = lambda: True
    cluster.cluster_resources = lambda: {"CPU": 5.0, "GPU": 2.0}
    cluster.asked = {}
    place = cluster.remote
    cluster.remote = lambda *words: SimpleNamespace(options=asking) if words == (_Actor,) else place(*words)

    def asking(**words: Any) -> Any:
        cluster.asked = words
        return cluster

    monkeypatch.setattr(module, "_ray", lambda: cluster)
    return cluster


@pytest.mark.parametrize(
    ("threads", "gpus", "workers", "count"),
    [(1, 0.0, None, 5), (2, 0.0, None, 2), (1, 1.0, None, 2), (1, 0.5, None, 4), (1, 0.0, 7, 7), (1, 0.0, 0, 1)],
)
def test_as_many_actors_as_there_is_room_for(
    joined: Any, monkeypatch: pytest.MonkeyPatch, threads: int, gpus: float, workers: int | None, count: int
) -> None:
    told: list[int] = []
    monkeypatch.setattr("torch.set_num_threads", told.append)
    assert len(list(RayEngine(workers, threads, None, gpus).each(double, range(20)))) == 20
    assert len(joined.actors) == count and all(actor.gone for actor in joined.actors), "leaving ends the workers"
    assert joined.asked == {"num_cpus": threads, "num_gpus": gpus, "max_restarts": 0} and told == [threads] * count
    few = RayEngine(workers, threads, None, gpus)
    joined.actors.clear()
    assert sorted(few.map(double, [1])) == [(0, 2)] and len(joined.actors) == 1, "no more actors than jobs"


def test_what_a_job_raises_and_a_cluster_without_room_end_the_run(joined: Any) -> None:
    with pytest.raises(LeaderError, match="99 is too many"):
        list(RayEngine(2).map(double, [1, 99, 2]))
    assert all(actor.gone for actor in joined.actors)
    with pytest.raises(LeaderError, match="does not fit"):
        list(RayEngine(None, 8).each(double, [1]))


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1", "127.0.0.1:123456", "[::1]:1"])
def test_an_address_where_nobody_answers_is_told_at_once(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    def init(**words: Any) -> None:
        raise AssertionError("Ray would try for many minutes")

    monkeypatch.setattr(module, "_ray", lambda: SimpleNamespace(is_initialized=lambda: False, init=init))
    with pytest.raises(LeaderError, match="no Ray cluster at"):
        list(RayEngine(1, address=address).each(double, [1]))


def test_a_cluster_is_joined_once_and_left_where_it_was_joined(joined: Any) -> None:
    """At an address that answers, in brackets too; on this machine without a dashboard."""
    calls: list[dict[str, Any]] = []
    joined.is_initialized, joined.shutdown = (lambda: bool(calls)), calls.clear
    joined.init = lambda **words: calls.append(words)
    family = socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET
    with socket.create_server(("::1" if family == socket.AF_INET6 else "127.0.0.1", 0), family=family) as server:
        host = "[::1]" if family == socket.AF_INET6 else "127.0.0.1"
        address = f"{host}:{server.getsockname()[1]}"
        engine = RayEngine(1, address=address)
        assert [list(engine.map(double, [3])) for _ in range(2)] == [[(0, 6)]] * 2
        assert calls == [{"address": address, "log_to_driver": False, "logging_level": "ERROR"}], "none of its own options"
        engine.close()
        assert calls == [], "left"
        calls.append({"joined by": "somebody else"})
        engine.close()
        assert calls.pop(), "once"
        for error, says in ((ConnectionError("x"), "no Ray cluster"), (RuntimeError("another\nversion"), "another version")):
            joined.init = failing(error)
            with pytest.raises(LeaderError, match=says):
                list(engine.map(double, [1]))
    with pytest.raises(RuntimeError, match="another"):
        list(RayEngine(1).map(double, [1]))
    calls.append({"joined by": "somebody else"})
    RayEngine(1).close()
    assert len(calls) == 1, "a cluster that was joined elsewhere is not left"


def failing(error: Exception) -> Callable[..., None]:
    def fail(**words: Any) -> None:
        raise error

    return fail


class FrozenCluster(Cluster):
    """Plays a cluster whose first actor that gets job 4 is frozen: it neither answers nor dies. Waiting takes its time."""

    def __init__(self, rooms: int) -> None:
        super().__init__(rooms)
        self.frozen: PlayedActor | None = None
        self.clock = 0.0

    def wait(self, references: list[Call], num_returns: int, timeout: float | None) -> tuple[list[Call], list[Call]]:
        for reference in references:
            if self.frozen is None and list(reference.words) == [4]:
                self.frozen = reference.actor
        awake = [reference for reference in references if reference.actor is not self.frozen]
        self.clock += 2.0
        if not awake:
            assert timeout is not None, "it would wait for ever"
            self.clock += timeout
            return [], references
        return super().wait(awake, num_returns, timeout)


@pytest.mark.parametrize("count", [1, 3])
def test_an_actor_that_is_frozen_holds_nothing_up(count: int) -> None:
    cluster = FrozenCluster(count + 1)
    crew = _Pool(cluster, cluster, double, 1, count, Patience(lambda: cluster.clock))
    found = list(crew.answers(enumerate(range(9))))
    assert sorted(found) == [(number, 2 * number) for number in range(9)], "each once"
    assert cluster.frozen is not None and cluster.frozen.gone, "it is ended when another one has answered"


class SlowCluster(FrozenCluster):
    """Its frozen actor answers after all, once its job waits for another one, for which there is no room."""

    def wait(self, references: list[Call], num_returns: int, timeout: float | None) -> tuple[list[Call], list[Call]]:
        late = [reference for reference in references if reference.actor is self.frozen]
        if late and self.clock > 60:
            self.frozen = PlayedActor(double, 1)  # nobody: no other one freezes
            return late[:1], references
        return super().wait(references, num_returns, timeout)


def test_an_actor_that_was_merely_slow_answers_once() -> None:
    cluster = SlowCluster(1)
    crew = _Pool(cluster, cluster, double, 1, 1, Patience(lambda: cluster.clock))
    assert sorted(crew.answers(enumerate(range(9)))) == [(number, 2 * number) for number in range(9)]


class LateDeath(FrozenCluster):
    """Its frozen actor dies as soon as another one has the job too."""

    def wait(self, references: list[Call], num_returns: int, timeout: float | None) -> tuple[list[Call], list[Call]]:
        holders = [reference for reference in references if list(reference.words) == [4]]
        if self.frozen is not None and len(holders) > 1 and not self.frozen.gone:
            self.frozen.gone = True
            self.tried = len(holders)
            return [next(call for call in holders if call.actor is self.frozen)], references
        assert len(holders) < 2 or self.frozen is None or not self.frozen.gone, "a third one got it"
        return super().wait(references, num_returns, timeout)


def test_a_frozen_actor_that_dies_after_all_costs_no_further_try() -> None:
    cluster = LateDeath(4)
    crew = _Pool(cluster, cluster, double, 1, 3, Patience(lambda: cluster.clock))
    assert sorted(crew.answers(enumerate(range(9)))) == [(number, 2 * number) for number in range(9)]
    assert cluster.tried == 2


def test_a_job_is_overdue_after_many_times_the_longest_one() -> None:
    now = 0.0
    patience = Patience(lambda: now)
    assert not patience.is_overdue(-1e9) and patience.seconds_left([0.0]) is None, "nothing is known before the first answer"
    now = 30.0
    patience.finish(20.0)
    patience.finish(5.0)
    assert patience.seconds_left([20.0, 25.0]) == 110.0, "six times 20 seconds, from the earliest"
    now = 139.0
    assert not patience.is_overdue(20.0)
    now = 141.0
    assert patience.is_overdue(20.0) and patience.seconds_left([20.0]) == 0.0
    quick = Patience(lambda: now)
    quick.finish(0.5)
    assert not quick.is_overdue(now - 59) and quick.is_overdue(now - 61), "never within a minute"
    assert [patience.may_copy(7) for _ in range(3)] == [True, True, False] and patience.may_copy(8)
