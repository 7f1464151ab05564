"""A real Ray cluster of three nodes on this machine, one of which is killed while it works."""

import os
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


def die(job: tuple[str, int]) -> int:
    """7 kills its process, the first time or always (-7)."""
    folder, number = job
    seen = Path(folder) / str(number)
    if number == -7 or (number == 7 and not seen.exists()):
        seen.touch()
        os._exit(1)
    if number == 99:
        raise LeaderError("99 is too many")
    return number


def test_jobs_survive_their_workers(cluster: Any, tmp_path: Path) -> None:
    answers = dict(engine().each(die, [(str(tmp_path), number) for number in (1, 2, 7, -7, 3, 4)]))
    assert isinstance(answers.pop(3), Lost) and answers == {0: 1, 1: 2, 2: 7, 4: 3, 5: 4}
    with pytest.raises(LeaderError, match="99 is too many"):
        list(engine().map(die, [(str(tmp_path), 99)]))


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
