"""leader methods | tasks | plugins | estimators: lists them, and shows the details of one."""

from dataclasses import MISSING, Field, fields, is_dataclass
from inspect import Parameter
from typing import Annotated, Any

import typer

from leader.cli.console import table, to_stdout
from leader.errors import unknown_name

Name = Annotated[str | None, typer.Argument(help="A name, for details.")]


def list_estimators() -> dict[str, str]:
    """The names of estimators, with a line on each: those of leader.uncertainty, auto and none."""
    from leader.uncertainty import ESTIMATORS

    return {
        "auto": "the variance the prior predicts; else a Hutchinson probe for plug-ins, noise-energy for the map; the default",
        **{name: entry.summary for name, entry in ESTIMATORS.items()},
        "none": "no uncertainty, if no plug-in needs one",
    }


def methods(name: Name = None) -> None:
    """Lists the restoration methods, or the paper, needs and settings of one."""
    from leader.methods import METHODS

    if name is None:
        table(("method", "what it does"), [(key, METHODS[key].summary) for key in sorted(METHODS)])
        return
    if name not in METHODS:
        raise unknown_name("method", name, METHODS)
    method = METHODS[name]
    _describe(name, method, "method", f"needs: {method.needs}", f"network calls per step: {method.calls_per_step}")


def plugins(name: Name = None) -> None:
    """Lists the plug-ins that change a method from outside, or the settings of one."""
    from leader.plugins import BUNDLES, PLUGINS

    if name is None:
        rows = [(key, PLUGINS[key].summary) for key in sorted(PLUGINS)]
        table(("plug-in", "what it does"), [*rows, *((key, " and ".join(parts)) for key, parts in BUNDLES.items())])
    elif name in BUNDLES:
        to_stdout(f"{name}: short for {' and '.join(BUNDLES[name])}")
    elif name in PLUGINS:
        _describe(name, PLUGINS[name], "plugin")
    else:
        raise unknown_name("plug-in", name, [*PLUGINS, *BUNDLES])


def tasks(name: Name = None) -> None:
    """Lists the degradations that can be undone, or the options of one."""
    from leader.restoration.tasks import TASKS, OperatorTask, find_task

    if name is None:
        table(("task", "what it is"), [(key, TASKS[key].title) for key in TASKS])
        return
    task = find_task(name)
    to_stdout(f"{task.name}: {task.title}")
    to_stdout(task.description)
    for option, default in task.defaults.items() if isinstance(task, OperatorTask) else ():
        to_stdout(f"  {option} = {'(required)' if default is Parameter.empty else repr(default)}")
    to_stdout(f"example: {task.example}")


def estimators(name: Name = None) -> None:
    """Lists the estimators of uncertainty, or explains one."""
    from leader.uncertainty import ESTIMATORS

    known = list_estimators()
    if name is not None and name in ESTIMATORS:
        known[name] = ESTIMATORS[name].summary
    if name is None:
        table(("estimator", "where the variance comes from"), list(known.items()))
        return
    if name not in known:
        raise unknown_name("estimator", name, known)
    to_stdout(f"{name}: {known[name]}")
    to_stdout(f"example: leader restore small.png large.png --task sr --estimator {name}")


def _describe(name: str, kind: Any, option: str, *more: str) -> None:
    """A method or plug-in: its paper, and the dataclass fields that a settings file may give."""
    settings = [f"  {item.name} = {_default(item)}" for item in fields(kind) if item.init] if is_dataclass(kind) else []
    for line in (
        *(f"{name}: {kind.summary}", f"paper: {kind.paper}", *more),
        *(("settings (for --settings FILE):", *settings) if settings else ("settings: none",)),
        f"example: leader restore small.png large.png --task sr --{option} {name}",
    ):
        to_stdout(line)


def _default(item: Field[Any]) -> str:
    if item.default is not MISSING:
        return repr(item.default)
    return repr(item.default_factory()) if item.default_factory is not MISSING else "(required)"
