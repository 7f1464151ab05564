from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from leader import Problem, Sampler, metrics
from leader.bench.cell import Cell, identity, measure, run_cell
from leader.bench.images import load_image
from leader.bench.priors import open_prior
from leader.operators.tasks import build_task
from tests.bench.tiny import photographs


@pytest.fixture
def cell(tmp_path: Path) -> Cell:
    image = photographs(tmp_path, 2) / "photo1.png"
    return Cell(
        row="DDNM",
        title="SR",
        image=image,
        index=1,
        fit="crop",
        size=64,
        prior="gaussian",
        task="sr",
        options={"factor": 4},
        sigma=0.05,
        method="ddnm",
        steps=5,
        timing=False,
    )


def test_names_do_not_determine_a_record_and_everything_else_does(cell: Cell) -> None:
    key = identity(cell)["key"]
    assert identity(replace(cell, row="another", title="name"))["key"] == key
    assert cell.image is not None
    changes: list[dict[str, Any]] = [
        {"image": cell.image.with_name("photo0.png")},
        {"index": 0},
        {"fit": "square"},
        {"size": 32},
        {"task": "denoise", "options": {}},
        {"options": {"factor": 2}},
        {"sigma": 0.06},
        {"method": "ddpg"},
        {"plugins": ("ucpm",)},
        {"plugins": ("ucpm",), "settings": {"ucpm": {"lam": 0.3}}},
        {"settings": {"eta": 0.5}},
        {"steps": 6},
        {"grid": "quadratic"},
        {"estimator": "fisher"},
        {"seed": 1},
        {"timing": True},
        {"memory": True},
        {"keep": ("trace",)},
    ]
    keys = [identity(replace(cell, **change))["key"] for change in changes]
    assert len({key, *keys}) == 1 + len(changes)


def test_defaults_and_the_same_settings_written_out_are_the_same_cell(cell: Cell) -> None:
    assert identity(replace(cell, settings={"eta": 0.85}))["cell"] == identity(cell)["cell"]


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
    assert torch.equal(first, measure(replace(cell, method="dps", steps=9), picture).y)
    assert not torch.equal(first, measure(replace(cell, index=0), picture).y)
    assert not torch.equal(first, measure(replace(cell, seed=1), picture).y)
    spread = (first - build_task("sr", (3, 64, 64), factor=4).A(2 * picture - 1)).std()
    assert abs(float(spread) - 0.1) < 4 * 0.1 / np.sqrt(2 * first.numel())


def test_a_request_that_cannot_be_served_is_recorded_as_such(cell: Cell) -> None:
    record = run_cell(replace(cell, prior="gaussian", image=None)).record
    assert "cannot" in record["error"] or "not run" in record["error"]
    assert "psnr" not in record


def test_kept_pictures_and_traces(cell: Cell) -> None:
    answer = run_cell(replace(cell, keep=("restored", "path", "trace"), plugins=("satp",)))
    assert set(answer.record["pictures"]) == {"restored", "path", "spread"}
    shapes = {}
    for kind, name in answer.record["pictures"].items():
        shapes[kind] = Image.open(io.BytesIO(answer.pictures[name])).size
    count = len(answer.record["frames"])
    assert shapes == {"restored": (64, 64), "path": (64 * count, 64), "spread": (64 * count, 64)}
    assert len(answer.record["trace"]) == answer.record["calls"]
    assert next(visit[0] for visit in answer.record["trace"]) == 800


def test_baselines_show_truth_and_measurement(cell: Cell) -> None:
    answer = run_cell(replace(cell, method="reference", keep=("restored",)))
    assert cell.image is not None and "psnr" not in answer.record  # infinite decibels are no number
    picture = np.array(Image.open(io.BytesIO(next(iter(answer.pictures.values())))))
    assert np.array_equal(picture, np.array(Image.open(cell.image))[8:72, 8:72])
    seen = run_cell(replace(cell, method="measurement")).record
    assert 5 < seen["psnr"] < 40 and "calls" not in seen


def test_half_size_then_crop(tmp_path: Path) -> None:
    pixels = np.zeros((100, 200, 3), np.uint8)
    pixels[:, 100:] = 255
    Image.fromarray(pixels).save(tmp_path / "a.png")
    picture = load_image(tmp_path / "a.png", "half", 32)
    assert picture.shape == (1, 3, 32, 32)
    assert float(picture[..., :12].max()) < 0.05 and float(picture[..., -12:].min()) > 0.95
