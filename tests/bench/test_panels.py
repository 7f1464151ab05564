"""Figures by the data they draw: every panel against numbers computed another way."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from leader.bench.experiment import Experiment
from leader.bench.figures import make_figure
from leader.bench.panels import bar_groups, grid_shots, path_strips, sweep_curves, uncertainty_bands
from leader.bench.records import Record, Store, canonical
from tests.bench.tiny import TOML, tiny

Records = dict[tuple[str, str, int, int], Record]
HEAD, TAIL = TOML.split("[[rows]]", 1)[0], TOML.split("[form.small]", 1)[1]


def experiment(folder: Path, rows: str, figure: str, count: int = 6) -> Experiment:
    text = f"{HEAD}[[rows]]\n{rows}\n\n[figure]\n{figure}\n\n[form.small]{TAIL}"
    return tiny(folder, text.replace("count = 4", f"count = {count}"))


def value(*names: Any) -> float:
    """A number of its own for every name."""
    return float(np.random.default_rng(list(canonical(names).encode())).uniform(1, 9))


def numbered(made: Experiment, names: tuple[str, ...]) -> Records:
    places = itertools.product(
        [row.label for row in made.rows], [task.label for task in made.tasks], range(made.form.count), made.form.seeds
    )
    return {place: {name: value(*place, name) for name in names} for place in places}


def panels(made: Experiment, records: Records, folder: Path) -> list[Any]:
    return list(make_figure(made, records, Store(folder, made.name)).axes)


def test_sweeps_draw_means_against_steps_one_panel_a_number(tmp_path: Path) -> None:
    rows = 'methods = ["ddnm"]\nplugins = [[], ["satp"]]\nsteps = [50, 5, 20]'
    made = experiment(tmp_path, rows, 'kind = "sweep"\nmetrics = ["psnr", "lpips"]')
    records = numbered(made, ("psnr", "lpips", "calls"))
    curves = sweep_curves(made, records)
    assert list(curves) == ["psnr", "lpips"]
    for axis, (name, title) in zip(panels(made, records, tmp_path), (("psnr", "PSNR"), ("lpips", "LPIPS"))):
        assert axis.get_title() == title
        drawn = {line.get_label(): line for line in axis.get_lines()}
        assert list(drawn) == ["DDNM", "DDNM + SATP"]
        for label, line in drawn.items():
            means = [np.mean([value(f"{label}, T = {t}", "SR", i, 0, name) for i in range(6)]) for t in (5, 20, 50)]
            assert list(line.get_xdata()) == [5, 20, 50]
            np.testing.assert_allclose(line.get_ydata(), means, rtol=1e-12)
            assert line.get_linestyle() == ("--" if "SATP" in label else "-")


def test_bars_draw_means_and_intervals_one_panel_a_number(tmp_path: Path) -> None:
    made = experiment(tmp_path, 'methods = ["ddnm", "ddpg"]', 'kind = "bars"\nmetrics = ["lpips", "psnr"]')
    records = numbered(made, ("psnr", "lpips"))
    groups = bar_groups(made, records)
    for axis, (name, title) in zip(panels(made, records, tmp_path), (("lpips", "LPIPS"), ("psnr", "PSNR"))):
        assert axis.get_title() == title
        heights = {(round(patch.get_x() + patch.get_width() / 2, 6)): patch.get_height() for patch in axis.patches}
        for bar in groups[name]:
            data = [value(bar.row, bar.task, i, 0, name) for i in range(6)]
            draws = np.random.default_rng(9).choice(data, (20_000, 6)).mean(1)
            low, high = np.quantile(draws, [0.025, 0.975])
            assert bar.mean == pytest.approx(np.mean(data)) and bar.low is not None and bar.high is not None
            assert abs(bar.low - low) < 0.1 and abs(bar.high - high) < 0.1 and bar.low < bar.mean < bar.high
            where = ("SR", "Motion").index(bar.task) + (-0.2 if bar.row == "DDNM" else 0.2)
            assert heights[where] == pytest.approx(bar.mean)
        assert [label.get_text() for label in axis.get_xticklabels()] == ["SR", "Motion"]
    few = {place: record for place, record in records.items() if place[2] < 4}
    assert all(bar.low is None for bar in bar_groups(made, few)["psnr"])


def test_uncertainty_draws_levels_above_and_jumps_below_a_column_a_task(tmp_path: Path) -> None:
    made = experiment(tmp_path, 'methods = ["ddnm"]\nplugins = [["satp"]]', 'kind = "uncertainty"', count=3)
    records: Records = {}
    for task, index in itertools.product(("SR", "Motion"), range(3)):
        trace = [[t, 1 + (t + index) % 3, value(task, t, index)] for t in (900, 500, 100) if (t, index) != (500, 2)]
        records[("DDNM + SATP", task, index, 0)] = {"trace": trace}
    bands = uncertainty_bands(made, records)
    axes = panels(made, records, tmp_path)
    for column, task in enumerate(("SR", "Motion")):
        levels, jumps = bands[task]
        assert axes[column].get_title() == task and axes[column].get_yscale() == "log"
        for axis, band, entry in ((axes[column], levels[0], 2), (axes[2 + column], jumps[0], 1)):
            drawn = axis.get_lines()[0]
            assert list(drawn.get_xdata()) == [900, 500, 100] == list(band.times)
            for t, mean, low, high in zip(band.times, drawn.get_ydata(), band.low, band.high):
                seen = [v[entry] for r in range(3) for v in records[("DDNM + SATP", task, r, 0)]["trace"] if v[0] == t]
                assert len(seen) == (2 if t == 500 else 3)
                assert (mean, low, high) == pytest.approx((np.mean(seen), min(seen), max(seen)))
    assert axes[0].get_ylabel() == "$U_t$" and axes[2].get_ylabel() == "jump (grid steps)"


def picture(folder: Path, key: str, kind: str, shade: int, frames: int = 1) -> dict[str, str]:
    (folder / "pictures").mkdir(parents=True, exist_ok=True)
    pixels = np.concatenate([np.full((64, 64, 3), shade + frame, np.uint8) for frame in range(frames)], 1)
    Image.fromarray(pixels).save(folder / "pictures" / f"{key}-{kind}.png")
    return {kind: f"{key}-{kind}.png"}


def test_grids_put_every_picture_in_its_place_with_its_numbers(tmp_path: Path) -> None:
    made = experiment(tmp_path, 'methods = ["reference", "ddnm", "ddpg"]', 'kind = "grid"\nimages = 2', count=3)
    records: Records = {}
    shades = {}
    for number, (row, task, index) in enumerate(itertools.product(("Reference", "DDNM", "DDPG"), ("SR", "Motion"), range(3))):
        shades[row, task, index] = 10 * number
        numbers = {} if row == "Reference" else {"psnr": 20.0 + number, "lpips": 0.001 * number}
        records[row, task, index, 0] = {
            "key": f"k{number}",
            "pictures": picture(tmp_path, f"k{number}", "restored", 10 * number),
        }
        records[row, task, index, 0] |= numbers
    records["DDPG", "Motion", 1, 0] = {"key": "x", "error": "diverged"}
    shots = grid_shots(made, records, Store(tmp_path, made.name))
    assert [(line[0].task, line[0].index) for line in shots] == [("SR", 0), ("SR", 1), ("Motion", 0), ("Motion", 1)]
    axes = panels(made, records, tmp_path)
    for axis, shot in zip(axes, itertools.chain(*shots)):
        if (shot.row, shot.task, shot.index) == ("DDPG", "Motion", 1):
            assert shot.picture is None and not axis.images and axis.texts[0].get_text() == "–"
            continue
        assert axis.images[0].get_array()[0, 0, 0] == shades[shot.row, shot.task, shot.index]
        record = records[shot.row, shot.task, shot.index, 0]
        expected = f"{record['psnr']:.2f} / {record['lpips']:.3f}" if "psnr" in record else ""
        assert shot.caption == axis.get_xlabel() == expected
    assert [axis.get_title() for axis in axes[:3]] == ["Reference", "DDNM", "DDPG"]
    assert [axis.get_ylabel() for axis in axes[::3]] == ["SR", "SR", "Motion", "Motion"]


def test_paths_show_frames_in_order_with_their_calls(tmp_path: Path) -> None:
    made = experiment(tmp_path, 'methods = ["ddnm"]\nplugins = [[], ["satp"]]', 'kind = "path"\nimage = 1', count=2)
    records: Records = {}
    for number, (row, index) in enumerate(itertools.product(("DDNM", "DDNM + SATP"), range(2))):
        files = picture(tmp_path, f"k{number}", "path", 50 * number, 3)
        if row == "DDNM + SATP":
            files |= picture(tmp_path, f"k{number}", "spread", 200 + number, 3)
        times = {"frames": [900, 400, 0], "frame_calls": [1, 6 + number, 11]}
        records[row, "SR", index, 0] = {"key": f"k{number}", "pictures": files, **times}
    strips = path_strips(made, records, Store(tmp_path, made.name))
    assert [strip.label for strip in strips] == ["DDNM", "DDNM + SATP", "DDNM + SATP: spread"]
    axes = panels(made, records, tmp_path)
    for line, (shade, number) in enumerate(((50, 1), (150, 3), (203, 3))):
        for frame in range(3):
            axis = axes[3 * line + frame]
            assert axis.images[0].get_array().shape[:2] == (64, 64)
            assert set(np.unique(axis.images[0].get_array())) == {shade + frame}
            calls = f"call {[1, 6 + number, 11][frame]}, t = {[900, 400, 0][frame]}"
            assert axis.get_xlabel() == ("" if line == 2 else calls)
