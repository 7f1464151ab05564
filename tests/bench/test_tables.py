"""Every number that a table prints, against one computed another way."""

import csv
import io
import itertools
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from leader.bench.records import Record
from leader.bench.statistics import FEWEST_IMAGES, Numbers, bootstrap_interval, interval_of_mean
from leader.bench.tables import FORMATS, document, render_comparison, render_table
from tests.bench.tiny import TOML, tiny

IMAGES, SEEDS = 6, (0, 3)
TASKS = ("SR", "Motion")
METRIC_LINE = '\n[table]\nmetrics = ["psnr", "lpips", "calls", "seconds", "peak_mb"]\n\n[form.small]'


def values(row: str, task: str, index: int, seed: int) -> Record:
    """Numbers that differ in every respect, so that a mix-up of rows, tasks, images, seeds or columns shows."""
    a, b = ("DDNM", "DDNM + UCPM", "DDNM + SATP", "DDNM, uniform", "DDPG").index(row), TASKS.index(task)
    generator = np.random.default_rng([a, b, index, seed])
    picture = np.random.default_rng([b, index]).normal(0, 4)  # hard and easy pictures: what pairing takes out
    return {
        "psnr": 20 + picture + 0.5 * a + 3 * b + generator.normal(0, 0.05),
        "lpips": 0.3 + 0.01 * picture - 0.02 * a + generator.normal(0, 0.001),
        "calls": 100 - 7 * a + index,
        "backwards": 1000 + a,
        "seconds": 0.5 + a + 0.01 * index,
        "peak_mb": 300.0 + 10 * a + 0.1 * index,
    }


@pytest.fixture
def numbers(tmp_path: Path) -> Numbers:
    text = TOML.replace("\n[form.small]", METRIC_LINE).replace("steps = 5", f"steps = 5\nseeds = {list(SEEDS)}")
    experiment = tiny(tmp_path, text.replace("count = 4", f"count = {IMAGES}"))
    rows = [row.label for row in experiment.rows]
    places = itertools.product(rows, TASKS, range(IMAGES), SEEDS)
    shuffled = sorted(places, key=lambda place: hash(str(place)))
    return Numbers(experiment, {place: values(*place) for place in shuffled})


def table_of(row: str, task: str, name: str) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """[image, seed]"""
    return np.array([[values(row, task, index, seed)[name] for seed in SEEDS] for index in range(IMAGES)])


def cells(text: str, caption: str, task: str) -> dict[str, list[str]]:
    """The lines of one block of a Markdown table: {first cell: the others}."""
    part = text.split(f"### {caption}")[1].split("\n### ")[0].split(f"**{task}**\n" if task else "\n", 1)[1]
    lines = itertools.takewhile(lambda line: line.startswith("|"), part.lstrip("\n").splitlines())
    return {line.split(" | ")[0].strip("| "): line.strip("| ").split(" | ")[1:] for line in lines}


def test_means_and_standard_deviations(numbers: Numbers) -> None:
    text = render_table(numbers)
    for task in TASKS:
        block = cells(text, "Mean ± standard deviation", task)
        assert block["method"] == ["PSNR ↑", "LPIPS ↓", "calls ↓", "seconds ↓", "peak MB ↓"]
        assert list(block)[2:] == ["DDNM", "DDNM + UCPM", "DDNM + SATP", "DDNM, uniform", "DDPG"], "the experiment's order"
        for row, shown in list(block.items())[2:]:
            for name, cell, digits in zip(("psnr", "lpips", "calls", "seconds", "peak_mb"), shown, (2, 3, 1, 2, 1)):
                data = table_of(row, task, name).mean(1)
                spread = np.sqrt(((data - data.mean()) ** 2).sum() / (IMAGES - 1))
                assert cell == f"{data.mean():.{digits}f} ± {spread:.{digits}f}"


def test_average_changes_are_means_over_tasks_of_changes_of_means(numbers: Numbers) -> None:
    block = cells(render_table(numbers), "Average change over the tasks", "")
    assert list(block)[2:] == ["DDNM + UCPM", "DDNM + SATP", "DDNM, uniform"]
    for row, shown in list(block.items())[2:]:
        assert shown[0] == "DDNM"
        for name, cell in zip(("psnr", "lpips", "calls", "seconds", "peak_mb"), shown[1:]):
            changes = [table_of(row, task, name).mean() / table_of("DDNM", task, name).mean() for task in TASKS]
            assert cell == f"{100 * (np.mean(changes) - 1):+.2f} %"


def test_differences_are_paired_image_by_image_with_bold_where_zero_is_outside(numbers: Numbers) -> None:
    text = render_table(numbers)
    bold = set()
    for task in TASKS:
        block = cells(text, "Difference from the host", task)
        for row, shown in list(block.items())[2:]:
            for name, cell, digits in zip(("psnr", "lpips", "calls", "seconds", "peak_mb"), shown, (3, 4, 2, 3, 2)):
                gain = (table_of(row, task, name) - table_of("DDNM", task, name)).mean(1)
                draws = np.random.default_rng(5).choice(gain, (20_000, IMAGES)).mean(1)
                found = [float(item) for item in re.findall(r"[+-][\d.]+", cell)]
                assert found[0] == pytest.approx(gain.mean(), abs=0.6 * 10**-digits)
                # another stream of draws: quantiles of 20,000 agree to a twentieth of the interval
                expected = np.quantile(draws, [0.025, 0.975])
                tolerance = 0.06 * np.ptp(expected) + 10**-digits
                assert np.abs(np.array(found[1:]) - expected).max() < tolerance
                assert cell.startswith("**") == (found[1] > 0 or found[2] < 0)
                bold.add(cell.startswith("**"))
                if name == "psnr":  # unpaired, the interval would be that of the pictures' own spread
                    assert found[2] - found[1] < 0.5 < np.std(table_of(row, task, name).mean(1))
    assert bold == {True}
    assert "bold: zero is outside" in text


def test_a_run_that_one_row_lacks_is_left_out_of_the_pair(numbers: Numbers) -> None:
    records = dict(numbers._records)
    del records[("DDNM", "SR", 2, 3)]
    found = Numbers(numbers.experiment, records).difference("DDNM + UCPM", "DDNM", "SR", "psnr")
    gain = table_of("DDNM + UCPM", "SR", "psnr") - table_of("DDNM", "SR", "psnr")
    gain[2, 1] = gain[2, 0]
    assert found is not None and found.mean == pytest.approx(gain.mean(1).mean())
    del records[("DDNM", "SR", 2, 0)]
    lacking = Numbers(numbers.experiment, records)
    for host in ("DDNM", "DDPG"):
        (line,) = re.findall(r"\| SR \| PSNR \|.*", render_comparison(lacking, "DDNM + SATP", host))
        shared = [index for index in range(IMAGES) if (host, index) != ("DDNM", 2)]
        means = [table_of(row, "SR", "psnr").mean(1)[shared].mean() for row in (host, "DDNM + SATP")]
        assert line.split(" | ")[2:4] == [f"{mean:.2f}" for mean in means]
        assert f" {means[1] - means[0]:+.3f} [" in line.replace("**", "")


def test_few_images_have_no_interval_and_no_bold(numbers: Numbers) -> None:
    few = {place: record for place, record in numbers._records.items() if place[2] < FEWEST_IMAGES - 1}
    text = render_table(Numbers(numbers.experiment, few))
    assert "**+" not in text and "**-" not in text and "95 % bootstrap" not in text
    assert re.search(r"\| DDNM \+ UCPM \| \+0\.\d{3} \|", text)
    assert "- 95 % intervals, and bold, are given from 5 images on" in text
    assert "from 5 images on" not in render_table(numbers)
    single = {place: record for place, record in few.items() if place[2] == 0}
    assert "±" not in render_table(Numbers(numbers.experiment, single)).replace("Mean ± standard", ""), "one has no spread"
    rows = [replace(row, count=3 if row.method == "ddpg" else IMAGES) for row in numbers.experiment.rows]
    notes = document(Numbers(replace(numbers.experiment, rows=tuple(rows)), few)).notes
    assert [note for note in notes if "On the first" in note] == ["On the first 3 images alone, and compared on these: DDPG."]
    assert interval_of_mean([1.0] * 4) is None and interval_of_mean([1.0] * 5) == (1.0, 1.0)


def test_the_csv_holds_the_same_numbers(numbers: Numbers) -> None:
    lines = list(csv.DictReader(io.StringIO(render_table(numbers, "csv"))))
    assert len(lines) == 5 * 2 * 5
    for line in lines:
        data = table_of(line["row"], line["task"], line["number"]).mean(1)
        assert float(line["mean"]) == pytest.approx(data.mean(), rel=1e-5) and line["images"] == str(IMAGES)
        assert float(line["std"]) == pytest.approx(np.std(data, ddof=1), rel=1e-4)
        if line["row"] in ("DDNM", "DDPG"):
            assert line["difference"] == line["low"] == line["high"] == line["percent"] == ""
            continue
        gain = data - table_of("DDNM", line["task"], line["number"]).mean(1)
        low, high = bootstrap_interval(gain)
        host = table_of("DDNM", line["task"], line["number"]).mean()
        expected = (gain.mean(), low, high, 100 * gain.mean() / host)
        for name, value in zip(("difference", "low", "high", "percent"), expected):
            assert float(line[name]) == pytest.approx(value, rel=1e-4, abs=1e-9)


def test_all_formats_print_the_same_cells(numbers: Numbers) -> None:
    sheet = document(numbers).sheets[0]
    for form in ("md", "latex", "html"):
        text = render_table(numbers, form).replace(r"$\pm$", "±")
        for line in sheet.lines:
            for cell in line:
                assert cell in text, (form, cell)
    assert set(FORMATS) == {"md", "csv", "latex", "html"}
    assert r"\cmidrule(lr){2-6} \cmidrule(lr){7-11}" in render_table(numbers, "latex")
    assert "95 \\% bootstrap" in render_table(numbers, "latex") and " % bootstrap" not in render_table(numbers, "latex")
    renamed = replace(numbers.experiment, rows=(replace(numbers.experiment.rows[0], label="a < b & c"),))
    text = render_table(Numbers(renamed, {("a < b & c", *place[1:]): values(*place) for place in numbers._records}), "html")
    assert "<td>a &lt; b &amp; c</td>" in text and "a < b" not in text


def test_the_comparison_counts_the_images_won(numbers: Numbers) -> None:
    text = render_comparison(numbers, "DDNM + SATP", "DDNM")
    assert text.splitlines()[2] == "| task | number | DDNM | DDNM + SATP | difference | change | better on |"
    for task, (name, title, digits, better) in itertools.product(
        TASKS, [("psnr", "PSNR", 2, 1), ("lpips", "LPIPS", 3, -1), ("calls", "calls", 1, -1)]
    ):
        line = next(line for line in text.splitlines() if line.startswith(f"| {task} | {title} |"))
        shown = line.strip("| ").split(" | ")
        mine, host = (table_of(row, task, name).mean(1) for row in ("DDNM + SATP", "DDNM"))
        assert shown[2:4] == [f"{host.mean():.{digits}f}", f"{mine.mean():.{digits}f}"]
        assert shown[5] == f"{100 * (mine.mean() / host.mean() - 1):+.2f} %"
        assert shown[6] == f"{int((better * (mine - host) > 0).sum())} of {IMAGES}"
    tied = {**numbers._records, **{("DDNM + SATP", "SR", 0, seed): numbers._records["DDNM", "SR", 0, seed] for seed in SEEDS}}
    line = render_comparison(Numbers(numbers.experiment, tied), "DDNM + SATP", "DDNM").splitlines()[4]
    assert line.startswith("| SR | PSNR |") and line.endswith("| 5 of 6 |"), "as good is not better"
