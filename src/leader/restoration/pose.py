"""From what a person has, a picture or a container, to the Problem that the sampler solves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from leader.errors import LeaderError, UsageError
from leader.operators.tasks import resolve
from leader.pictures import Picture
from leader.pictures.container import Measurement
from leader.pictures.real_noise import NoiseEstimate, measure_noise
from leader.problem import Problem
from leader.restoration.arguments import as_sigma
from leader.restoration.borders import Window, extend
from leader.restoration.memory import check_memory
from leader.restoration.tasks import Measured, Request, task_options

CPU = torch.device("cpu")


@dataclass(frozen=True)
class PosedProblem:
    """The Problem of a picture or a container, and what belongs to it.

    given       the degraded picture (A^+ y where the measurement is no picture)
    sigma       the noise level for [0, 1] images; `sigma_from` says "given", "estimated" or "container"
    window      where the picture lies in the frame of the problem, if that is larger
    notes       choices made on the way, one sentence each
    options     of the task, as they were read: kernels and masks as tables
    """

    problem: Problem
    given: Picture
    task: str
    sigma: float
    sigma_from: str
    window: Window | None = None
    notes: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)


def pose_container(
    content: Measurement, task: str | None, sigma: float | None, options: Mapping[str, Any], device: torch.device = CPU
) -> PosedProblem:
    """The problem in a container, which says itself what its operator is."""
    if task is not None and resolve(task, {})[0] != content.task:
        raise UsageError(f"The container holds a measurement of the task '{content.task}'; found the task '{task}'.")
    for name, value in options.items():
        if value is not None:
            raise UsageError(f"The container describes its operator itself; leave out {name}.")
    check_memory(content.image_shape)
    operator = content.operator()
    level = sigma if sigma is not None else content.sigma
    if level is None:
        raise LeaderError("The container does not say how noisy its measurement is; give sigma (0 for none).")
    level = as_sigma(level)
    measured = operator.A(torch.zeros(1, *content.image_shape)).shape
    if content.y.shape != measured:
        raise LeaderError(
            f"The container's measurement has shape {list(content.y.shape)}; its operator makes {list(measured)}."
        )
    problem = Problem(content.y.to(device), operator, level)
    view = content.y if content.y.ndim == 4 else (operator.pinv(problem.y) + 1) / 2
    given = Picture(_to_array(view), content.alpha, content.bits, content.icc)
    return PosedProblem(problem, given, content.task, level, "given" if sigma is not None else "container")


def pose_picture(
    picture: Picture, task: str, sigma: float | None, options: Mapping[str, Any], device: torch.device = CPU
) -> PosedProblem:
    """The problem of a degraded picture; sigma None is estimated."""
    chosen, given = task_options(task, options)
    request = Request(picture)
    values = chosen.read(given, request)
    check_memory(chosen.shape(picture, values))
    measured = chosen.measured(picture, values)
    level, origin = sigma, "given"
    if level is None:
        noise = _estimated(measured, chosen.amplifies)
        level, origin = noise.sigma, "estimated"
        request.notes.extend(noise.notes())
    pixels, window = measured.pixels, measured.window
    y = torch.from_numpy(np.ascontiguousarray(pixels.transpose(2, 0, 1)))[None]
    if window is not None:
        y = extend(y, measured.operator, window)
    # beyond its frame a picture is a continuation, which need not be one of an image in range
    problem = Problem(y.to(device), measured.operator, level, in_range=window is None)
    shown = replace(measured.picture, pixels=pixels)
    return PosedProblem(problem, shown, chosen.name, level, origin, window, tuple(request.notes), values)


def _estimated(measured: Measured, amplified: bool) -> NoiseEstimate:
    """The noise of the picture, with that of its compression and of its rounding to 8 or 16 bits."""
    try:
        picture = measured.picture
        return measure_noise(measured.pixels, measured.known, picture.bits, picture.history, amplified)
    except LeaderError as error:
        if measured.known is None or measured.known.mean() > 0.5:
            raise
        advice = ", and see that the mask is white where the picture is known."
        raise LeaderError(str(error).rstrip(".") + advice) from error


def _to_array(y: Tensor) -> NDArray[np.float32]:
    array: NDArray[np.float32] = y[0].permute(1, 2, 0).cpu().numpy().astype(np.float32)
    return array
