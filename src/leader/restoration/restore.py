"""restore: a degraded picture in, a restored picture and how far to trust it out.

This is where pictures in [0, 1] become a Problem and results become pictures again. `prepare` makes every
choice (noise level, operator, borders, settings) and `Preparation.run` does the work, so that a progress bar
knows how much there is to do.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np
import torch
from torch import Tensor

from leader import defaults
from leader.by_name import check_count
from leader.errors import UsageError, unknown_name
from leader.forensics import Examination, NotExamined, examine
from leader.methods import Method
from leader.pictures.container import SUFFIX, read_container
from leader.plan import Plan
from leader.plugins import Plugin
from leader.priors import loading
from leader.priors.base import Prior
from leader.priors.pieces import cut_into_pieces
from leader.problem import Problem
from leader.restoration.arguments import ImageLike, TableLike, as_picture, as_seed, as_sigma
from leader.restoration.choice import Choice, read_settings
from leader.restoration.diagnose import check_advised, diagnose, refuse_options
from leader.restoration.ensemble import MOST_RUNS, ensemble
from leader.restoration.grain import add_grain, put_grain, read_grain
from leader.restoration.pose import OfPosed, PosedProblem, pose_container, pose_picture
from leader.restoration.repeat import Origin, identify_image, identify_prior
from leader.restoration.resources import explain_memory, use_threads
from leader.restoration.restored import Restoration
from leader.restoration.second_try import run_with_second_try
from leader.restoration.tasks import find_task
from leader.restoration.whitening import Coloured
from leader.restoration.worth import left_where_nothing_is_gained
from leader.result import OnStep, Result, to_unit_range
from leader.sampler import Sampler
from leader.trust import ErrorMap, RunFacts, Verdict, judge, measure

if TYPE_CHECKING:
    from typing_extensions import Unpack  # comes with torch

PriorLike = str | Path | Prior | Any
"""A name, a path, a prior, or a pipeline or UNet2DModel of diffusers."""


@dataclass(frozen=True, repr=False, eq=False)
class Preparation(OfPosed):
    """A restoration with every choice made, ready to run.

    ids      the id of the image, which together with the seed determines its noise; one per run if several are averaged
    threads  of torch during the run; None: torch's own setting
    average  the number of runs whose mean the picture is
    same     the qualities that give this same run, its own included; empty if a method was named
    """

    posed: PosedProblem
    sampler: Sampler
    plan: Plan
    origin: Origin
    seed: int = 0
    ids: tuple[int, ...] | None = None
    threads: int | None = None
    average: int = 1
    same: tuple[str, ...] = ()

    @property
    def problem(self) -> Problem:
        return self.posed.problem

    @property
    def size(self) -> tuple[int, int]:
        """(width, height) of the restored picture."""
        window = self.posed.window
        _, height, width = self.problem.image_shape if window is None else (0, window.height, window.width)
        return width, height

    def run(self, on_step: OnStep | None = None, check: bool = True) -> Restoration:
        """Does the work; `on_step` sees every Step. `check` adds the verdict."""
        begin = time.perf_counter()
        with self.use_resources():
            runs = ensemble(
                self.problem,
                self.average,
                sampler=self.sampler,
                seed=self.seed,
                ids=self.ids,
                plan=self.plan,
                on_step=on_step,
            )
        result, trust = runs.as_result() if self.average > 1 else runs.runs, next(iter(runs.trust), None)
        del runs  # several times the size of the picture
        return self.finish(result, trust, begin, check)

    @contextmanager
    def use_resources(self) -> Iterator[None]:
        """Sets the threads of the run, and explains a lack of memory in one sentence, for the duration of a block."""
        with explain_memory(self.problem.image_shape), use_threads(self.threads):
            yield

    def finish(self, result: Result, trust: ErrorMap | None, begin: float, check: bool) -> Restoration:
        """The restoration of a run that began at `begin` (time.perf_counter): judged, cropped, a picture again."""
        with self.use_resources():
            judged = self._verdict(result) if check else None
        result = replace(
            result,
            images=self._crop(result.images),
            posterior_std=None if result.posterior_std is None else self._crop(result.posterior_std),
            error_std=None if result.error_std is None else self._crop(result.error_std),
        )
        pixels = to_unit_range(result.images[0].permute(1, 2, 0)).cpu().numpy().astype(np.float32)
        if self.posed.grain > 0:
            grey = self.posed.examination is not None and self.posed.examination.grey
            pixels = add_grain(pixels, self.posed.grain, self.seed, 0 if self.ids is None else self.ids[0], grey)
        seconds = time.perf_counter() - begin
        return Restoration(self.given.with_pixels(pixels), self.posed, result, seconds, self.origin, judged, trust=trust)

    def _verdict(self, result: Result) -> Verdict:
        given = torch.from_numpy(np.ascontiguousarray(self.given.pixels.transpose(2, 0, 1)))
        facts = RunFacts(
            self.problem,
            result.images,
            self.sampler.prior,
            given,
            self.seed,
            0 if self.ids is None else self.ids[0],
            self._crop,
            look=True,
            noise=self._noise(),
            width=self.posed.width,
            estimated=self.sigma_from == "estimated",
            misread=self.posed.misread,
            error=result.error_std,
        )
        return judge(measure(facts))

    def _noise(self) -> float | None:
        """The given picture's own white noise, if only noise was to be removed and its level was given.

        An estimated level comes from the same picture and accounts for noise that is not white. None if the picture is too
        small.
        """
        if self.problem.operator.task != "denoise" or self.sigma_from == "estimated":
            return None
        noise = None if self.posed.examination is None else self.posed.examination.noise
        return None if noise is None or isinstance(noise, NotExamined) else noise.white

    def with_sigma(self, sigma: float, note: str) -> Preparation:
        """The same with another noise level for [0, 1] images; everything that depends on it is chosen again."""
        problem = replace(self.problem, sigma=torch.full_like(self.problem.sigma, 2 * sigma))
        posed = replace(self.posed, problem=problem, sigma=sigma, notes=(*self.notes, note))
        return replace(self, posed=posed, plan=self.sampler.plan(problem))

    def _crop(self, images: Tensor) -> Tensor:
        return images if self.posed.window is None else self.posed.window.crop(images)

    def work(self) -> list[tuple[int, float]]:
        """(t, cost) of every network call that the run may make, in order; cost in full-resolution pixels."""
        _, height, width = self.problem.image_shape
        return [
            (now, self.sampler.prior.work(now, height, width))
            for now, after in pairwise(self.plan.grid.times)
            if after <= now  # moves upward cost nothing
        ]


OPTIONS = ("kernel", "kernel_doubt", "mask", "factor", "size", "down")
"""Choices that are options of tasks."""


class RestoreChoices(TypedDict, total=False):
    """The keyword arguments of `restore` and `prepare`, which explains them."""

    sigma: float | Coloured | None
    quality: str | None
    look: str | None
    grain: str | float | None
    method: str | Method | None
    plugins: Sequence[str | Plugin] | str | Plugin | None
    steps: int | None
    prior: PriorLike
    seed: int
    ids: int | Sequence[int] | None
    average: int | None
    device: torch.device | str | None
    dtype: torch.dtype | str | None
    threads: int | None
    settings: Mapping[str, Any] | None
    jpeg: bool
    clipped: bool
    examination: Examination | None
    kernel: TableLike | None
    kernel_doubt: float | None
    mask: TableLike | None
    factor: float | None
    size: str | tuple[int, int] | None
    down: str | None
    options: Mapping[str, Any] | None


def restore(
    image: ImageLike,
    task: str | None = None,
    *,
    on_step: OnStep | None = None,
    check: bool = True,
    **choices: Unpack[RestoreChoices],
) -> Restoration:
    """Restores a degraded picture; images are in [0, 1], in and out.

    image     a path (a picture, or a container written by `leader degrade`), Pillow image, array or tensor in
              [0, 1]
    task      sr, deblur-gaussian, deblur-motion, deblur, inpaint, colourise, denoise, jpeg; containers know theirs. None:
              what `diagnose` advises, which `notes` reports; this never enlarges a picture
    on_step   called with every Step, for progress and previews
    check     whether the result gets a verdict; if it failed and sigma was estimated, the run
              is repeated with a larger sigma, at most twice
    choices   those of `prepare`

    >>> leader.restore(torch.rand(3, 16, 16), "sr", factor=2, sigma=0.05, steps=3, check=False).array.shape
    (32, 32, 3)
    """
    restored = run_with_second_try(prepare(image, task, **choices), lambda chosen: chosen.run(on_step, check))
    check_advised(restored)
    return restored


def prepare(image: ImageLike, task: str | None = None, **choices: Unpack[RestoreChoices]) -> Preparation:
    """Makes every choice of a restoration, and rejects what cannot be done, before the first network call.

    image, task  as in `restore`
    sigma        noise level for [0, 1] images; None: the container's, or estimated from the picture; `Coloured` for
                 repeating a run
    quality      "draft", "standard" (the default) or "best"; look: "natural" (the default) or "faithful". They choose
                 method, plug-ins, grid and steps by prior, task and noise; explicit arguments take precedence
    grain        for sr and deblurring: "remove" (the default), "keep" (noise of the picture's own level is put back onto the
                 result) or that level
    method       a host by name or as an object, with 100 steps and the plug-in "leader" unless others are given
    seed, ids    choose the noise: a picture with ids=3 gets what image 3 of a batch gets
    average      number of runs whose mean is the picture: closer to the truth, smoother, and as many times the work; None:
                 one, or as many as quality and look require
    device       where prior and measurement are placed; None: that of the prior, the CPU for a prior by name
    dtype        of the network of a prior by name: "auto" (the default: integers of eight bits and half precision at the
                 times where their rounding is far below Sigma_t, on machines where they are faster), "mixed" (half
                 precision on any machine), "mixed-int8", "mixed-int8-half", float32 (the same bits on machines of all
                 kinds), float16 or bfloat16
    threads      of torch, on the CPU; None: torch's own setting. The exact bits of a result depend on it
    settings     of the Sampler: the method's by name, a plug-in's in a dict under its name ({"satp": {"budget":
                 0.05}}), grid, estimator, probes, trust_time, use_presets
    jpeg         False: traces of JPEG are ignored, both tables in a file and blocks in pixels
    clipped      False: black and white pixels count as measured; otherwise noise is assumed to have been clipped there
    examination  an existing examination of the image, such as that of a Diagnosis, so that nothing is searched twice
    kernel       for blurs: "auto" (found in the picture), "gaussian:STD", "disk:RADIUS", "line:LENGTH:ANGLE",
                 "motion:SEED", a file or a table; kernel_doubt: the relative error of its width, 0 for none
    mask         for inpainting: a file or a table, 1 (white) where the picture is known; None: where it is not transparent
    factor       for sr, 1 to 16 (default 4); or size: that of the result, (width, height) or "1920x1080"
    down         for sr: how the picture was made small, "auto" (the default: found in the picture), "nearest", "box",
                 "bilinear", "pillow-bicubic", "lanczos", "opencv-bilinear", "opencv-bicubic", "bicubic" or "average"
    options      of a task of your own, by name

    >>> len(leader.prepare(torch.rand(3, 16, 16), "sr", factor=2, sigma=0.05, method="ddnm", steps=7).work())
    7
    """
    for name in choices:
        if name not in RestoreChoices.__annotations__:
            raise unknown_name("option", name, RestoreChoices.__annotations__)
    given, dtype, threads = choices.get("prior", defaults.PRIOR), choices.get("dtype"), choices.get("threads")
    prior = given if isinstance(given, (str, Path, Prior)) else loading.load_prior(given)
    of_task = {name: value for name, value in choices.items() if name in OPTIONS and value is not None}
    options = of_task | dict(choices.get("options") or {})
    if task is not None:
        find_task(task)
    sigma, average, device = choices.get("sigma"), choices.get("average"), choices.get("device")
    level = sigma if sigma is None or isinstance(sigma, Coloured) else as_sigma(sigma)
    count = None if average is None else check_count("The number of runs to average", average, 1, MOST_RUNS)
    seed, grain = as_seed(choices.get("seed", defaults.SEED)), read_grain(choices.get("grain"))
    asked = None if device is None else loading.device_named(device)
    model = _load_prior(prior, device, dtype)
    # wrong names first, then the picture
    words = (choices.get("quality"), choices.get("look"), choices.get("method"), choices.get("plugins"), choices.get("steps"))
    choice = Choice(model, *words, read_settings(choices.get("settings")))
    place = model.weights_device() or asked or torch.device("cpu")
    with explain_memory(None), use_threads(threads):
        if isinstance(image, (str, Path)) and Path(image).suffix.lower() == SUFFIX:
            if isinstance(level, Coloured):
                raise UsageError("A container has white noise, but the run to repeat had noise that is not white.")
            posed = pose_container(read_container(Path(image)), task, level, options, place)
        else:
            traces = (bool(choices.get("jpeg", True)), bool(choices.get("clipped", True)))
            posed = _pose(choices.get("examination") or image, task, level, options, place, *traces)
        posed = left_where_nothing_is_gained(put_grain(posed, grain, level), _cut_prior(model, posed.problem))
        posed = replace(posed, notes=(*posed.notes, *choice.tell_same(posed.problem, find_task(posed.task).title)))
        path = choice.path(posed.problem)
        sampler = choice.sampler(posed.problem, find_task(posed.task).plugins, path)
        sampler.prior = _cut_prior(sampler.prior, posed.problem)
        plan = sampler.plan(posed.problem)  # rejects what the method or a plug-in does not support
    numbers = None if isinstance(prior, Prior) else name_precision(dtype, model)
    files = (*identify_image(image), *identify_prior(prior))
    origin = Origin(*files, str(place), numbers, dict(model.rounded_from), plan.grid.uniform)
    runs = count or path.average
    same, _ = choice.list_same(posed.problem)
    return Preparation(posed, sampler, plan, origin, seed, _read_ids(choices.get("ids"), runs), threads, runs, same)


def _show_choices() -> None:
    """Shows the choices, which type checkers take from RestoreChoices, to prompts and `help`."""
    usual = {"prior": defaults.PRIOR, "seed": defaults.SEED, "jpeg": True, "clipped": True}
    shown = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=usual.get(name), annotation=kind.__forward_arg__)
        for name, kind in RestoreChoices.__annotations__.items()
    ]
    functions: tuple[Any, Any] = (restore, prepare)
    for function in functions:
        own = inspect.signature(function)
        fixed = [item for item in own.parameters.values() if item.kind is not inspect.Parameter.VAR_KEYWORD]
        function.__signature__ = own.replace(parameters=[*fixed, *shown])


_show_choices()


def _cut_prior(prior: Prior, problem: Problem) -> Prior:
    """The prior that works on large pictures piece by piece."""
    return cut_into_pieces(prior, *problem.image_shape[1:])


def _pose(
    image: ImageLike | Examination,
    task: str | None,
    level: float | Coloured | None,
    options: Mapping[str, Any],
    place: torch.device,
    jpeg: bool,
    clipped: bool,
) -> PosedProblem:
    """The problem of a picture; without a task, that of the repair that its diagnosis advises."""
    if task is None:
        refuse_options(options)
    examination = image if isinstance(image, Examination) else examine(as_picture(image))
    if task is not None:
        return pose_picture(examination, task, level, options, place, jpeg, clipped)
    found = replace(diagnose(examination), file=str(image) if isinstance(image, (str, Path)) else None)
    advice = found.advised()
    posed = pose_picture(examination, advice.task, level, advice.options, place, jpeg, clipped)
    return replace(posed, notes=(advice.note(), *posed.notes), diagnosis=replace(found, examination=None))


def _load_prior(prior: str | Path | Prior, device: torch.device | str | None, dtype: torch.dtype | str | None) -> Prior:
    if isinstance(prior, Prior):
        if dtype is not None:
            raise UsageError("The dtype belongs to a prior by name; load this one with load_prior(..., dtype=...) instead.")
        return prior if device is None else prior.to(device)
    place: dict[str, Any] = {} if device is None else {"device": device}
    return loading.load_prior(prior, dtype=dtype or defaults.DTYPE, **place)


def name_precision(dtype: torch.dtype | str | None, prior: Prior) -> str:
    """The precision that a dtype results in: "auto" becomes a mixture or "float32"."""
    return prior.precision if dtype in (None, loading.AUTO) else str(dtype).removeprefix("torch.")


def _read_ids(ids: int | Sequence[int] | None, runs: int) -> tuple[int, ...] | None:
    """The id of every run; for several runs the first id is enough."""
    if ids is None:
        return None
    given = tuple(ids) if isinstance(ids, (list, tuple)) else (ids,)
    if len(given) not in (1, runs):
        raise UsageError(f"A picture has one id, or one for each of the runs that are averaged; found {len(given)}.")
    names = tuple(as_seed(name, "id of an image") for name in given)
    return tuple(range(names[0], names[0] + runs)) if len(names) == 1 else names
