"""Realistic picture files, for runs whose truth is known: degraded, rounded, perhaps compressed, and restored as files.

`leader.restore` estimates the noise, whitens it, allows for an inexact kernel and extends a picture beyond its frame: a trust
map must describe the errors of such runs, which differ from those of y = A x + noise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from PIL import Image, ImageDraw
from torch import Tensor

from leader.pictures import Picture
from leader.priors.base import Prior
from leader.restoration.degrade import degrade
from leader.restoration.restore import Preparation, prepare

if TYPE_CHECKING:
    from leader.train.trust_runs import RunCase

SCRATCHES = 5
"""Missing lines, two pixels wide, in a picture to be inpainted."""


def draw_options(task: str, rng: np.random.Generator, side: int) -> dict[str, Any]:
    """Options of a task for pictures of `side` pixels, ready for JSON."""
    if task == "jpeg":
        return {"quality": round(10 * 9.2 ** rng.random())}  # 10 to 92, half below 30, where errors differ most
    if task == "deblur-gaussian":
        return {"kernel": f"gaussian:{rng.uniform(0.8, 2.5):.2f}"}
    if task == "deblur-motion":
        return {"kernel": f"line:{rng.uniform(3, 9):.1f}:{rng.uniform(0, 180):.0f}"}
    if task == "sr":
        return {"factor": int(rng.choice([2, 2, 4]))}
    if task == "inpaint":
        return {"ends": rng.integers(0, side, (SCRATCHES, 2, 2)).tolist()}
    return {}


def degrade_picture(picture: Tensor, case: RunCase, jpeg: int | None) -> Picture:
    """A picture [3, H, W] in [0, 1] as a file of 8 bits: degraded by a task, noisy, compressed with the quality `jpeg`."""
    chosen = _add_mask(case.options, picture.shape[-1])
    found = degrade(picture, case.task, sigma=case.noise, seed=case.seed, **chosen).picture
    if case.task != "jpeg":
        found = found.with_pixels((np.round(255 * found.pixels) / 255).astype(np.float32))
    return found if jpeg is None else degrade(found, "jpeg", quality=jpeg).picture


def prepare_file(prior: Prior, given: Picture, case: RunCase, noise: float | None, name: int) -> Preparation:
    """A restoration of quality standard; noise None is estimated. Where the path is the mean of several runs, this is one."""
    chosen = {} if case.task == "jpeg" else _add_mask(case.options, given.pixels.shape[1])
    return prepare(given, case.task, sigma=noise, look=case.look, prior=prior, seed=case.seed, ids=name, **chosen)


def _add_mask(options: Mapping[str, Any], side: int) -> dict[str, Any]:
    """The options of a task; missing lines become a mask, white where the picture is known."""
    chosen = dict(options)
    if "ends" in chosen:
        image = Image.new("L", (side, side), 255)
        for line in chosen.pop("ends"):
            ImageDraw.Draw(image).line([tuple(point) for point in line], fill=0, width=2)
        chosen["mask"] = torch.from_numpy(np.array(image) > 0).float()
    return chosen
