"""Reads a TOML table entry by entry: an error is one sentence that says where."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable
from pathlib import Path
from typing import Any

from leader.by_name import show_value
from leader.errors import LeaderError, unknown_name
from leader.toml import read_table

LARGEST_FILE = 1 << 20
"""Largest experiment file in bytes: they are written by hand."""


def parse_toml(path: Path) -> dict[str, Any]:
    """The content of a TOML file; empty if there is none."""
    return read_table(path, "an experiment's settings", "correct it", LARGEST_FILE) if path.exists() else {}


class Table:
    """A table of a TOML file. where: its name in sentences, such as "the form 'small' of 'table1.toml'"."""

    def __init__(self, values: Any, where: str, known: Iterable[str]) -> None:
        if not isinstance(values, dict):
            raise LeaderError(f"{_capital(where)} must be a table; found {show_value(values)}.")
        valid = list(known)
        for key in values:
            if key not in valid:
                raise unknown_name(f"entry in {where}", key, valid)
        self.values, self.where = values, where

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def text(self, name: str, default: str | None = None) -> str:
        """A text; required without a default."""
        return str(self._one(name, default, lambda value: isinstance(value, str), "a text"))

    def text_or_none(self, name: str) -> str | None:
        return self.text(name) if name in self else None

    def flag(self, name: str, default: bool) -> bool:
        return bool(self._one(name, default, lambda value: isinstance(value, bool), "true or false"))

    def integer(self, name: str, default: int | None = None, low: int = 0, high: int = 2**31) -> int:
        """A whole number from low to high."""
        return int(self._one(name, default, lambda value: _is_integer(value, low, high), f"an integer from {low} to {high}"))

    def number(self, name: str, default: float, low: float, high: float) -> float:
        """A number from low to high."""

        def fits(value: Any) -> bool:
            return isinstance(value, (int, float)) and not isinstance(value, bool) and low <= value <= high

        return float(self._one(name, default, fits, f"a number from {low:g} to {high:g}"))

    def texts(self, name: str, default: tuple[str, ...] | None = None) -> tuple[str, ...]:
        """A list of texts."""
        return tuple(self._one(name, default, _are_texts, "a list of texts"))

    def integers(self, name: str, default: tuple[int, ...], low: int, high: int) -> tuple[int, ...]:
        """A non-empty list of integers from low to high; a single number counts as a list."""

        def fits(value: Any) -> bool:
            return isinstance(value, (list, tuple)) and len(value) > 0 and all(_is_integer(item, low, high) for item in value)

        value = self.values.get(name, default)
        listed = [value] if isinstance(value, int) else value
        if not fits(listed):
            raise self._wrong(name, f"an integer from {low} to {high}, or a list of them", value)
        return tuple(listed)

    def lists(self, name: str, default: list[list[str]]) -> list[list[str]]:
        """A list of lists of texts."""

        def fits(value: Any) -> bool:
            return isinstance(value, list) and len(value) > 0 and all(_are_texts(item) for item in value)

        return list(self._one(name, default, fits, "a list of lists of texts"))

    def tables(self, name: str) -> list[Any]:
        """A list of tables, whose content is not checked."""
        return list(self._one(name, [], lambda value: isinstance(value, list), "a list of tables"))

    def named_tables(self, name: str) -> dict[str, Any]:
        """A table of tables, whose content is not checked."""
        return dict(self._one(name, {}, lambda value: isinstance(value, dict), "a table of tables"))

    def plain(self, name: str, tables: Container[str] = ()) -> dict[str, Any]:
        """A table of texts, finite numbers, flags and lists of them; the names in `tables` hold tables of the same kind."""
        found = self._one(name, {}, lambda value: isinstance(value, dict), "a table")
        for key, value in found.items():
            inner = value.items() if isinstance(value, dict) and key in tables else [(key, value)]
            for last, item in inner:
                if not _is_plain(item) or (key in tables and not isinstance(value, dict)):
                    kind = "a table" if key in tables and not isinstance(value, dict) else "a text, a finite number or a flag"
                    raise LeaderError(f"'{last}' in '{name}' of {self.where} must be {kind}; found {show_value(item)}.")
        return dict(found)

    def alternatives(self, name: str) -> dict[str, list[Any]]:
        """A table of lists of texts, finite numbers and flags."""
        found = self._one(name, {}, lambda value: isinstance(value, dict), "a table of lists")
        for key, values in found.items():
            if not (isinstance(values, list) and values and all(_is_plain(item) for item in values)):
                raise LeaderError(
                    f"'{key}' in '{name}' of {self.where} must be a list of texts or numbers; found {show_value(values)}."
                )
        return dict(found)

    def _one(self, name: str, default: Any, fits: Any, kind: str) -> Any:
        if name not in self.values and default is None:
            raise LeaderError(f"{_capital(self.where)} lacks '{name}'; give {kind}.")
        value = self.values.get(name, default)
        if not fits(value):
            raise self._wrong(name, kind, value)
        return value

    def _wrong(self, name: str, kind: str, value: Any) -> LeaderError:
        return LeaderError(f"'{name}' in {self.where} must be {kind}; found {show_value(value)}.")


def _are_texts(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value)


def _is_integer(value: Any, low: int, high: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def _is_plain(value: Any) -> bool:
    if isinstance(value, list):
        return all(_is_plain(item) and not isinstance(item, list) for item in value)
    if isinstance(value, int):  # flags too; records are JSON, whose integers other programs read as 64 bits
        return abs(value) < 2**63
    return isinstance(value, str) or (isinstance(value, float) and math.isfinite(value))


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
