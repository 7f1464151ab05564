import itertools
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from leader.bench.records import Record
from leader.bench.statistics import Change, Numbers, bootstrap_interval, change_of
from leader.bench.tables import document
from leader.errors import LeaderError
from tests.bench.tiny import TOML, tiny


def numbers(tmp_path: Path) -> Numbers:
    """Two tasks, six images: the plug-in adds 1, 2, ... 6 % of 10 dB, and twice as much of 20 dB."""
    experiment = tiny(tmp_path)
    records: dict[tuple[str, str, int, int], Record] = {}
    for task, scale in (("SR", 1.0), ("Motion", 2.0)):
        for index in range(6):
            records[("DDNM", task, index, 0)] = {"psnr": 10 * scale, "calls": 5, "seconds": 2.0, "work": 3.0, "backwards": 10}
            gain = 0.1 * scale * (index + 1)
            records[("DDNM + UCPM", task, index, 0)] = {"psnr": scale * (10 + gain), "calls": 5, "seconds": 2.0 - 0.2 * gain}
            records[("DDPG", task, index, 0)] = {"error": "diverged"} if index == 2 else {"psnr": 8.0 + index}
    return Numbers(experiment, records)


def test_bootstrap_interval_agrees_with_scipy_and_repeats() -> None:
    values = np.random.default_rng(1).normal(0.3, 1.0, 16)
    ours = bootstrap_interval(values)
    theirs = stats.bootstrap(
        (values,), np.mean, n_resamples=10_000, method="percentile", random_state=np.random.default_rng(2)
    ).confidence_interval
    # The quantile of 10,000 draws has a standard error of sqrt(0.025 * 0.975 / 10000) / density = 0.027 std
    # errors.
    tolerance = 4 * 0.027 * np.sqrt(2) * values.std() / 4
    assert abs(ours[0] - theirs.low) < tolerance and abs(ours[1] - theirs.high) < tolerance
    assert ours == bootstrap_interval(values)


def test_the_interval_of_the_average_change_resamples_images_over_all_tasks(tmp_path: Path) -> None:
    """The change of image i is i % in one task and 2 i % in the other: its average over the tasks is 1.5 i %, so the interval
    is 1.5 times that of the mean of 1 ... 6, from the same draws.
    """
    table = numbers(tmp_path)
    row = table.experiment.row("DDNM + UCPM")
    found = table.average_interval(row, "psnr")
    low, high = bootstrap_interval([1.5 * index for index in range(1, 7)])
    assert found == pytest.approx((low, high))
    assert table.average_interval(table.experiment.row("DDNM"), "psnr") is None, "a host is compared with nothing"
    assert table.average_interval(row, "lpips") is None, "no record has it"
    assert table.average_interval(row, "calls") == (0.0, 0.0)


def test_differences_are_those_of_the_same_images(tmp_path: Path) -> None:
    """Hosts differ by far more from image to image than the plug-in adds, which is the same for all."""
    records: dict[tuple[str, str, int, int], Record] = {}
    for task, index in itertools.product(("SR", "Motion"), range(7)):
        records[("DDNM", task, index, 0)] = {"psnr": 10.0 + 3 * index}
        if (task, index) != ("Motion", 6):
            records[("DDNM + UCPM", task, index, 0)] = {"psnr": 10.5 + 3 * index}
    table = Numbers(tiny(tmp_path), records)
    found = table.difference("DDNM + UCPM", "DDNM", "SR", "psnr")
    assert found is not None and (found.mean, *(found.interval or ())) == pytest.approx((0.5, 0.5, 0.5))
    assert found.percent == pytest.approx(100 * 0.5 / 19)
    interval = table.average_interval(table.experiment.row("DDNM + UCPM"), "psnr")
    assert interval is not None and 0 < interval[0] < 100 * 0.5 / 17.5 < interval[1] < 5, "six images have both tasks"


def test_published_changes_stand_beside_ours(tmp_path: Path) -> None:
    entry = '"DDNM + UCPM" = { data = "faces", psnr = 2.4 }'
    words = f'\n[table]\nmetrics = ["psnr", "calls", "seconds"]\n\n[table.published]\n{entry}\n\n[form.small]'
    made = tiny(tmp_path, TOML.replace("\n[form.small]", words))
    table = Numbers(made, numbers(tmp_path)._records)
    (sheet,) = [sheet for sheet in document(table).sheets if "published" in sheet.caption]
    assert sheet.columns == ["images", "PSNR ↑", "calls ↓", "seconds ↓", "published for", "PSNR there"]
    own = dict(zip(["method", *sheet.columns], sheet.lines[0], strict=True))
    low, high = bootstrap_interval([1.5 * index for index in range(1, 7)])
    assert own["method"] == "DDNM + UCPM" and own["images"] == "6"
    assert own["PSNR ↑"] == f"**+5.25 % [{low:+.2f}, {high:+.2f}]**", "zero is outside: bold"
    assert own["seconds ↓"] == f"**-5.25 % [{-high:+.2f}, {-low:+.2f}]**", "so is a clear fall"
    assert own["calls ↓"] == "+0.00 % [+0.00, +0.00]"
    assert (own["published for"], own["PSNR there"]) == ("faces", "+2.40 %")
    assert all(line[0].startswith("DDNM ") or line[0].startswith("DDNM,") for line in sheet.lines), "one host is published"
    with pytest.raises(LeaderError, match="published"):
        tiny(tmp_path, TOML.replace("\n[form.small]", words.replace("psnr = 2.4", "pnsr = 2.4")))


def test_failed_runs_are_left_out_and_told(tmp_path: Path) -> None:
    table = numbers(tmp_path)
    found = table.summary("DDPG", "SR", "psnr")
    assert found is not None and found.count == 5
    scores = [8.0, 9.0, 11.0, 12.0, 13.0]
    assert found.mean == pytest.approx(np.mean(scores)) and found.std == pytest.approx(np.std(scores, ddof=1))
    assert table.failures() == ["DDPG, Motion: diverged (1 images)", "DDPG, SR: diverged (1 images)"]
    assert table.difference("DDPG", "DDNM", "SR", "calls") is None
    assert table.per_image("DDNM", "SR", "work")[0] == 3.0 * (5 + 2 * 10) / 5, "a backward pass counts for two calls"


def test_hosts_are_compared_with_a_baseline_where_the_table_names_one(tmp_path: Path) -> None:
    block = '\n[[rows]]\nmethods = ["pinv"]\n\n[table]\nbaseline = "A⁺ y"\n\n[form.small]'
    experiment = tiny(tmp_path, TOML.replace("\n[form.small]", block))
    records: dict[tuple[str, str, int, int], Record] = {}
    for task, index in itertools.product(("SR", "Motion"), range(5)):
        records[("A⁺ y", task, index, 0)] = {"psnr": 7.0}
        records[("DDNM", task, index, 0)] = {"psnr": 10.0, "calls": 5}
        records[("DDNM + UCPM", task, index, 0)] = {"psnr": 10.5, "calls": 5}
    sheet = document(Numbers(experiment, records)).sheets[-1]
    assert sheet.caption.startswith("Difference of the hosts from A⁺ y")
    assert {line[0]: line[1] for line in sheet.lines} == {"DDNM": "**+3.000 [+3.000, +3.000]**", "DDPG": "–"}
    assert len(sheet.columns) == 2, "a baseline has no calls: only what both have is compared"


@pytest.mark.parametrize(
    ("measure", "differences", "expected"),
    [
        ("psnr", [0.2] * 5, Change("+0.20 [+0.20, +0.20]", better=True, inferior=False)),
        ("psnr", [-0.14] * 5, Change("-0.14 [-0.14, -0.14]", better=False, inferior=False)),
        ("psnr", [-0.16] * 5, Change("-0.16 [-0.16, -0.16]", better=False, inferior=True)),
        ("lpips", [-0.004] * 5, Change("-0.004 [-0.004, -0.004]", better=True, inferior=False)),
        ("lpips", [0.009] * 5, Change("+0.009 [+0.009, +0.009]", better=False, inferior=False)),
        ("lpips", [0.011] * 5, Change("+0.011 [+0.011, +0.011]", better=False, inferior=True)),
    ],
)
def test_changes_in_words_and_judged(measure: str, differences: list[float], expected: Change) -> None:
    """Equal differences have an interval of no width, so that the bar of the mean decides."""
    assert change_of(measure, differences) == expected


def test_a_change_is_inferior_by_its_bound_alone() -> None:
    """Four of five equal, one far off: the mean passes, the end of the interval that counts against it does not."""
    assert change_of("psnr", [0.0, 0.0, 0.0, 0.0, -0.7]).inferior and not change_of("psnr", [0.0, 0.0, 0.0, 0.0, 0.7]).inferior
    assert change_of("lpips", [0.0, 0.0, 0.0, 0.0, 0.045]).inferior
    assert not change_of("lpips", [0.0, 0.0, 0.0, 0.0, -0.045]).inferior
