"""Reads tables of a TOML file as dataclasses: an error is one sentence that says where."""

import math
from collections.abc import Container
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, TypeVar

from leader.by_name import check_values, show_value
from leader.errors import LeaderError, unknown_name
from leader.toml import read_table

T = TypeVar("T")
LARGEST_FILE = 1 << 20
"""Largest experiment file in bytes: they are written by hand."""


def parse_toml(path: Path) -> dict[str, Any]:
    """The content of a TOML file; empty if there is none."""
    return read_table(path, "an experiment's settings", "correct it", LARGEST_FILE) if path.exists() else {}


def read_entries(cls: type[T], values: Any, kind: str, name: str) -> T:
    """The dataclass `cls` of a table whose entries are its fields, with values of the declared types (see `check_values`).

    kind, name  of the table in sentences: the form 'small of table1.toml'
    """
    if not isinstance(values, dict):
        raise LeaderError(f"The {kind} '{name}' must be a table; found {show_value(values)}.")
    known = {item.name: item for item in fields(cls)}  # type: ignore[arg-type]
    for key in values:
        if key not in known:
            raise unknown_name(f"entry in the {kind} '{name}'", key, known)
    for key, item in known.items():
        if key not in values and item.default is MISSING and item.default_factory is MISSING:
            raise LeaderError(f"The {kind} '{name}' lacks '{key}'; give it.")
    check_values(cls, values, kind, name)
    return cls(**{key: _make_tuple(value) for key, value in values.items()})


def _make_tuple(value: Any) -> Any:
    return tuple(map(_make_tuple, value)) if isinstance(value, list) else value


def check_plain(values: Any, where: str, tables: Container[str] = ()) -> None:
    """Rejects what is no table of texts, finite numbers, flags and lists of them; the names in `tables` hold such tables."""
    if not isinstance(values, dict):
        raise LeaderError(f"{where} must be a table; found {show_value(values)}.")
    for key, value in values.items():
        if key in tables:
            check_plain(value, f"'{key}' in {where}")
        elif not _is_plain(value):
            raise LeaderError(f"'{key}' in {where} must be a text, a finite number or a flag; found {show_value(value)}.")


def _is_plain(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(_is_plain(item) and not isinstance(item, (list, tuple)) for item in value)
    if isinstance(value, int):  # flags too; records are JSON, whose integers other programs read as 64 bits
        return abs(value) < 2**63
    return isinstance(value, str) or (isinstance(value, float) and math.isfinite(value))
