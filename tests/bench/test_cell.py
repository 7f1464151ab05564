import io
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from leader import Problem, Sampler, metrics, operators
from leader.bench.cell import Cell, Frozen, Recipe
from leader.bench.images import load_image, to_pixels
from leader.bench.measures import measure_memory
from leader.bench.priors import open_prior
from leader.bench.records import canonical
from leader.bench.running import _baseline, _path_pictures, run_cell
from leader.operators.tasks import build_task
from tests.bench.tiny import measure, photographs


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
    assert one == same and hash(one) == hash(same)
    assert one.plain() == {"a": 1.0, "b": [1, {"c": 2}]} and canonical(one.plain()) == canonical(same.plain())
    others: list[dict[str, Any]] = [{"a": 1}, {"a": 1.0}, {"a": True}, {"a": "1"}, {"a": [1]}, {"a": {"b": 1}}, {}]
    assert len({Frozen(item) for item in others}) == len(others)


def test_the_record_holds_what_a_direct_run_gives(cell: Cell) -> None:
    assert cell.image is not None
    truth = load_image(cell.image, "crop", 64)
    operator, problem = build_task("sr", (3, 64, 64), factor=4), measure(cell, truth)
    raw = (Sampler(open_prior("gaussian", 64), "ddnm", (), 5, estimator=None).run(problem, 0, ids=[1]).images + 1) / 2
    shown, record = raw.clamp(0, 1), run_cell(cell).record
    assert record["psnr"] == round(float(metrics.psnr(shown, truth)), 6)
    assert record["lpips"] == round(float(metrics.lpips(shown, truth)), 6)
    assert (record["calls"], record["jvps"], record["backwards"], record["work"]) == (5, 0, 0, 5.0)
    assert "seconds" not in record
    y = ((problem.y + operator.A(torch.ones(1, 3, 64, 64))) / 2).double().numpy()
    for name, picture in (("residual", shown), ("residual_raw", raw)):
        expected = np.sqrt(np.mean((y - operator.A(picture).double().numpy()) ** 2))
        assert record[name] == pytest.approx(expected, abs=2e-6), "of [0, 1] pictures, with and without clamping"
    assert record["residual"] != record["residual_raw"]


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
    """Frames are from the first to the last step, counted from one."""
    answer = run_cell(cell.altered(steps=20, keep=("restored", "path", "trace"), plugins=("satp",), estimator="auto"))
    record, shapes = answer.record, {}
    for kind, name in record["pictures"].items():
        shapes[kind] = Image.open(io.BytesIO(answer.pictures[name])).size
    count, times = len(record["frames"]), [visit[0] for visit in record["trace"]]
    assert shapes == {"restored": (64, 64), "path": (64 * count, 64), "spread": (64 * count, 64)}
    assert len(times) == record["calls"] > count == 8 and times[0] == 950
    assert (record["frame_calls"][0], record["frame_calls"][-1]) == (1, len(times))
    assert [times[call - 1] for call in record["frame_calls"]] == record["frames"]


def test_baselines_show_truth_and_measurement(cell: Cell) -> None:
    answer = run_cell(cell.altered(method="reference", keep=("restored",)))
    assert cell.image is not None and "psnr" not in answer.record  # infinite decibels are no number
    picture = np.array(Image.open(io.BytesIO(next(iter(answer.pictures.values())))))
    assert np.array_equal(picture, np.array(Image.open(cell.image))[8:72, 8:72])
    seen = run_cell(cell.altered(method="measurement")).record
    assert 5 < seen["psnr"] < 40 and "calls" not in seen


def test_memory_is_read_in_megabytes(cell: Cell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = tmp_path / "status"
    report.write_text("Name:\tpython\nVmHWM:\t   2048 kB\nVmRSS:\t   1536 kB\n")
    monkeypatch.setattr("leader.bench.measures.STATUS", report)
    assert (measure_memory(), measure_memory(peak=True)) == (1.5, 2.0)
    record = run_cell(cell.altered(memory=True)).record
    assert (record["peak_mb"], record["run_mb"]) == (2.0, 0.5)
    monkeypatch.undo()
    now = measure_memory()  # first: reading takes memory too
    assert measure_memory(peak=True) >= now > 50  # this process has imported torch


def test_the_two_baselines_are_different_pictures() -> None:
    picture = torch.rand(1, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    operator = operators.BicubicSR((3, 16, 16), 4)
    problem = Problem(operator.A(picture), operator, 0.0)
    inverse, shown = (_baseline(name, picture, problem) for name in ("pinv", "measurement"))
    assert torch.allclose(operator.A(inverse), problem.y, atol=1e-5)
    assert torch.equal(shown[..., ::4, ::4], problem.y) and torch.equal(shown[..., 3::4, 2::4], problem.y)
    assert torch.equal(_baseline("reference", picture, problem), 2 * picture - 1)


def test_kept_pictures_are_rounded() -> None:
    picture = torch.tensor([0.0, 0.4 / 255, 0.6 / 255, 254.6 / 255, 2.0, -1.0]).reshape(1, 1, 6)
    assert to_pixels(picture)[0, :, 0].tolist() == [0, 0, 1, 255, 255, 0]
    colours = torch.stack([torch.full((2, 2), c / 255) for c in (10.0, 20.0, 30.0)])
    assert to_pixels(colours)[0, 0].tolist() == [10, 20, 30]
    step: Any = SimpleNamespace(x0_hat=torch.zeros(1, 3, 2, 4), sigma=torch.full((1, 3, 2, 4), 0.04))
    spread = Image.open(io.BytesIO(_path_pictures([step])["spread"]))
    assert spread.size == (4, 2) and np.asarray(spread).min() == np.asarray(spread).max() == 102, "0.2 where 0.5 is white"
