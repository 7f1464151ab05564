from __future__ import annotations

from pathlib import Path

import pytest

from leader.bench.experiment import find_experiment, load_experiment
from leader.bench.records import Store
from leader.bench.run import dry_run, waves
from leader.errors import LeaderError, UsageError
from tests.bench.tiny import TOML, tiny, write_tiny

EXPERIMENTS = sorted(
    path for path in (Path(__file__).parents[2] / "experiments").glob("*.toml") if path.stem not in ("tasks", "search")
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


def test_per_image_kernels_follow_the_image(tmp_path: Path) -> None:
    cells = tiny(tmp_path).restricted("DDPG", "Motion").cells()
    assert [cell.options["seed"] for cell in cells] == [0, 1, 2, 3]


def test_rows_that_take_calls_come_in_a_later_wave(tmp_path: Path) -> None:
    first, second = waves(tiny(tmp_path).cells())
    assert {cell.row for cell in second} == {"DDNM, uniform"}
    assert len(first) + len(second) == 40


@pytest.mark.parametrize(
    ("before", "after", "word"),
    [
        ('methods = ["ddpg"]', 'methods = ["ddgp"]', "did you mean"),
        ("steps = 5", "stepz = 5", "did you mean 'steps'"),
        ('calls_of = "DDNM + SATP"', 'calls_of = "DDNM + SATTP"', "DDNM \\+ SATP"),
        ('grid = "linspace"', 'grid = "linspaze"', "linspace"),
        ('tasks = ["sr", "deblur"]', 'tasks = ["sr", "blur"]', "deblur"),
        ('title = "Tiny"', "title = Tiny", "not valid TOML"),
    ],
)
def test_mistakes_are_told_in_one_sentence(tmp_path: Path, before: str, after: str, word: str) -> None:
    path = write_tiny(tmp_path, TOML.replace(before, after))
    with pytest.raises(LeaderError, match=word):
        load_experiment(path)


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


PAPER_ROWS = {
    "table1": [
        "DDRM",
        "DPS",
        "DiffPIR",
        "IDPG",
        "DDNM",
        "DDNM + EquS+",
        "DDNM + LEADer (paper)",
        "DDPG",
        "DDPG + EquS",
        "DDPG + LEADer (paper)",
        "ProjDiff",
        "ProjDiff + EquS+",
        "ProjDiff + LEADer (paper)",
        "SITCOM",
        "SITCOM + EquS",
        "SITCOM + LEADer (paper)",
        "PIRP",
        "PIRP + EquS",
        "PIRP + LEADer (paper)",
    ],
    "table2": [
        "DDNM",
        "DDNM + UCPM (paper)",
        "DDNM, T = 93",
        "DDNM + SATP (paper)",
        "DDNM + UCPM (paper), T = 93",
        "DDNM + LEADer (paper)",
    ],
    "table3": [f"PIRP F_lb G_- + LEADer (paper), B = {B}" for B in ("0", "0.001", "0.005", "0.01", "0.05", "0.1")],
    "table4": [f"{host}{plug}" for host in ("DDNM", "DDPG", "SITCOM", "PIRP") for plug in ("", " + LEADer (paper)")],
    "fid": ["DDNM", "DDNM + LEADer (paper)"],
    "figure5": [
        f"{host}{plug}, T = {T}" for host in ("DDNM", "DDPG") for plug in ("", " + LEADer (paper)") for T in (10, 20, 50, 100)
    ],
    "figure6": ["DDNM", "DDNM + LEADer (paper)"],
}
"""The rows of the paper's tables and figures, in its own words as far as we have them."""


@pytest.mark.parametrize("form", ["full", "full-imagenet"])
@pytest.mark.parametrize("name", PAPER_ROWS)
def test_the_full_forms_print_the_paper_s_rows(name: str, form: str, tmp_path: Path) -> None:
    """In a dry run, on 1,000 pictures where the paper has as many."""
    made = load_experiment(Path("experiments") / f"{name}.toml", form, count=1)
    lines: list[str] = []
    dry_run(made.restricted(tasks=made.tasks[0].label), Store(tmp_path, made.name), lines.append)
    for label in PAPER_ROWS[name]:
        assert any(line.split("\t")[0] == label for line in lines), label
    if name != "table4":
        assert load_experiment(Path("experiments") / f"{name}.toml", form).form.count == 1000
