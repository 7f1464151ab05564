"""degrade: what a bad camera would have made of a good picture, to try restorations on known ground.

A picture that is written as a picture is degraded as a camera would: blurred with more scene beyond its
border, clipped to the range and rounded. Written as a container it keeps every decimal of y = A x + sigma z,
with the exact operator.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from leader.errors import LeaderError, UsageError
from leader.noise import SeededNoise
from leader.operators import build_task, find_task
from leader.pictures import Picture, check_format, write_picture
from leader.pictures.container import SUFFIX, Measurement, write_container
from leader.restoration.arguments import ImageLike, TableLike, as_kernel, as_mask, as_picture, as_sigma
from leader.restoration.borders import blurred_by_camera
from leader.restoration.pose import BLURS, kernel_for


def degrade(
    image: ImageLike,
    out: str | Path,
    task: str = "sr",
    *,
    sigma: float = 0.0,
    seed: int = 0,
    kernel: TableLike | None = None,
    mask: TableLike | None = None,
    factor: int | None = None,
    down: str | None = None,
    ratio: float | None = None,
    order: str | None = None,
) -> list[str]:
    """Degrades a picture into `out`, a picture or (.npz) a container; returns notes for the user, one
    sentence each.

    seed  of the noise, of the motion kernel and of the index set where none is given
    ratio, order  of compressed sensing: share of coefficients, and "random", "sequency" or "published"
    Other arguments as in `leader.restore`.
    """
    find_task(task)
    level, path = as_sigma(sigma), Path(out)
    picture = as_picture(image)
    contained = path.suffix.lower() == SUFFIX
    if not contained:
        if task == "cs":
            raise UsageError("A compressed-sensing measurement is no picture; write a container (.npz).")
        check_format(path, picture.alpha is not None)
    given: dict[str, Any] = {"factor": factor, "down": down, "ratio": ratio, "order": order}
    notes: list[str] = []
    if kernel is None and task == "deblur-motion":
        kernel = f"motion:{seed}"
        notes.append(f"The motion kernel is motion:{seed}.")
    if task == "inpaint":
        if mask is None:
            raise UsageError("The task 'inpaint' needs a mask: a file, white where the picture is known, or random:SHARE.")
        given["mask"] = as_mask(mask, picture.size)
    elif mask is not None:
        raise UsageError(f"The task '{task}' has no use for a mask; leave it out.")
    if task == "cs":
        given["seed"] = seed
    if kernel is not None and task not in BLURS:
        raise UsageError(f"The task '{task}' has no use for a kernel; leave it out.")
    x = torch.from_numpy(np.ascontiguousarray(picture.pixels.transpose(2, 0, 1)))[None]
    if task == "colourise" and x.shape[1] == 1:
        raise LeaderError("The picture is grey already; give one with colours, or restore it with the task 'colourise'.")
    if contained:
        measurement = _measured(x, task, level, seed, {**given, **_exact_kernel(task, kernel)})
        write_container(path, replace(measurement, bits=picture.bits, alpha=picture.alpha, icc=picture.icc))
        return notes
    y = _photographed(x, task, kernel, given, notes)
    noisy = y + level * _noise(seed, y)
    if task == "inpaint":
        noisy = noisy * given["mask"]
    share = float(((noisy < 0) | (noisy > 1)).float().mean())
    if share > 0.01:
        notes.append(f"{100 * share:.0f} % of the values were clipped to the range; a container ({SUFFIX}) keeps them.")
    write_picture(path, _resized(picture, noisy[0].permute(1, 2, 0).clamp(0, 1).numpy()))
    return notes


def _measured(x: Tensor, task: str, sigma: float, seed: int, given: dict[str, Any]) -> Measurement:
    shape = (int(x.shape[1]), int(x.shape[2]), int(x.shape[3]))
    options = {name: value for name, value in given.items() if value is not None}
    operator = build_task(task, shape, **options)
    y = operator.A(x)
    noisy = y + sigma * _noise(seed, y)
    if task == "inpaint":
        noisy = noisy * given["mask"]
    return Measurement(task, noisy, shape, sigma, options)


def _photographed(x: Tensor, task: str, kernel: TableLike | None, given: dict[str, Any], notes: list[str]) -> Tensor:
    shape = (int(x.shape[1]), int(x.shape[2]), int(x.shape[3]))
    if task in BLURS:
        if any(value is not None for value in given.values()):
            build_task(task, shape, **given)  # names the option that does not belong
        return blurred_by_camera(x, kernel_for(task, kernel, notes), task)
    return build_task(task, shape, **given).A(x)


def _exact_kernel(task: str, kernel: TableLike | None) -> dict[str, Any]:
    """The kernel as the option of the task's exact operator."""
    if task not in BLURS or kernel is None:
        return {}
    if task == "deblur-gaussian":
        kernel_for(task, kernel, [])  # refuses what is no Gaussian
        return {"std": float(str(kernel).partition(":")[2])}
    return {"kernel": as_kernel(kernel)}


def _noise(seed: int, like: Tensor) -> Tensor:
    return SeededNoise(seed)([0], [0], "observation", like.shape[1:])


def _resized(picture: Picture, pixels: Any) -> Picture:
    return picture.with_pixels(np.ascontiguousarray(pixels, dtype=np.float32))
