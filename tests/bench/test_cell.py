from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from leader import Problem, Sampler, metrics
from leader.bench.cell import Cell, Frozen, Recipe
from leader.bench.identity import identity
from leader.bench.images import load_image
from leader.bench.memory import memory_now, memory_peak
from leader.bench.priors import open_prior
from leader.bench.records import canonical, digest
from leader.bench.running import measure, run_cell
from leader.operators.tasks import build_task
from tests.bench.tiny import photographs


@pytest.fixture
def cell(tmp_path: Path) -> Cell:
    image = photographs(tmp_path, 2) / "photo1.png"
    recipe = Recipe(
        fit="crop",
        size=64,
        prior="gaussian",
        task="sr",
        options=Frozen({"factor": 4}),
        sigma=0.05,
        method="ddnm",
        steps=5,
        timing=False,
    )
    return Cell("DDNM", "SR", image, 1, recipe)


def test_a_frozen_mapping_is_a_key_that_tells_types_apart() -> None:
    one, same = Frozen({"b": [1, {"c": 2}], "a": 1.0}), Frozen({"a": 1.0, "b": [1, {"c": 2}]})
    assert one == same and hash(one) == hash(same) and one == {"a": 1.0, "b": [1, {"c": 2}]}
    assert one.plain() == {"a": 1.0, "b": [1, {"c": 2}]} and canonical(one.plain()) == canonical(same.plain())
    others: list[dict[str, Any]] = [{"a": 1}, {"a": 1.0}, {"a": True}, {"a": "1"}, {"a": [1]}, {"a": {"b": 1}}, {}]
    assert len({Frozen(item) for item in others}) == len(others)


def test_recipes_are_equal_where_images_differ_and_options_follow_the_image(cell: Cell) -> None:
    motion = cell.altered(task="deblur-motion", options=Frozen({"seed": "image"}))
    other = replace(motion, index=0, row="x")
    assert motion.recipe == other.recipe and hash(motion.recipe) == hash(other.recipe)
    assert (motion.options.plain(), other.options.plain()) == ({"seed": 1}, {"seed": 0})


def test_the_identity_is_what_the_committed_records_say() -> None:
    """The digest of "what" names a cell across versions of the code: records are found by it."""
    records = Path(__file__).parents[2] / "experiments" / "records" / "table1-small.jsonl"
    with records.open() as file:
        record = json.loads(file.readline())
    assert digest(record["what"]) == record["cell"] and digest([record["what"], record["code"]]) == record["key"]


def test_names_do_not_determine_a_record_and_everything_else_does(cell: Cell) -> None:
    key = identity(cell)["key"]
    assert identity(replace(cell, row="another", title="name"))["key"] == key
    assert cell.image is not None
    changes: list[dict[str, Any]] = [
        {"fit": "square"},
        {"size": 32},
        {"task": "denoise", "options": Frozen()},
        {"options": Frozen({"factor": 2})},
        {"sigma": 0.06},
        {"method": "ddpg"},
        {"plugins": ("ucpm",)},
        {"plugins": ("ucpm",), "settings": Frozen({"ucpm": {"lam": 0.3}})},
        {"settings": Frozen({"eta": 0.5})},
        {"steps": 6},
        {"grid": "quadratic"},
        {"estimator": "noise-energy"},
        {"seed": 1},
        {"timing": True},
        {"memory": True},
        {"keep": ("trace",)},
    ]
    cells = [cell.altered(**change) for change in changes]
    cells += [replace(cell, image=cell.image.with_name("photo0.png")), replace(cell, index=0)]
    assert len({key, *(identity(item)["key"] for item in cells)}) == 1 + len(cells)


def test_defaults_and_the_same_settings_written_out_are_the_same_cell(cell: Cell) -> None:
    assert identity(cell.altered(settings=Frozen({"eta": 0.85})))["cell"] == identity(cell)["cell"]


def test_the_record_holds_what_a_direct_run_gives(cell: Cell) -> None:
    assert cell.image is not None
    truth = load_image(cell.image, "crop", 64)
    operator = build_task("sr", (3, 64, 64), factor=4)
    y = measure(cell, truth).y
    problem = Problem.internal(y, operator, 0.1)
    sampler = Sampler(open_prior("gaussian", 64), "ddnm", (), 5, estimator=None)
    restored = ((sampler.run(problem, 0, ids=[1]).images + 1) / 2).clamp(0, 1)
    record = run_cell(cell).record
    assert record["psnr"] == round(float(metrics.psnr(restored, truth)), 6)
    assert record["lpips"] == round(float(metrics.lpips(restored, truth)), 6)
    assert (record["calls"], record["jvps"], record["backwards"], record["work"]) == (5, 0, 0, 5.0)
    assert "seconds" not in record


def test_all_methods_see_the_same_measurement_and_images_see_their_own(cell: Cell) -> None:
    assert cell.image is not None
    picture = load_image(cell.image, "crop", 64)
    first = measure(cell, picture).y
    assert torch.equal(first, measure(cell.altered(method="dps", steps=9), picture).y)
    assert not torch.equal(first, measure(replace(cell, index=0), picture).y)
    assert not torch.equal(first, measure(cell.altered(seed=1), picture).y)
    spread = (first - build_task("sr", (3, 64, 64), factor=4).A(2 * picture - 1)).std()
    assert abs(float(spread) - 0.1) < 4 * 0.1 / np.sqrt(2 * first.numel())


def test_a_request_that_cannot_be_served_is_recorded_as_such(cell: Cell) -> None:
    record = run_cell(replace(cell, image=None)).record
    assert "cannot" in record["error"] or "not run" in record["error"]
    assert "psnr" not in record


def test_kept_pictures_and_traces(cell: Cell) -> None:
    answer = run_cell(cell.altered(keep=("restored", "path", "trace"), plugins=("satp",)))
    assert set(answer.record["pictures"]) == {"restored", "path", "spread"}
    shapes = {}
    for kind, name in answer.record["pictures"].items():
        shapes[kind] = Image.open(io.BytesIO(answer.pictures[name])).size
    count = len(answer.record["frames"])
    assert shapes == {"restored": (64, 64), "path": (64 * count, 64), "spread": (64 * count, 64)}
    assert len(answer.record["trace"]) == answer.record["calls"]
    assert next(visit[0] for visit in answer.record["trace"]) == 800


def test_baselines_show_truth_and_measurement(cell: Cell) -> None:
    answer = run_cell(cell.altered(method="reference", keep=("restored",)))
    assert cell.image is not None and "psnr" not in answer.record  # infinite decibels are no number
    picture = np.array(Image.open(io.BytesIO(next(iter(answer.pictures.values())))))
    assert np.array_equal(picture, np.array(Image.open(cell.image))[8:72, 8:72])
    seen = run_cell(cell.altered(method="measurement")).record
    assert 5 < seen["psnr"] < 40 and "calls" not in seen


def test_residuals_are_those_of_unit_pictures_before_and_after_clamping(cell: Cell) -> None:
    assert cell.image is not None
    truth = load_image(cell.image, "crop", 64)
    problem = measure(cell, truth)
    restored = Sampler(open_prior("gaussian", 64), "ddnm", (), 5, estimator=None).run(problem, 0, ids=[1]).images
    operator = build_task("sr", (3, 64, 64), factor=4)
    y = ((problem.y + operator.A(torch.ones(1, 3, 64, 64))) / 2).double().numpy()
    record = run_cell(cell).record
    for name, picture in (("residual", ((restored + 1) / 2).clamp(0, 1)), ("residual_raw", (restored + 1) / 2)):
        expected = np.sqrt(np.mean((y - operator.A(picture).double().numpy()) ** 2))
        assert record[name] == pytest.approx(expected, abs=2e-6)
    assert record["residual"] != record["residual_raw"]


def test_calls_and_backward_passes_are_counted_apart(cell: Cell) -> None:
    record = run_cell(cell.altered(method="dps", steps=7)).record
    assert (record["calls"], record["backwards"], record["jvps"], record["work"]) == (7, 7, 0, 7.0)


def test_seconds_are_seconds_and_memory_is_in_megabytes(cell: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter([100.0, 102.5])
    monkeypatch.setattr("leader.bench.running.time.perf_counter", lambda: next(ticks))
    monkeypatch.setattr("leader.bench.running.memory_now", lambda device: 30.0)
    monkeypatch.setattr("leader.bench.running.memory_peak", lambda device: 42.125)
    record = run_cell(cell.altered(timing=True, memory=True)).record
    assert (record["seconds"], record["peak_mb"], record["run_mb"]) == (2.5, 42.12, 12.12)


def test_memory_is_read_in_megabytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = tmp_path / "status"
    report.write_text("Name:\tpython\nVmHWM:\t   2048 kB\nVmRSS:\t   1536 kB\n")
    monkeypatch.setattr("leader.bench.memory.STATUS", report)
    assert (memory_now(), memory_peak()) == (1.5, 2.0)
    monkeypatch.undo()
    assert memory_peak() >= memory_now() > 50  # this process has imported torch
