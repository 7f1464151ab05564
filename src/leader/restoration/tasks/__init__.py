"""The tasks by name: one entry each, and nothing about a task anywhere else above its operator.

A new task is a class here, listed in TASKS, and the builder of its operator in `leader.operators.tasks`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leader.errors import unknown_name
from leader.operators.tasks import VARIANTS, resolve
from leader.restoration.tasks.base import Measured, Option, Request, Task
from leader.restoration.tasks.blurs import Deblur, DeblurGaussian, DeblurMotion
from leader.restoration.tasks.inpainting import Inpainting
from leader.restoration.tasks.jpeg import JpegArtefacts
from leader.restoration.tasks.pointwise import Colourisation, Denoising
from leader.restoration.tasks.sensing import CompressedSensing
from leader.restoration.tasks.super_resolution import SuperResolution

TASKS: dict[str, Task] = {
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


def find_task(name: str) -> Task:
    """The task of that name, or of that variant ("sr-average" is a kind of "sr")."""
    return task_options(name, {})[0]


def task_options(name: str, given: Mapping[str, Any]) -> tuple[Task, dict[str, Any]]:
    """The task of that name and the options given for it; a name that is no option of any task is refused."""
    if name not in TASKS and name not in VARIANTS:
        raise unknown_name("task", name, [*TASKS, *VARIANTS], titles={task.title: task.name for task in TASKS.values()})
    valid = {option.name for task in TASKS.values() for option in task.options}
    for key in given:
        if key not in valid:
            raise unknown_name("option", key, valid)
    task, options = resolve(name, given)
    return TASKS[task], options


__all__ = ["TASKS", "Measured", "Option", "Request", "Task", "find_task", "task_options"]
