"""Command options generated from dataclasses of choices, so that each choice is defined once."""

import inspect
from collections.abc import Callable
from dataclasses import MISSING, field, fields, is_dataclass
from pathlib import Path
from types import GenericAlias
from typing import Annotated, Any, get_type_hints

import typer

from leader.restoration.request import RestoreRequest, Word, word_of

METHOD = "Method and prior"
HEADINGS: dict[str, list[str]] = {
    "What happened to the picture": [],
    "What is wanted": ["quality", "look", "grain", "average", "seed"],
    METHOD: ["method", "plugins", "steps", "budget", "estimator", "prior"],
    "The machine": ["device", "dtype", "threads"],
}
"""Choices of a restoration by help heading, the others under the first; other dataclasses have one, their `heading`."""
METAVARS: dict[type, str] = {str: "NAME", int: "N", float: "NUMBER", Path: "FILE", bool: ""}
"""Default placeholders for values in the help."""
Force = Annotated[bool, typer.Option("--force", "-f", help="Replace files that exist.")]


def borrow(name: str, **changes: Any) -> Any:
    """A field with the same option as in a restoration."""
    default = changes.pop("default", None)
    return field(default=default, metadata={"word": Word(**{**vars(word_of(RestoreRequest, name)), **changes})})


def option_names(name: str, about: Word) -> tuple[str, ...]:
    """The option names of a choice, the long name first."""
    return (*(about.options or (f"--{name.replace('_', '-')}",)), *([] if about.short is None else [about.short]))


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command with one option for every `Word` of its parameters that are dataclasses of choices."""
    hints = get_type_hints(command, include_extras=True)
    parameters: list[inspect.Parameter] = []
    made_of: dict[str, type] = {}
    for parameter in inspect.signature(command).parameters.values():
        kind = hints[parameter.name]
        if is_dataclass(kind) and isinstance(kind, type):
            made_of[parameter.name] = kind
            parameters += [
                _as_parameter(item.name, item.metadata["word"], item.default, _find_heading(kind, item.name))
                for item in _choices(kind)
            ]
        else:
            parameters.append(parameter.replace(annotation=kind, kind=inspect.Parameter.KEYWORD_ONLY))

    def run(**given: Any) -> None:
        for name, kind in made_of.items():
            given[name] = kind(**{item.name: given.pop(item.name) for item in _choices(kind)})
        command(**given)

    run.__doc__, run.__name__ = command.__doc__, command.__name__
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {item.name: item.annotation for item in parameters}
    return run


def _choices(kind: type) -> list[Any]:
    return [item for item in fields(kind) if "word" in item.metadata]


def _find_heading(kind: type, name: str) -> str | None:
    """The heading under which help shows a choice; None: that of the options without one."""
    if kind is not RestoreRequest:
        return getattr(kind, "heading", None)
    return next((heading for heading, names in HEADINGS.items() if name in names), next(iter(HEADINGS)))


def _as_parameter(name: str, about: Word, default: Any, heading: str | None) -> inspect.Parameter:
    option = typer.Option(
        *option_names(name, about),
        help=about.help,
        metavar=about.metavar or METAVARS.get(about.kind),
        rich_help_panel=heading,
        autocompletion=about.names,
        min=about.least,
        max=about.most,
    )
    required = default is MISSING
    kind: Any = GenericAlias(list, (about.kind,)) if about.repeated else about.kind
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if required else default,
        annotation=Annotated[kind if required or default is not None else kind | None, option],
    )
