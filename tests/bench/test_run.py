from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

from leader.bench import run as module
from leader.bench.cell import Cell
from leader.bench.experiment import Experiment, Shown
from leader.bench.figures import draw_figure
from leader.bench.keys import identify
from leader.bench.records import Store
from leader.bench.run import gather, resolved, run_experiment
from leader.bench.running import Answer, run_cells
from leader.bench.statistics import Numbers
from leader.bench.tables import FORMATS, render_table
from leader.cli.bench import app
from leader.engines import LocalEngine, Lost, make_engine
from leader.engines.base import Answer as Answered
from leader.engines.base import Job
from leader.errors import LeaderError
from leader.priors import catalogue
from leader.priors.detection import build_network
from leader.priors.networks import DDPMConfig
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


class Watched(LocalEngine):
    """Writes down (its name, images together, the first one's position) for every job."""

    def __init__(self, name: str, jobs: list[tuple[str, int, int]]) -> None:
        super().__init__(1)
        self.name, self.jobs = name, jobs

    def each(self, function: Callable[[Job], Answered], jobs: Iterable[Job]) -> Iterator[tuple[int, Answered | Lost]]:
        given: list[Any] = list(jobs)
        self.jobs += [(self.name, len(job), job[0].index) for job in given]
        yield from super().each(function, given)


def run_cell_empty(cell: Cell) -> dict[str, Any]:
    """What every record has."""
    who = identify(cell)
    return {"key": who.key, "asked": who.asked, "revisions": who.revisions, "package": "0"}


def stored(experiment: Experiment, folder: Path) -> Store:
    return Store(folder / "records", experiment.name)


def test_a_second_run_does_nothing_and_leaves_the_bytes(done: Done, monkeypatch: pytest.MonkeyPatch) -> None:
    experiment, _folder = done
    before = stored(*done).path.read_bytes()

    def refuse(cells: tuple[Cell, ...]) -> None:
        raise AssertionError("nothing is missing")

    monkeypatch.setattr(module, "run_cells", refuse)
    left: list[float] = []
    monkeypatch.setattr(module.Meter, "skip", lambda meter, passes: left.append(passes))
    outcome = run_experiment(experiment, stored(*done), make_engine(), quiet=True)
    assert (outcome.ran, outcome.found, len(left)) == (0, 40, 40)
    assert stored(*done).path.read_bytes() == before


def test_a_changed_setting_runs_again(done: Done, monkeypatch: pytest.MonkeyPatch) -> None:
    _experiment, folder = done
    changed = tiny(folder, TOML.replace("eta = 2.0", "eta = 1.0"))
    asked: list[str] = []

    def watch(cells: tuple[Cell, ...]) -> object:
        asked.extend(cell.row for cell in cells)
        return run_cells(cells)

    monkeypatch.setattr(module, "run_cells", watch)
    copy = Store(folder / "records", "copy-small")
    run_experiment(changed.restricted("SATP", "Motion"), copy, make_engine(), quiet=True)
    copy.path.unlink()
    assert asked == ["DDNM + SATP"] * 4
    write_tiny(folder)


def test_rows_that_agree_run_once(done: Done, tmp_path: Path) -> None:
    plain = done[0].restricted("DDPG", "SR")
    twice = replace(plain, rows=(plain.rows[0], replace(plain.rows[0], label="Again")))
    store = Store(tmp_path, "twice")
    assert run_experiment(twice, store, make_engine(), quiet=True).ran == 8
    assert len(store.own) == 4 and len(gather(twice, store).places) == 8


def test_images_that_run_together_give_the_records_that_each_gives_alone(done: Done, tmp_path: Path) -> None:
    """Two at a time, the last alone; motion blurs have a kernel each. Those whose seconds count run one by one, elsewhere."""
    experiment, _folder = done
    form = replace(experiment.form, batch=2, timing=True, timed=1)
    together = replace(experiment, form=form)
    jobs: list[tuple[str, int, int]] = []
    engines = [Watched(name, jobs) for name in ("all", "alone")]
    store = Store(tmp_path, experiment.name)
    run_experiment(together, store, engines[0], alone=engines[1], quiet=True)
    assert {(name, size) for name, size, _ in jobs} == {("all", 2), ("all", 1), ("alone", 1)}
    assert {index for name, _, index in jobs if name == "alone"} == {0}
    numbers = ("psnr", "lpips", "residual_raw", "calls", "work")
    alone, joint = (
        {place: [record[name] for name in numbers] for place, record in gather(one, where).places.items()}
        for one, where in ((experiment, stored(*done)), (together, store))
    )
    assert joint == alone
    times = {place[2] for place, record in gather(together, store).places.items() if "seconds" in record}
    assert times == {0}


def test_a_run_that_only_fails_ends_soon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(cells: tuple[Cell, ...]) -> list[Answer]:
        return [Answer({**run_cell_empty(cell), "error": "no such luck."}, {}) for cell in cells]

    experiment = tiny(tmp_path)
    monkeypatch.setattr(module, "run_cells", fail)
    store = Store(tmp_path / "records", experiment.name)
    with pytest.raises(LeaderError, match="no such luck"):
        run_experiment(experiment, store, make_engine(), quiet=True)
    assert len(list(store.all())) == module.MOST_FAILURES < 40


def test_images_whose_paths_are_kept_run_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(cells: tuple[Cell, ...]) -> list[Answer]:
        return [Answer({**run_cell_empty(cell), "calls": 5}, {}) for cell in cells]

    experiment, jobs = tiny(tmp_path), list[tuple[str, int, int]]()
    monkeypatch.setattr(module, "run_cells", answer)
    for keep, most in (((), 2), (("path",), 1)):
        several = replace(experiment, form=replace(experiment.form, batch=2, keep=keep))
        run_experiment(several, Store(tmp_path / str(most), "x"), Watched("all", jobs), quiet=True)
        assert max(count for _, count, _ in jobs) == most
        jobs.clear()


def test_absent_weights_and_pictures_end_a_run_before_it_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEADER_CACHE", str(tmp_path))
    path = Path(__file__).parents[2] / "experiments" / "table1.toml"
    common = ["run", str(path), "--form", "paper", "--device", "cpu", "--records", str(tmp_path / "records")]
    answer = CliRunner().invoke(app, [*common, "--images", str(write_tiny(tmp_path).parent / "images"), "--count", "2"])
    assert "celebahq-256" in str(answer.exception) and isinstance(answer.exception, LeaderError)
    weights = replace(catalogue.ENTRIES["celebahq-256"], config=DDPMConfig(32, (1, 1), 1, (1,)), filename="w.ckpt")
    monkeypatch.setitem(catalogue.ENTRIES, "celebahq-256", weights)
    torch.save(dict(build_network(weights.config).state_dict()), weights.path)
    answer = CliRunner().invoke(app, [*common, "--images", str(tmp_path / "images")])
    assert "holds 4 pictures" in str(answer.exception)
    answer = CliRunner().invoke(app, common)
    assert "folder of pictures" in str(answer.exception)
    assert not (tmp_path / "records").exists() or not list((tmp_path / "records").glob("*.jsonl"))


def test_equal_calls_means_equal_calls_image_by_image(done: Done) -> None:
    found = gather(done[0], stored(*done))
    assert (found.earlier, found.missing) == ({}, 0)
    for (row, task, index, seed), record in found.places.items():
        if row == "DDNM, uniform":
            assert record["calls"] == found.places[("DDNM + SATP", task, index, seed)]["calls"] < 5
    cells = [cell for cell in done[0].cells() if cell.calls_of]
    places: Any = {(cell.calls_of, *cell.place[1:]): {"calls": number} for number, cell in enumerate(cells)}
    assert [resolved(cell, places).recipe.steps for cell in cells] == list(range(len(cells))), "where they differ, too"


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


@pytest.mark.parametrize("suffix", [".png", ".jpg", ".svg"])
def test_figures_are_regenerated_to_the_byte(done: Done, tmp_path: Path, suffix: str) -> None:
    drawn, files = replace(done[0], figure=Shown(kind="bars")), [tmp_path / f"{name}{suffix}" for name in "ab"]
    for file in files:
        draw_figure(drawn, gather(drawn, stored(*done)).places, stored(*done), file)
    assert files[0].read_bytes() == files[1].read_bytes() and files[0].stat().st_size > 2000


def test_the_commands_work_together(done: Done) -> None:
    _, folder = done
    path, options = str(write_tiny(folder)), ["--records", str(folder / "records")]
    runner = CliRunner()
    listed = runner.invoke(app, ["run", path, "--dry-run", *options])
    assert listed.exit_code == 0 and "8 cells to do: 40 calls" in listed.output, "those that follow another row"
    again = runner.invoke(app, ["run", path, "--workers", "1", *options])
    assert again.exit_code == 0 and "0 cells run, 40 found" in again.output
    table = runner.invoke(app, ["table", path, "--out", str(folder / "table.md"), *options])
    assert table.exit_code == 0 and "### Average change" in (folder / "table.md").read_text()
    compared = runner.invoke(app, ["compare", path, "DDNM + UCPM", *options])
    assert compared.exit_code == 0 and "| SR | PSNR |" in compared.output
    wrong = runner.invoke(app, ["compare", path, "DDNM + UCMP", *options])
    assert isinstance(wrong.exception, LeaderError) and "DDNM + UCPM" in str(wrong.exception)


def test_a_dry_run_says_how_long_it_takes_from_runs_of_its_kind(tmp_path: Path) -> None:
    experiment, said = tiny(tmp_path), list[str]()
    form, store = experiment.form, Store(tmp_path / "records", experiment.name)
    mine: dict[str, Any] = {"prior": {"name": form.prior}, "size": form.size, "device": form.device}
    others = [{**mine, "size": 32}, {**mine, "device": "cuda"}, {**mine, "prior": {"name": "another"}}]
    with store.writing():
        for number, (asked, seconds) in enumerate([(mine, 3600.0), (mine, 7200.0), *((one, 9e9) for one in others)]):
            numbers = {"seconds": seconds, "work": 3.0 * (number + 1), "calls": 3}
            store.append({"key": str(number), "asked": {**asked, "at": number}, "revisions": {}, "package": "1", **numbers})
    bill = module.dry_run(experiment, store, said.append)
    assert bill.passes > 0 and said[-1].endswith(
        f"about {1200 * bill.passes / 60:.0f} min of one worker, estimated from stored runs"
    )
    elsewhere = replace(experiment, form=replace(form, pace=720.0))
    module.dry_run(elsewhere, Store(tmp_path / "none", experiment.name), said.append)
    assert said[-1].endswith(f"about {0.2 * bill.passes:.0f} hours of one GPU at 720 s a pass")


def test_cells_that_are_there_are_not_counted_as_work() -> None:
    meter = module.Meter("x", 4, 40.0, quiet=True)
    meter.skip(10.0)
    assert str(meter) == "x: 0/3 cells"
    meter.done(10.0)
    assert str(meter).startswith("x: 1/3 cells, ") and meter.finished == 1


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
    few = replace(experiment, form=replace(experiment.form, count=3))
    for prune, left in ((False, 4), (True, 3)):
        run_experiment(few, store, make_engine(), quiet=True, prune=prune)
        assert len(store.own) == left
