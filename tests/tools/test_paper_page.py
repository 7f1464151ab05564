"""docs/paper.md: every link leads somewhere, every part of the paper has its line, what it names exists."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from leader.methods import METHODS
from leader.operators.tasks import TASKS, options_of
from leader.plugins import BUNDLES, PLUGINS
from leader.uncertainty.estimators import ESTIMATORS

PAGE = Path("docs/paper.md")
TEXT = PAGE.read_text(encoding="utf-8")
LINKS = sorted({link for link in re.findall(r"\]\(([^)\s]+)\)", TEXT) if not link.startswith("http")})


def section(title: str) -> str:
    return TEXT.split(f"## {title}\n", 1)[1].split("\n## ", 1)[0]


@pytest.mark.parametrize("link", LINKS)
def test_every_link_exists(link: str) -> None:
    assert (PAGE.parent / link.split("#")[0]).exists()


def test_every_row_of_the_equations_and_tables_is_linked() -> None:
    for title in ("Equations", "Tables and figures"):
        rows = [line for line in section(title).splitlines() if line.startswith("| ") and "---" not in line][1:]
        assert len(rows) >= 12
        for row in rows:
            assert "](" in row or "`leader bench" in row, row


def test_every_equation_line_table_and_figure_has_its_row() -> None:
    firsts = [line.split("|")[1].strip() for line in section("Equations").splitlines() if line.startswith("| ")]
    numbers = {int(number) for first in firsts for number in re.findall(r"\d+", first)}
    assert numbers == set(range(1, 24)), "the paper has 23 numbered equations"
    lines = section("Algorithm 1")
    for number in (1, 2, 4, 5, 6, 8, 9, 10, 12, 14, 16, 17):
        assert re.search(rf"\| [^|]*\b{number}\b", lines), f"line {number} of Algorithm 1"
    shown = section("Tables and figures")
    for name in (*(f"Table {n}" for n in range(1, 5)), *(f"Figure {n}" for n in range(1, 8)), "FID table"):
        assert f"| {name} |" in shown, name


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
                setting in options_of(name)
                if name in TASKS
                else setting in {item.name for item in fields(METHODS.get(name) or PLUGINS[name])}  # type: ignore[arg-type]
                for name in owners
            ]
            assert any(known), f"{setting} in {option}"
    assert found >= 9


def test_names_in_the_text() -> None:
    for name in ("leader", "leader-paper"):
        assert name in BUNDLES and f"`{name}`" in TEXT
    for name in ("exact", "hutchinson", "noise-energy"):
        assert name in ESTIMATORS and f"`{name}`" in TEXT
