"""The task of a user-defined operator: its arguments are the options, its docstring is the description."""

from __future__ import annotations

import inspect
from typing import Any

from leader.errors import UsageError
from leader.operators import LinearOperator
from leader.restoration.tasks.base import Option, Request, Task


class OperatorTask(Task):
    """Undoes an operator whose measurement is a picture of the size of the image, or a container's.

    defaults  of its options, by name
    """

    def __init__(self, operator: type[LinearOperator]) -> None:
        text = inspect.getdoc(operator) or operator.__name__
        parameters = list(inspect.signature(operator).parameters.values())[1:]
        self.title, self.description = text.splitlines()[0], text  # type: ignore[misc]
        self.options = tuple(map(_make_option, parameters))  # type: ignore[misc]
        self.defaults = {parameter.name: parameter.default for parameter in parameters}

    @property
    def example(self) -> str:  # type: ignore[override]
        return f"leader restore measured.png restored.png --task {self.name}"


def _make_option(parameter: inspect.Parameter) -> Option:
    def miss(_: Request) -> Any:
        if parameter.default is inspect.Parameter.empty:
            raise UsageError(f"The operator needs the option '{parameter.name}'; give it.")
        return parameter.default

    return Option(parameter.name, lambda value, _: value, miss)
