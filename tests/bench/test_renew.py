from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from leader.bench import renew as module
from leader.bench.cell import Cell
from leader.bench.columns import columns
from leader.bench.experiment import Experiment, load_experiment
from leader.bench.records import Record, Store, canonical, digest, read_lines
from leader.bench.renew import Report, Request, find_stale, forecast, renew, renew_text, requests_for
from leader.bench.run import gather, run_experiment
from leader.bench.running import Answer, run_cell
from leader.cli.bench import app
from leader.engines import make_engine
from leader.metrics import METRICS, Column, Metric, psnr
from tests.bench.tiny import TOML, tiny

KEEPING = TOML.replace("timing = false", 'timing = true\nkeep = ["restored", "trace"]').replace("count = 4", "count = 2")
RECORDS = 20


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Experiment, Path]:
    """An experiment with its records, as this code makes them."""
    folder = tmp_path_factory.mktemp("renewal")
    experiment = tiny(folder, KEEPING)
    run_experiment(experiment, Store(folder / "records", experiment.name), make_engine(), quiet=True)
    return experiment, folder


@pytest.fixture
def old(made: tuple[Experiment, Path], tmp_path: Path) -> tuple[Experiment, Path]:
    """The same records with the stamp of another code."""
    experiment, folder = made
    shutil.copytree(folder / "records", tmp_path / "records")
    rewrite(tmp_path / "records", experiment, lambda record: aged(record, tmp_path / "records"))
    return experiment, tmp_path / "records"


def rewrite(folder: Path, experiment: Experiment, change: Any) -> None:
    path = folder / f"{experiment.name}.jsonl"
    path.write_text("".join(canonical(change(record)) + "\n" for record in read_lines(path)))


def aged(record: Record, folder: Path) -> Record:
    """The record as code "old" would have stored it, before scores had versions."""
    key = digest([record["what"], "old"])
    names = {kind: f"{key}-{kind}.png" for kind in record["pictures"]}
    for kind, name in record["pictures"].items():
        (folder / "pictures" / name).rename(folder / "pictures" / names[kind])
    plain = {name: value for name, value in record.items() if name != "scored"}
    return {**plain, "key": key, "code": "old", "pictures": names}


def renewed(experiment: Experiment, folder: Path, **options: Any) -> Report:
    request = Request(experiment, Store(folder, experiment.name))
    return renew([request], make_engine(), quiet=True, write=lambda text: None, **options)


def contents(folder: Path, *without: str) -> dict[str, Any]:
    """The records and pictures of a folder."""
    lines = [json.loads(line) for path in sorted(folder.glob("*.jsonl")) for line in path.read_text().splitlines()]
    plain = [{name: value for name, value in line.items() if name not in without} for line in lines]
    return {"lines": plain, "pictures": {p.name: p.read_bytes() for p in (folder / "pictures").glob("*")}}


def test_where_bits_agree_all_records_are_carried_across_with_their_times(
    made: tuple[Experiment, Path], old: tuple[Experiment, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment, folder = old
    ran: list[Cell] = []

    def watch(cell: Cell) -> Answer:
        ran.append(cell)
        return run_cell(cell)

    monkeypatch.setattr(module, "run_cell", watch)
    assert gather(experiment, Store(folder, experiment.name)).older == RECORDS
    report = renewed(experiment, folder)
    assert (report.restamped, report.rerun, report.differing) == (RECORDS, 0, {})
    assert report.checked == len(ran) == 8, "four methods with plug-ins on two tasks; the uniform grid is DDNM's path too"
    assert contents(folder) == contents(made[1] / "records"), "the very bytes, seconds included"
    again = renewed(experiment, folder)
    assert (again.current, again.checked, again.restamped) == (RECORDS, 0, 0)


def test_where_a_number_differs_its_path_alone_runs_again(made: tuple[Experiment, Path], old: tuple[Experiment, Path]) -> None:
    experiment, folder = old

    def wrong(record: Record) -> Record:
        is_it = record["method"] == "ddpg" and record["task"] == "sr"
        return {**record, "residual_raw": record["residual_raw"] + 1e-5, "seconds": 77.0} if is_it else record

    rewrite(folder, experiment, wrong)
    untouched = renewed(experiment, folder, only_agreeing=True)
    assert (untouched.restamped, untouched.rerun) == (RECORDS - 2, 0)
    assert (
        list(untouched.differing) == ["ddpg on sr, sigma 0"]
        and "residual_raw was" in untouched.differing["ddpg on sr, sigma 0"]
    )
    assert gather(experiment, Store(folder, experiment.name)).older == 2
    report = renewed(experiment, folder)
    assert (report.restamped, report.rerun, report.current) == (0, 2, RECORDS - 2)
    assert contents(folder, "seconds") == contents(made[1] / "records", "seconds")
    assert gather(experiment, Store(folder, experiment.name)).older == 0


@pytest.mark.parametrize("what", ["picture", "trace", "calls", "lost number"])
def test_every_stored_thing_is_compared(what: str, old: tuple[Experiment, Path]) -> None:
    experiment, folder = old
    chosen: list[str] = []

    def wrong(record: Record) -> Record:
        if record["plugins"] != "satp" or record["task"] != "sr":
            return record
        chosen.append(record["key"])
        if what == "picture":
            (folder / "pictures" / record["pictures"]["restored"]).write_bytes(b"another picture")
        if what == "trace":
            record["trace"][-1][1] += 1
        if what == "calls":
            record["calls"] += 1
        if what == "lost number":
            record["old_number"] = 1.0
        return record

    rewrite(folder, experiment, wrong)
    report = renewed(experiment, folder, only_agreeing=True)
    assert len(chosen) == 2 and list(report.differing) == ["ddnm + satp on sr, sigma 0, auto"]


def test_an_interrupted_renewal_goes_on_where_it_was(
    made: tuple[Experiment, Path], old: tuple[Experiment, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment, folder = old
    count = 0

    def failing(cell: Cell) -> Answer:
        nonlocal count
        count += 1
        if count == 4:
            raise KeyboardInterrupt
        return run_cell(cell)

    monkeypatch.setattr(module, "run_cell", failing)
    with pytest.raises(KeyboardInterrupt):
        renewed(experiment, folder)
    assert 0 < gather(experiment, Store(folder, experiment.name)).older < RECORDS
    report = renewed(experiment, folder)
    assert count == 4 + report.checked and report.checked == 5, "three paths were done"
    assert (report.elsewhere, report.unasked, report.current + report.restamped) == (0, 0, RECORDS)
    assert contents(folder) == contents(made[1] / "records")


def test_records_of_other_pictures_go_with_their_path_and_unknown_ones_stay(old: tuple[Experiment, Path]) -> None:
    experiment, folder = old
    store = Store(folder, experiment.name)
    first = next(iter(store.own.values()))
    elsewhere = {**first, "what": {**first["what"], "image": "0" * 16, "index": 9, "fit": "half"}}
    unasked = {**first, "what": {**first["what"], "sigma": 0.123}}
    for record in (elsewhere, unasked):
        record.pop("pictures")
        record |= {"cell": digest(record["what"]), "key": digest([record["what"], "old"])}
        with store.writing():
            store.append(record)
    report = renewed(experiment, folder)
    assert (report.restamped, report.unasked) == (RECORDS + 1, 1)
    after = {record["cell"]: record for record in Store(folder, experiment.name).own.values()}
    assert len(after) == RECORDS + 2
    assert after[unasked["cell"]] == unasked
    moved = after[elsewhere["cell"]]
    assert moved["code"] == after[first["cell"]]["code"] and moved["key"] == digest([moved["what"], moved["code"]])
    assert moved["psnr"] == first["psnr"] and set(moved["scored"]) == {"psnr", "ssim", "lpips"}


def test_a_setting_that_did_not_exist_then_is_no_obstacle(made: tuple[Experiment, Path], old: tuple[Experiment, Path]) -> None:
    experiment, folder = old

    def without(record: Record) -> Record:
        if record["method"] == "ddnm" and not record["plugins"]:
            method = {key: value for key, value in record["what"]["method"].items() if key != "eta"}
            what = {**record["what"], "method": method}
            return {**record, "what": what, "cell": digest(what), "key": digest([what, "older"])}
        return record

    rewrite(folder, experiment, without)
    rewrite(folder, experiment, lambda record: rename(record, folder))
    report = renewed(experiment, folder)
    assert report.restamped == RECORDS and not report.differing
    assert contents(folder) == contents(made[1] / "records")


def rename(record: Record, folder: Path) -> Record:
    names = {kind: f"{record['key']}-{kind}.png" for kind in record["pictures"]}
    for kind, name in record["pictures"].items():
        (folder / "pictures" / name).rename(folder / "pictures" / names[kind])
    return {**record, "pictures": names}


def test_a_new_metric_makes_records_incomplete_for_it_alone(
    made: tuple[Experiment, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment, folder = made
    shutil.copytree(folder / "records", tmp_path / "records")
    metric = Metric("again", "dB", Column("Again", 1, 1), psnr)
    monkeypatch.setitem(METRICS, "again", metric)
    assert columns()["again"].title == "Again"
    found = gather(experiment, Store(tmp_path / "records", experiment.name))
    assert (found.older, found.lacking) == (0, {"again": RECORDS})
    assert find_stale([Request(experiment, Store(tmp_path / "records", experiment.name))])[1].current == RECORDS
    part = experiment.restricted("DDPG", "SR")
    outcome = run_experiment(part, Store(tmp_path / "records", experiment.name), make_engine(), quiet=True)
    assert (outcome.ran, outcome.found) == (2, 0)
    found = gather(experiment, Store(tmp_path / "records", experiment.name))
    assert found.lacking == {"again": RECORDS - 2}
    complete = [record for record in found.places.values() if "again" in record]
    assert len(complete) == 2 and all(record["again"] == record["psnr"] for record in complete)


def test_changed_metric_code_is_noticed(made: tuple[Experiment, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    experiment, folder = made
    monkeypatch.setitem(METRICS, "psnr", replace(METRICS["psnr"], function=METRICS["ssim"].function))
    found = gather(experiment, Store(folder / "records", experiment.name))
    assert (found.older, found.lacking) == (0, {"psnr": RECORDS})
    report = find_stale([Request(experiment, Store(folder / "records", experiment.name))])[1]
    assert report.current == 0


def test_the_forecast_adds_the_seconds_of_the_cheapest_cells(old: tuple[Experiment, Path]) -> None:
    experiment, folder = old
    seconds: dict[tuple[str, str], list[float]] = {}

    def timed(record: Record) -> Record:
        group = seconds.setdefault((f"{record['method']} {record['plugins']}", record["task"]), [])
        group.append(10.0 + len(group) + len(seconds))
        return {**record, "seconds": group[-1]}

    rewrite(folder, experiment, timed)
    paths, _ = find_stale([Request(experiment, Store(folder, experiment.name))])
    assert len(paths) == len(seconds) == 8
    cells, cost = forecast(paths, 1)
    assert cells == 8 and cost == pytest.approx(sum(min(group) for group in seconds.values()))
    assert forecast(paths, 2)[0] == 16


def test_the_command_says_what_it_would_do_and_what_it_did(
    old: tuple[Experiment, Path], made: tuple[Experiment, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, folder = old
    path = str(made[1] / "tiny.toml")
    runner = CliRunner()
    before = contents(folder)
    listed = runner.invoke(app, ["renew", path, "--records", str(folder), "--dry-run"])
    assert listed.exit_code == 0 and "8 code paths with old records, 8 cells to run again" in listed.output
    assert contents(folder) == before
    part = ["renew", path, "--records", str(folder), "--rows", "DDPG", "--tasks", "SR", "--workers", "1"]
    done = runner.invoke(app, part)
    assert done.exit_code == 0 and "1 code paths agree: 2 records restamped" in done.output
    assert gather(load_experiment(Path(path)), Store(folder, "tiny-small")).older == RECORDS - 2
    assert len(requests_for([path], folder)) == 1
    assert "5 records left alone: no experiment" in renew_text(Report(unasked=5))


SCRIPT = """
import sys, os, signal
from pathlib import Path
from leader.bench import renew as module
from leader.bench.renew import renew, requests_for
from leader.engines import make_engine

requests = requests_for([sys.argv[1]], Path(sys.argv[2]))
run, left = module.run_cell, int(sys.argv[3])
def killed(cell):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return run(cell)
module.run_cell = killed
renew(requests, make_engine(), quiet=True)
"""


def test_a_renewal_that_is_killed_outright_loses_nothing(made: tuple[Experiment, Path], old: tuple[Experiment, Path]) -> None:
    experiment, folder = old
    command = [sys.executable, "-c", SCRIPT, str(made[1] / "tiny.toml"), str(folder), "6"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment, check=False)
    assert done.returncode == -9, done.stderr
    assert 0 < gather(experiment, Store(folder, experiment.name)).older < RECORDS
    renewed(experiment, folder)
    assert contents(folder) == contents(made[1] / "records")


def test_a_path_is_restamped_when_all_of_its_chosen_cells_agree(old: tuple[Experiment, Path]) -> None:
    experiment, folder = old

    def wrong(record: Record) -> Record:
        if record["method"] != "ddpg" or record["task"] != "sr":
            return record
        dear = record["index"] == 1
        return {**record, "seconds": 9.0 if dear else 1.0, "psnr": record["psnr"] + dear}

    rewrite(folder, experiment, wrong)
    report = renewed(experiment, folder, cells=2, only_agreeing=True)
    assert list(report.differing) == ["ddpg on sr, sigma 0"] and report.restamped == RECORDS - 2
    assert gather(experiment, Store(folder, experiment.name)).older == 2
    assert renewed(experiment, folder, cells=1).restamped == 2, "the cheapest alone agrees"


def test_renewal_does_not_claim_a_metric_that_was_never_computed(
    old: tuple[Experiment, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment, folder = old
    monkeypatch.setitem(METRICS, "again", Metric("again", "dB", Column("Again", 1, 1), psnr))
    assert renewed(experiment, folder).restamped == RECORDS
    found = gather(experiment, Store(folder, experiment.name))
    assert (found.older, found.lacking) == (0, {"again": RECORDS})


@pytest.mark.parametrize(
    ("new", "old", "same"),
    [
        (0.450465, 0.450466, True),  # another machine's rounding
        (0.450465, 0.450468, False),
        (24.00001, 24.0, True),
        (24.0001, 24.0, False),
        (100, 101, False),
        ("a", "b", False),
        ([[1, 2.0]], [[1, 2.0]], True),
    ],
)
def test_numbers_agree_but_for_the_rounding_of_another_machine(new: object, old: object, same: bool) -> None:
    assert module._alike(new, old) is same


def test_a_meter_runs_unless_it_is_told_to_be_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []
    monkeypatch.setattr(module, "_check", lambda *_, quiet: asked.append(quiet))
    module.renew([], make_engine(), write=lambda text: None)
    module.renew([], make_engine(), write=lambda text: None, quiet=True)
    assert asked == [False, True]
