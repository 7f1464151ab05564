"""Sentences that are data too: a code, the values told and a remedy; worded for the terminal, for Python and for the page.

A `Note` is a string, worded for Python, so that records and JSON hold plain sentences. A remedy names options of
`leader.restore`: `render` writes them as `sigma=0.01` for Python, `--sigma 0.01` for the terminal, and by the name of their
control for the page, where a remedy without a control is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Reader = Literal["python", "terminal", "page"]
CONTROLS = {
    "sigma": 'the noise level under "Expert settings"',
    "steps": 'the steps under "Expert settings"',
    "quality": "the quality",
}
"""Options that the page has a control for, and its name; the choices for tasks are the page's own (`render`)."""


@dataclass(frozen=True)
class Remedy:
    """What a reader can do: use options (a value of None: any) for a purpose, as in "use --sigma 0.01 to remove it"."""

    purpose: str
    options: Mapping[str, Any]

    def render(self, reader: Reader, tasks: Mapping[str, str]) -> str | None:
        """The remedy for a reader; None where the page has no control for it. `tasks`: the page's words for tasks."""
        if reader == "page":
            return self._render_for_page(tasks)
        form = _write_keyword if reader == "python" else _write_option
        words = (", " if reader == "python" else " ").join(form(name, value) for name, value in self.options.items())
        return f"use {words} to {self.purpose}"

    def _render_for_page(self, tasks: Mapping[str, str]) -> str | None:
        (name, value), *others = self.options.items()
        if name == "task" and value in tasks and not others:
            return f'choose "{tasks[value]}" to {self.purpose}'
        if name not in CONTROLS or others:
            return None
        change = f"change {CONTROLS[name]}" if value is None else f"set {CONTROLS[name]} to {value}"
        return f"{change} to {self.purpose}"


class Note(str):
    """A sentence for people: what was found or chosen (`fact`), and what to do about it.

    code    names the kind of note, for programs
    values  what the sentence tells, by name
    """

    code: str
    fact: str
    remedy: Remedy | None
    values: dict[str, Any]

    def __new__(cls, code: str, fact: str, remedy: Remedy | None = None, values: Mapping[str, Any] | None = None) -> Note:
        note = super().__new__(cls, _join(fact, None if remedy is None else remedy.render("python", {})))
        note.code, note.fact, note.remedy, note.values = code, fact, remedy, dict(values or {})
        return note

    def __getnewargs__(self) -> tuple[Any, ...]:  # what copies and pickles build it from
        return self.code, self.fact, self.remedy, self.values


def render(sentence: str, reader: Reader, tasks: Mapping[str, str] | None = None) -> str:
    """A sentence, a `Note` or any other, worded for a reader.

    tasks  task -> what the page calls it
    """
    if not isinstance(sentence, Note):
        return sentence
    return _join(sentence.fact, None if sentence.remedy is None else sentence.remedy.render(reader, tasks or {}))


def _join(fact: str, remedy: str | None) -> str:
    if remedy is None:
        return fact
    return f"{fact[:-1]}; {remedy}." if fact.endswith(".") else f"{fact}; {remedy}"


def _write_keyword(name: str, value: Any) -> str:
    return name if value is None else f"{name}={value!r}"


def _write_option(name: str, value: Any) -> str:
    option = f"--{name.replace('_', '-')}"
    return option if value is None else f"{option} {value}"
