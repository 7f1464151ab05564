"""From what a person has, a picture or a container, to the Problem that the sampler solves."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from leader.errors import LeaderError, UsageError
from leader.operators import LinearOperator, build_task, paper_gaussian_taps
from leader.pictures import MOST_PIXELS, Picture
from leader.pictures.container import Measurement
from leader.pictures.noise_level import estimate_noise
from leader.problem import Problem
from leader.restoration.arguments import TableLike, as_kernel, as_mask
from leader.restoration.borders import Window, extend, extended_blur

BLURS = ("deblur-gaussian", "deblur-motion", "deblur")


@dataclass(frozen=True)
class Posed:
    """The Problem of a picture or a container, and what belongs to it."""

    problem: Problem
    given: Picture
    task: str
    sigma: float
    sigma_from: str
    window: Window | None = None
    notes: tuple[str, ...] = ()


def pose_container(content: Measurement, task: str | None, sigma: float | None, options: dict[str, Any]) -> Posed:
    """The problem in a container; its words (task, kernel, ...) may be repeated by nobody but itself."""
    if task is not None and task != content.task:
        raise UsageError(f"The container holds a measurement of the task '{content.task}'; found the task '{task}'.")
    for name, value in options.items():
        if value is not None:
            raise UsageError(f"The container describes its operator itself; leave out {name}.")
    operator = content.operator()
    level = sigma if sigma is not None else content.sigma
    if level is None:
        raise LeaderError("The container does not say how noisy its measurement is; give sigma (0 for none).")
    measured = operator.A(torch.zeros(1, *content.image_shape)).shape
    if content.y.shape != measured:
        raise LeaderError(
            f"The container's measurement has shape {list(content.y.shape)}; its operator makes {list(measured)}."
        )
    problem = Problem(content.y, operator, level)
    view = content.y if content.y.ndim == 4 else (operator.pinv(problem.y) + 1) / 2
    given = Picture(_to_array(view), content.alpha, content.bits, content.icc)
    return Posed(problem, given, content.task, level, "given" if sigma is not None else "container")


def pose_picture(picture: Picture, task: str, sigma: float | None, options: dict[str, Any]) -> Posed:
    """The problem of a degraded picture; sigma None is estimated."""
    allowed = {"sr": ("factor", "down"), "inpaint": ("mask",), **dict.fromkeys(BLURS, ("kernel",))}
    for name, value in options.items():
        if value is not None and name not in allowed.get(task, ()):
            raise UsageError(f"The task '{task}' has no use for a {name}; leave it out.")
    if task == "cs":
        raise LeaderError(
            "Compressed sensing starts from a measurement, not a picture; give a container (.npz) of `leader degrade`."
        )
    pixels, known, window = picture.pixels, None, None
    notes: list[str] = []
    if task == "colourise":
        pixels = pixels.mean(2, keepdims=True)
    shape = (3 if task == "colourise" else pixels.shape[2], pixels.shape[0], pixels.shape[1])
    operator: LinearOperator
    if task == "sr":
        factor = _factor(options["factor"])
        shape = (shape[0], shape[1] * factor, shape[2] * factor)
        if shape[1] * shape[2] > MOST_PIXELS:
            raise LeaderError(
                f"The result would have {shape[2]} x {shape[1]} pixels; crop the picture or use a smaller factor."
            )
        operator = build_task(task, shape, factor=factor, down=options["down"])
    elif task in BLURS:
        operator, window = extended_blur(shape, kernel_for(task, options["kernel"], notes), task)
    elif task == "inpaint":
        tensor = _mask(picture, options["mask"])
        known = tensor.numpy() > 0
        pixels = pixels * known[..., None]
        picture = replace(picture, alpha=None) if options["mask"] is None else picture
        operator = build_task(task, shape, mask=tensor)
    else:
        operator = build_task(task, shape)
    level, origin = (sigma, "given") if sigma is not None else (_estimated(picture, pixels, known), "estimated")
    y = torch.from_numpy(np.ascontiguousarray(pixels.transpose(2, 0, 1)))[None]
    if window is not None:
        y = extend(y, operator, window)
    given = replace(picture, pixels=pixels)
    problem = Problem(y, operator, level, in_range=window is None)  # beyond its frame a picture is a continuation
    return Posed(problem, given, task, level, origin, window, tuple(notes))


def _factor(factor: Any) -> int:
    if factor is None:
        return 4
    if not isinstance(factor, int) or not 1 <= factor <= 16:
        raise UsageError(f"The factor of super-resolution must be an integer from 1 to 16; found {factor}.")
    return factor


def kernel_for(task: str, kernel: TableLike | None, notes: list[str]) -> Tensor:
    """The kernel [kh, kw] of a blur task; what was chosen for the user is added to `notes`."""
    if kernel is None and task == "deblur-gaussian":
        taps = paper_gaussian_taps()
        notes.append(
            "No kernel was given: the blur is taken to be the papers' 5 x 5 taps; use --kernel gaussian:STD for another."
        )
        return torch.outer(taps, taps)
    if kernel is None:
        raise LeaderError(f"The task '{task}' needs the kernel of the blur; give motion:SEED, gaussian:STD or a file.")
    if task == "deblur-gaussian" and not (isinstance(kernel, str) and kernel.startswith("gaussian")):
        raise UsageError("The task 'deblur-gaussian' takes the kernel gaussian:STD; use the task 'deblur' for one of your own.")
    return as_kernel(kernel)


def _mask(picture: Picture, mask: TableLike | None) -> Tensor:
    if mask is not None:
        return as_mask(mask, picture.size)
    if picture.alpha is None:
        raise LeaderError(
            "The task 'inpaint' needs a mask, white where the picture is known, or a picture with transparent holes."
        )
    return as_mask(picture.alpha, picture.size)


def _estimated(picture: Picture, pixels: NDArray[np.float32], known: NDArray[np.bool_] | None) -> float:
    """The noise of the picture, at least that of its rounding to 8 or 16 bits."""
    rounding = 1 / float(2**picture.bits - 1) / math.sqrt(12)
    return max(estimate_noise(pixels, known), rounding)


def _to_array(y: Tensor) -> NDArray[np.float32]:
    array: NDArray[np.float32] = y[0].permute(1, 2, 0).cpu().numpy().astype(np.float32)
    return array
