"""Records: what determines them besides their names, what a run of them counts, and in which units and digits."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from leader.bench import cost, identity, running, scoring
from leader.bench.cell import Cell, Frozen, Recipe
from leader.bench.setup import operator_of, plan_of
from leader.operators import Denoising, LinearOperator
from leader.priors.ledger import Counts, Ledger
from leader.problem import Problem
from leader.result import Result
from leader.schedule import Grid
from tests.bench.test_cell import cell
from tests.bench.tiny import photographs

__all__ = ["cell"]


def keys(*cells: Cell) -> set[str]:
    return {identity.identity(item)["key"] for item in cells}


def test_a_picture_is_known_by_its_content(cell: Cell, tmp_path: Path) -> None:
    assert cell.image is not None
    same = tmp_path / "elsewhere" / "photo1.png"
    same.parent.mkdir()
    same.write_bytes(cell.image.read_bytes())
    other = tmp_path / "other" / "photo1.png"
    photographs(other.parent, 2, side=96)
    assert len(keys(cell, replace(cell, image=same))) == 1 and len(keys(cell, replace(cell, image=other))) == 2


def test_a_kernel_that_follows_the_image_is_part_of_its_record(cell: Cell) -> None:
    motion = cell.altered(task="deblur-motion", options=Frozen({"seed": "image"}))
    assert identity.identity(motion)["what"]["options"] == {"seed": 1}
    assert identity.identity(replace(motion, index=0))["what"]["options"] == {"seed": 0}


def test_probes_and_weights_are_part_of_a_record(cell: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    hutchinson = cell.altered(estimator="hutchinson", plugins=("ucpm",))
    assert len(keys(hutchinson, hutchinson.altered(settings=Frozen({"probes": 2})))) == 2
    before = keys(cell)
    identity._choices.cache_clear()
    monkeypatch.setattr(identity, "fingerprint", lambda prior: f"other weights of {prior}")
    try:
        assert keys(cell) != before
    finally:
        identity._choices.cache_clear()


def test_the_counts_of_a_record_are_those_of_the_ledger() -> None:
    result = Result(torch.zeros(1), None, None, {}, Ledger({0: Counts(3, 5, 7, 2048.0)}), 0)
    assert scoring.counts(result, 32) == {"calls": 3, "jvps": 5, "backwards": 7, "work": 2.0}


def test_scores_have_six_digits() -> None:
    problem = Problem.internal(torch.zeros(1, 3, 32, 32), Denoising((3, 32, 32)), 0.1)
    found = scoring.scores(torch.full((1, 3, 32, 32), 0.0123456), torch.full((1, 3, 32, 32), 0.5), problem, ["psnr"])
    assert found["residual"] == found["residual_raw"] == pytest.approx(0.006173, abs=1e-9)
    assert found["psnr"] == pytest.approx(-20 * math.log10(0.0123456 / 2), abs=1e-4) and found["psnr"] != round(
        found["psnr"], 3
    )


def test_a_time_that_is_visited_twice_costs_twice(cell: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = replace(plan_of(cell.recipe)[0], grids=(Grid((9, 9, 5, 7, 0, -1)),))
    monkeypatch.setattr(cost, "plan_of", lambda _: (plan, SimpleNamespace(work=lambda t, height, width: height * width)))
    assert cost._cost(replace(cell.recipe, seed=54321)) == cost.Bill(4, 0, 4.0)


def test_a_run_is_that_of_its_seed_image_and_clock(cell: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    class Watched:
        def run(self, problem: Problem, seed: int, **options: Any) -> Result:
            seen.append((seed, options["ids"]))
            return Result(torch.zeros(1, 3, 64, 64), None, None, {1: []}, Ledger({1: Counts(1, 0, 0, 4096.0)}), seed)

    ticks = iter([10.0, 12.5])
    monkeypatch.setattr(running, "sampler_of", lambda recipe, prior: Watched())
    monkeypatch.setattr("leader.bench.running.time.perf_counter", lambda: next(ticks))
    memories = iter([100.0, 130.0])
    monkeypatch.setattr(running, "memory_now", lambda device: next(memories))
    monkeypatch.setattr(running, "memory_peak", lambda device: next(memories))
    record = running.run_cell(cell.altered(seed=6, timing=True, memory=True)).record
    assert seen == [(6, [1])] and record["seconds"] == 2.5
    assert (record["peak_mb"], record["run_mb"]) == (130.0, 30.0)
    asked: list[int] = []

    def operator(recipe: Recipe, index: int) -> LinearOperator:
        asked.append(index)
        return operator_of(recipe, index)

    monkeypatch.setattr(running, "operator_of", operator)
    running.measure(cell, torch.zeros(1, 3, 64, 64))
    assert asked == [1]
