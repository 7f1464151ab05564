"""restore: a degraded picture in, a restored picture and how far to trust it out.

This is where pictures in [0, 1] become a Problem and results become pictures again. `prepare` makes every
choice (noise level, operator, borders) and `Preparation.run` does the work, so that a progress bar knows what
lies ahead.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from leader.errors import LeaderError
from leader.operators import find_task
from leader.pictures import Picture, write_picture
from leader.pictures.container import SUFFIX, read_container
from leader.priors.base import Prior
from leader.problem import Problem
from leader.restoration.arguments import ImageLike, TableLike, as_picture, as_sigma
from leader.restoration.borders import Window
from leader.restoration.pose import pose_container, pose_picture
from leader.result import Result, Step
from leader.sampler import Sampler

OnStep = Callable[[Step], None]


@dataclass(frozen=True)
class Restoration:
    """A restored picture.

    picture  with the transparency, bits and colour profile of the original
    given    what was handed in, as a picture of any size (A^+ y where the measurement is no picture)
    result   the run, cropped to the picture: images [1, C, H, W] in [-1, 1], trace, ledger, settings
    sigma    the noise level used, for [0, 1] images; `sigma_from` says "given", "estimated" or "container"
    seconds  wall-clock time of the run
    notes    choices made on the way, one sentence each
    """

    picture: Picture
    given: Picture
    result: Result
    task: str
    sigma: float
    sigma_from: str
    seconds: float
    notes: tuple[str, ...] = ()

    @property
    def image(self) -> Image.Image:
        """The restored picture in 8 bits, for Pillow."""
        return self.picture.to_pil()

    @property
    def array(self) -> NDArray[np.float32]:
        """The restored pixels [H, W, C] in [0, 1]."""
        return self.picture.pixels

    @property
    def uncertainty(self) -> NDArray[np.float32] | None:
        """Standard deviation per pixel [H, W] for [0, 1] images, channels joined by root mean square, or
        None.

        The calibrated error where the run has one, else the model's own posterior spread.
        """
        spread = self.result.posterior_std if self.result.error_std is None else self.result.error_std
        if spread is None:
            return None
        joined: NDArray[np.float32] = (spread[0].square().mean(0).sqrt() / 2).cpu().numpy()
        return joined

    def save(self, path: str | Path) -> None:
        """Writes the restored picture; the suffix chooses the format."""
        write_picture(Path(path), self.picture)

    def summary(self) -> dict[str, Any]:
        """Everything worth keeping beside the picture, ready for JSON."""
        spread = self.uncertainty
        return {
            "task": self.task,
            "size": list(self.picture.size),
            "sigma": self.sigma,
            "sigma_from": self.sigma_from,
            "seconds": round(self.seconds, 3),
            "seed": self.result.seed,
            "network": self.result.ledger.total.as_dict(),
            "mean_uncertainty": None if spread is None else float(spread.mean()),
            "trace": [
                {"t": visit.t, "u": visit.u, "U": visit.U, "jump": visit.jump}
                for visits in self.result.trace.values()
                for visit in visits
            ],
            "settings": self.result.settings,
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class Preparation:
    """A restoration with every choice made, ready to run."""

    problem: Problem
    sampler: Sampler
    seed: int
    given: Picture
    task: str
    sigma: float
    sigma_from: str
    window: Window | None = None
    notes: tuple[str, ...] = ()

    def run(self, on_step: OnStep | None = None) -> Restoration:
        """Does the work; `on_step` sees every Step."""
        begin = time.perf_counter()
        walk = self.sampler.iterate(self.problem, self.seed)
        while True:
            try:
                step = next(walk)
            except StopIteration as end:
                result: Result = end.value
                break
            except RuntimeError as error:
                raise _out_of_memory(error, self.problem.image_shape) from error
            if on_step is not None:
                on_step(step)
        result = replace(
            result,
            images=self._cropped(result.images),
            posterior_std=None if result.posterior_std is None else self._cropped(result.posterior_std),
            error_std=None if result.error_std is None else self._cropped(result.error_std),
        )
        pixels = ((result.images[0].permute(1, 2, 0) + 1) / 2).clamp(0, 1).cpu().numpy().astype(np.float32)
        seconds = time.perf_counter() - begin
        picture = self.given.with_pixels(pixels)
        return Restoration(picture, self.given, result, self.task, self.sigma, self.sigma_from, seconds, self.notes)

    def _cropped(self, images: Tensor) -> Tensor:
        return images if self.window is None else self.window.crop(images)

    def work(self) -> list[tuple[int, float]]:
        """(t, cost) of every network call that may lie ahead, in order; cost in full-resolution pixels."""
        _, height, width = self.problem.image_shape
        times = self.sampler.plan(self.problem).grid.times
        return [
            (now, self.sampler.prior.work(now, height, width))
            for now, after in pairwise(times)
            if after <= now  # moves upward cost nothing
        ]


def restore(
    image: ImageLike,
    task: str | None = None,
    *,
    sigma: float | None = None,
    method: str = "ddnm",
    plugins: Sequence[str] = ("leader",),
    steps: int = 100,
    prior: str | Path | Prior = "embedded",
    seed: int = 0,
    kernel: TableLike | None = None,
    mask: TableLike | None = None,
    factor: int | None = None,
    down: str | None = None,
    settings: dict[str, Any] | None = None,
    on_step: OnStep | None = None,
) -> Restoration:
    """Restores a degraded picture.

    image     a path (a picture, or a container written by `leader degrade`), Pillow image, array or tensor in
              [0, 1]
    task      sr (default), deblur-gaussian, deblur-motion, deblur, inpaint, colourise, denoise; containers
              know theirs
    sigma     noise level for [0, 1] images; None: the container's, or estimated from the picture
    kernel    for blurs: "gaussian:STD", "motion:SEED", a file or a table
    mask      for inpainting: a file or a table, 1 (white) where the picture is known; None: where it is not
              transparent
    factor    for sr (default 4); down: "bicubic" (default) or "average"
    settings  of the Sampler: the method's by name, a plug-in's in a dict under its name ({"satp": {"budget":
              0.05}})
    on_step   called with every Step, for progress and previews
    """
    ready = prepare(
        image,
        task,
        sigma=sigma,
        method=method,
        plugins=plugins,
        steps=steps,
        prior=prior,
        seed=seed,
        kernel=kernel,
        mask=mask,
        factor=factor,
        down=down,
        settings=settings,
    )
    return ready.run(on_step)


def prepare(
    image: ImageLike,
    task: str | None = None,
    *,
    sigma: float | None = None,
    method: str = "ddnm",
    plugins: Sequence[str] = ("leader",),
    steps: int = 100,
    prior: str | Path | Prior = "embedded",
    seed: int = 0,
    kernel: TableLike | None = None,
    mask: TableLike | None = None,
    factor: int | None = None,
    down: str | None = None,
    settings: dict[str, Any] | None = None,
) -> Preparation:
    """Makes every choice of a restoration, and refuses what cannot be done, before the first network call.
    Arguments as in `restore`.
    """
    if task is not None:
        find_task(task)
    level = None if sigma is None else as_sigma(sigma)
    model = prior if isinstance(prior, Prior) else _load(prior)
    sampler = Sampler(model, method, tuple(plugins), steps, **(settings or {}))  # wrong names first, then the picture
    options = {"kernel": kernel, "mask": mask, "factor": factor, "down": down}
    if isinstance(image, (str, Path)) and Path(image).suffix.lower() == SUFFIX:
        posed = pose_container(read_container(Path(image)), task, level, options)
    else:
        posed = pose_picture(as_picture(image), task or "sr", level, options)
    sampler.plan(posed.problem)  # refuses what the method or a plug-in cannot serve
    return Preparation(
        posed.problem,
        sampler,
        seed,
        posed.given,
        posed.task,
        posed.sigma,
        posed.sigma_from,
        posed.window,
        posed.notes,
    )


def _load(name: str | Path) -> Prior:
    from leader.priors import loading

    return loading.load_prior(name)


def _out_of_memory(error: RuntimeError, shape: tuple[int, int, int]) -> Exception:
    """Torch reports memory as a RuntimeError; anything else is passed on as it is."""
    if "memory" not in str(error).lower():
        return error
    return LeaderError(f"The memory does not suffice for a picture of {shape[2]} x {shape[1]} pixels; restore a part of it.")
