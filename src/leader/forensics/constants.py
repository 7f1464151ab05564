"""The constants of the detectors: data, in constants.toml, with unit and source."""

from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from leader.presets import parsed


@dataclass(frozen=True)
class Constants:
    """Those of one detector, by name: `rows` of value, unit, about and measured."""

    rows: dict[str, Any]

    def number(self, name: str) -> float:
        return float(self.rows[name]["value"])

    def count(self, name: str) -> int:
        return int(self.rows[name]["value"])

    def series(self, name: str) -> tuple[float, ...]:
        return tuple(float(value) for value in self.rows[name]["value"])

    def numbers(self, *names: str) -> tuple[float, ...]:
        return tuple(self.number(name) for name in names)

    def counts(self, *names: str) -> tuple[int, ...]:
        return tuple(self.count(name) for name in names)


def read_constants(detector: str) -> Constants:
    """The constants of a detector: the name of its module within `leader.forensics`."""
    table = _read_all()
    for part in detector.split("."):
        table = table[part]
    return Constants(table)


@cache
def _read_all() -> dict[str, Any]:
    return parsed(resources.files(__package__) / "constants.toml")
