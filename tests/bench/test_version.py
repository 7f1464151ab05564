from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from leader.bench.cell import Frozen, Recipe
from leader.bench.identity import code_of, score_versions
from leader.bench.version import HOME, NOT_FOLLOWED, PACKAGE, Code, code_version, root_of
from leader.methods import METHODS
from leader.metrics import METRICS

ROOT = ["pack.run:numbers"]
FILES = {
    "__init__.py": "",
    "run.py": """
from pack.helpers import LIMIT, double
from pack.shapes import Box
from pack.texts import complain
from pack import tables

def numbers(x: float) -> float:
    if x > LIMIT:
        raise ValueError(f"too large: {x}")
    return double(x) + tables.load("data.npz") + Box(x).area()

def unrelated():
    return 1
""",
    "helpers.py": "from pack.texts import complain\nLIMIT = 3\ndef double(x):\n    return 2 * x\ndef spare(x):\n    return 7\n",
    "shapes.py": 'class Base:\n    def area(self):\n        return 0\nclass Box(Base):\n    summary = "a box"\n    side = 2\n'
    "    def __init__(self, x):\n        self.x = x\n    def __repr__(self):\n        return 'Box'\n",
    "tables.py": "def load(name):\n    return 1\n",
    "texts.py": "def complain():\n    return 'no'\n",
}


def package(folder: Path, **changes: str) -> str:
    """The version of a small package with other sources in some of its files."""
    home = folder / "pack"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    (home / "data.npz").write_bytes(changes.pop("data", "table").encode())
    for name, text in {**FILES, **{f"{key}.py": value for key, value in changes.items()}}.items():
        (home / name).write_text(text)
    return Code(home, "pack", frozenset({"pack.texts"})).version(ROOT)


RUN, HELPERS, SHAPES = FILES["run.py"], FILES["helpers.py"], FILES["shapes.py"]

SAME = {
    "error text": {"run": RUN.replace("too large: {x}", "{x} is more than is served")},
    "annotation": {"run": RUN.replace("x: float) -> float", "x: int) -> int")},
    "docstring and comment": {
        "helpers": HELPERS.replace("    return 2 * x", '    """Twice."""\n    # why\n    return (2 *\n  x)')
    },
    "a function that is not used": {"run": RUN.replace("return 1", "return 2"), "helpers": HELPERS.replace("7", "8")},
    "a new function": {"helpers": HELPERS + "def more(x):\n    return x\n"},
    "order": {"helpers": "def double(x):\n    return 2 * x\nLIMIT = 3\n"},
    "moved and split": {"helpers": "from pack.inner import LIMIT, double\n", "inner": HELPERS},
    "renamed module": {"run": RUN.replace("pack.helpers", "pack.better"), "better": HELPERS, "helpers": "LIMIT = 9\n"},
    "what people read": {"shapes": SHAPES.replace("a box", "a rectangle").replace("'Box'", "'a box'")},
    "a module not followed": {"texts": "def complain():\n    return 'never'\n"},
    "an import more": {"helpers": "import math\n" + HELPERS},
}
OTHER = {
    "a statement": {"helpers": HELPERS.replace("2 * x", "3 * x")},
    "a constant": {"helpers": HELPERS.replace("LIMIT = 3", "LIMIT = 4")},
    "a guard": {"run": RUN.replace("x > LIMIT", "x >= LIMIT")},
    "a type of number": {"helpers": HELPERS.replace("2 * x", "2.0 * x")},
    "a base class": {"shapes": SHAPES.replace("return 0", "return 1")},
    "a class variable": {"shapes": SHAPES.replace("side = 2", "side = 3")},
    "a default": {"helpers": HELPERS.replace("double(x)", "double(x=1)")},
    "through a module's name": {"tables": "def load(name):\n    return 2\n"},
    "a data file": {"data": "another table"},
    "a decorator": {"helpers": HELPERS.replace("def double", "@staticmethod\ndef double")},
    "a helper beside a registry": {"run": RUN.replace("unrelated():", "unrelated(y):").replace("double(x) +", "unrelated() +")},
    "a statement that runs on import": {"helpers": HELPERS + "print('hello')\n"},
}


@pytest.mark.parametrize("name", SAME)
def test_tidying_keeps_the_version(name: str, tmp_path: Path) -> None:
    assert package(tmp_path / "a", **SAME[name]) == package(tmp_path / "b")


@pytest.mark.parametrize("name", OTHER)
def test_what_can_change_a_number_changes_the_version(name: str, tmp_path: Path) -> None:
    assert package(tmp_path / "a", **OTHER[name]) != package(tmp_path / "b")


def test_a_missing_root_is_an_error(tmp_path: Path) -> None:
    package(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="no definition pack"):
        Code(tmp_path / "pack", "pack").version(["pack.run:nothing"])


def recipe(**changes: object) -> Recipe:
    plain = {"fit": "crop", "size": 64, "prior": "gaussian", "task": "deblur-motion", "sigma": 0.05, "method": "ddnm"}
    return Recipe(**{**plain, **changes})  # type: ignore[arg-type]


def reached(**changes: object) -> set[tuple[str, str]]:
    """What the version of a record's code is made of."""
    found: list[str] = []

    def note(roots: list[str]) -> str:
        found.extend(roots)
        return ""

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("leader.bench.identity.code_version", note)
        code_of.__wrapped__(recipe(**changes))
    return Code(HOME, PACKAGE, frozenset(NOT_FOLLOWED)).reached(found)


def test_a_record_depends_on_what_determines_its_numbers_and_on_nothing_else() -> None:
    found = reached(plugins=("leader",), settings=Frozen({"satp": {"budget": 0.1}}))
    modules = {module for module, _ in found}
    expected = {
        ("leader.bench.images", "load_image"),
        ("leader.pictures.reading", "read_picture"),
        ("leader.bench.running", "measure"),
        ("leader.bench.scoring", "scores"),
        ("leader.metrics.fidelity", "data_consistency"),
        ("leader.operators.tasks", "_motion_blur"),
        ("leader.operators.kernels.motion", "motion_kernel"),
        ("leader.operators.blur", "Blur"),
        ("leader.methods.ddnm", "DDNM"),
        ("leader.plugins.ucpm", "UCPM"),
        ("leader.plugins.satp", "SATP"),
        ("leader.uncertainty.estimators", "make_estimator"),
        ("leader.priors.gaussian", "GaussianPrior"),
        ("leader.priors.gaussian", "stationary"),
        ("leader.noise", "SeededNoise"),
        ("leader.schedule", "Schedule"),
        ("leader.sampler", "Sampler"),
        ("leader.problem", "Problem"),
        ("leader.priors.ledger", "Ledger"),
    }
    assert expected <= found
    assert not modules & {"leader.errors", "leader.by_name", "leader.files", "leader.presets", "leader.methods.ddpg"}
    assert not modules & {"leader.operators.resize", "leader.metrics.perceptual", "leader.bench.tables", "leader.plugins.equs"}
    assert not any(module.startswith(("leader.cli", "leader.train", "leader.restoration")) for module in modules)


def test_every_file_of_the_list_exists_and_has_a_reason() -> None:
    for entry, reason in NOT_FOLLOWED.items():
        module, _, name = entry.partition(":")
        path = HOME.joinpath(*module.split(".")[1:])
        files = [file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()]
        assert files and f"\n{name}" in files[0].read_text() and reason, entry


def test_records_of_other_methods_tasks_and_plugins_have_other_versions() -> None:
    recipes = [
        recipe(),
        recipe(method="ddpg"),
        recipe(task="cs"),
        recipe(plugins=("ucpm",)),
        recipe(method="pinv"),
        recipe(prior="embedded"),
    ]
    assert len({code_of(item) for item in recipes}) == len(recipes)
    assert code_of(recipe(steps=7, settings=Frozen({"eta": 0.5}))) == code_of(recipe()), "settings are not code"


def test_every_metric_has_its_own_version_where_it_can_be_computed() -> None:
    versions = {name: code_version([root_of(metric.function)]) for name, metric in METRICS.items()}
    assert len(set(versions.values())) == len(METRICS) >= 3
    from leader.bench.cell import Cell

    assert set(score_versions(Cell("", "", None, 0, recipe(size=64)))) == {"psnr", "ssim", "lpips"}
    assert set(score_versions(Cell("", "", None, 0, recipe(size=16)))) == {"psnr", "ssim"}
    assert set(score_versions(Cell("", "", None, 0, recipe(size=8)))) == {"psnr"}
    assert score_versions(Cell("", "", None, 0, recipe(method="reference"))) == {}


def test_a_method_depends_on_its_bases() -> None:
    code = Code(HOME, PACKAGE, frozenset(NOT_FOLLOWED))
    assert ("leader.methods.ddpg", "DDPG") in code.reached([root_of(METHODS["pirp"])])
    assert ("leader.methods.ddpg", "DDPG") not in code.reached([root_of(METHODS["ddnm"])])
