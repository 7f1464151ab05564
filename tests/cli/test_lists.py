"""leader methods | tasks | plugins | priors | estimators."""

from __future__ import annotations

import ast
from typing import Any

import pytest
from typer.testing import CliRunner

from leader.cli import app
from leader.methods import METHODS
from leader.operators import LinearOperator
from leader.plugins import PLUGINS
from leader.priors.catalogue import ENTRIES
from leader.uncertainty import ESTIMATORS

runner = CliRunner()


@pytest.mark.parametrize("kind", ["methods", "tasks", "plugins", "priors", "estimators"])
def test_lists_and_details(kind: str) -> None:
    listed = runner.invoke(app, [kind])
    assert listed.exit_code == 0
    names = [line.split("\t")[0] for line in listed.stdout.splitlines()]
    assert len(names) >= 3 and (kind != "estimators" or set(names) == {*ESTIMATORS, "auto", "none"})
    if kind == "priors":
        here = {line.split("\t")[0] for line in listed.stdout.splitlines() if line.endswith("\tyes")}
        assert here == {"embedded", *(name for name, entry in ENTRIES.items() if entry.on_disk)} < set(names)
    head = {"plugins": "plug-in"}.get(kind, kind[:-1])
    drawn = runner.invoke(app, [kind], env={"FORCE_COLOR": "1", "COLUMNS": "400", "TERM": "xterm"}).stdout.splitlines()
    assert len(drawn) == len(names) + 1
    assert all(0 <= line.find(name) < 8 for name, line in zip([head, *names], drawn)), "the first column"
    for name in names:
        shown = runner.invoke(app, [kind, name])
        assert shown.exit_code == 0 and name in shown.stdout
    wrong = runner.invoke(app, [kind, names[0] + "x"])
    assert wrong.exit_code == 2 and f"did you mean '{names[0]}'" in wrong.stderr


@pytest.mark.parametrize(("kind", "known"), [("methods", METHODS), ("plugins", PLUGINS)])
def test_what_is_listed_as_a_default_is_what_is_used(kind: str, known: Any) -> None:
    for name in sorted(known):
        shown = runner.invoke(app, [kind, name]).stdout.splitlines()
        listed = dict(line.strip().split(" = ", 1) for line in shown if line.startswith("  "))
        given = {option: ast.literal_eval(value) for option, value in listed.items() if value != "(required)"}
        made = known[name](**given)
        assert made == known[name]() and set(listed) <= set(vars(made)), name
        assert bool(listed) is ("settings: none" not in shown) and f"paper: {known[name].paper}" in shown
        if kind == "methods":
            assert f"needs: {known[name].needs}" in shown


class Faded(LinearOperator):
    """Fades the picture.

    By as much as `share` says.
    """

    def __init__(self, image_shape: tuple[int, int, int], share: float, levels: int = 7) -> None:
        raise NotImplementedError


def test_an_operator_of_ones_own_is_described() -> None:
    shown = runner.invoke(app, ["tasks", f"{__name__}:Faded"]).stdout
    assert f"{__name__}:Faded: Fades the picture." in shown and "By as much as `share` says." in shown
    assert "  share = (required)\n  levels = 7\n" in shown and f"--task {__name__}:Faded" in shown


def test_a_prior_is_described_as_it_is_listed() -> None:
    rows = {line.split("\t")[0]: line.split("\t")[1:] for line in runner.invoke(app, ["priors"]).stdout.splitlines()}
    for name in ENTRIES:
        shown = runner.invoke(app, ["priors", name]).stdout
        about = dict(line.split(": ", 1) for line in shown.splitlines() if ": " in line)
        title, size, *rest = rows[name]
        assert (title, *rest) == (
            about["title"],
            about["licence"],
            about["source"],
            "yes" if about["on_disk"] == "True" else "no",
        )
        assert round(int(about["bytes"]) / 1e6) == int(size.removesuffix(" MB").replace(",", ""))
        assert ("No SHA-256 is known" in shown) is (about["sha256"] == "unknown")
