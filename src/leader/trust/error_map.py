"""How large the errors of a finished run are, pixel by pixel: the referee's estimate, calibrated, and what is known exactly.

known pixels of a noise-free mask   the error is the answer minus the pixel, which is 0 for methods that keep it
a prior with a referee              its standard deviation times the factor of task and noise
a prior without one                 no error map, only the model's own spread
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from leader.messages import Note, Remedy
from leader.priors.base import Prior
from leader.problem import Problem
from leader.result import Result
from leader.trust import maps
from leader.trust.calibration import GAUSSIAN, LEVELS, SHOWN, calibration_of, find_family, find_level
from leader.trust.evidence import Evidence, Told, Watch, gather
from leader.trust.limits import FAR
from leader.trust.referee import file_of, referee_of
from leader.trust.residual import find_far_pixels
from leader.trust.strips import LARGE

LEAST = 1 / 255
"""Differences from a known pixel that rounding to 8 bits explains, [-1, 1] units: half a grey level."""
RED = 2 * maps.LAST / maps.NINE_OF_TEN / 255
"""The standard deviation, [-1, 1] units, at which the map reaches its last colour."""
APART = 0.7
"""Largest distance of the visited times from those that the referee examines, in natural logarithms of the clock
(`Watch.apart`): at most 0.63 on the paths of a quality, 1.6 with ten uniform steps of DDNM, where its intervals cover half of
the errors.
"""
SHORT = ("cells", "direct")
"""Plug-ins of short paths that stay further away, on which their own tasks, jpeg and denoise, were calibrated."""
IN_METRIC = "ucdc"
"""The plug-in that takes data steps in the metric of Sigma."""


NOTES = {
    "other tasks": (
        "The trust map was not calibrated for this task: it uses the widest factors of all tasks.",
        None,
    ),
    "other paths": (
        "The trust map was calibrated on paths with more late steps: errors may be several times as large as it shows.",
        Remedy("get such a path", {"quality": "standard"}),
    ),
    "uncalibrated": ("The trust map is the referee's own, not calibrated for this prior: run 'leader calibrate'.", None),
}
"""Fact and remedy by the source of a map that is less reliable than it could be."""


@dataclass(frozen=True)
class ErrorMap:
    """The standard deviation of the error, and how reliable it is.

    std      [H, W] in [-1, 1] units, such that 1.645 of it cover nine of ten pixels
    level    multiples of `std` that cover 50, 80, 90 and 95 % of the pixels
    source   "calibrated", "other tasks" (the widest factors of the tasks that were calibrated), "other paths" (those that were
             calibrated have more late steps) or "uncalibrated"
    """

    std: Tensor
    level: dict[float, float]
    source: str

    @property
    def note(self) -> Note | None:
        """A note if the map is less reliable than it could be."""
        if self.source not in NOTES:
            return None
        fact, remedy = NOTES[self.source]
        return Note(f"trust map: {self.source}", fact, remedy)


def error_map(prior: Prior, problem: Problem, evidence: Evidence, apart: float = 0.0, metric: bool = False) -> ErrorMap | None:
    """The error map of one image; None if the prior has no referee.

    apart   that of the watch (`Watch.apart`)
    metric  whether the data step was in the metric of Sigma (`is_in_metric`)
    """
    referee, file = referee_of(prior), file_of(prior)
    if referee is None or file is None:
        return None
    std = referee.std(evidence)
    calibration = calibration_of(file)
    level, source = dict(GAUSSIAN), "uncalibrated"
    if calibration is not None:
        family = find_family(problem.operator.task, evidence.known, metric)
        factors, measured = calibration.find_factors(family, find_level(problem))
        shown = factors[LEVELS.index(SHOWN)]
        std = std * shown / GAUSSIAN[SHOWN]
        level = {name: GAUSSIAN[SHOWN] * value / shown for name, value in zip(LEVELS, factors)}
        source = "calibrated" if measured else "other tasks"
        if apart > APART and bool(evidence.open.any()):
            source = "other paths"
    return ErrorMap(raise_invented(keep_known_pixels(std, evidence), evidence.known), level, source)


def is_in_metric(result: Result) -> bool:
    """Whether a run took its data step in the metric of Sigma."""
    return any(plugin["name"] == IN_METRIC for plugin in result.settings["plugins"])


def keep_known_pixels(std: Tensor, evidence: Evidence) -> Tensor:
    """`std` [H, W] with the true error where a noise-free mask hands pixels over: 0 up to rounding for most methods."""
    if evidence.known is None or evidence.given is None or evidence.noise > 0:
        return std
    error = (evidence.restored - evidence.given.to(evidence.restored)).abs().amax(0)
    return torch.where(evidence.known, torch.where(error > LEAST, error, 0.0), std)


def raise_invented(std: Tensor, known: Tensor | None) -> Tensor:
    """`std` [..., H, W], in [-1, 1] units, raised to `RED` far from all known pixels [H, W] bool: nothing supports what fills a
    hole there, however smooth it is.
    """
    if known is None:
        return std
    return torch.where(find_far_pixels(known[None], FAR).to(std.device), std.clamp_min(RED), std)


def narrow_spread(spread: Tensor, evidence: Evidence) -> Tensor:
    """The model's spread [C, H, W], a standard deviation, reduced by y where an operator measures pixels one by one.

    Variance p and noise s^2 make p s^2 / (p + s^2): 0 without noise. Elsewhere the spread stays.
    """
    if evidence.known is None:
        return spread
    variance, noise = spread.square(), evidence.noise**2
    after = (variance * noise / (variance + noise).clamp_min(torch.finfo(variance.dtype).tiny)).sqrt()
    return torch.where(evidence.known, after, spread)


def add_errors(prior: Prior, problem: Problem, result: Result, watch: Watch) -> tuple[Result, list[ErrorMap]]:
    """The result of a watched run with its error, and with the spread that y leaves open; the error map of every image.

    Without a referee, or where no Sigma was estimated, there is no error map.
    """
    stds, spreads, maps = [], [], []
    told: Told | None = None
    calibrated = any(plugin["name"] in SHORT for plugin in result.settings["plugins"])
    for row, name in enumerate(result.settings["ids"]):
        one = problem if problem.batch == 1 else problem.select(torch.tensor([row]))
        image = result.images[row : row + 1]
        if one.censored is None and problem.batch > 1 and image.numel() <= LARGE:  # of runs that are averaged: once
            told = told if told is not None and told.holds_for(one) else Told.read(one, image.float())
        evidence = gather(prior, one, image, watch, name, told)
        if evidence is None:
            return result, []
        apart = 0.0 if calibrated else watch.apart(name)
        if evidence.misfit.numel() > LARGE:
            watch.forget(name)  # the room is needed
        if result.posterior_std is not None:
            spreads.append(narrow_spread(result.posterior_std[row], evidence))
        found = error_map(prior, one, evidence, apart, is_in_metric(result))
        if found is not None:
            maps.append(found)
            stds.append(found.std.expand(result.images.shape[1:]))
    return (
        replace(
            result,
            posterior_std=torch.stack(spreads) if spreads else None,
            error_std=torch.stack(stds) if stds else None,
        ),
        maps,
    )
