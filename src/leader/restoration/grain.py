"""Grain: the noise of film and night pictures, put back onto a result that was enlarged or sharpened without it.

It is white Gaussian noise over the pixels of the result, of the standard deviation that the pixels given have: grain is as fine
in an enlargement as it was before, not enlarged with the picture. Nothing else of a run changes: verdict and trust map refer to
the picture beneath.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from leader.errors import UsageError
from leader.forensics import NotExamined
from leader.messages import Note
from leader.noise import SeededNoise
from leader.pictures.picture import Floats
from leader.restoration.arguments import as_sigma
from leader.restoration.tasks import TASKS, find_task
from leader.restoration.whitening import Coloured

if TYPE_CHECKING:
    from leader.restoration.pose import PosedProblem

KEEP, REMOVE = "keep", "remove"
_DRAW = "grain"


def read_grain(grain: str | float | None) -> str | float:
    """ "keep", "remove" (also for None), or a standard deviation for [0, 1] images."""
    if grain is None or grain in (KEEP, REMOVE):
        return REMOVE if grain is None else grain
    try:
        return as_sigma(grain)
    except UsageError as error:
        raise UsageError(f"The grain is keep, remove or a noise level from 0 to 1; found '{str(grain)[:40]}'.") from error


def put_grain(posed: PosedProblem, grain: str | float, sigma: float | Coloured | None) -> PosedProblem:
    """The problem with the grain that its result gets, and a note; unchanged if grain is removed.

    grain  as `read_grain` has it
    sigma  the given noise level, None if it was estimated
    """
    if grain == REMOVE:
        return posed
    if not find_task(posed.task).keeps_grain:
        able = ", ".join(name for name, task in TASKS.items() if task.keeps_grain)
        raise UsageError(f"Grain is kept by the tasks {able}; found the task '{posed.task}': leave the grain out.")
    level = _measure_grain(posed, sigma) if isinstance(grain, str) else grain
    if level == 0:
        return replace(posed, notes=(*posed.notes, Note("grain", "The picture has no noise, so no grain is put back.")))
    fact = f"Grain of {level:.2g} is put back onto the result; verdict and trust map are of the picture beneath it."
    return replace(posed, grain=level, notes=(*posed.notes, Note("grain", fact, values={"grain": level})))


def _measure_grain(posed: PosedProblem, sigma: float | Coloured | None) -> float:
    """Standard deviation of the noise of the pixels given, without errors of compression and of rounding.

    The uncertainty of the operator counts as noise in the problem, but is not grain.
    """
    if isinstance(sigma, Coloured):
        return posed.sigma
    if sigma is not None or posed.examination is None or posed.sigma_from == "container":
        return posed.sigma if sigma is None else sigma
    noise = posed.examination.noise
    if isinstance(noise, NotExamined):
        return 0.0
    level = noise.white
    if noise.shot is not None:
        level = noise.shot.level(posed.given.pixels)
    elif noise.spectrum is not None and noise.history is None:
        level = max(level, noise.spectrum.level)
    return level if level > noise.rounding else 0.0


def add_grain(pixels: Floats, level: float, seed: int, name: int, grey: bool) -> Floats:
    """Pixels [H, W, C] in [0, 1] with grain of that standard deviation, clipped to [0, 1].

    seed, name  of the run and of the image: the same grain for the same ones
    grey        whether all channels get the same grain, so that a picture without colour stays so
    """
    height, width, channels = pixels.shape
    draw = SeededNoise(seed, (_DRAW,))([name], [0], _DRAW, (height, width, 1 if grey else channels))[0].numpy()
    grainy: Floats = np.clip(pixels + np.float32(level) * draw, 0, 1).astype(np.float32)
    return grainy
