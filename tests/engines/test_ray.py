"""A real Ray cluster of three nodes on this machine, one of which is killed while it works."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from leader.engines import LocalEngine, Lost
from leader.errors import LeaderError
from leader.folders.choices import FolderChoices
from leader.folders.run import FolderOutcome, Watcher, run_folder
from leader.restoration.request import RestoreRequest
from tests.folders.conftest import results, save_picture

ray = pytest.importorskip("ray")
pytestmark = pytest.mark.slow

CHOICES = FolderChoices(RestoreRequest("denoise", 0.05, quality="draft", seed=5))


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A head without room for work, and three nodes with room for one worker each."""
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("RAY_worker_niceness", "0")  # a busy machine would hardly let them start
    monkeypatch.setenv("RAY_memory_monitor_refresh_ms", "0")  # what else fills the memory here is not under test
    monkeypatch.setenv("RAY_raylet_start_wait_time_s", "300")
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "object_store_memory": 80 << 20})
    made.workers = [made.add_node(num_cpus=1, object_store_memory=80 << 20) for _ in range(3)]
    made.wait_for_nodes(timeout=300)
    ray.init(address=made.address, log_to_driver=False)
    yield made
    ray.shutdown()
    made.shutdown()


def engine() -> Any:
    from leader.engines.ray import RayEngine

    return RayEngine(threads=1)


def placed(job: tuple[str, int]) -> tuple[int, str]:
    """The number and the node; 7 kills its process, the first time or always (-7)."""
    folder, number = job
    seen = Path(folder) / str(number)
    if number == -7 or (number == 7 and not seen.exists()):
        seen.touch()
        os._exit(1)
    if number == 99:
        raise LeaderError("99 is too many")
    time.sleep(0.2)
    return number, ray.get_runtime_context().get_node_id()


def test_jobs_survive_their_workers_and_their_node(cluster: Any, tmp_path: Path) -> None:
    """Jobs come until every node has answered once, however slowly one of them starts, and a few after one was killed."""
    taken: list[int] = []
    answers: dict[int, Any] = {}
    nodes: set[str] = set()

    def jobs() -> Iterator[tuple[str, int]]:
        after = 0
        while after < 12:
            after += len(cluster.workers) < 3
            number = 100 + len(taken) if len(taken) != 7 else 7
            taken.append(number)
            yield str(tmp_path), number
        taken.append(-7)
        yield str(tmp_path), -7

    for index, answer in engine().each(placed, jobs()):
        if not answers:
            assert len(taken) <= 4, "jobs wait until a worker is free"
        assert index not in answers
        answers[index] = answer
        if not isinstance(answer, Lost):
            nodes.add(answer[1])
        if len(nodes) == 3 and len(cluster.workers) == 3:
            cluster.remove_node(cluster.workers.pop(), allow_graceful=False)
    assert sorted(answers) == list(range(len(taken))) and len(cluster.workers) == 2
    last = answers.pop(len(taken) - 1)
    assert [answers[index][0] for index in range(len(answers))] == taken[:-1] and 7 in taken
    assert isinstance(last, Lost) and "died 3 times" in last.reason
    with pytest.raises(LeaderError, match="99 is too many"):
        list(engine().map(placed, [(str(tmp_path), 99)]))
    with pytest.raises(LeaderError, match="could not be finished"):
        list(engine().map(placed, [(str(tmp_path), -7)]))


def test_a_folder_arrives_though_a_node_dies_and_equals_the_local_run(cluster: Any, tmp_path: Path) -> None:
    source = tmp_path / "in"
    (source / "sub").mkdir(parents=True)
    for number in range(12):
        save_picture(source / ("sub" if number % 2 else "") / f"{number}.png", 24 + number)
    killed: list[str] = []

    def kill_one(name: str, error: str | None) -> None:
        if not killed and name:
            killed.append(name)
            cluster.remove_node(cluster.workers[0], allow_graceful=False)

    outcome: FolderOutcome = run_folder(
        str(source), str(tmp_path / "ray"), CHOICES, engine(), maps=".npy", watcher=Watcher(finished=kill_one)
    )
    assert killed and outcome.restored == 12 and outcome.failed == []
    run_folder(str(source), str(tmp_path / "here"), CHOICES, LocalEngine(1), maps=".npy")
    assert results(tmp_path / "ray") == results(tmp_path / "here")
