"""A worker with a GPU is given several pictures at a time; each has a line, a fault and a result of its own."""

import time
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from leader.engines import LocalEngine, Lost
from leader.folders import run as run_module
from leader.folders.choices import FolderChoices
from leader.folders.places import FoundFile
from leader.priors import loading
from leader.restoration.request import RestoreRequest
from tests.cheap_prior import CheapPrior
from tests.folders.conftest import choose, go, lines, results, save_picture
from tests.restoration.test_together import WidePrior


@pytest.fixture
def wide(monkeypatch: pytest.MonkeyPatch) -> list[WidePrior]:
    made: list[WidePrior] = []

    def load(name: Any, **options: Any) -> CheapPrior:
        made.append(WidePrior())
        return made[-1]

    monkeypatch.setattr(loading, "load_prior", load)
    return made


def test_pictures_that_share_a_pass_become_what_they_become_alone(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wide: list[WidePrior]
) -> None:
    for name in ("d.png", "sub/e.png"):
        save_picture(tree / name)  # of the size of a.png
    (tree / "bad.png").write_text("no picture")
    go(tree, tmp_path / "alone", maps=".npy")
    assert max(wide[0].sizes) == 1
    monkeypatch.setattr(FolderChoices, "together", property(lambda self: 4))
    begin = time.perf_counter()
    outcome = go(tree, tmp_path / "together", maps=".npy", workers=LocalEngine(2))
    took = time.perf_counter() - begin
    kept = [line for line in lines(tmp_path / "together") if "run" in line]
    assert {line["threads"] for line in kept} == {2} and sum(line["seconds"] for line in kept) <= took
    assert outcome.restored == 5 and [name for name, _ in outcome.failed] == ["bad.png"]
    assert max(wide[0].sizes) == 2, "a.png and d.png have one size"
    alone, some = results(tmp_path / "alone"), results(tmp_path / "together")
    assert {name: data for name, data in some.items() if name.endswith(".png")} == {
        name: data for name, data in alone.items() if name.endswith(".png")
    }
    assert set(some) == set(alone)
    assert go(tree, tmp_path / "together", maps=".npy").found == 5


def test_a_job_of_several_whose_worker_dies_is_tried_one_by_one(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Dying(LocalEngine):
        def each(self, function: Any, jobs: Any) -> Any:
            for index, job in enumerate(jobs):
                yield index, Lost("its worker process was killed") if {"b.png", "e.png"} & set(job) else function(job)

    monkeypatch.setattr(FolderChoices, "together", property(lambda self: 2))
    for name in ("d.png", "e.png"):
        save_picture(tree / name)
    outcome = go(tree, tmp_path / "out", workers=Dying(1))
    assert [name for name, _ in outcome.failed] == ["b.png", "e.png"] and "killed" in outcome.failed[0][1]
    assert sorted(results(tmp_path / "out")) == ["a.png", "d.png", "sub/c.png"] and outcome.restored == 3


@pytest.mark.parametrize(
    ("quarters", "count", "jobs"),
    [([1, 1, 3, 1, 1], 3, [2, 2, 1]), ([0, 0, 0, 0, 0], 2, [2, 2, 1]), ([9, 1, 9], 16, [1, 1, 1]), ([], 4, [])],
)
def test_jobs_are_small_in_number_and_in_bytes(quarters: list[int], count: int, jobs: list[int]) -> None:
    unit = run_module.MOST_JOB_BYTES // 4
    work = [run_module._Work(FoundFile(f"{n}.png", unit * size), False) for n, size in enumerate(quarters)]
    made = run_module.share_out(work, count)
    assert [len(job) for job in made] == jobs and [item for job in made for item in job] == work


def test_several_at_a_time_only_where_a_gpu_was_asked_for() -> None:
    assert choose().together == 1 and not choose({"device": "cpu"}).on_gpu
    for device in ("cuda", "cuda:1", "mps"):
        assert choose({"device": device}).on_gpu and choose({"device": device}).together == 16


def test_the_digest_changes_with_every_choice_that_changes_pictures(tmp_path: Path) -> None:
    plain = choose().digest
    assert choose({"average": None, "settings": {}, "threads": 3}).digest == plain, "left out, or roundings at most"
    order = [choose({"options": dict(items)}).digest for items in ([("a", 1), ("b", 2)], [("b", 2), ("a", 1)])]
    assert order[0] == order[1] != plain, "the order of words is none of them"
    words = [item.name for item in fields(RestoreRequest) if item.name not in ("threads", "budget")]
    tables: list[Any] = [
        np.eye(2, 3),
        np.eye(2, 3).reshape(3, 2),
        np.ones((2, 3), np.uint8),
        np.ones((2, 3), bool),
        np.zeros((2, 3), bool),
    ]
    last = np.eye(2, 3)
    last[1, 2] = 0.5
    given: dict[str, Any] = {"settings": {"b": 1}, "options": {"b": 1}, "plugins": ("satp",), "jpeg": False, "clipped": False}
    others = [choose({name: given.get(name, 0.75)}) for name in words]
    others += [
        choose({"plugins": ("satp",), "budget": 0.75}),
        choose(check=False),
        choose(keep_failed=False),
        choose(location=True),
    ]
    others += [choose(run={"seed": seed}) for seed in (1, 2)] + [choose({"mask": table}) for table in (*tables, last)]
    assert len({plain, *(other.digest for other in others)}) == len(words) + 13
    kept = []
    for folder, content in (("a", b"weights"), ("b", b"weights"), ("b", b"other weights")):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "prior.bin").write_bytes(content)
        kept.append(choose({"prior": str(tmp_path / folder / "prior.bin")}).digest)
    assert kept[0] == kept[1] != kept[2], "the weights count, not where they are"
