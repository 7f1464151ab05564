"""restore: a degraded picture in, a restored picture and how far to trust it out.

This is where pictures in [0, 1] become a Problem and results become pictures again. `prepare` makes every
choice (noise level, operator, borders, settings) and `Preparation.run` does the work, so that a progress bar
knows what lies ahead.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from leader import defaults
from leader.by_name import check_count
from leader.errors import LeaderError, UsageError
from leader.methods import Method
from leader.pictures import Picture, write_picture
from leader.pictures.container import SUFFIX, read_container
from leader.pictures.noise_level import estimate_noise
from leader.plan import Plan
from leader.plugins import Plugin, expand
from leader.presets.paths import check_words, find_path
from leader.priors import loading
from leader.priors.base import Prior
from leader.priors.pieces import in_pieces
from leader.problem import Problem
from leader.restoration.arguments import ImageLike, as_picture, as_seed, as_sigma
from leader.restoration.ensemble import MOST_RUNS, ensemble
from leader.restoration.pose import PosedProblem, pose_container, pose_picture
from leader.restoration.provenance import stamp_of
from leader.restoration.repeat import Origin, describe_run
from leader.restoration.second_try import Try, run_with_second_try
from leader.restoration.tasks import find_task
from leader.restoration.whitening import Coloured
from leader.result import OnStep, Result
from leader.sampler import Sampler
from leader.schedule import Grid
from leader.trust import ErrorMap, Verdict, verdict
from leader.trust.maps import shares

RESERVED = ("self", "prior", "method", "plugins", "steps", "quality", "look")
"""Arguments of their own, which settings cannot hold."""
MOST_THREADS = 1024


@dataclass(frozen=True, repr=False, eq=False)
class Restoration:
    """A restored picture.

    picture  with the transparency, bits and colour profile of the original
    posed    the problem that was solved: the picture given, task, noise level, notes
    result   the run, cropped to the picture: images [1, C, H, W] in [-1, 1], trace, ledger, settings
    seconds  wall-clock time of the run
    origin   where prior and picture came from, for repeating the run
    verdict  whether the answer is plausible and the measurement was what it was said to be; None where nobody looked
    tries    the runs it took where a failed one was repeated, in order (see `second_try`)
    trust    where the uncertainty comes from and what other intervals take; None where the prior has no referee
    """

    picture: Picture
    posed: PosedProblem
    result: Result
    seconds: float
    origin: Origin
    verdict: Verdict | None = None
    tries: tuple[Try, ...] = ()
    trust: ErrorMap | None = None

    @property
    def given(self) -> Picture:
        """What was handed in, as a picture of any size (A^+ y where the measurement is no picture)."""
        return self.posed.given

    @property
    def task(self) -> str:
        return self.posed.task

    @property
    def sigma(self) -> float:
        """The noise level used, for [0, 1] images; `sigma_from` says "given", "estimated" or "container"."""
        return self.posed.sigma

    @property
    def sigma_from(self) -> str:
        return self.posed.sigma_from

    @property
    def notes(self) -> tuple[str, ...]:
        """Choices made on the way, one sentence each."""
        said = None if self.trust is None else self.trust.note
        return self.posed.notes if said is None else (*self.posed.notes, said)

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
        """Standard deviation per pixel [H, W] for [0, 1] images, channels joined by root mean square, or None.

        That of the error where the prior has a referee, else the model's own posterior spread.
        """
        spread = self.result.posterior_std if self.result.error_std is None else self.result.error_std
        if spread is None:
            return None
        joined: NDArray[np.float32] = (spread[0].square().mean(0).sqrt() / 2).cpu().numpy()
        return joined

    def save(self, path: str | Path, location: bool = False) -> None:
        """Writes the restored picture; the suffix chooses the format.

        Its metadata is that of the picture given, with a note of how it was made; `location` keeps the place where it was
        taken, which is left out otherwise.
        """
        write_picture(Path(path), self.picture, location, stamp_of(self.posed, self.result, self.origin))

    def summary(self) -> dict[str, Any]:
        """Everything worth keeping beside the picture, ready for JSON; `repeat.arguments_of` runs it again."""
        spread = self.uncertainty
        return {
            **describe_run(self.posed, self.result, self.origin),
            "size": list(self.picture.size),
            "seconds": round(self.seconds, 3),
            "network": self.result.ledger.total.as_dict(),
            "mean_uncertainty": None if spread is None else float(spread.mean()),
            "trust": None if self.trust is None else {"source": self.trust.source, "level": self.trust.level},
            "known_to_within": None if spread is None else shares(spread),
            "verdict": None if self.verdict is None else asdict(self.verdict),
            "tries": [asdict(item) for item in self.tries],
            "trace": [
                {"t": visit.t, "u": visit.u, "U": visit.U, "jump": visit.jump}
                for visits in self.result.trace.values()
                for visit in visits
            ],
        }

    def __repr__(self) -> str:
        width, height = self.picture.size
        calls = self.result.ledger.total.calls
        return f"<Restoration {self.task}: {width} x {height} pixels, sigma {self.sigma:.4g}, {calls} network calls>"

    def _repr_png_(self) -> bytes:
        """How a notebook shows the restored picture."""
        return self.picture._repr_png_()


@dataclass(frozen=True, repr=False, eq=False)
class Preparation:
    """A restoration with every choice made, ready to run.

    ids      the name of the image, which with the seed chooses its noise; one for each run where several are averaged
    threads  torch uses so many while it runs; None: as many as it is set to
    average  how many runs the picture is the mean of
    """

    posed: PosedProblem
    sampler: Sampler
    plan: Plan
    origin: Origin
    seed: int = 0
    ids: tuple[int, ...] | None = None
    threads: int | None = None
    average: int = 1

    @property
    def problem(self) -> Problem:
        return self.posed.problem

    @property
    def given(self) -> Picture:
        """The degraded picture."""
        return self.posed.given

    @property
    def task(self) -> str:
        return self.posed.task

    @property
    def sigma(self) -> float:
        return self.posed.sigma

    @property
    def sigma_from(self) -> str:
        return self.posed.sigma_from

    @property
    def notes(self) -> tuple[str, ...]:
        return self.posed.notes

    def run(self, on_step: OnStep | None = None, check: bool = True) -> Restoration:
        """Does the work; `on_step` sees every Step. `check` adds the verdict."""
        begin = time.perf_counter()
        with self.surroundings():
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
        return self.finished(result, trust, begin, check)

    @contextmanager
    def surroundings(self) -> Iterator[None]:
        """What holds while it runs: its threads, and a sentence where the memory does not suffice."""
        with _memory_in_words(self.problem.image_shape), _with_threads(self.threads):
            yield

    def finished(self, result: Result, trust: ErrorMap | None, begin: float, check: bool) -> Restoration:
        """The restoration of a run that began at `begin` (time.perf_counter): judged, cropped, a picture again."""
        with self.surroundings():
            judged = self._verdict(result.images) if check else None
        result = replace(
            result,
            images=self._cropped(result.images),
            posterior_std=None if result.posterior_std is None else self._cropped(result.posterior_std),
            error_std=None if result.error_std is None else self._cropped(result.error_std),
        )
        pixels = ((result.images[0].permute(1, 2, 0) + 1) / 2).clamp(0, 1).cpu().numpy().astype(np.float32)
        seconds = time.perf_counter() - begin
        return Restoration(self.given.with_pixels(pixels), self.posed, result, seconds, self.origin, judged, trust=trust)

    def _verdict(self, images: Tensor) -> Verdict:
        given = torch.from_numpy(np.ascontiguousarray(self.given.pixels.transpose(2, 0, 1)))
        image = 0 if self.ids is None else self.ids[0]
        return verdict(
            self.problem, images, self.sampler.prior, given, self.seed, image, self._cropped, look=True, noise=self._noise()
        )

    def _noise(self) -> float | None:
        """The given picture's own white noise, where nothing but noise was to be removed and somebody said how much.

        A level that was estimated rests on the same picture, and knows of noise that is not white. None where it is too small.
        """
        if self.problem.operator.task != "denoise" or self.sigma_from == "estimated":
            return None
        try:
            return estimate_noise(self.given.pixels)
        except LeaderError:
            return None

    def with_sigma(self, sigma: float, note: str) -> Preparation:
        """The same with another noise level for [0, 1] images; everything that depends on it is chosen anew."""
        problem = replace(self.problem, sigma=torch.full_like(self.problem.sigma, 2 * sigma))
        posed = replace(self.posed, problem=problem, sigma=sigma, notes=(*self.notes, note))
        return replace(self, posed=posed, plan=self.sampler.plan(problem))

    def _cropped(self, images: Tensor) -> Tensor:
        return images if self.posed.window is None else self.posed.window.crop(images)

    def with_its_threads(self) -> AbstractContextManager[None]:
        """Torch with the threads of this run, for the time of a block."""
        return _with_threads(self.threads)

    def work(self) -> list[tuple[int, float]]:
        """(t, cost) of every network call that may lie ahead, in order; cost in full-resolution pixels."""
        _, height, width = self.problem.image_shape
        return [
            (now, self.sampler.prior.work(now, height, width))
            for now, after in pairwise(self.plan.grid.times)
            if after <= now  # moves upward cost nothing
        ]


def restore(
    image: ImageLike, task: str | None = None, *, on_step: OnStep | None = None, check: bool = True, **choices: Any
) -> Restoration:
    """Restores a degraded picture.

    image     a path (a picture, or a container written by `leader degrade`), Pillow image, array or tensor in
              [0, 1]
    task      sr (default), deblur-gaussian, deblur-motion, deblur, inpaint, colourise, denoise; containers
              know theirs
    on_step   called with every Step, for progress and previews
    check     whether the result gets a verdict; where it failed and sigma was estimated, the run
              is repeated with a larger one, at most twice
    choices   those of `prepare`: sigma, method, plugins, steps, prior, seed, ids, device, dtype, threads, settings, and
              the task's own: kernel, kernel_doubt, mask, factor, down
    """
    return run_with_second_try(prepare(image, task, **choices), lambda ready: ready.run(on_step, check))


def prepare(
    image: ImageLike,
    task: str | None = None,
    *,
    sigma: float | Coloured | None = None,
    quality: str | None = None,
    look: str | None = None,
    method: str | Method | None = None,
    plugins: Sequence[str | Plugin] | str | Plugin | None = None,
    steps: int | None = None,
    prior: str | Path | Prior = "embedded",
    seed: int = 0,
    ids: int | Sequence[int] | None = None,
    average: int | None = None,
    device: torch.device | str | None = None,
    dtype: torch.dtype | str | None = None,
    threads: int | None = None,
    settings: Mapping[str, Any] | None = None,
    jpeg: bool = True,
    **options: Any,
) -> Preparation:
    """Makes every choice of a restoration, and refuses what cannot be done, before the first network call.

    image, task  as in `restore`
    sigma        noise level for [0, 1] images; None: the container's, or estimated from the picture; `Coloured` for a run
                 that is repeated
    quality      "draft", "standard" (the default) or "best"; look: "natural" (the default) or "faithful". They choose
                 method, plug-ins, grid and steps, by prior, task and noise; what is given besides wins
    method       a host by name or as an object, with 100 steps and the plug-in "leader" unless told otherwise
    seed, ids    choose the noise: a picture with ids=3 gets what image 3 of a batch gets
    average      the picture is the mean of so many runs: closer to the truth, smoother, and as many times the work; None:
                 one, or as many as quality and look ask for
    device       where prior and measurement are put; None: where the prior is, the CPU for one by name
    dtype        of the network of a prior by name: float32 (default), float16 or bfloat16
    threads      of torch, on the CPU; None: as many as it is set to. The bits of a result depend on it
    settings     of the Sampler: the method's by name, a plug-in's in a dict under its name ({"satp": {"budget":
                 0.05}}), grid, estimator, probes, trust_time, use_presets
    jpeg         False: nothing is made of traces of JPEG, neither of tables in a file nor of blocks in pixels
    options      of the task:
                 kernel  for blurs: "auto" (found in the picture), "gaussian:STD", "disk:RADIUS", "line:LENGTH:ANGLE",
                         "motion:SEED", a file or a table; kernel_doubt: the relative error of its width, 0 for none
                 mask    for inpainting: a file or a table, 1 (white) where the picture is known; None: where it is
                         not transparent
                 factor  for sr (default 4); down: "bicubic" (default) or "average"
    """
    if task is not None:
        find_task(task)
    level = sigma if sigma is None or isinstance(sigma, Coloured) else as_sigma(sigma)
    count = None if average is None else check_count("The number of runs to average", average, 1, MOST_RUNS)
    origin_seed = as_seed(seed)
    asked = None if device is None else loading.device_named(device)
    model = _prior(prior, device, dtype)
    choice = _Choice(model, quality, look, method, plugins, steps, _checked(settings))  # wrong names first, then the picture
    place = model.weights_device() or asked or torch.device("cpu")
    with _memory_in_words(None), _with_threads(threads):
        if isinstance(image, (str, Path)) and Path(image).suffix.lower() == SUFFIX:
            if isinstance(level, Coloured):
                raise UsageError("A container has white noise; the noise of the run that is repeated is not.")
            posed = pose_container(read_container(Path(image)), task, level, options, place)
        else:
            posed = pose_picture(as_picture(image), task or "sr", level, options, place, bool(jpeg))
        sampler, usual = choice.sampler(posed.problem, find_task(posed.task).plugins)
        sampler.prior = in_pieces(sampler.prior, *posed.problem.image_shape[1:])
        plan = sampler.plan(posed.problem)  # refuses what the method or a plug-in cannot serve
    origin = Origin.of(image, prior, place, None if isinstance(prior, Prior) else dtype or torch.float32, plan.grid.uniform)
    runs = count or usual
    return Preparation(posed, sampler, plan, origin, origin_seed, _names(ids, runs), threads, runs)


class _Choice:
    """What runs: a method that was asked for, or what quality and look mean for the problem."""

    def __init__(
        self,
        prior: Prior,
        quality: str | None,
        look: str | None,
        method: str | Method | None,
        plugins: Sequence[str | Plugin] | str | Plugin | None,
        steps: int | None,
        settings: dict[str, Any],
    ) -> None:
        if method is not None and (quality is not None or look is not None):
            raise UsageError("Quality and look choose the method; give either them or a method, not both.")
        self.quality, self.look = quality or defaults.QUALITY, look or defaults.LOOK
        check_words(self.quality, self.look)
        self.prior, self.method, self.plugins, self.steps, self.settings = prior, method, plugins, steps, settings
        if method is not None:
            self._by_method(method, ())  # wrong names are told before the picture is read
        elif plugins is not None or steps is not None:
            Sampler(prior, plugins=plugins or (), steps=steps or 1)

    def sampler(self, problem: Problem, added: Sequence[str] = ()) -> tuple[Sampler, int]:
        """For a problem, and how many of its runs are averaged where nobody says.

        The plug-ins `added` belong to its task and join whatever else takes part.
        """
        if self.method is not None:
            return self._by_method(self.method, added), 1
        sigma = float(problem.sigma.max()) / 2
        path = find_path(self.prior.name, problem.operator.task, sigma, self.quality, self.look)
        steps = min(path.steps, len(self.prior.schedule))
        grid = path.route(self.steps or steps)
        return self._made(path.method, path.plugins, steps, grid, path.settings, added), path.average

    def _by_method(self, method: str | Method, added: Sequence[str]) -> Sampler:
        return self._made(method, defaults.METHOD_PLUGINS, defaults.METHOD_STEPS, None, {}, added)

    def _made(
        self,
        method: str | Method,
        plugins: Sequence[str],
        steps: int,
        grid: str | Grid | None,
        settings: Mapping[str, Any],
        added: Sequence[str],
    ) -> Sampler:
        replaced = () if self.plugins is None else set(expand(plugins)) - set(added)  # whose settings go with them
        own = {**{name: value for name, value in settings.items() if name not in replaced}, **self.settings}
        chosen = expand(plugins if self.plugins is None else self.plugins)
        names = [item if isinstance(item, str) else item.name for item in chosen]
        return Sampler(
            self.prior,
            method,
            (*chosen, *(name for name in added if name not in names)),
            steps if self.steps is None else self.steps,
            **({"grid": grid, **own} if grid is not None else own),
        )


def _prior(prior: str | Path | Prior, device: torch.device | str | None, dtype: torch.dtype | str | None) -> Prior:
    if isinstance(prior, Prior):
        if dtype is not None:
            raise UsageError("The dtype belongs to a prior by name; load this one with load_prior(..., dtype=...) instead.")
        return prior if device is None else prior.to(device)
    chosen: dict[str, Any] = {name: value for name, value in (("device", device), ("dtype", dtype)) if value is not None}
    return loading.load_prior(prior, **chosen)


def _names(ids: int | Sequence[int] | None, runs: int) -> tuple[int, ...] | None:
    """The id of every run; of several the first may be given alone."""
    if ids is None:
        return None
    given = tuple(ids) if isinstance(ids, (list, tuple)) else (ids,)
    if len(given) not in (1, runs):
        raise UsageError(f"A picture has one id, or one for each of the runs that are averaged; found {len(given)}.")
    names = tuple(as_seed(name, "id of an image") for name in given)
    return tuple(range(names[0], names[0] + runs)) if len(names) == 1 else names


def _checked(settings: Mapping[str, Any] | None) -> dict[str, Any]:
    if settings is None:
        return {}
    if not isinstance(settings, Mapping) or not all(isinstance(name, str) for name in settings):
        raise UsageError("The settings must be names and values, as in {'eta': 0.5, 'satp': {'budget': 0.05}}.")
    for name in RESERVED:
        if name in settings:
            raise UsageError(f"The settings hold '{name}', which is not one of them; give it as an argument of its own.")
    return dict(settings)


@contextmanager
def _with_threads(count: int | None) -> Iterator[None]:
    """Torch with so many threads, for the time of the block."""
    if count is None:
        yield
        return
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MOST_THREADS:
        raise UsageError(f"The number of threads must be an integer from 1 to {MOST_THREADS}; found {count}.")
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def _memory_in_words(shape: tuple[int, int, int] | None) -> Iterator[None]:
    """One sentence where the memory does not suffice, which torch reports as a RuntimeError."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "memory" not in str(error).lower():
            raise
        size = "this picture" if shape is None else f"a picture of {shape[2]} x {shape[1]} pixels"
        raise LeaderError(f"The memory does not suffice for {size}; restore a part of it.") from error
