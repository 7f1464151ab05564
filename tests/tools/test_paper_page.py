"""docs/paper-tables.md: the options that it names exist."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

from leader.methods import METHODS
from leader.operators.tasks import TASKS, list_options
from leader.plugins import PLUGINS

TEXT = Path("docs/paper-tables.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    return TEXT.split(f"## {title}\n", 1)[1].split("\n## ", 1)[0]


def test_what_is_named_as_published_exists() -> None:
    """Every `setting = value` of the section is a setting of a method, plug-in or task that its row names."""
    found = 0
    for row in (line for line in section("As published").splitlines() if line.startswith("| ")):
        option = row.split("|")[2]
        names = set(re.findall(r"`([a-z+-]+)`", option))
        settings = set(re.findall(r"`([a-z_]+) =", option)) | (names & {"return_noisy", "published_units"})
        owners = names & {*METHODS, *PLUGINS, *TASKS}
        for setting in settings:
            found += 1
            known = [
                setting in list_options(name)
                if name in TASKS
                else setting in {item.name for item in fields(METHODS.get(name) or PLUGINS[name])}  # type: ignore[arg-type]
                for name in owners
            ]
            assert any(known), f"{setting} in {option}"
    assert found >= 9
