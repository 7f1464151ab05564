"""Realistic picture files, for runs whose truth is known: degraded, rounded, perhaps compressed, and restored as files.

`leader.restore` estimates the noise, whitens it, allows for an inexact kernel and extends a picture beyond its frame: a trust
map must describe the errors of such runs, which differ from those of y = A x + noise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from leader.errors import LeaderError
from leader.pictures import Picture
from leader.priors.base import Prior
from leader.restoration.degrade import degrade
from leader.restoration.restore import Preparation, prepare
from leader.trust.error_map import is_in_metric
from leader.trust.evidence import Evidence, Watch, gather

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


def degrade_picture(
    picture: Tensor, task: str, noise: float, seed: int, options: Mapping[str, Any], jpeg: int | None
) -> Picture:
    """A picture [3, H, W] in [0, 1] as a file of 8 bits: degraded by a task, noisy, compressed with the quality `jpeg`."""
    chosen = _add_mask(options, picture.shape[-1])
    found = degrade(picture, task, sigma=noise, seed=seed, **chosen).picture
    rounded = found.with_pixels((np.round(255 * found.pixels) / 255).astype(np.float32)) if task != "jpeg" else found
    return rounded if jpeg is None else degrade(rounded, "jpeg", quality=jpeg).picture


def restore_file(
    prior: Prior, given: Picture, task: str, noise: float | None, seed: int, name: int, look: str, options: Mapping[str, Any]
) -> tuple[Evidence, Preparation, bool]:
    """The evidence of a restoration of quality standard, what was run, and whether its data step was in the metric of Sigma;
    noise None is estimated. Where the path is the mean of several runs, this is one of them.
    """
    chosen = {} if task == "jpeg" else _add_mask(options, given.pixels.shape[1])
    ready = prepare(given, task, sigma=noise, look=look, prior=prior, seed=seed, ids=name, **chosen)
    watch = Watch(prior.schedule)
    result = ready.sampler.run(ready.problem, ready.seed, ids=[name], plan=ready.plan, on_step=watch)
    evidence = gather(prior, ready.problem, result.images, watch, name)
    if evidence is None:
        raise LeaderError(f"The prior '{prior.name}' estimated no Sigma, which its referee needs; choose an estimator.")
    return evidence, ready, is_in_metric(result)


def _add_mask(options: Mapping[str, Any], side: int) -> dict[str, Any]:
    """The options of a task; missing lines become a mask, white where the picture is known."""
    chosen = dict(options)
    ends = chosen.pop("ends", None)
    if ends is not None:
        chosen["mask"] = _draw_mask(ends, side)
    return chosen


def _draw_mask(ends: list[list[list[int]]], side: int) -> Tensor:
    from PIL import Image, ImageDraw

    image = Image.new("L", (side, side), 255)
    for line in ends:
        ImageDraw.Draw(image).line([tuple(point) for point in line], fill=0, width=2)
    return torch.from_numpy(np.array(image) > 0).float()
