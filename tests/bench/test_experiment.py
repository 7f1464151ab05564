from __future__ import annotations

from pathlib import Path

import pytest

from leader.bench.experiment import find_experiment, load_experiment
from leader.bench.records import Store
from leader.bench.run import dry_run, waves
from leader.errors import LeaderError, UsageError
from tests.bench.tiny import TOML, tiny, write_tiny

EXPERIMENTS = sorted(
    path for path in (Path(__file__).parents[2] / "experiments").glob("*.toml") if path.stem not in ("tasks", "forms", "search")
)


def test_rows_expand_with_labels_and_hosts(tmp_path: Path) -> None:
    experiment = tiny(tmp_path)
    hosts = {row.label: row.against for row in experiment.rows}
    assert hosts == {
        "DDNM": None,
        "DDNM + UCPM": "DDNM",
        "DDNM + SATP": "DDNM",
        "DDNM, uniform": "DDNM",
        "DDPG": None,
    }
    assert len(experiment.cells()) == 2 * 4 * 5


def test_varied_settings_and_steps_make_rows(tmp_path: Path) -> None:
    block = """
[[rows]]
label = "B = {}"
methods = ["ddnm"]
plugins = [["satp"]]
vary = { "satp.budget" = [0.0, 0.01] }

[[rows]]
methods = ["ddpg"]
plugins = [[], ["leader"]]
steps = [10, 20]

[form.small]"""
    experiment = tiny(tmp_path, TOML.replace("\n[form.small]", block))
    assert experiment.row("B = 0.01").settings == {"satp": {"budget": 0.01}}
    assert experiment.row("DDPG + LEADer, T = 20").against == "DDPG, T = 20"
    assert experiment.row("DDPG, T = 10").steps == 10
    with pytest.raises(LeaderError, match="2 braces, and 1 values vary"):
        tiny(tmp_path, TOML.replace("\n[form.small]", block.replace("B = {}", "B = {}, {}")))


def test_rows_that_take_calls_come_in_a_later_wave(tmp_path: Path) -> None:
    first, second = waves(tiny(tmp_path).cells())
    assert {cell.row for cell in second} == {"DDNM, uniform"}
    assert len(first) + len(second) == 40


def test_too_few_pictures_are_told(tmp_path: Path) -> None:
    with pytest.raises(LeaderError, match="holds 4 pictures"):
        load_experiment(write_tiny(tmp_path), count=5).cells()


def test_an_unknown_experiment_names_the_nearest(tmp_path: Path) -> None:
    write_tiny(tmp_path)
    with pytest.raises(UsageError, match="'tiny'"):
        find_experiment("tini", tmp_path)


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda path: path.stem)
def test_every_committed_experiment_has_both_forms_and_a_cost(path: Path, tmp_path: Path) -> None:
    for form, prior in (("small", "embedded"), ("full", "celebahq-256-repaint"), ("full-imagenet", "imagenet-256")):
        experiment = load_experiment(path, form, count=1)
        if form != "small":
            experiment = experiment.restricted(tasks=experiment.tasks[-1].label)
        assert experiment.form.prior == prior
        lines: list[str] = []
        total = dry_run(experiment, Store(tmp_path, experiment.name), lines.append)
        rows = [row for row in experiment.rows if row.method not in ("reference", "measurement")]
        assert len(lines) == 2 + len(experiment.rows) * len(experiment.tasks)
        assert total.calls > 0 and total.passes > 0 and rows


def test_steps_and_settings_come_from_the_row_then_the_method_then_the_form(tmp_path: Path) -> None:
    own = "\n[form.small.methods.ddpg]\nsteps = 3\nsettings = { zeta = 0.25, gamma = 2.0 }\n"
    rows = '[[rows]]\nlabel = "mine"\nmethods = ["ddpg"]\nsteps = 9\nsettings = { zeta = 0.5 }\n\n[form.small]'
    cells = {cell.row: cell for cell in tiny(tmp_path, TOML.replace("[form.small]", rows) + own).cells()}
    assert [cells[row].recipe.steps for row in ("DDNM", "DDPG", "mine", "DDNM, uniform")] == [5, 3, 9, None]
    assert cells["DDPG"].recipe.settings == {"zeta": 0.25, "gamma": 2.0}
    assert cells["mine"].recipe.settings == {"zeta": 0.5, "gamma": 2.0}


def test_rows_may_belong_to_some_forms(tmp_path: Path) -> None:
    extra = '[[rows]]\nmethods = ["ddrm"]\nforms = ["large"]\n\n[form.small]'
    text = TOML.replace("[form.small]", extra) + "\n[form.large]\nprior = 'gaussian'\n"
    path = write_tiny(tmp_path, text)
    labels = {form: {row.label for row in load_experiment(path, form).rows} for form in ("small", "large")}
    assert labels["large"] - labels["small"] == {"DDRM"} and labels["small"] < labels["large"]
    with pytest.raises(UsageError, match="'large'"):
        load_experiment(write_tiny(tmp_path, text.replace('["large"]', '["lage"]')))


def test_rows_may_have_fewer_images(tmp_path: Path) -> None:
    few = '[[rows]]\nmethods = ["ddrm"]\ncount = 2\n\n[form.small]'
    found = [(cell.row, cell.index) for cell in tiny(tmp_path, TOML.replace("[form.small]", few)).cells()]
    assert {index for row, index in found if row == "DDRM"} == {0, 1}
    assert {index for row, index in found if row == "DDNM"} == {0, 1, 2, 3}
    follower = few.replace("[form.small]", '[[rows]]\nlabel = "as many"\nmethods = ["ddnm"]\ncalls_of = "DDRM"\n\n[form.small]')
    with pytest.raises(LeaderError, match="which has fewer images"):
        tiny(tmp_path, TOML.replace("[form.small]", follower))
