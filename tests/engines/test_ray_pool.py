"""The pool of actors against a cluster that is played: rooms that vanish, workers that die, one that never comes."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from leader.engines import Lost
from leader.engines import ray as module
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


def test_actors_that_found_no_room_are_ended_too() -> None:
    cluster = Cluster(1)
    crew = pool(cluster, 3)
    assert len(dict(crew.answers(enumerate(range(5))))) == 5 and len(cluster.actors) == 3
    crew.end()
    assert all(actor.gone for actor in cluster.actors)


def test_no_more_actors_than_jobs() -> None:
    cluster = Cluster(8)
    assert dict(pool(cluster, 8).answers(iter([(0, 1), (1, 2)]))) == {0: 2, 1: 4} and len(cluster.actors) == 2


@pytest.mark.parametrize("after", range(1, 10))
def test_a_machine_that_goes_keeps_no_job_waiting(after: int) -> None:
    """The actor that would take its place finds no room; its job goes to one that is there."""
    cluster, found = Cluster(3), {}
    for index, answer in pool(cluster, 3).answers(enumerate(range(10))):
        found[index] = answer
        if len(found) == after:
            cluster.lose()
    assert found == {number: 2 * number for number in range(10)}


def test_a_machine_that_comes_back_is_used() -> None:
    cluster, found = Cluster(1), {}
    for index, answer in pool(cluster, 2).answers(enumerate(range(10))):
        found[index] = answer
        cluster.rooms = 2
    assert len(found) == 10 and cluster.most_at_once == 2


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
    with pytest.raises(LeaderError, match=r"600 seconds.*no free room"):
        list(pool(Cluster(0), 2).answers(enumerate(range(3))))
    cluster = Cluster(1)
    answers = pool(cluster, 1).answers(enumerate(range(3)))
    assert next(answers) == (0, 0)
    cluster.lose()
    with pytest.raises(LeaderError, match="no free room"):
        list(answers)


def test_what_a_job_raises_ends_the_iteration(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(2)
    cluster.is_initialized = lambda: True  # type: ignore[attr-defined]
    cluster.cluster_resources = lambda: {"CPU": 5.0, "GPU": 2.0}  # type: ignore[attr-defined]
    monkeypatch.setattr(module, "_ray", lambda: cluster)
    monkeypatch.setattr(RayEngine, "_actor_class", lambda self, ray: cluster)
    with pytest.raises(LeaderError, match="99 is too many"):
        list(RayEngine(2).map(double, [1, 99, 2]))
    assert all(actor.gone for actor in cluster.actors), "leaving ends the workers"
    assert sorted(RayEngine(2).map(double, [1, 2])) == [(0, 2), (1, 4)]


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1", "127.0.0.1:123456", "[::1]:1"])
def test_an_address_where_nobody_answers_is_told_at_once(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    def init(**words: Any) -> None:
        raise AssertionError("Ray would try for many minutes")

    monkeypatch.setattr(module, "_ray", lambda: SimpleNamespace(is_initialized=lambda: False, init=init))
    with pytest.raises(LeaderError, match="no Ray cluster at"):
        list(RayEngine(1, address=address).each(double, [1]))


def test_other_addresses_are_left_to_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def init(address: str, **words: Any) -> None:
        asked.append(address)
        raise ConnectionError("nobody")

    monkeypatch.setattr(module, "_ray", lambda: SimpleNamespace(is_initialized=lambda: False, init=init))
    with socket.create_server(("127.0.0.1", 0)) as server:
        there = f"127.0.0.1:{server.getsockname()[1]}"
        for address in ("auto", there):
            with pytest.raises(LeaderError, match=f"no Ray cluster at '{address}'"):
                list(RayEngine(1, address=address).each(double, [1]))
    assert asked == ["auto", there]


@pytest.mark.parametrize(
    ("threads", "gpus", "workers", "count"),
    [(1, 0.0, None, 5), (2, 0.0, None, 2), (1, 1.0, None, 2), (1, 0.5, None, 4), (1, 0.0, 7, 7), (1, 0.0, 0, 1)],
)
def test_as_many_actors_as_there_is_room_for(threads: int, gpus: float, workers: int | None, count: int) -> None:
    there = SimpleNamespace(cluster_resources=lambda: {"CPU": 5.0, "GPU": 2.0})
    assert RayEngine(workers, threads, None, gpus)._count(there) == count


def test_no_room_at_all_is_told_and_gpus_are_asked_for() -> None:
    there = SimpleNamespace(cluster_resources=lambda: {"CPU": 5.0})
    with pytest.raises(LeaderError, match="5 cores and 0 GPUs"):
        RayEngine(None, 1, None, 1.0)._count(there)
    with pytest.raises(LeaderError, match="8 threads"):
        RayEngine(None, 8)._count(there)
    asked: dict[str, Any] = {}
    made = SimpleNamespace(remote=lambda kind: SimpleNamespace(options=lambda **words: asked.update(words)))
    RayEngine(None, 3, None, 0.5)._actor_class(made)
    assert asked == {"num_cpus": 3, "num_gpus": 0.5, "max_restarts": 0}
