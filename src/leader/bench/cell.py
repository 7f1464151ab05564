"""Cells: a cell is one image, one task, one method with its plug-ins, one seed.

The cells of all images share a `Recipe`: frozen and hashable, so that plans, costs and versions can be cached by it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from leader.bench.records import canonical

BASELINES = {"reference": "Reference", "measurement": "Measurement", "pinv": "A⁺ y"}
"""Baselines that are not methods, with their names in tables: the picture, the measurement as a picture (or A^+ y), A^+ y."""
KEEP = ("restored", "path", "trace", "trust")
"""What a record can hold besides numbers: the restored picture, x0_hat and Sigma during the run, every step's (t, jump, U_t),
or scores of the trust map.
"""

Place = tuple[str, str, int, int]
"""The place of a number in a table: row, task, image, seed."""


@dataclass(frozen=True, init=False)
class Frozen:
    """Settings as the text that a record holds of them, so that they can be hashed: 1 and 1.0 are different settings."""

    text: str

    def __init__(self, values: Mapping[str, Any] | None = None) -> None:
        object.__setattr__(self, "text", canonical(values or {}))

    def __repr__(self) -> str:
        return repr(self.plain())

    def plain(self) -> dict[str, Any]:
        """The same as dictionaries and lists, for JSON and settings."""
        values: dict[str, Any] = json.loads(self.text)
        return values


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
        return Frozen({name: index if value == "image" else value for name, value in self.options.plain().items()})


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
        return replace(self, recipe=replace(self.recipe, **changes))

    def with_steps(self, steps: int) -> Cell:
        return replace(self.altered(steps=steps), calls_of=None)
