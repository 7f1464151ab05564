"""Cells: a cell is one image, one task, one method with its plug-ins, one seed.

The cells of all images share a `Recipe`: frozen and hashable, so that plans, costs and versions can be cached by it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

BASELINES = {"reference": "Reference", "measurement": "Measurement", "pinv": "A⁺ y"}
"""Baselines that are not methods, with their names in tables: the picture, the measurement as a picture (or A^+ y), A^+ y."""
KEEP = ("restored", "path", "trace", "trust")
"""What a record can hold besides numbers: the restored picture, x0_hat and Sigma during the run, every step's (t, jump, U_t),
or scores of the trust map.
"""

Place = tuple[str, str, int, int]
"""The place of a number in a table: row, task, image, seed."""


class Frozen(Mapping[str, Any]):
    """A mapping that can be hashed; lists in it become tuples, mappings Frozen.

    Two are equal if their values and types are: 1 and 1.0 are different settings, since they are written differently in a
    record.
    """

    def __init__(self, values: Mapping[str, Any] | None = None) -> None:
        self._values = {key: _frozen(value) for key, value in sorted((values or {}).items())}
        self._key = tuple((key, _add_types(value)) for key, value in self._values.items())
        self._hash = hash(self._key)

    def __getitem__(self, key: str) -> Any:
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Frozen):
            return self._key == other._key
        return isinstance(other, Mapping) and self == Frozen(other)

    def __repr__(self) -> str:
        return repr(self.plain())

    def plain(self) -> dict[str, Any]:
        """The same as dictionaries and lists, for JSON and settings."""
        return {key: _plain(value) for key, value in self._values.items()}


def _frozen(value: Any) -> Any:
    if isinstance(value, Mapping):
        return value if isinstance(value, Frozen) else Frozen(value)
    return tuple(_frozen(item) for item in value) if isinstance(value, (list, tuple)) else value


def _add_types(value: Any) -> Any:
    if isinstance(value, Frozen):
        return value
    return tuple(_add_types(item) for item in value) if isinstance(value, tuple) else (type(value).__name__, value)


def _plain(value: Any) -> Any:
    if isinstance(value, Frozen):
        return value.plain()
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


NOTHING = Frozen()


@dataclass(frozen=True)
class Recipe:
    """The part of a cell that is the same for all images.

    options   of the task; the word "image" stands for the image's position
    steps     T; None in a row whose steps are the calls of another row's record
    settings  of the method; under a plug-in's name a table with that plug-in's
    precision of the network, as in `load_prior`
    timing    whether seconds are stored; memory: whether peak memory is, with each cell in its own process
    keep      what is stored besides numbers, of KEEP
    metrics   by `module:name` or from installed packages, in addition to the package's own, which every record holds
    """

    fit: str
    size: int
    prior: str
    task: str
    sigma: float
    method: str
    options: Frozen = NOTHING
    plugins: tuple[str, ...] = ()
    settings: Frozen = NOTHING
    steps: int | None = 100
    grid: str | None = None
    estimator: str | Frozen | None = None
    seed: int = 0
    device: str = "cpu"
    precision: str = "float32"
    timing: bool = True
    memory: bool = False
    keep: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()

    @property
    def shape(self) -> tuple[int, int, int]:
        return 3, self.size, self.size

    def options_at(self, index: int) -> Frozen:
        """The task's options for the image at that position."""
        return Frozen({name: index if value == "image" else value for name, value in self.options.items()})


@dataclass(frozen=True)
class Cell:
    """A recipe and its image. `row` and `title` are the experiment's names and do not affect its numbers.

    image     the file, or None in a dry run without a folder
    index     position of the image: it determines the image's noise and, with options seed = "image", its kernel
    calls_of  the row whose record's calls become its steps
    """

    row: str
    title: str
    image: Path | None
    index: int
    recipe: Recipe
    calls_of: str | None = None

    @property
    def place(self) -> Place:
        return self.row, self.title, self.index, self.recipe.seed

    @property
    def options(self) -> Frozen:
        return self.recipe.options_at(self.index)

    def altered(self, **changes: Any) -> Cell:
        """The cell with other fields of its recipe."""
        return replace(self, recipe=replace(self.recipe, **changes))

    def with_steps(self, steps: int) -> Cell:
        return replace(self.altered(steps=steps), calls_of=None)
