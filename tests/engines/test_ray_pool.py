"""The engine of a Ray cluster, beside a played one: what it asks for, how it joins and leaves, whose deaths it counts."""

import socket
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from leader.engines import Lost
from leader.engines import ray as module
from leader.engines.pool import WAIT_SECONDS
from leader.engines.ray import RayEngine, _Actor
from leader.errors import LeaderError


class NodeDiedError(Exception):
    """Stands for RayError."""


class PlayedActor:
    """An actor; a reference is the actor and its call. Job 7 kills it."""

    def __init__(self, function: Callable[[Any], Any], threads: int) -> None:
        self.real, self.gone = _Actor(function, threads), False
        self.is_started = SimpleNamespace(remote=lambda: (self, self.real.is_started, ()))
        self.do = SimpleNamespace(remote=lambda job: (self, self.real.do, (job,)))


class Cluster:
    """Plays Ray on 5 cores with 2 GPUs; keeps what its actors ask for."""

    exceptions = SimpleNamespace(RayError=NodeDiedError)
    put = staticmethod(lambda function: function)
    cluster_resources = staticmethod(lambda: {"CPU": 5.0, "GPU": 2.0})
    is_initialized: Any = staticmethod(lambda: True)

    def __init__(self) -> None:
        self.actors: list[PlayedActor] = []
        self.asked: dict[str, Any] = {}
        self.waited: list[float | None] = []

    def remote(self, kind: Any) -> Any:
        assert kind is _Actor
        return SimpleNamespace(options=self._ask)

    def _ask(self, **words: Any) -> Any:
        self.asked = words
        return SimpleNamespace(remote=self._place)

    def _place(self, *words: Any) -> PlayedActor:
        self.actors.append(PlayedActor(*words))
        return self.actors[-1]

    def wait(self, references: list[Any], num_returns: int, timeout: float | None) -> tuple[list[Any], list[Any]]:
        self.waited.append(timeout)
        return references[:num_returns], references[num_returns:]

    def get(self, reference: Any) -> Any:
        actor, call, words = reference
        if words == (7,):
            actor.gone = True
            raise NodeDiedError("gone")
        return call(*words)

    def kill(self, actor: PlayedActor) -> None:
        if actor.gone:
            raise ValueError("gone already")
        actor.gone = True


def double(job: int) -> int:
    if job == 99:
        raise LeaderError("99 is too many")
    return 2 * job


@pytest.fixture
def joined(monkeypatch: pytest.MonkeyPatch) -> Any:
    cluster = Cluster()
    monkeypatch.setattr(module, "_ray", lambda: cluster)
    return cluster


def test_a_job_that_kills_three_actors_is_lost_and_no_other(joined: Cluster) -> None:
    found = dict(RayEngine(1).each(double, range(10)))
    assert found.pop(7) == Lost("its worker on the cluster died (NodeDiedError)") and len(joined.actors) == 4
    assert found == {number: 2 * number for number in range(10) if number != 7}


@pytest.mark.parametrize(
    ("threads", "gpus", "workers", "count"),
    [(1, 0.0, None, 5), (2, 0.0, None, 2), (1, 1.0, None, 2), (1, 0.5, None, 4), (1, 0.0, 7, 7), (1, 0.0, 0, 1)],
)
def test_as_many_actors_as_there_is_room_for(
    joined: Any, monkeypatch: pytest.MonkeyPatch, threads: int, gpus: float, workers: int | None, count: int
) -> None:
    told: list[int] = []
    monkeypatch.setattr("torch.set_num_threads", told.append)
    assert len(list(RayEngine(workers, threads, None, gpus).each(double, range(10, 30)))) == 20
    assert len(joined.actors) == count and all(actor.gone for actor in joined.actors), "leaving ends the workers"
    assert joined.waited[0] == WAIT_SECONDS, "for the first one that starts"
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
        address = f"ray://{host}:{server.getsockname()[1]}"
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
