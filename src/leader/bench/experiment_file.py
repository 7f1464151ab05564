"""The file of an experiment: a small TOML file.

title = "..."
tasks = ["sr-clean", "sr"]              names of [task.NAME] tables, of tasks.toml beside the file or of the package's
                                        own; here and elsewhere `module:Class` names a class in your own file

[[rows]]                                every combination of the lists becomes one row
methods = ["ddnm", "ddpg"]
plugins = [[], ["equs"], ["leader"]]
settings = { satp = { budget = 0.01 } } of the method; tables named after plug-ins hold theirs
vary = { "satp.budget" = [0.0, 0.01] }  a setting with several values
steps = [10, 100]                       T; by default the form's
grid = "quadratic"
calls_of = "DDNM + SATP"                as many steps as that row made calls, image by image
estimator = "hutchinson"                or a table with its settings: { name = "hutchinson", probes = 8, every = 4 }
label = "..."                           the row's name, with {} for the varied value
against = "DDNM"                        the row to compare with; by default the same without plug-ins
forms = ["full"]                        the forms that have these rows; by default all
only = ["sr"]                           the tasks that have these rows; by default all
count = 8                               the first images only; by default all of the form's

[form.small]                            where it runs and on which images: fields of Form, on top of the package's forms.toml
[form.small.methods.sitcom]             steps and settings of one method in this form
[table] and [figure]                    how the records are shown; see tables.py and figures.py
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from leader.bench.cell import BASELINES, KEEP, Frozen
from leader.bench.columns import COLUMNS
from leader.bench.experiment import Experiment, Form, Row, Task, merge_settings
from leader.bench.images import FITS
from leader.bench.schema import Table, parse_toml
from leader.by_name import label_of, show_value
from leader.errors import LeaderError, UsageError, unknown_name
from leader.methods import METHODS, make_method
from leader.plugins import BUNDLES, PLUGINS, label_plugin, make_plugin
from leader.schedule import GRIDS
from leader.uncertainty.estimators import read_estimator

HOME = Path(__file__).parent
OF_THE_RUN = ("probes", "trust_time", "use_presets")
"""Settings of a row that belong to neither the method nor a plug-in."""
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
    "forms",
    "only",
    "count",
)
_TASK = ("label", "name", "options", "sigma")
_TABLE = ("metrics", "std", "baseline", "kind", "parts", "beside", "published")
_FIGURE = ("kind", "metrics", "images", "image")
_MOST_STEPS = 100_000
_LARGEST_SIZE = 4096
_MOST_IMAGES = 100_000
_MOST_ROWS = 2_000
_MOST_CELLS = 1_000_000


def find_experiment(name: str, folder: Path = Path("experiments")) -> Path:
    """The file of an experiment given by its path or its name in `folder`."""
    for path in (Path(name), folder / f"{name}.toml"):
        if os.path.isfile(path):  # also False for an invalid file name
            return path
    known = sorted(path.stem for path in folder.glob("*.toml") if path.stem not in ("tasks", "forms", "search"))
    if not known:
        raise LeaderError(f"There is no experiment '{name}' and no folder '{folder}' here; give the path of its file.")
    raise unknown_name("experiment", name, known)


def load_experiment(path: Path, form: str = "small", **changes: Any) -> Experiment:
    """An experiment in the given form; `changes` replace fields of the form (None: unchanged)."""
    where = f"'{path.name}'"
    document = Table(parse_toml(path), where, _TOP)
    definitions = {**read_shared("tasks.toml", path), **document.named_tables("task")}
    shared = read_shared("forms.toml", path)
    named = document.named_tables("form") or {"small": {}}
    forms = {
        name: merge_settings(_read_shared_form(shared, name), own) if isinstance(own, dict) else own
        for name, own in named.items()
    }
    if form not in forms:
        raise unknown_name(f"form of '{path.stem}'", form, forms)
    chosen = _form(Table(forms[form], f"the form '{form}' of {where}", [item.name for item in fields(Form)]), changes)
    blocks = [Table(block, f"the rows of {where}", _ROWS) for block in document.tables("rows")]
    tasks = tuple(_task(name, definitions) for name in document.texts("tasks"))
    known = dict(zip(document.texts("tasks"), (task.label for task in tasks), strict=True))
    rows = tuple(row for block in blocks for row in _expand(block, known) if form in _forms_of_rows(block, forms))
    _check_rows(rows, path)
    labels = [task.label for task in tasks]
    if not labels or len(set(labels)) != len(labels):
        raise UsageError(f"{where} needs tasks with distinct labels; found {', '.join(labels) or 'none'}.")
    if (total := len(tasks) * len(rows) * chosen.count * len(chosen.seeds)) > _MOST_CELLS:
        raise LeaderError(f"{where} asks for {total} cells; at most {_MOST_CELLS} are allowed, so lower its count or seeds.")
    return Experiment(
        name=f"{path.stem}-{form}",
        title=document.text("title", path.stem),
        note=document.text("note", ""),
        tasks=tasks,
        rows=rows,
        form=chosen,
        table=_read_shown(Table(document.values.get("table", {}), f"[table] of {where}", _TABLE)),
        figure=_read_shown(Table(document.values.get("figure", {}), f"[figure] of {where}", _FIGURE)),
    )


def read_shared(name: str, path: Path | None = None) -> dict[str, Any]:
    """The package's tasks.toml or forms.toml, overridden by the one beside an experiment's file."""
    return {**parse_toml(HOME / name), **({} if path is None else parse_toml(path.with_name(name)))}


def _read_shared_form(shared: dict[str, Any], name: str) -> dict[str, Any]:
    """The shared form of a name, which overrides the form it is `like`; empty if there is none."""
    form = shared.get(name, {})
    if not isinstance(form, dict):
        raise UsageError(f"The shared form '{name}' must be a table; found {show_value(form)}.")
    own = {key: value for key, value in form.items() if key != "like"}
    base = form.get("like")
    if base is None:
        return own
    if base not in shared or base == name:
        raise unknown_name(f"form that '{name}' is like", str(base), shared)
    return merge_settings(_read_shared_form({key: value for key, value in shared.items() if key != name}, base), own)


def load_tasks(names: list[str] | None = None) -> list[Task]:
    """The package's tasks for experiments, all or those named."""
    definitions = read_shared("tasks.toml")
    return [_task(name, definitions) for name in names or definitions]


def _forms_of_rows(block: Table, forms: Collection[str]) -> Collection[str]:
    """The forms that have the rows of a block."""
    for name in (named := block.texts("forms", ())):
        if name not in forms:
            raise unknown_name(f"form of {block.where}", name, forms)
    return named or forms


def _form(table: Table, changes: dict[str, Any]) -> Form:
    """The form of a table, overridden by the `changes` that are not None: both are checked."""
    values = {**table.values, **{key: value for key, value in changes.items() if value is not None}}
    given, default = Table(values, table.where, values), Form()
    for item in given.texts("keep", ()):
        if item not in KEEP:
            raise unknown_name("thing to keep", item, KEEP)
    fit = given.text("fit", default.fit)
    if fit not in FITS:
        raise unknown_name("way of bringing pictures to size", fit, FITS)
    return Form(
        prior=given.text("prior", default.prior),
        images=given.text("images", default.images),
        fit=fit,
        size=given.integer("size", default.size, 1, _LARGEST_SIZE),
        count=given.integer("count", default.count, 1, _MOST_IMAGES),
        steps=given.integer("steps", default.steps, 1, _MOST_STEPS),
        seeds=given.integers("seeds", default.seeds, 0, 2**63 - 1),
        device=given.text("device", default.device),
        precision=given.text("precision", default.precision),
        batch=given.integer("batch", default.batch, 1, _MOST_IMAGES),
        timed=given.integer("timed", None, 0, _MOST_IMAGES) if "timed" in given else None,
        pace=given.number("pace", 1.0, 0.0, 1e6) if "pace" in given else None,
        timing=given.flag("timing", default.timing),
        memory=given.flag("memory", default.memory),
        keep=given.texts("keep", ()),
        settings=_plugin_settings(given.plain("settings", PLUGINS), given.where),
        methods={name: _own(name, entry, given.where) for name, entry in given.named_tables("methods").items()},
    )


def _plugin_settings(settings: dict[str, Any], where: str) -> dict[str, Any]:
    """Settings for every row: only those of plug-ins, since each method has its own."""
    for name in settings:
        if name not in PLUGINS:
            raise unknown_name(f"plug-in among the settings of {where}", name, PLUGINS)
        make_plugin(name, settings[name])
    return settings


def _own(method: str, entry: Any, where: str) -> dict[str, Any]:
    """Steps and settings of one method in a form."""
    if method not in METHODS:
        raise unknown_name(f"method in {where}", method, METHODS)
    table = Table(entry, f"the method '{method}' of {where}", ("steps", "settings"))
    settings = table.plain("settings", PLUGINS)
    _check_settings(method, settings)
    steps = {"steps": table.integer("steps", None, 1, _MOST_STEPS)} if "steps" in table else {}
    return {**steps, "settings": settings}


def _read_shown(table: Table) -> dict[str, Any]:
    """The entries of [table] and [figure], checked."""
    for name in ("kind", "baseline"):
        table.text_or_none(name)
    if table.text("kind", "distances") not in ("distances", "grid", "path", "sweep", "bars", "uncertainty"):
        raise LeaderError(f"{table.where} names the unknown kind '{table.text('kind')}'; use distances, or a kind of figure.")
    for list_name in ("metrics", "beside"):
        for name in table.texts(list_name, ()):
            if name not in COLUMNS:
                raise unknown_name(f"number in {table.where}", name, COLUMNS)
    table.flag("std", True)
    table.integer("images", 1, 1, _MOST_IMAGES)
    table.integer("parts", 1, 1, 8)
    for label, entry in table.named_tables("published").items():
        own = Table(entry, f"'{label}' among the published numbers of {table.where}", ("data", *COLUMNS))
        own.text("data", "")
        for name in COLUMNS:
            own.number(name, 0.0, -100.0, 1000.0)
    table.integer("image", 0, 0, _MOST_IMAGES)
    return table.values


def _task(name: str, definitions: dict[str, Any]) -> Task:
    if name not in definitions:
        raise unknown_name("task of an experiment", name, definitions)
    entry = Table(definitions[name], f"the task '{name}'", _TASK)
    return Task(entry.text("label", name), entry.text("name"), entry.plain("options"), entry.number("sigma", 0.0, 0.0, 10.0))


def _expand(block: Table, tasks: Mapping[str, str]) -> Iterator[Row]:
    """The rows of one [[rows]] table; tasks: the labels of the experiment's by name."""
    for name in (only := block.texts("only", ())):
        if name not in tasks:
            raise unknown_name(f"task of {block.where}", name, tasks)
    vary = [[(key, value) for value in values] for key, values in block.alternatives("vary").items()]
    listed = isinstance(block.values.get("steps"), list)
    counts: tuple[int | None, ...] = block.integers("steps", (1,), 1, _MOST_STEPS) if "steps" in block else (None,)
    given, grid = block.plain("settings", PLUGINS), block.text_or_none("grid")
    estimator = _estimator(block)
    if (combinations := math.prod(len(values) for values in vary)) > _MOST_ROWS:
        raise LeaderError(f"{block.where} vary over {combinations} combinations; at most {_MOST_ROWS} are allowed.")
    for method in block.texts("methods"):
        for count, plugins in itertools.product(counts, block.lists("plugins", [[]])):
            _check_names(method, plugins, grid)
            tail = f", T = {count}" if listed else ""
            base = BASELINES[method] if method in BASELINES else label_of(METHODS[method])
            plain = " + ".join([base, *map(label_plugin, plugins)]) + tail
            for chosen in itertools.product(*vary):
                settings = given
                for key, value in chosen:
                    settings = merge_settings(settings, _nest_settings(key, value))
                _check_settings(method, settings)
                label = _label(block.text_or_none("label"), plain, chosen, block.where)
                host = block.text("against", base + tail)
                yield Row(
                    label=label,
                    method=method,
                    plugins=tuple(plugins),
                    settings=settings,
                    steps=count,
                    grid=grid,
                    estimator=estimator,
                    calls_of=block.text_or_none("calls_of"),
                    against=None if host == label else host,
                    count=block.integer("count", None, 1, _MOST_IMAGES) if "count" in block else None,
                    only=tuple(tasks[name] for name in only) or None,
                )


def _estimator(block: Table) -> str | Frozen | None:
    """How Sigma is estimated: a name, or a table of settings."""
    if not isinstance(block.values.get("estimator"), dict):
        return block.text_or_none("estimator")
    table = block.plain("estimator")
    read_estimator(table)
    return Frozen(table)


def _check_settings(method: str, settings: dict[str, Any]) -> None:
    """Rejects settings with which the method or a plug-in cannot be built."""
    if method in METHODS:
        make_method(method, {key: value for key, value in settings.items() if key not in OF_THE_RUN and key not in PLUGINS})
    for name in PLUGINS.keys() & settings.keys():
        make_plugin(name, settings[name])


def _label(wanted: str | None, plain: str, chosen: tuple[tuple[str, Any], ...], where: str) -> str:
    """A row's name: the given label with the varied values in its braces, else the default name with their names and values."""
    values = [f"{value:g}" if isinstance(value, float) else str(value) for _, value in chosen]
    if wanted is None:
        return ", ".join([plain, *(f"{key} = {value}" for (key, _), value in zip(chosen, values, strict=True))])
    if not wanted.count("{}") == wanted.count("{") == wanted.count("}") == len(values):
        raise LeaderError(
            f"The label '{wanted}' in {where} has {wanted.count('{')} braces, and {len(values)} values vary: "
            "write one {} for each."
        )
    return wanted.format(*values)


def _nest_settings(key: str, value: Any) -> dict[str, Any]:
    """{"satp.budget": 1} as {"satp": {"budget": 1}}."""
    head, _, tail = key.partition(".")
    return {head: {tail: value} if tail else value}


def _check_names(method: str, plugins: list[str], grid: str | None) -> None:
    if method not in BASELINES and method not in METHODS:
        raise unknown_name("method", method, [*METHODS, *BASELINES])
    for plugin in plugins:
        if plugin not in BUNDLES and plugin not in PLUGINS:
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
    by_label = {row.label: row for row in rows}
    for row in rows:
        source = by_label.get(row.calls_of or "", row)
        if (source.count or math.inf) < (row.count or math.inf):
            raise LeaderError(
                f"'{row.label}' takes its calls from '{row.calls_of}', which has fewer images; give it a count too."
            )
        if source.only is not None and not (row.only and set(row.only) <= set(source.only)):
            raise LeaderError(
                f"'{row.label}' takes its calls from '{row.calls_of}', which has fewer tasks; give it `only` too."
            )
