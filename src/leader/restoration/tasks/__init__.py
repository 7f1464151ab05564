"""The tasks by name: everything about a task above its operator is in its one class.

A new task is a class here, listed in TASKS, and the builder of its operator in `leader.operators.tasks`. Your own is
`module:Class`: a subclass of Task with its `operator`, or an operator, whose arguments are the options.
"""

from collections.abc import Mapping
from typing import Any

from leader.by_name import Registry, show_value
from leader.errors import unknown_name
from leader.operators import LinearOperator
from leader.operators.tasks import VARIANTS, resolve_task
from leader.restoration.tasks.base import Measured, OperatorTask, Option, Request, Task
from leader.restoration.tasks.blurs import Deblur, DeblurGaussian, DeblurMotion
from leader.restoration.tasks.inpainting import Inpainting
from leader.restoration.tasks.jpeg import JpegArtefacts
from leader.restoration.tasks.plain import Colourisation, CompressedSensing, Denoising
from leader.restoration.tasks.super_resolution import SuperResolution

_OWN: dict[str, Task] = {
    task.name: task
    for task in (
        SuperResolution(),
        DeblurGaussian(),
        DeblurMotion(),
        Deblur(),
        Inpainting(),
        CompressedSensing(),
        Colourisation(),
        Denoising(),
        JpegArtefacts(),
    )
}


def _adapt(found: Any, name: str) -> Task:
    """A user-defined task under the name that refers to it."""
    if isinstance(found, type) and issubclass(found, LinearOperator):
        task: Task = OperatorTask(found)
    elif isinstance(found, type) and issubclass(found, Task) and isinstance(getattr(found, "operator", None), type):
        task = found()
    else:
        raise TypeError(
            f"expected an operator, or a leader.restoration.tasks.Task with one as `operator`, found {show_value(found)}"
        )
    task.name = name  # type: ignore[misc]
    return task


TASKS: Registry[Task] = Registry("task", "leader.operators,leader.tasks", _OWN, _adapt)
"""The tasks by name: those here, those of installed packages, and `module:Class`."""


def find_task(name: str) -> Task:
    """The task of that name, or of that variant ("sr-average" is a kind of "sr")."""
    return task_options(name, {})[0]


def task_options(name: str, given: Mapping[str, Any]) -> tuple[Task, dict[str, Any]]:
    """The task of that name and the options given for it; a name that is not an option of any task is rejected."""
    if name not in VARIANTS and name not in TASKS:
        raise unknown_name("task", name, [*TASKS, *VARIANTS], titles={task.title: task.name for task in TASKS.values()})
    own = () if name in VARIANTS else TASKS[name].options
    valid = {option.name for options in (own, *(task.options for task in TASKS.values())) for option in options}
    for key in given:
        if key not in valid:
            raise unknown_name("option", key, valid)
    task, options = resolve_task(name, given)
    return TASKS[task], options


__all__ = ["TASKS", "Measured", "OperatorTask", "Option", "Request", "Task", "find_task", "task_options"]
