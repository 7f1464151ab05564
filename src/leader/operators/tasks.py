"""The operators of the tasks by name, with numbers for options, as experiments, containers and Python ask for them.

What a task means for a picture, and its words for people, is in `leader.restoration.tasks`. An operator's own `task` is
the name by which presets know it: that of the task, or of its variant ("sr-bicubic", "sr-average"), which can be asked
for by name as well.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor

from leader.errors import LeaderError, UsageError, unknown_name
from leader.operators.base import LinearOperator
from leader.operators.blur import Blur
from leader.operators.hadamard import WalshHadamard
from leader.operators.kernels import gaussian_kernel, motion_kernel, paper_gaussian_taps
from leader.operators.pointwise import Colourisation, Denoising, Inpainting
from leader.operators.resize import AveragePoolSR, BicubicSR
from leader.operators.separable_blur import SeparableBlur

Shape = tuple[int, int, int]
Option = float | int | str | bool | Tensor | None

DOWNSAMPLING = {"bicubic": BicubicSR, "average": AveragePoolSR}
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {f"sr-{down}": ("sr", {"down": down}) for down in DOWNSAMPLING}
"""Names that stand for a task with some of its options fixed."""


def resolve(name: str, options: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The task that a name or the name of a variant stands for, and its options; None counts as not given."""
    given = {key: value for key, value in options.items() if value is not None}
    if name in VARIANTS:
        task, fixed = VARIANTS[name]
        for key, value in fixed.items():
            if given.get(key, value) != value:
                raise UsageError(f"The task '{name}' means {key} = {value}; found {given[key]}, so ask for '{task}' instead.")
        return task, {**given, **fixed}
    if name not in TASKS:
        raise unknown_name("task", name, [*TASKS, *VARIANTS])
    return name, given


def build_task(name: str, image_shape: Shape, **options: Option) -> LinearOperator:
    """The operator of a named task for images (C, H, W); unknown names and options are refused with the nearest valid one."""
    task, given = resolve(name, options)
    known = options_of(task)
    for key in given:
        if key not in known:
            if not known:
                raise UsageError(f"The task '{task}' has no options; found '{key}'.")
            raise unknown_name(f"option of the task '{task}'", key, known)
    return TASKS[task](image_shape, **given)


def options_of(task: str) -> tuple[str, ...]:
    """The options of a task's operator: what its builder takes beside the shape."""
    return tuple(inspect.signature(TASKS[task]).parameters)[1:]


def _super_resolution(shape: Shape, factor: int = 4, down: str = "bicubic") -> LinearOperator:
    if down not in DOWNSAMPLING:
        raise unknown_name("way of downsampling", down, DOWNSAMPLING)
    return DOWNSAMPLING[down](shape, factor)


def _gaussian_blur(shape: Shape, std: float | None = None, size: int | None = None) -> LinearOperator:
    if std is None:
        if size is not None:
            raise UsageError("The size of a Gaussian kernel was given without its standard deviation; give std too.")
        return SeparableBlur(shape, paper_gaussian_taps())
    return _circular(shape, gaussian_kernel(float(std), size), "deblur-gaussian")


def _motion_blur(
    shape: Shape, seed: int = 0, size: int = 61, intensity: float = 0.5, kernel: Tensor | None = None
) -> LinearOperator:
    drawn = motion_kernel(seed, size, intensity) if kernel is None else kernel
    return _circular(shape, drawn, "deblur-motion")


def _user_blur(shape: Shape, kernel: Tensor | None = None) -> LinearOperator:
    if kernel is None:
        raise LeaderError("The task 'deblur' needs the kernel of the blur; give one, or use 'deblur-gaussian'.")
    return _circular(shape, kernel, "deblur")


def _inpainting(shape: Shape, mask: Tensor | None = None) -> LinearOperator:
    if mask is None:
        raise LeaderError("The task 'inpaint' needs a mask; give one that is 1 where the picture is known.")
    return Inpainting(shape, mask)


def _circular(shape: Shape, kernel: Tensor, task: str) -> Blur:
    operator = Blur(shape, kernel)
    operator.task = task
    return operator


TASKS: dict[str, Callable[..., LinearOperator]] = {
    "sr": _super_resolution,
    "deblur-gaussian": _gaussian_blur,
    "deblur-motion": _motion_blur,
    "deblur": _user_blur,
    "inpaint": _inpainting,
    "cs": WalshHadamard,
    "colourise": Colourisation,
    "denoise": Denoising,
}
"""Builders by task: the shape (C, H, W) of images and options -> operator."""
