"""leader methods | tasks | plugins | priors | estimators."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from leader.cli import app, lists
from leader.priors.catalogue import ENTRIES
from leader.uncertainty import ESTIMATORS

runner = CliRunner()


@pytest.mark.parametrize("kind", ["methods", "tasks", "plugins", "priors", "estimators"])
def test_lists_and_details(kind: str) -> None:
    listed = runner.invoke(app, [kind])
    assert listed.exit_code == 0
    names = [line.split("\t")[0] for line in listed.stdout.splitlines()]
    assert len(names) >= 3
    if kind == "priors":
        here = {line.split("\t")[0] for line in listed.stdout.splitlines() if line.endswith("\tyes")}
        assert here == {"embedded", *(name for name, entry in ENTRIES.items() if entry.on_disk)} < set(names)
    for name in names:
        shown = runner.invoke(app, [kind, name])
        assert shown.exit_code == 0 and name in shown.stdout
    wrong = runner.invoke(app, [kind, names[0] + "x"])
    assert wrong.exit_code == 2 and f"did you mean '{names[0]}'" in wrong.stderr


def test_every_estimator_is_listed() -> None:
    assert set(lists.list_estimators()) == {*ESTIMATORS, "auto", "none"}
