"""An experiment: a small TOML file that expands into cells.

title = "..."
tasks = ["sr-clean", "sr"]              names from tasks.toml beside the file, or of [task.NAME] tables

[[rows]]                                every combination of what is a list becomes one row
methods = ["ddnm", "ddpg"]
plugins = [[], ["equs"], ["leader"]]
settings = { satp = { budget = 0.01 } } of the method; tables named after plug-ins hold theirs
vary = { "satp.budget" = [0.0, 0.01] }  a setting that takes several values
steps = [10, 100]                       T; by default the form's
grid = "quadratic"
calls_of = "DDNM + SATP"                as many steps, image by image, as that row made calls
label = "..."                           the row's name, with {} for the varied value
against = "DDNM"                        the row it is compared with; by default the same without plug-ins

[form.small]                            where it runs and on what: the fields of Form
[form.small.methods.sitcom]             steps and settings of one method in this form
[table] and [figure]                    what is made of the records; see tables.py and figures.py
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from leader.bench.cell import BASELINES, KEEP, Cell
from leader.bench.images import list_images
from leader.errors import LeaderError, UsageError, unknown_name
from leader.methods import METHODS
from leader.plugins import BUNDLES, PLUGINS
from leader.schedule import GRIDS

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PLUGIN_LABELS = {"leader": "LEADer", "ucpm": "UCPM", "satp": "SATP", "equs": "EquS", "equs+": "EquS+"}
_TOP = ("title", "note", "tasks", "task", "rows", "form", "table", "figure")
_ROWS = (
    "methods",
    "plugins",
    "settings",
    "vary",
    "steps",
    "grid",
    "calls_of",
    "label",
    "against",
    "estimator",
)
_TASK = ("label", "name", "options", "sigma")


@dataclass(frozen=True)
class Task:
    """A degradation as an experiment asks for it; sigma is quoted for [0, 1] images."""

    label: str
    name: str
    options: dict[str, Any]
    sigma: float


@dataclass(frozen=True)
class Row:
    """One line of a table: a method with its plug-ins and settings."""

    label: str
    method: str
    plugins: tuple[str, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)
    steps: int | None = None
    grid: str | None = None
    estimator: str | None = None
    calls_of: str | None = None
    against: str | None = None


@dataclass(frozen=True)
class Form:
    """Where an experiment runs, and on what.

    images   "test" (the shipped crops) or a folder; "" where it must be given with --images
    count    how many images, from the first
    """

    prior: str = "embedded"
    images: str = "test"
    fit: str = "crop"
    size: int = 128
    count: int = 16
    steps: int = 100
    seeds: tuple[int, ...] = (0,)
    device: str = "cpu"
    timing: bool = True
    memory: bool = False
    keep: tuple[str, ...] = ()
    methods: dict[str, dict[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Experiment:
    """An experiment in one of its forms."""

    name: str
    title: str
    note: str
    tasks: tuple[Task, ...]
    rows: tuple[Row, ...]
    form: Form
    table: dict[str, Any]
    figure: dict[str, Any]

    def row(self, label: str) -> Row:
        for row in self.rows:
            if row.label == label:
                return row
        raise unknown_name("row", label, [row.label for row in self.rows])

    def restricted(self, rows: str | None = None, tasks: str | None = None) -> Experiment:
        """Only rows and tasks whose names contain these texts; rows that others take their calls from
        stay.
        """
        chosen = [row for row in self.rows if rows is None or rows.lower() in row.label.lower()]
        needed = {row.calls_of for row in chosen}
        kept = tuple(row for row in self.rows if row in chosen or row.label in needed)
        named = tuple(task for task in self.tasks if tasks is None or tasks.lower() in task.label.lower())
        if not kept or not named:
            raise LeaderError(f"No row matches '{rows}' or no task matches '{tasks}'; leave the filters out.")
        return replace(self, rows=kept, tasks=named)

    def cells(self, *, dry: bool = False) -> list[Cell]:
        """All cells, task by task, image by image, so that comparable ones run close in time.

        dry: without its folder of pictures, cells have no image.
        """
        form = self.form
        images: list[Path | None] = [None] * form.count
        if not (dry and (not form.images or not Path(form.images).is_dir()) and form.images != "test"):
            if not form.images:
                raise LeaderError(f"The experiment '{self.name}' needs a folder of pictures; give it with --images.")
            found = list_images(form.images)
            if len(found) < form.count:
                raise LeaderError(
                    f"'{form.images}' holds {len(found)} pictures and '{self.name}' takes {form.count}; give --count."
                )
            images = list(found[: form.count])
        return [
            self._cell(task, row, index, image, seed)
            for task in self.tasks
            for seed in form.seeds
            for index, image in enumerate(images)
            for row in self.rows
        ]

    def _cell(self, task: Task, row: Row, index: int, image: Path | None, seed: int) -> Cell:
        form, own = self.form, self.form.methods.get(row.method, {})
        steps = row.steps or own.get("steps", form.steps)
        return Cell(
            row=row.label,
            title=task.label,
            image=image,
            index=index,
            fit=form.fit,
            size=form.size,
            prior=form.prior,
            task=task.name,
            options=task.options,
            sigma=task.sigma,
            method=row.method,
            plugins=row.plugins,
            settings=merged(own.get("settings", {}), row.settings),
            steps=None if row.calls_of else steps,
            grid=row.grid,
            estimator=row.estimator,
            seed=seed,
            device=form.device,
            timing=form.timing,
            memory=form.memory,
            keep=form.keep,
            calls_of=row.calls_of,
        )


def find_experiment(name: str, folder: Path = Path("experiments")) -> Path:
    """The file of an experiment given by its path or its name in `folder`."""
    for path in (Path(name), folder / f"{name}.toml"):
        if path.is_file():
            return path
    known = sorted(path.stem for path in folder.glob("*.toml") if path.stem not in ("tasks", "search"))
    if not known:
        raise LeaderError(f"There is no experiment '{name}' and no folder '{folder}' here; give the path of its file.")
    raise unknown_name("experiment", name, known)


def load_experiment(path: Path, form: str = "small", **changes: Any) -> Experiment:
    """An experiment in the form asked for; `changes` replace fields of the form (None: as it is)."""
    document = parse_toml(path)
    _known(f"'{path.name}'", document, _TOP)
    definitions = {**parse_toml(path.with_name("tasks.toml")), **document.get("task", {})}
    forms = document.get("form", {})
    if form not in forms:
        raise unknown_name(f"form of '{path.stem}'", form, forms)
    names = [item.name for item in fields(Form)]
    _known(f"form '{form}' of '{path.name}'", forms[form], names)
    given: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in forms[form].items()}
    chosen = replace(Form(**given), **{key: value for key, value in changes.items() if value is not None})
    for item in chosen.keep:
        if item not in KEEP:
            raise unknown_name("thing to keep", item, KEEP)
    rows = tuple(row for block in document.get("rows", []) for row in _expand(block, path))
    _check_rows(rows, path)
    return Experiment(
        name=f"{path.stem}-{form}",
        title=document.get("title", path.stem),
        note=document.get("note", ""),
        tasks=tuple(_task(name, definitions) for name in document.get("tasks", [])),
        rows=rows,
        form=chosen,
        table=document.get("table", {}),
        figure=document.get("figure", {}),
    )


def load_tasks(path: Path, names: list[str] | None = None) -> list[Task]:
    """The tasks of a tasks.toml, all or those named."""
    definitions = parse_toml(path)
    return [_task(name, definitions) for name in names or definitions]


def merged(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """Settings with those of `second` on top, plug-in tables merged one level deep."""
    out = dict(first)
    for key, value in second.items():
        out[key] = {**out.get(key, {}), **value} if isinstance(value, dict) else value
    return out


def _task(name: str, definitions: dict[str, Any]) -> Task:
    if name not in definitions:
        raise unknown_name("task of an experiment", name, definitions)
    entry = definitions[name]
    _known(f"task '{name}'", entry, _TASK)
    return Task(entry.get("label", name), entry["name"], entry.get("options", {}), float(entry.get("sigma", 0.0)))


def _expand(block: dict[str, Any], path: Path) -> Iterator[Row]:
    """The rows of one [[rows]] table."""
    _known(f"rows of '{path.name}'", block, _ROWS)
    vary = [[(key, value) for value in values] for key, values in block.get("vary", {}).items()]
    steps = block.get("steps")
    counts = steps if isinstance(steps, list) else [steps]
    for method in block["methods"]:
        for count, plugins in itertools.product(counts, block.get("plugins", [[]])):
            _check_names(method, plugins, block.get("grid"))
            tail = f", T = {count}" if isinstance(steps, list) else ""
            base = METHODS[method].__name__ if method in METHODS else BASELINES[method]
            plain = " + ".join([base, *(PLUGIN_LABELS.get(item, item) for item in plugins)]) + tail
            for chosen in itertools.product(*vary):
                settings = dict(block.get("settings", {}))
                for key, value in chosen:
                    settings = merged(settings, _nested(key, value))
                label = _label(block.get("label"), plain, chosen, path)
                host = block.get("against", base + tail)
                yield Row(
                    label=label,
                    method=method,
                    plugins=tuple(plugins),
                    settings=settings,
                    steps=count,
                    grid=block.get("grid"),
                    estimator=block.get("estimator"),
                    calls_of=block.get("calls_of"),
                    against=None if host == label else host,
                )


def _label(wanted: str | None, plain: str, chosen: tuple[tuple[str, Any], ...], path: Path) -> str:
    """A row's name: the wanted one with varied values for its braces, else the plain one with their names and values."""
    values = [f"{value:g}" if isinstance(value, float) else str(value) for _, value in chosen]
    if wanted is None:
        return ", ".join([plain, *(f"{key} = {value}" for (key, _), value in zip(chosen, values, strict=True))])
    if wanted.count("{}") != len(values) or wanted.count("{") != len(values):
        raise LeaderError(
            f"The label '{wanted}' of '{path.name}' has {wanted.count('{')} braces, and {len(values)} values vary: "
            "write one {} for each."
        )
    return wanted.format(*values)


def _nested(key: str, value: Any) -> dict[str, Any]:
    """{"satp.budget": 1} as {"satp": {"budget": 1}}."""
    head, _, tail = key.partition(".")
    return {head: {tail: value} if tail else value}


def _check_names(method: str, plugins: list[str], grid: str | None) -> None:
    if method not in METHODS and method not in BASELINES:
        raise unknown_name("method", method, [*METHODS, *BASELINES])
    for plugin in plugins:
        if plugin not in PLUGINS and plugin not in BUNDLES:
            raise unknown_name("plug-in", plugin, [*PLUGINS, *BUNDLES])
    if grid is not None and grid not in GRIDS:
        raise unknown_name("grid", grid, GRIDS)


def _check_rows(rows: tuple[Row, ...], path: Path) -> None:
    labels = [row.label for row in rows]
    if not labels or len(set(labels)) != len(labels):
        raise UsageError(f"'{path.name}' needs rows with distinct labels; found {', '.join(labels) or 'none'}.")
    for row in rows:
        if row.calls_of is not None and row.calls_of not in labels:
            raise unknown_name(f"row that '{row.label}' takes its calls from", row.calls_of, labels)


def _known(where: str, found: dict[str, Any], valid: list[str] | tuple[str, ...]) -> None:
    for key in found:
        if key not in valid:
            raise unknown_name(f"entry in {where}", key, valid)


def parse_toml(path: Path) -> dict[str, Any]:
    """The content of a TOML file; empty if there is none."""
    if not path.is_file():
        return {}
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise LeaderError(f"'{path}' is not valid TOML: {error}.") from None
