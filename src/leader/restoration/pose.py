"""From a picture or a container to the Problem that the sampler solves."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from leader.censoring import Censored
from leader.errors import LeaderError, UsageError
from leader.forensics import Examination, NotExamined, examine
from leader.forensics.blur.width import Width
from leader.forensics.noise.estimate import NoiseEstimate, rounding
from leader.forensics.noise.spectrum import NoiseSpectrum
from leader.messages import Note, Remedy
from leader.operators import LinearOperator, WeightedPixels
from leader.operators.tasks import resolve_task
from leader.pictures import Picture
from leader.pictures.container import Measurement
from leader.pictures.picture import Floats
from leader.problem import Problem
from leader.restoration import invention
from leader.restoration.arguments import as_sigma
from leader.restoration.borders import Window, extend
from leader.restoration.diagnose import Diagnosis
from leader.restoration.resources import check_memory
from leader.restoration.tasks import Measured, Request, Task, task_options
from leader.restoration.whitening import Coloured, NoiseShape, can_be_whitened, whiten_operator

CPU = torch.device("cpu")
CLIPPED_FROM = 2 / 255
"""Standard deviation of noise, for [0, 1] images, above which clipping is considered: below it, rounding to 8 bits (0.3 /
255) and errors of the operator decide which values lie at the limits.
"""


@dataclass(frozen=True)
class PosedProblem:
    """The Problem of a picture or a container, and what belongs to it.

    given       the degraded picture (A^+ y if the measurement is not a picture)
    sigma       the noise level for [0, 1] images; `sigma_from` says "given", "estimated" or "container"
    window      where the picture lies in the frame of the problem, if that is larger
    notes       choices made on the way, one sentence each
    options     of the task, as they were read: kernels and masks as tables
    noise       the picture's noise if the problem holds a whitened measurement: sigma is then that of its operator
    width       the picture's evidence on the width of a blur's kernel; None: not examined (no blur, or an exact kernel)
    white       whether the level is that of white noise, estimated from a picture without compression
    misread     the probability that a choice made for the user is wrong and no noise level makes up for it
    examination of the given picture
    diagnosis   if no task was given: the one whose advice this is, without its examination
    grain       standard deviation, for [0, 1] images, of the grain added to the result; 0 for none
    """

    problem: Problem
    given: Picture
    task: str
    sigma: float
    sigma_from: str
    window: Window | None = None
    notes: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    noise: NoiseShape | None = None
    width: Width | None = None
    white: bool = False
    misread: float = 0.0
    examination: Examination | None = field(default=None, repr=False, compare=False)
    diagnosis: Diagnosis | None = None
    grain: float = 0.0


class OfPosed:
    """Access to the problem of a restoration, prepared or finished."""

    posed: PosedProblem

    @property
    def given(self) -> Picture:
        """The degraded picture that was given (A^+ y if the measurement is not a picture)."""
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
        return self.posed.notes


def pose_container(
    content: Measurement, task: str | None, sigma: float | None, options: Mapping[str, Any], device: torch.device = CPU
) -> PosedProblem:
    """The problem in a container, which describes its own operator."""
    if task is not None and resolve_task(task, {})[0] != content.task:
        raise UsageError(f"The container holds a measurement of the task '{content.task}'; found the task '{task}'.")
    for name, value in options.items():
        if value is not None:
            raise UsageError(f"The container describes its operator itself; leave out {name}.")
    check_memory(content.image_shape)
    operator = content.operator()
    level = sigma if sigma is not None else content.sigma
    if level is None:
        raise LeaderError("The container does not say how noisy its measurement is; give the noise level (0 for none).")
    level = as_sigma(level)
    measured = operator.A(torch.zeros(1, *content.image_shape)).shape
    if content.y.shape != measured:
        raise LeaderError(
            f"The container's measurement has shape {list(content.y.shape)}; its operator makes {list(measured)}."
        )
    problem = Problem(content.y.to(device), operator, level)
    view = content.y if content.y.ndim == 4 else (operator.pinv(problem.y) + 1) / 2
    pixels = view[0].permute(1, 2, 0).cpu().numpy().astype(np.float32)
    given = Picture(pixels, content.alpha, content.bits, content.icc)
    origin = "given" if sigma is not None else "container"
    return PosedProblem(problem, given, content.task, level, origin, examination=examine(given))


def pose_picture(
    picture: Picture | Examination,
    task: str,
    sigma: float | Coloured | None,
    options: Mapping[str, Any],
    device: torch.device = CPU,
    jpeg: bool = True,
    clipped: bool = True,
) -> PosedProblem:
    """The problem of a degraded picture or of its examination; sigma None is estimated, that of a run to repeat may be
    `Coloured`.

    jpeg     whether to search for traces of JPEG
    clipped  whether noise may have been clipped at black and white
    """
    chosen, given = task_options(task, options)
    if not jpeg and chosen.name == "jpeg":
        raise UsageError(
            "The task 'jpeg' needs the traces of JPEG, which were switched off; switch them on, or choose another task."
        )
    examination = examine(picture, jpeg)
    picture = examination.picture
    request = Request(examination, notes=list(picture.metadata.notes))
    values = chosen.read(given, request)
    if chosen.invents(picture, values):
        request.notes.append(invention.NOTE)
    check_memory(chosen.shape(picture, values))
    measured = chosen.measured(examination, values)
    measured = replace(measured, doubt=math.hypot(measured.doubt, *request.doubts))
    level, noise, white = _noise(measured, sigma, chosen, request)
    request.notes.extend(measured.notes)
    pixels, window = measured.pixels, measured.window
    operator: LinearOperator = measured.operator
    y = torch.from_numpy(np.ascontiguousarray(pixels.transpose(2, 0, 1)))[None] if measured.y is None else measured.y
    if window is not None and measured.y is None:
        y = extend(y, operator, window)
    plain = y
    if noise is not None:
        weighed = whiten_operator(operator, noise, measured.doubt_power, pixels)
        operator, y = weighed, weighed.whiten(y)
        level = sigma.sigma if isinstance(sigma, Coloured) else weighed.reference
    # an entry of a filtered measurement holds many pixels
    entrywise = measured.y is None and (noise is None or isinstance(operator, WeightedPixels))
    censored = _find_clipped(pixels, plain, level, window) if clipped and entrywise else None
    # beyond its frame a picture is only continued, and a guessed operator may be wrong: neither has to agree with an image in
    # range
    in_range = window is None and not request.doubts
    problem = Problem(y.to(device), operator, level, censored=censored, in_range=in_range)
    shown, origin = replace(measured.picture, pixels=pixels), "estimated" if sigma is None else "given"
    return PosedProblem(
        problem,
        shown,
        chosen.name,
        level,
        origin,
        window,
        tuple(request.notes),
        values,
        noise,
        measured.width,
        white,
        max(request.misread, default=0.0),
        examination.of_measured(pixels, None),
    )


def _noise(
    measured: Measured, given: float | Coloured | None, task: Task, request: Request
) -> tuple[float, NoiseShape | None, bool]:
    """The noise level, for white noise; the noise of the picture if its measurement has to be whitened; whether white noise was
    found in a picture without compression.
    """
    if isinstance(given, Coloured):
        if not can_be_whitened(measured.operator, given.shape):
            raise UsageError(
                f"Noise that is not white cannot be whitened for '{measured.operator.task}'; give one noise level."
            )
        return given.sigma, given.shape, False
    level, white = given, False
    if level is None and measured.sigma is not None:
        level = measured.sigma
    if level is None:
        noise, notes = _estimate_noise(measured, task.amplifies, request.examination), request.notes
        if noise is None:
            fact = "The picture is too small to measure its noise, so it is assumed to have none."
            notes.append(Note("noise untold", fact, Remedy("say how noisy it is", {"sigma": None})))
            noise = NoiseEstimate(0.0, 0.0, rounding(measured.picture.bits))
            if noise.sigma < task.weak_noise:
                return 0.0, None, False
        if task.fine_detail and noise.grey is not None:
            fact = f"What may be noise of {noise.grey.level:.2g} that is the same in all colours is taken for fine detail."
            notes.append(Note("grey noise", fact, Remedy("remove it", {"sigma": float(f"{noise.grey.level:.2g}")})))
            noise = replace(noise, spectrum=None)
        if task.coarse_colour:
            noise = noise.raised()
        level, shape = math.hypot(noise.sigma, measured.doubt), noise.shot or noise.spectrum
        white = shape is None and noise.history is None
        notes.extend(noise.notes())
        if white and level < task.weak_noise and measured.picture.bits == 8:
            fact = (
                f"The noise that was found is weak ({255 * level:.1f} grey levels), and removing it would cost detail: the "
                "picture is left as it is."
            )
            notes.append(Note("weak noise", fact, Remedy("remove it", {"sigma": float(f"{level:.2g}")})))
            return 0.0, None, white
        if shape is not None and can_be_whitened(measured.operator, shape):
            notes.append(f"{shape.words()}; the restoration takes this into account.")
            return level, shape.raised(measured.doubt), white
        if shape is not None:
            notes.append(f"{shape.words()}; it counts as white noise of {level:.2g}.")
    if measured.doubt_power is None or not can_be_whitened(measured.operator):
        return level, None, white
    return level, NoiseSpectrum.white(max(level, rounding(measured.picture.bits))), white


def _estimate_noise(measured: Measured, amplified: bool, examination: Examination) -> NoiseEstimate | None:
    """The noise of what was measured, with that of its compression and of its rounding to 8 or 16 bits.

    None if the picture is too small to measure it; if a mask leaves too little, the level must be given.
    """
    examined = examination.of_measured(measured.pixels, measured.known)
    noise = examined.amplified_noise if amplified else examined.noise
    if not isinstance(noise, NotExamined):
        return noise
    if measured.known is None:
        return None
    if measured.known.mean() > 0.5:
        raise LeaderError(noise.reason)
    raise LeaderError(noise.reason.rstrip(".") + ", and see that the mask is white where the picture is known.")


def _find_clipped(pixels: Floats, y: Tensor, sigma: float, window: Window | None) -> Censored | None:
    """The entries of y [1, C, H, W], which holds pixels [H, W, C], that were clipped: noise of a file ends at black and white.

    Values beyond [0, 1] prove that nothing was clipped: they are simulated decimal numbers. Otherwise every value of exactly 0
    or 1 in a file or an array, channel by channel, is a limit. If the picture really is black there, this does no harm.
    """
    if sigma < CLIPPED_FROM or float(pixels.min()) < 0 or float(pixels.max()) > 1:
        return None
    found = Censored.at_limits(y)
    if found is None or window is None:
        return found
    inside = torch.zeros_like(y, dtype=torch.bool)
    window.crop(inside).fill_(True)  # beyond its frame the picture is only continued
    return found.where(inside)
