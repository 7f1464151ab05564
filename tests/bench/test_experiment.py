from pathlib import Path

import pytest

from leader.bench.cell import Frozen
from leader.bench.experiment_file import find_experiment, load_experiment
from leader.bench.records import Store
from leader.bench.run import dry_run, waves
from leader.bench.setup import cost_of
from leader.errors import LeaderError, UsageError
from leader.methods import SITCOM
from tests.bench.tiny import TOML, tiny, write_tiny

FOLDER = Path(__file__).parents[2] / "experiments"
EXPERIMENTS = sorted(path for path in FOLDER.glob("*.toml") if path.stem not in ("tasks", "forms"))


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


def test_blocks_may_share_what_an_inner_one_may_replace(tmp_path: Path) -> None:
    block = """[[rows]]
methods = ["ddrm"]
steps = 9

[[rows.rows]]
plugins = [["satp"]]
rows = [{ label = "a" }, { label = "b", steps = 8 }]

[[rows.rows]]
label = "c"

[form.small]"""
    rows = tiny(tmp_path, TOML.replace("[form.small]", block)).rows[-3:]
    assert [(row.label, row.plugins, row.steps) for row in rows] == [("a", ("satp",), 9), ("b", ("satp",), 8), ("c", (), 9)]


def test_rows_that_take_calls_come_in_a_later_wave(tmp_path: Path) -> None:
    first, second = waves(tiny(tmp_path).cells())
    assert {cell.row for cell in second} == {"DDNM, uniform"}
    assert len(first) + len(second) == 40
    block = '[[rows]]\nlabel = "last"\nmethods = ["ddnm"]\ncalls_of = "DDNM, uniform"\n\n[form.small]'
    chain = tiny(tmp_path, TOML.replace("[form.small]", block))
    assert [{cell.row for cell in wave} for wave in waves(chain.cells())[1:]] == [{"DDNM, uniform"}, {"last"}]
    assert [row.label for row in chain.restricted("unif").rows] == ["DDNM + SATP", "DDNM, uniform"]


def test_too_few_pictures_are_told(tmp_path: Path) -> None:
    with pytest.raises(LeaderError, match="holds 4 pictures"):
        load_experiment(write_tiny(tmp_path), count=5).cells()


def test_an_unknown_experiment_names_the_nearest(tmp_path: Path) -> None:
    write_tiny(tmp_path)
    with pytest.raises(UsageError, match="'tiny'"):
        find_experiment("tini", tmp_path)


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda path: path.stem)
def test_every_committed_experiment_has_both_forms_and_a_cost(path: Path, tmp_path: Path) -> None:
    forms = (("small", "embedded"), ("full", "celebahq-256"), ("full-imagenet", "imagenet-256"))
    for form, prior in forms:
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
    assert cells["DDPG"].recipe.settings.plain() == {"zeta": 0.25, "gamma": 2.0}
    assert cells["mine"].recipe.settings.plain() == {"zeta": 0.5, "gamma": 2.0}


def test_rows_may_belong_to_some_forms(tmp_path: Path) -> None:
    extra = '[[rows]]\nmethods = ["ddrm"]\nforms = ["large"]\n\n[form.small]'
    text = TOML.replace("[form.small]", extra) + "\n[form.large]\nprior = 'gaussian'\n"
    path = write_tiny(tmp_path, text)
    labels = {form: {row.label for row in load_experiment(path, form).rows} for form in ("small", "large")}
    assert labels["large"] - labels["small"] == {"DDRM"} and labels["small"] < labels["large"]
    (tmp_path / "forms.toml").write_text("[wide]\nof = 'large'\nsize = 48\n[large]\nsteps = 7\n")
    wide = load_experiment(path, "wide")
    assert {row.label for row in wide.rows} == labels["large"], "a form of another has its rows and entries"
    assert (wide.form.prior, wide.form.size, wide.form.steps) == ("gaussian", 48, 7)
    named = load_experiment(write_tiny(tmp_path, text + "[form.wide]\nprior = 'embedded'\n"), "wide")
    assert {row.label for row in named.rows} == labels["small"] and named.form.prior == "embedded", "one of its own"
    with pytest.raises(UsageError, match="'large'"):
        load_experiment(write_tiny(tmp_path, text.replace('["large"]', '["lage"]')))


def test_a_row_may_give_its_estimator_as_a_table(tmp_path: Path) -> None:
    row = '[[rows]]\nlabel = "mine"\nmethods = ["ddpg"]\nestimator = { name = "hutchinson", every = 3 }\n\n[form.small]'
    text = TOML.replace("[form.small]", row)
    (mine, *_) = (cell for cell in tiny(tmp_path, text).cells() if cell.row == "mine")
    assert mine.recipe.estimator == Frozen({"name": "hutchinson", "every": 3})
    for wrong, said in (
        ("every = 0", "from 1 to 1000"),
        ("often = 3", "no setting 'often'"),
        ("every = [3]", "a whole number"),
    ):
        with pytest.raises(LeaderError, match=said):
            tiny(tmp_path, text.replace("every = 3", wrong))


def test_rows_may_have_fewer_images(tmp_path: Path) -> None:
    few = '[[rows]]\nmethods = ["ddrm"]\ncount = 2\n\n[form.small]'
    found = [(cell.row, cell.index) for cell in tiny(tmp_path, TOML.replace("[form.small]", few)).cells()]
    assert {index for row, index in found if row == "DDRM"} == {0, 1}
    assert {index for row, index in found if row == "DDNM"} == {0, 1, 2, 3}
    follower = few.replace("[form.small]", '[[rows]]\nlabel = "as many"\nmethods = ["ddnm"]\ncalls_of = "DDRM"\n\n[form.small]')
    with pytest.raises(LeaderError, match="which has fewer images"):
        tiny(tmp_path, TOML.replace("[form.small]", follower))


def test_the_papers_form_has_the_papers_cells() -> None:
    """Its Table 1: hosts, EquS and LEADer on CelebA-HQ, without the cells that it leaves out; derivatives are counted."""
    experiment = load_experiment(FOLDER / "table1.toml", "paper", count=2)
    cells = experiment.cells(dry=True)
    found = {(cell.row, cell.recipe.task, cell.recipe.sigma) for cell in cells}
    assert len(found) == 4 + 2 * 4 + 5 + 3 * 4 + 2 * 3 * 5 + 3 * 4
    assert {task for row, task, _ in found if row == "DDNM"} == {"sr", "deblur-gaussian", "cs"}
    assert {cell.recipe.steps for cell in cells if cell.row == "DPS"} == {1000}
    precisions = {cell.row: cell.recipe.precision for cell in cells}
    assert precisions["DDNM"] == "float16" and precisions["DPS"] == "float32", "what is differentiated is not rounded"
    leader = next(cell for cell in cells if cell.row == "DDNM + LEADer (paper)")
    assert cost_of(leader).jvps == 100 and cost_of(leader).passes == 300, "this network predicts no variance"
    other = load_experiment(FOLDER / "table1.toml", "full-repaint", count=1).cells(dry=True)
    assert cost_of(next(cell for cell in other if cell.row == "DDNM + LEADer (paper)")).jvps == 0, "this one does"


def test_sitcom_has_its_steps_wherever_it_is_at_full_size() -> None:
    for name in ("table1", "table4"):
        cells = load_experiment(FOLDER / f"{name}.toml", "full", count=1).cells(dry=True)
        assert {cell.recipe.steps for cell in cells if cell.recipe.method == "sitcom"} == {20}


def test_rows_may_have_fewer_tasks_and_a_form_settings_for_all_rows(tmp_path: Path) -> None:
    few = '[[rows]]\nmethods = ["ddrm"]\nonly = ["deblur"]\n\n[form.small]\n'
    few += "settings = { satp = { eta = 9.0 }, ucpm = { lam = 0.3 } }"
    path = write_tiny(tmp_path, TOML.replace("[form.small]", few))
    cells = load_experiment(path).cells()
    assert {cell.title for cell in cells if cell.row == "DDRM"} == {"Motion"}
    settings = {cell.row: cell.recipe.settings.plain() for cell in cells}
    assert settings["DDNM + UCPM"] == {"ucpm": {"lam": 0.3}} and settings["DDNM"] == {}
    assert settings["DDNM + SATP"] == {"satp": {"budget": 0.3, "eta": 2.0}}, "a row's own win"
    for wrong in (
        'only = ["deblurr"]',
        'only = ["deblur"]\ncalls_of = "DDNM"\nlabel = "x"\n[[rows]]\nlabel = "y"\nmethods = ["ddnm"]\ncalls_of = "x"',
    ):
        with pytest.raises(LeaderError, match=r"deblurr|fewer tasks"):
            load_experiment(write_tiny(tmp_path, TOML.replace("[form.small]", few.replace('only = ["deblur"]', wrong))))
    with pytest.raises(UsageError, match="plug-in among the settings"):
        load_experiment(path, settings={"eta": 0.5})


def test_a_trial_shortens_every_row(tmp_path: Path) -> None:
    own = "\n[form.small.methods.ddpg]\nsteps = 30\n"
    experiment = tiny(tmp_path, TOML + own).shortened(4)
    assert {cell.recipe.steps for cell in experiment.cells()} == {4, None}
    assert experiment.name != tiny(tmp_path, TOML + own).name, "its records are not those of the whole"
    whole = load_experiment(FOLDER / "table4.toml", "paper")
    for steps, inner in ((3, 3), (50, SITCOM().inner)):
        cells = [cell for cell in whole.shortened(steps).cells(dry=True) if cell.recipe.method == "sitcom"]
        assert cells and {cell.recipe.settings.plain()["inner"] for cell in cells} == {inner}, (
            "its inner loop asks the network too"
        )
        assert {cell.recipe.steps for cell in cells} == {min(20, steps)}
