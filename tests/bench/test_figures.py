"""Figures by what they draw: every panel against numbers computed another way."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from leader.bench.experiment import Experiment
from leader.bench.figures import make_figure
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
    axes = panels(made, records, tmp_path)
    assert [axis.get_title() for axis in axes] == ["PSNR", "LPIPS"]
    for axis, name in zip(axes, ("psnr", "lpips")):
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
    axes = panels(made, records, tmp_path)
    assert [axis.get_title() for axis in axes] == ["LPIPS", "PSNR"]
    for axis, name in zip(axes, ("lpips", "psnr")):
        heights = {round(patch.get_x() + patch.get_width() / 2, 6): patch.get_height() for patch in axis.patches}
        bounds = {round(part[0][0], 6): sorted(part[:, 1]) for lines in axis.collections for part in lines.get_segments()}
        for (b, task), (a, row) in itertools.product(enumerate(("SR", "Motion")), enumerate(("DDNM", "DDPG"))):
            data, where = [value(row, task, i, 0, name) for i in range(6)], round(b + 0.4 * a - 0.2, 6)
            low, high = np.quantile(np.random.default_rng(9).choice(data, (20_000, 6)).mean(1), [0.025, 0.975])
            assert heights[where] == pytest.approx(np.mean(data))
            assert bounds[where] == pytest.approx([low, high], abs=0.1) and bounds[where][0] < heights[where] < bounds[where][1]
        assert [label.get_text() for label in axis.get_xticklabels()] == ["SR", "Motion"]
    few = {place: record for place, record in records.items() if place[2] < 4}
    assert not any(axis.collections for axis in panels(made, few, tmp_path)), "too few for intervals"


def test_uncertainty_draws_levels_above_and_jumps_below_a_column_a_task(tmp_path: Path) -> None:
    made = experiment(tmp_path, 'methods = ["ddnm"]\nplugins = [["satp"]]', 'kind = "uncertainty"', count=3)
    records: Records = {}
    for task, index in itertools.product(("SR", "Motion"), range(3)):
        trace = [[t, 1 + (t + index) % 3, value(task, t, index)] for t in (900, 500, 100) if (t, index) != (500, 2)]
        records[("DDNM + SATP", task, index, 0)] = {"trace": trace}
    axes = panels(made, records, tmp_path)
    for column, task in enumerate(("SR", "Motion")):
        assert axes[column].get_title() == task and axes[column].get_yscale() == "log"
        for axis, entry in ((axes[column], 2), (axes[2 + column], 1)):
            drawn, (band,) = axis.get_lines()[0], axis.collections
            assert list(drawn.get_xdata()) == [900, 500, 100]
            outline = band.get_paths()[0].vertices
            for t, mean in zip((900, 500, 100), drawn.get_ydata()):
                seen = [v[entry] for r in range(3) for v in records[("DDNM + SATP", task, r, 0)]["trace"] if v[0] == t]
                assert len(seen) == (2 if t == 500 else 3)
                beside = outline[outline[:, 0] == t, 1]
                assert (mean, beside.min(), beside.max()) == pytest.approx((np.mean(seen), min(seen), max(seen)))
    assert axes[0].get_ylabel() == "$U_t$" and axes[2].get_ylabel() == "jump (grid steps)"


def picture(folder: Path, key: str, kind: str, shade: int, frames: int = 1) -> dict[str, str]:
    (folder / "pictures").mkdir(parents=True, exist_ok=True)
    pixels = np.concatenate([np.full((64, 64, 3), shade + frame, np.uint8) for frame in range(frames)], 1)
    Image.fromarray(pixels).save(folder / "pictures" / f"{key}-{kind}.png")
    return {kind: f"{key}-{kind}.png"}


def test_grids_put_every_picture_in_its_place_with_its_numbers(tmp_path: Path) -> None:
    rows = ("Reference", "DDNM", "DDPG")
    made = experiment(tmp_path, 'methods = ["reference", "ddnm", "ddpg"]', 'kind = "grid"\nimages = 2', count=3)
    records: Records = {}
    for number, (row, task, index) in enumerate(itertools.product(rows, ("SR", "Motion"), range(3))):
        numbers = {} if row == "Reference" else {"psnr": 20.0 + number, "lpips": 0.001 * number}
        files = picture(tmp_path, f"k{number}", "restored", 10 * number)
        records[row, task, index, 0] = {"key": f"k{number}", "pictures": files, **numbers}
    records["DDPG", "Motion", 1, 0] = {"key": "x", "error": "diverged"}
    axes = panels(made, records, tmp_path)
    for axis, (task, index, row) in zip(axes, itertools.product(("SR", "Motion"), range(2), rows), strict=True):
        record = records[row, task, index, 0]
        if "error" in record:
            assert not axis.images and axis.texts[0].get_text() == "–"
            continue
        assert axis.images[0].get_array()[0, 0, 0] == 10 * int(record["key"][1:])
        assert axis.get_xlabel() == (f"{record['psnr']:.2f} / {record['lpips']:.3f}" if "psnr" in record else "")
    assert [axis.get_title() for axis in axes[:3]] == list(rows)
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
    axes = panels(made, records, tmp_path)
    assert [axis.get_ylabel() for axis in axes[::3]] == ["DDNM", "DDNM\n+ SATP", "DDNM\n+ SATP: spread"]
    for line, (shade, number) in enumerate(((50, 1), (150, 3), (203, 3))):
        for frame in range(3):
            axis = axes[3 * line + frame]
            assert axis.images[0].get_array().shape[:2] == (64, 64)
            assert set(np.unique(axis.images[0].get_array())) == {shade + frame}
            calls = f"call {[1, 6 + number, 11][frame]}, t = {[900, 400, 0][frame]}"
            assert axis.get_xlabel() == ("" if line == 2 else calls)
