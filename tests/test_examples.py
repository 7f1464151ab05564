"""The examples, as a stranger runs them: from a folder of one's own, by module:Class; and what goes wrong on the way."""

import shutil
import sys
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

import leader
from leader import by_name
from leader.cli.app import app
from leader.errors import LeaderError, UsageError
from leader.methods import METHODS, Method
from leader.plugins import PLUGINS
from leader.restoration.request import RestoreRequest
from tests.cheap_prior import photograph

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for file in EXAMPLES.glob("m*"):
        shutil.copy(file, tmp_path)
        assert len(file.read_text().splitlines()) < 40
        monkeypatch.delitem(sys.modules, file.stem, raising=False)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)
    for registry in (METHODS, PLUGINS):
        monkeypatch.setattr(registry, "_found", {})
    return tmp_path


def test_all_of_them_restore_one_picture_and_the_run_can_be_repeated() -> None:
    choices: dict[str, Any] = {"method": "my_method:Blend", "plugins": ["my_plugin:Calm"], "prior": "my_prior:Smooth"}
    settings = {"pull": 0.5, "my_plugin:Calm": {"strength": 0.2}, "estimator": "my_estimator:Contrast"}
    seen = photograph(20, 28)
    given: dict[str, Any] = {"options": {"density": 0.3}, "sigma": 0.05, "steps": 4, "check": False}
    first = leader.restore(seen, "my_operator:Fog", **choices, settings=settings, **given)
    assert first.result.settings["method"] == {"name": "my_method:Blend", "pull": 0.5}
    operator: Any = first.posed.problem.operator
    assert operator.seen[0, 0] == pytest.approx(0.7)
    again = RestoreRequest.from_run(first.summary()).prepare(seen).run(check=False)
    assert torch.equal(again.result.images, first.result.images)
    other = leader.restore(seen, "my_operator:Fog", **choices, settings={**settings, "pull": 0.9}, **given)
    assert not torch.equal(other.result.images, first.result.images)


def test_a_table_of_ones_own_in_two_commands() -> None:
    run = CliRunner().invoke(app, ["bench", "run", "./mine.toml", "--count", "1", "--size", "32", "--workers", "1"])
    assert run.exit_code == 0, run.output
    shown = CliRunner().invoke(app, ["bench", "table", "mine.toml", "--count", "1", "--size", "32"])
    assert "| Blend + Calm |" in shown.output and "edge error" in shown.output and "Fog" in shown.output


@pytest.mark.parametrize(
    ("text", "name", "match"),
    [
        (None, "nowhere:Mine", "no module 'nowhere'"),
        ("import not_there", "own:Mine", "needs 'not_there'"),
        ("1 / 0", "own:Mine", "ZeroDivisionError"),
        ("class Other: pass", "own:Mine", "Unknown class of the module 'own'"),
        ("class Mine: pass", "own:Mine", "subclass of leader.methods.Method"),
        ("from leader.methods import Method\nclass Mine(Method): pass", "own:Mine", "no name"),
    ],
)
def test_what_cannot_be_had_is_one_sentence(folder: Path, text: str | None, name: str, match: str, monkeypatch: Any) -> None:
    monkeypatch.delitem(sys.modules, "own", raising=False)
    if text is not None:
        (folder / "own.py").write_text(text)
    with pytest.raises(LeaderError, match=match) as caught:
        METHODS[name]
    assert str(caught.value).count("\n") == 0
    assert CliRunner().invoke(app, ["methods", name]).exit_code in (1, 2)


def test_installed_packages_announce_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    points = EntryPoints(EntryPoint(name, "my_method:Blend", "leader.methods") for name in ("blend", "ddnm"))
    monkeypatch.setattr(by_name, "_scan_packages", lambda: points)
    registry = by_name.Registry("method", "leader.methods", METHODS.own, by_name.accept_class(Method))
    assert "blend" in list(registry) and registry["blend"].__name__ == "Blend"
    assert registry["ddnm"] is METHODS.own["ddnm"], "the package's own names cannot be taken"
    with pytest.raises(UsageError, match="no setting 'push'"):
        by_name.build("method", registry, "blend", {"push": 1.0})


def test_the_text_of_a_class_of_ones_own_is_its_revision(folder: Path, monkeypatch: Any) -> None:
    before = by_name.revision_of(METHODS["my_method:Blend"])
    assert by_name.revision_of(METHODS["ddnm"]) == METHODS["ddnm"].revision
    (folder / "edited.py").write_text((folder / "my_method.py").read_text().replace("x0 - self.pull", "x0 - 0.5 * self.pull"))
    monkeypatch.delitem(sys.modules, "edited", raising=False)
    assert by_name.revision_of(METHODS["edited:Blend"]) != before
