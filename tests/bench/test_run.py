from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from leader.bench import run as module
from leader.bench.cell import Cell
from leader.bench.experiment import Experiment
from leader.bench.figures import draw_figure
from leader.bench.records import Store
from leader.bench.run import gather, run_experiment
from leader.bench.running import run_cell
from leader.bench.statistics import Numbers
from leader.bench.tables import FORMATS, render_table
from leader.cli.bench import app
from leader.engines import make_engine
from leader.errors import LeaderError
from tests.bench.tiny import TOML, tiny, write_tiny

Done = tuple[Experiment, Path]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Done:
    """The tiny experiment with all its records."""
    folder = tmp_path_factory.mktemp("bench")
    experiment = tiny(folder)
    outcome = run_experiment(experiment, Store(folder / "records", experiment.name), make_engine(), quiet=True)
    assert (outcome.ran, outcome.found, outcome.failed) == (40, 0, 0)
    return experiment, folder


def stored(experiment: Experiment, folder: Path) -> Store:
    return Store(folder / "records", experiment.name)


def test_a_second_run_does_nothing_and_leaves_the_bytes(done: Done, monkeypatch: pytest.MonkeyPatch) -> None:
    experiment, _folder = done
    before = stored(*done).path.read_bytes()

    def refuse(cell: Cell) -> None:
        raise AssertionError("nothing is missing")

    monkeypatch.setattr(module, "run_cell", refuse)
    outcome = run_experiment(experiment, stored(*done), make_engine(), quiet=True)
    assert (outcome.ran, outcome.found) == (0, 40)
    assert stored(*done).path.read_bytes() == before


def test_a_changed_setting_runs_again(done: Done, monkeypatch: pytest.MonkeyPatch) -> None:
    _experiment, folder = done
    changed = tiny(folder, TOML.replace("eta = 2.0", "eta = 1.0"))
    asked: list[str] = []

    def watch(cell: Cell) -> object:
        asked.append(cell.row)
        return run_cell(cell)

    monkeypatch.setattr(module, "run_cell", watch)
    copy = Store(folder / "records", "copy-small")
    run_experiment(changed.restricted("SATP", "Motion"), copy, make_engine(), quiet=True)
    copy.path.unlink()
    assert asked == ["DDNM + SATP"] * 4
    write_tiny(folder)


def test_equal_calls_means_equal_calls_image_by_image(done: Done) -> None:
    found = gather(done[0], stored(*done))
    assert (found.earlier, found.missing) == ({}, 0)
    for (row, task, index, seed), record in found.places.items():
        if row == "DDNM, uniform":
            assert record["calls"] == found.places[("DDNM + SATP", task, index, seed)]["calls"] < 5


def test_missing_records_are_refused_unless_partial(done: Done, tmp_path: Path) -> None:
    experiment = done[0]
    lines = stored(*done).path.read_text().splitlines(keepends=True)
    (tmp_path / f"{experiment.name}.jsonl").write_text("".join(lines[:7]))
    with pytest.raises(LeaderError, match="of 40 records"):
        gather(experiment, Store(tmp_path, experiment.name))
    found = gather(experiment, Store(tmp_path, experiment.name), partial=True)
    assert (len(found.places), found.missing) == (7, 33)


@pytest.mark.parametrize("form", sorted(FORMATS))
def test_tables_are_regenerated_to_the_byte(done: Done, form: str) -> None:
    texts = {render_table(Numbers(done[0], gather(done[0], stored(*done)).places), form) for _ in range(2)}
    assert len(texts) == 1
    text = texts.pop()
    for word in ("DDNM + UCPM", "Motion", "psnr" if form == "csv" else "PSNR"):
        assert word in text
    assert "nan" not in text


FIGURES = {
    "sweep": ("steps = [3, 5]", ""),
    "bars": ("", ""),
    "grid": ("", 'keep = ["restored"]'),
    "path": ('estimator = "auto"', 'keep = ["path"]'),
    "uncertainty": ('estimator = "auto"', 'keep = ["trace"]'),
}


@pytest.mark.parametrize("kind", sorted(FIGURES))
def test_figures_are_drawn_and_regenerated_to_the_byte(kind: str, tmp_path: Path) -> None:
    rows, keep = FIGURES[kind]
    head, tail = TOML.split("[[rows]]", 1)[0], TOML.split("[form.small]", 1)[1]
    block = f'[[rows]]\nmethods = ["ddnm"]\nplugins = [[], ["satp"]]\n{rows}\n'
    metrics = 'metrics = ["psnr", "lpips"]\n' if kind in ("sweep", "bars") else ""
    text = f'{head}{block}\n[figure]\nkind = "{kind}"\n{metrics}\n[form.small]{tail}{keep}\n'
    experiment = tiny(tmp_path, text.replace("count = 4", "count = 1"))
    store = Store(tmp_path / "records", experiment.name)
    run_experiment(experiment, store, make_engine(), quiet=True)
    found = gather(experiment, store).places
    for suffix in (".png", ".svg") if kind == "bars" else (".png",):
        files = [tmp_path / f"{name}{suffix}" for name in "ab"]
        for file in files:
            draw_figure(experiment, found, store, file)
        assert files[0].read_bytes() == files[1].read_bytes()
        assert files[0].stat().st_size > 2000


def test_the_commands_work_together(done: Done) -> None:
    _, folder = done
    path, options = str(write_tiny(folder)), ["--records", str(folder / "records")]
    runner = CliRunner()
    listed = runner.invoke(app, ["run", path, "--dry-run", *options])
    assert listed.exit_code == 0 and "40 cells" in listed.output and listed.output.count("\tyes") == 32
    again = runner.invoke(app, ["run", path, "--workers", "1", *options])
    assert again.exit_code == 0 and "0 cells run, 40 found" in again.output
    table = runner.invoke(app, ["table", path, "--out", str(folder / "table.md"), *options])
    assert table.exit_code == 0 and "### Average change" in (folder / "table.md").read_text()
    compared = runner.invoke(app, ["compare", path, "DDNM + UCPM", *options])
    assert compared.exit_code == 0 and "| SR | PSNR |" in compared.output
    wrong = runner.invoke(app, ["compare", path, "DDNM + UCMP", *options])
    assert isinstance(wrong.exception, LeaderError) and "DDNM + UCPM" in str(wrong.exception)


def test_a_record_whose_picture_is_gone_is_run_again(tmp_path: Path) -> None:
    experiment = tiny(tmp_path, TOML.replace("timing = false", 'timing = false\nkeep = ["restored"]')).restricted("DDPG", "SR")
    store = Store(tmp_path / "records", experiment.name)
    assert run_experiment(experiment, store, make_engine(), quiet=True).ran == 4
    record = next(iter(store.own.values()))
    picture = store.picture(record, "restored")
    kept = picture.read_bytes()
    picture.unlink()
    with pytest.raises(LeaderError, match="is missing"):
        store.picture(record, "restored")
    assert run_experiment(experiment, store, make_engine(), quiet=True).ran == 1 and picture.read_bytes() == kept
