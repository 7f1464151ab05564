"""Constants are data: every row says what it is and where it comes from, and is used."""

import re
import sys
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))  # programs, not a package

from constants import list_measured
from constants_moved import list_constants, move_value

from leader.presets import parsed

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "leader" / "forensics"


def tables(content: dict[str, Any], place: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """(name, content) of every table whose entries are constants."""
    for name, table in content.items():
        if isinstance(table, dict) and "value" not in table:
            if any(isinstance(row, dict) and "value" in row for row in table.values()):
                yield place + name, table
            yield from tables(table, f"{place}{name}.")


TABLES = dict(tables(parsed(resources.files("leader.forensics") / "constants.toml")))


@pytest.mark.parametrize("name", sorted(TABLES))
def test_every_constant_has_a_unit_and_a_source_and_is_read_by_its_detector(name: str) -> None:
    code = (SOURCE / f"{name.replace('.', '/')}.py").read_text(encoding="utf-8")
    used = set(re.findall(r'"(\w+)"', "".join(re.findall(r"_CONSTANTS\.\w+\([^)]*\)", code))))
    rows = {key: row for key, row in TABLES[name].items() if key != "command"}
    assert used == set(rows)
    for row in rows.values():
        assert set(row) == {"value", "unit", "about", "measured"} and all(len(row[key]) > 3 for key in ("unit", "measured"))


def test_every_table_names_a_command_that_exists() -> None:
    assert all((ROOT / table["command"].split()[1]).is_file() for table in TABLES.values())


def test_what_moving_a_constant_changes_is_told_as_it_was_recorded() -> None:
    """`python benchmarks/constants.py write` brings texts up to date."""
    rows = dict(list_constants(parsed(SOURCE / "constants.toml")))
    told = list_measured()
    assert told == {name: rows[name]["measured"] for name in told} and len(told) > 100


def test_a_whole_number_moves_by_one_at_least() -> None:
    assert [move_value(value, 0.8) for value in (3, 4096, 0.5, [1.0, 2.0])] == [2, 3277, 0.4, [0.8, 1.6]]
    assert [move_value(value, 1.25) for value in (3, 16)] == [4, 20] and move_value(3, 0) == 0 and move_value(3, 100) == 30
