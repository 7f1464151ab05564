"""The file of an experiment: a small TOML file.

title = "..."
tasks = ["sr-clean", "sr"]              names of [task.NAME] tables, of tasks.toml beside the file or of the package's
                                        own; here and elsewhere `module:Class` names a class in your own file

[[rows]]                                every combination of the lists becomes one row; blocks may be the `rows` of one that
                                        holds what they share
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

[form.small]                            where it runs and on which images: fields of Form, on top of the package's forms.toml;
                                        forms that are `of` another there have that one's rows and entries without a table here
[form.small.methods.sitcom]             steps and settings of one method in this form
[table] and [figure]                    how the records are shown; see tables.py and figures.py
"""

import itertools
import math
import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from leader.bench.cell import BASELINES, KEEP, Frozen
from leader.bench.columns import COLUMNS
from leader.bench.experiment import Experiment, Form, Row, Shown, Task, merge_settings
from leader.bench.images import FITS
from leader.bench.schema import check_plain, parse_toml, read_entries
from leader.by_name import check_count, label_of, show_value
from leader.errors import LeaderError, UsageError, unknown_name
from leader.methods import METHODS, make_method
from leader.plugins import BUNDLES, PLUGINS, label_plugin, make_plugin
from leader.schedule import GRIDS
from leader.toml import join_rows
from leader.uncertainty.estimators import read_estimator

HOME = Path(__file__).parent
OF_THE_RUN = ("probes", "trust_time", "use_presets")
"""Settings of a row that belong to neither the method nor a plug-in."""
KINDS = ("distances", "grid", "path", "sweep", "bars", "uncertainty")
_MOST_ROWS = 2_000
_MOST_CELLS = 1_000_000


@dataclass(frozen=True)
class _Document:
    """A file's entries; the tables in it are read one by one."""

    tasks: tuple[str, ...]
    title: str | None = None
    note: str = ""
    rows: tuple[Any, ...] = ()
    task: dict[str, Any] = field(default_factory=dict)
    form: dict[str, Any] = field(default_factory=lambda: {"small": {}})
    table: dict[str, Any] = field(default_factory=dict)
    figure: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class _Block:
    """A [[rows]] table."""

    methods: tuple[str, ...]
    plugins: tuple[tuple[str, ...], ...] = ((),)
    settings: dict[str, Any] = field(default_factory=dict)
    vary: dict[str, Any] = field(default_factory=dict)
    steps: tuple[int, ...] | int | None = None
    grid: str | None = None
    calls_of: str | None = None
    label: str | None = None
    against: str | None = None
    estimator: str | dict | None = None  # type: ignore[type-arg]  # a bare type is checked
    forms: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    count: Annotated[int | None, "[1, 100000]"] = None


@dataclass(frozen=True)
class _Own:
    """Steps and settings of one method in a form."""

    steps: Annotated[int | None, "[1, 100000]"] = None
    settings: dict[str, Any] = field(default_factory=dict)


def find_experiment(name: str, folder: Path = Path("experiments")) -> Path:
    """The file of an experiment given by its path or its name in `folder`."""
    for path in (Path(name), folder / f"{name}.toml"):
        if os.path.isfile(path):  # also False for an invalid file name
            return path
    known = sorted(path.stem for path in folder.glob("*.toml") if path.stem not in ("tasks", "forms"))
    if not known:
        raise LeaderError(f"There is no experiment '{name}' and no folder '{folder}' here; give the path of its file.")
    raise unknown_name("experiment", name, known)


def load_experiment(path: Path, form: str = "small", **changes: Any) -> Experiment:
    """An experiment in the given form; `changes` replace fields of the form (None: unchanged)."""
    where = f"'{path.name}'"
    document = read_entries(_Document, parse_toml(path), "experiment", path.name)
    definitions = {**read_shared("tasks.toml", path), **_check_table(document.task, f"'task' in {where}")}
    shared, forms = read_shared("forms.toml", path), _check_table(document.form, f"'form' in {where}")
    own = form if form in forms else _check_table(shared.get(form, {}), f"The shared form '{form}'").get("of")
    if own not in forms:
        raise unknown_name(f"form of '{path.stem}'", form, forms)
    entries = _check_table(forms[own], f"The form '{own}' of {where}")
    chosen = _form(merge_settings(_read_shared_form(shared, form), entries), changes, f"{form} of {path.name}")
    blocks = [read_entries(_Block, block, "block of rows", path.name) for block in join_rows(document.rows)]
    tasks = tuple(_task(name, definitions) for name in document.tasks)
    known = dict(zip(document.tasks, (task.label for task in tasks), strict=True))
    rows = tuple(row for block in blocks for row in _expand(block, known, where) if own in _forms_of_rows(block, forms, where))
    _check_rows(rows, path)
    labels = [task.label for task in tasks]
    if not labels or len(set(labels)) != len(labels):
        raise UsageError(f"{where} needs tasks with distinct labels; found {', '.join(labels) or 'none'}.")
    if (total := len(tasks) * len(rows) * chosen.count * len(chosen.seeds)) > _MOST_CELLS:
        raise LeaderError(f"{where} asks for {total} cells; at most {_MOST_CELLS} are allowed, so lower its count or seeds.")
    return Experiment(
        name=f"{path.stem}-{form}",
        title=path.stem if document.title is None else document.title,
        note=document.note,
        tasks=tasks,
        rows=rows,
        form=chosen,
        table=_read_shown(document.table, f"[table] of {path.name}"),
        figure=_read_shown(document.figure, f"[figure] of {path.name}"),
    )


def read_shared(name: str, path: Path | None = None) -> dict[str, Any]:
    """The package's tasks.toml or forms.toml, overridden by the one beside an experiment's file."""
    return {**parse_toml(HOME / name), **({} if path is None else parse_toml(path.with_name(name)))}


def _read_shared_form(shared: dict[str, Any], name: str) -> dict[str, Any]:
    """The shared form of a name, which overrides the form it is `like`; empty if there is none."""
    form = _check_table(shared.get(name, {}), f"The shared form '{name}'")
    own = {key: value for key, value in form.items() if key not in ("like", "of")}
    base = form.get("like", form.get("of"))
    if base is None:
        return own
    if base not in shared or base == name:
        raise unknown_name(f"form that '{name}' is like", str(base), shared)
    return merge_settings(_read_shared_form({key: value for key, value in shared.items() if key != name}, base), own)


def _check_table(values: Any, where: str) -> dict[str, Any]:
    if not isinstance(values, dict):
        raise UsageError(f"{where} must be a table; found {show_value(values)}.")
    return values


def load_tasks(names: list[str] | None = None) -> list[Task]:
    """The package's tasks for experiments, all or those named."""
    definitions = read_shared("tasks.toml")
    return [_task(name, definitions) for name in names or definitions]


def _forms_of_rows(block: _Block, forms: Collection[str], where: str) -> Collection[str]:
    for name in block.forms:
        if name not in forms:
            raise unknown_name(f"form of the rows of {where}", name, forms)
    return block.forms or forms


def _form(table: dict[str, Any], changes: dict[str, Any], name: str) -> Form:
    """The form of a table, overridden by the `changes` that are not None: both are checked."""
    values = {**table, **{key: value for key, value in changes.items() if value is not None}}
    values["seeds"] = [seeds] if isinstance(seeds := values.get("seeds", [0]), int) else seeds
    form = read_entries(Form, values, "form", name)
    for item in form.keep:
        if item not in KEEP:
            raise unknown_name("thing to keep", item, KEEP)
    if form.fit not in FITS:
        raise unknown_name("way of bringing pictures to size", form.fit, FITS)
    check_plain(form.settings, f"'settings' in the form '{name}'", PLUGINS)
    for plugin in form.settings:  # each method has its own
        if plugin not in PLUGINS:
            raise unknown_name(f"plug-in among the settings of the form '{name}'", plugin, PLUGINS)
        make_plugin(plugin, form.settings[plugin])
    methods = _check_table(form.methods, f"'methods' in the form '{name}'")
    own = {method: _own(method, entry, name) for method, entry in methods.items()}
    return replace(form, seeds=_read_numbers("A seed", form.seeds, 0), methods=own)


def _read_numbers(what: str, given: tuple[int, ...] | int, least: int) -> tuple[int, ...]:
    """One or several whole numbers."""
    numbers = (given,) if isinstance(given, int) else given
    if not numbers:
        raise LeaderError(f"{what} is wanted, or a list of them; found [].")
    return tuple(check_count(what, number, least, 100_000 if least else 2**31 - 1) for number in numbers)


def _own(method: str, entry: Any, form: str) -> dict[str, Any]:
    if method not in METHODS:
        raise unknown_name(f"method in the form '{form}'", method, METHODS)
    own = read_entries(_Own, entry, f"method '{method}' of the form", form)
    check_plain(own.settings, f"'settings' of the method '{method}' in the form '{form}'", PLUGINS)
    _check_settings(method, own.settings)
    return {**({} if own.steps is None else {"steps": own.steps}), "settings": own.settings}


def _read_shown(values: Any, name: str) -> Shown:
    shown = read_entries(Shown, values, "table", name)
    if shown.kind not in (None, *KINDS):
        raise LeaderError(f"{name} names the unknown kind '{shown.kind}'; use distances, or a kind of figure.")
    for number in (*shown.metrics, *(shown.beside or ())):
        if number not in COLUMNS:
            raise unknown_name(f"number in {name}", number, COLUMNS)
    for label, entry in _check_table(shown.published, f"'published' in {name}").items():
        for key, value in _check_table(entry, f"'{label}' among the published numbers of {name}").items():
            if key not in ("data", *COLUMNS):
                raise unknown_name(f"number among the published ones of '{label}'", key, COLUMNS)
            if not (isinstance(value, str) if key == "data" else isinstance(value, (int, float)) and abs(value) <= 1000):
                raise LeaderError(f"'{key}' among the published numbers of '{label}' is in %; found {show_value(value)}.")
    return shown


def _task(name: str, definitions: dict[str, Any]) -> Task:
    if name not in definitions:
        raise unknown_name("task of an experiment", name, definitions)
    task = read_entries(Task, definitions[name], "task", name)
    check_plain(task.options, f"'options' in the task '{name}'")
    return replace(task, label=task.label or name)


def _expand(block: _Block, tasks: Mapping[str, str], where: str) -> Iterator[Row]:
    """The rows of one [[rows]] table; tasks: the labels of the experiment's by name."""
    for name in block.only:
        if name not in tasks:
            raise unknown_name(f"task of the rows of {where}", name, tasks)
    check_plain(block.settings, f"'settings' in the rows of {where}", PLUGINS)
    check_plain(block.vary, f"'vary' in the rows of {where}")
    if any(not isinstance(values, list) or not values for values in block.vary.values()):
        raise LeaderError(f"An entry of 'vary' in the rows of {where} must be a list of texts or numbers; found {block.vary}.")
    vary = [[(key, value) for value in values] for key, values in block.vary.items()]
    counts = (None,) if block.steps is None else _read_numbers("A number of steps", block.steps, 1)
    if (combinations := math.prod(len(values) for values in vary)) > _MOST_ROWS:
        raise LeaderError(f"The rows of {where} vary over {combinations} combinations; at most {_MOST_ROWS} are allowed.")
    for method, count, plugins in itertools.product(block.methods, counts, block.plugins):
        _check_names(method, plugins, block.grid)
        tail = f", T = {count}" if isinstance(block.steps, tuple) else ""
        base = BASELINES[method] if method in BASELINES else label_of(METHODS[method])
        plain = " + ".join([base, *map(label_plugin, plugins)]) + tail
        for chosen in itertools.product(*vary):
            settings = block.settings
            for key, value in chosen:
                settings = merge_settings(settings, _nest_settings(key, value))
            _check_settings(method, settings)
            label = _label(block.label, plain, chosen, where)
            host = block.against or base + tail
            yield Row(
                label=label,
                method=method,
                plugins=plugins,
                settings=settings,
                steps=count,
                grid=block.grid,
                estimator=_estimator(block.estimator, where),
                calls_of=block.calls_of,
                against=None if host == label else host,
                count=block.count,
                only=tuple(tasks[name] for name in block.only) or None,
            )


def _estimator(given: str | dict[str, Any] | None, where: str) -> str | Frozen | None:
    if not isinstance(given, dict):
        return given
    check_plain(given, f"'estimator' in the rows of {where}")
    read_estimator(given)
    return Frozen(given)


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
            f"The label '{wanted}' in the rows of {where} has {wanted.count('{')} braces, and {len(values)} values vary: "
            "write one {} for each."
        )
    return wanted.format(*values)


def _nest_settings(key: str, value: Any) -> dict[str, Any]:
    """{"satp.budget": 1} as {"satp": {"budget": 1}}."""
    head, _, tail = key.partition(".")
    return {head: {tail: value} if tail else value}


def _check_names(method: str, plugins: Collection[str], grid: str | None) -> None:
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
