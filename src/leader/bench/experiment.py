"""An experiment: tasks, rows and a form, which expand into cells. experiment_file.py reads one from its file."""

from __future__ import annotations

import itertools
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from leader.bench.cell import Cell, Frozen, Recipe
from leader.bench.columns import DEFAULT
from leader.bench.images import list_images
from leader.errors import LeaderError, unknown_name
from leader.methods import METHODS, SITCOM
from leader.metrics import METRICS
from leader.plugins import PLUGINS, expand

Count = Annotated[int, "[1, 100000]"]


@dataclass(frozen=True)
class Task:
    """A degradation of an experiment; sigma is quoted for [0, 1] images."""

    name: str
    label: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    sigma: Annotated[float, "[0, 10]"] = 0.0


@dataclass(frozen=True)
class Row:
    """One line of a table: a method with its plug-ins and settings; `count`: the first images of the form, None for all.

    only  the labels of the tasks that have it; None for all
    """

    label: str
    method: str
    plugins: tuple[str, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)
    steps: int | None = None
    grid: str | None = None
    estimator: str | Frozen | None = None
    calls_of: str | None = None
    against: str | None = None
    count: int | None = None
    only: tuple[str, ...] | None = None

    def has(self, task: str, index: int) -> bool:
        """Whether it has a cell for the image at a position and the task of that label."""
        return (self.count is None or index < self.count) and (self.only is None or task in self.only)


@dataclass(frozen=True)
class Form:
    """Where an experiment runs, and on which images.

    images     "test" (the shipped crops) or a folder; "" if the user must name one
    count      number of images, from the first
    precision  of the network on a GPU; methods that differentiate it, and the CPU, use float32
    batch      images per run on a GPU
    timed      this many of the first images run one by one with one worker, and store their seconds; None: all, in any order
    pace       seconds per full-resolution pass, if known, for the estimate of a dry run
    settings   of plug-ins, for every row: tables by plug-in name; a row's own settings take precedence
    """

    prior: str = "embedded"
    images: str = "test"
    fit: str = "crop"
    size: Annotated[int, "[1, 4096]"] = 128
    count: Count = 16
    steps: Count = 100
    seeds: tuple[int, ...] = (0,)
    device: str = "cpu"
    precision: str = "float32"
    batch: Count = 1
    timed: Annotated[int | None, "[0, 100000]"] = None
    pace: Annotated[float | None, "[0, 1000000]"] = None
    timing: bool = True
    memory: bool = False
    keep: tuple[str, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)
    methods: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Shown:
    """How the records are shown: [table] (see tables.py and distances.py) and [figure] (see figures.py)."""

    kind: str | None = None
    metrics: tuple[str, ...] = DEFAULT
    std: bool = True
    baseline: str | None = None
    parts: Annotated[int, "[1, 8]"] = 1
    beside: tuple[str, ...] | None = None
    published: dict[str, Any] = field(default_factory=dict)
    images: Count = 1
    image: Annotated[int, "[0, 100000]"] = 0


@dataclass(frozen=True)
class Experiment:
    """An experiment in one of its forms."""

    name: str
    title: str
    note: str
    tasks: tuple[Task, ...]
    rows: tuple[Row, ...]
    form: Form
    table: Shown
    figure: Shown

    def row(self, label: str) -> Row:
        for row in self.rows:
            if row.label == label:
                return row
        raise unknown_name("row", label, [row.label for row in self.rows])

    def restricted(self, rows: str | None = None, tasks: str | None = None) -> Experiment:
        """Only rows and tasks whose names contain these texts; rows that others take their calls from stay."""
        chosen = [row for row in self.rows if rows is None or rows.lower() in row.label.lower()]
        needed = {row.calls_of for row in chosen}
        kept = tuple(row for row in self.rows if row in chosen or row.label in needed)
        named = tuple(task for task in self.tasks if tasks is None or tasks.lower() in task.label.lower())
        if not kept or not named:
            raise LeaderError(f"No row matches '{rows}' or no task matches '{tasks}'; leave the filters out.")
        return replace(self, rows=kept, tasks=named)

    def shortened(self, steps: int) -> Experiment:
        """The experiment with at most `steps` steps in every row and in the inner loop of SITCOM, to test everything else."""
        methods = {
            name: {**own, "steps": min(steps, own["steps"])} if "steps" in own else own
            for name, own in self.form.methods.items()
        }
        sitcom = methods.get("sitcom", {})
        inner = min(steps, sitcom.get("settings", {}).get("inner", SITCOM().inner))
        methods["sitcom"] = {**sitcom, "settings": {**sitcom.get("settings", {}), "inner": inner}}
        rows = tuple(replace(row, steps=None if row.steps is None else min(steps, row.steps)) for row in self.rows)
        form = replace(self.form, steps=min(steps, self.form.steps), methods=methods)
        return replace(self, name=f"{self.name}-{steps}-steps", rows=rows, form=form)

    def cells(self, *, dry: bool = False) -> list[Cell]:
        """All cells, task by task, image by image, so comparable cells run close in time.

        dry: without its folder of pictures, cells have no image.
        """
        form = self.form
        images: list[Path | None] = [None] * form.count
        if not (dry and (not form.images or not os.path.isdir(form.images)) and form.images != "test"):
            if not form.images:
                raise LeaderError(f"The experiment '{self.name}' needs a folder of pictures; name one.")
            found = list_images(form.images)
            if len(found) < form.count:
                raise LeaderError(
                    f"'{form.images}' holds {len(found)} pictures and '{self.name}' needs {form.count}; ask for fewer."
                )
            images = list(found[: form.count])
        recipes = {  # made once: an experiment may have a thousand images
            (task.label, row.label, seed, timed): self._recipe(task, row, seed, timed)
            for task, row, seed, timed in itertools.product(self.tasks, self.rows, form.seeds, (False, True))
        }
        return [
            Cell(row.label, task.label, image, index, recipes[task.label, row.label, seed, self._times(index)], row.calls_of)
            for task in self.tasks
            for seed in form.seeds
            for index, image in enumerate(images)
            for row in self.rows
            if row.has(task.label, index)
        ]

    def _times(self, index: int) -> bool:
        """Whether the seconds of the image at a position count."""
        return self.form.timing and (self.form.timed is None or index < self.form.timed)

    def _recipe(self, task: Task, row: Row, seed: int, timed: bool) -> Recipe:
        form, own = self.form, self.form.methods.get(row.method, {})
        settings = merge_settings(merge_settings(form.settings, own.get("settings", {})), row.settings)
        return Recipe(
            fit=form.fit,
            size=form.size,
            prior=form.prior,
            task=task.name,
            options=Frozen(task.options),
            sigma=task.sigma,
            method=row.method,
            plugins=row.plugins,
            settings=Frozen(_settings_of(row, settings)),
            steps=None if row.calls_of else row.steps or own.get("steps", form.steps),
            grid=row.grid,
            estimator=row.estimator,
            seed=seed,
            device=form.device,
            precision="float32" if not form.device.startswith("cuda") or _differentiates(row.method) else form.precision,
            timing=timed,
            memory=form.memory,
            keep=form.keep,
            metrics=tuple(name for name in self.table.metrics if name in METRICS and name not in METRICS.own),
        )


def _settings_of(row: Row, settings: dict[str, Any]) -> dict[str, Any]:
    """The settings of the method and of the row's own plug-ins: rows of one block share a table, not their plug-ins."""
    own = expand(row.plugins)
    return {key: value for key, value in settings.items() if key not in PLUGINS or key in own}


def _differentiates(method: str) -> bool:
    """Whether a method takes gradients through the network, which half precision would lose."""
    return method in METHODS and METHODS[method]().cost.backward > 0


def merge_settings(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """Settings of `first` overridden by `second`, with plug-in tables merged one level deep."""
    out = dict(first)
    for key, value in second.items():
        before = out.get(key)
        out[key] = {**before, **value} if isinstance(value, dict) and isinstance(before, dict) else value
    return out
