"""The harness: what a run is said to cost against what it counts, kept pictures against their numbers, keys."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from leader.bench import cost
from leader.bench.cost import cost_of
from leader.bench.images import to_pixels
from leader.bench.panels import bar_groups
from leader.bench.records import Store, canonical, digest
from leader.bench.running import _path_pictures, run_cell
from leader.bench.setup import plan_of
from leader.methods import State
from leader.result import Step
from tests.bench.tiny import tiny


@pytest.mark.parametrize("method", ["ddnm", "dps", "projdiff", "sitcom"])
def test_the_cost_is_what_a_run_counts(tmp_path: Path, method: str) -> None:
    cell = tiny(tmp_path).cells()[0].altered(method=method, plugins=(), steps=3, estimator=None)
    if method == "sitcom":
        cell = cell.altered(settings=type(cell.recipe.settings)({"inner": 4}))
    bill, record = cost_of(cell), run_cell(cell).record
    assert (bill.calls, bill.backwards) == (record["calls"], record["backwards"])
    assert bill.passes == pytest.approx(record["work"] + 2 * record["backwards"])


def test_passes_follow_the_work_of_the_prior(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ProjDiff asks once more at the first time; a prior that is cheap while the noise is high."""
    recipe = tiny(tmp_path).cells()[0].altered(method="projdiff", plugins=(), steps=4).recipe
    plan = plan_of(recipe)[0]

    class Sloping:
        def work(self, t: int, height: int, width: int) -> float:
            return height * width * (1 - t / 1000)

    monkeypatch.setattr(cost, "plan_of", lambda _: (plan, Sloping()))
    times = [t for t in plan.grid.times if t >= 0]
    shares = [1 - t / 1000 for t in times]
    unseen = replace(recipe, seed=12345)  # costs are remembered by recipe
    assert cost._cost(unseen).passes == pytest.approx(sum(shares) + shares[0])


def test_a_bill_counts_backward_passes_twice(tmp_path: Path) -> None:
    host = tiny(tmp_path).cells()[0].altered(plugins=(), steps=5)
    plain, guided = cost_of(host.altered(method="ddim")), cost_of(host.altered(method="dps"))
    assert guided.calls == plain.calls and guided.backwards == plain.calls
    assert guided.passes == pytest.approx(3 * plain.passes)


def _step(value: float, sigma: float) -> Step:
    x = torch.full((1, 3, 4, 4), value)
    spread = torch.full((1, 3, 4, 4), sigma)
    time = torch.tensor([0])
    return Step((0,), 0, time, time, State(x), x, x, spread, spread.mean((1, 2, 3)), time)


def test_frames_and_spreads_of_a_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """x0_hat of [-1, 1] as grey levels, sqrt(Sigma) white at 0.5."""
    from leader.bench import running

    kept: list[Any] = []

    def png(pixels: Any) -> bytes:
        kept.append(pixels)
        return b""

    monkeypatch.setattr(running, "_png", png)
    _path_pictures([_step(-1.0, 0.0), _step(0.2, 0.01), _step(1.0, 0.25)])
    frames, spreads = (pixels[0, ::4, 0].tolist() for pixels in kept)
    assert frames == [0, 153, 255] and spreads == [0, 51, 255]


def test_kept_pictures_are_rounded() -> None:
    picture = torch.tensor([0.0, 0.4 / 255, 0.6 / 255, 254.6 / 255, 2.0, -1.0]).reshape(1, 1, 6)
    assert to_pixels(picture)[0, :, 0].tolist() == [0, 0, 1, 255, 255, 0]
    colours = torch.stack([torch.full((2, 2), c / 255) for c in (10.0, 20.0, 30.0)])
    assert to_pixels(colours)[0, 0].tolist() == [10, 20, 30]


def test_keys_do_not_depend_on_the_order_of_entries() -> None:
    one, other = {"b": 1, "a": {"d": 2.5, "c": [1, 2]}}, {"a": {"c": [1, 2], "d": 2.5}, "b": 1}
    assert canonical(one) == canonical(other) == '{"a":{"c":[1,2],"d":2.5},"b":1}'
    assert digest(one) == digest(other) != digest({**one, "b": 2})


def test_the_measurement_of_an_image_is_drawn_for_it(tmp_path: Path) -> None:
    from leader.bench.running import measure

    cells = [cell for cell in tiny(tmp_path).cells() if cell.title == "Motion" and cell.row == "DDNM"]
    white = torch.full((1, 3, 64, 64), 0.5)
    noise = [np.asarray(measure(cell.altered(options=type(cell.options)({"seed": 1})), white).y) for cell in cells[:2]]
    assert np.abs(noise[0] - noise[1]).max() > 0.05 and noise[0].std() == pytest.approx(0.1, rel=0.1)


def test_error_bars_end_where_the_interval_does(tmp_path: Path) -> None:
    from tests.bench.test_panels import experiment, panels

    made = experiment(tmp_path, 'methods = ["ddnm"]', 'kind = "bars"\nmetrics = ["psnr"]')
    skewed = [20.0, 20.1, 20.2, 20.1, 20.0, 29.0]
    records: dict[tuple[str, str, int, int], Any] = {
        ("DDNM", task, index, 0): {"psnr": value} for task in ("SR", "Motion") for index, value in enumerate(skewed)
    }
    bar = bar_groups(made, records)["psnr"][0]
    assert bar.low is not None and bar.high is not None and bar.high - bar.mean > 1.1 * (bar.mean - bar.low)
    (segment,) = panels(made, records, tmp_path)[0].collections[0].get_segments()
    assert segment[:, 1].tolist() == pytest.approx([bar.low, bar.high])


def test_frames_of_a_run_are_its_first_to_its_last_step_counted_from_one(tmp_path: Path) -> None:
    made = tiny(tmp_path).cells()[0]
    record = run_cell(made.altered(plugins=(), steps=20, keep=("path", "trace"))).record
    times = [visit[0] for visit in record["trace"]]
    assert len(times) == 20 and len(record["frames"]) == 8
    assert record["frames"][0] == times[0] and record["frames"][-1] == times[-1]
    assert record["frame_calls"][0] == 1 and record["frame_calls"][-1] == 20
    assert [times[call - 1] for call in record["frame_calls"]] == record["frames"]


def test_the_two_baselines_are_different_pictures() -> None:
    from leader import Problem, operators
    from leader.bench.running import _baseline

    picture = torch.rand(1, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    operator = operators.BicubicSR((3, 16, 16), 4)
    problem = Problem(operator.A(picture), operator, 0.0)
    inverse, shown = (_baseline(name, picture, problem) for name in ("pinv", "measurement"))
    assert torch.allclose(operator.A(inverse), problem.y, atol=1e-5)
    assert torch.equal(shown[..., ::4, ::4], problem.y) and torch.equal(shown[..., 3::4, 2::4], problem.y)
    assert torch.equal(_baseline("reference", picture, problem), 2 * picture - 1)


@pytest.mark.parametrize("order", [("new", "old"), ("old", "new")])
def test_a_record_replaces_others_of_its_cell_whichever_was_stored_last(tmp_path: Path, order: tuple[str, str]) -> None:
    store = Store(tmp_path, "trial")
    with store.writing():
        for key in order:
            store.append({"key": key, "cell": "same", "code": key, "what": {}})
        store.append({"key": "apart", "cell": "other", "code": "x", "what": {}})
        store.finish(["new"])
    assert list(Store(tmp_path, "trial").own) == ["new", "apart"]
