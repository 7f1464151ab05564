"""The verdict on a finished run: fine, doubtful or failed, and why, in words.

`measure` costs a few sums, and one network pass where asked to look; `judge` turns its numbers into a verdict by
thresholds alone, so that kept numbers can be judged again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor

from leader.noise import SeededNoise
from leader.priors.base import Prior
from leader.problem import Problem
from leader.trust import plausibility, residual

Level = Literal["fine", "doubtful", "failed"]
Numbers = dict[str, float | None]
Crop = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Limits:
    """Beyond which a number is doubtful, and beyond which the run has failed."""

    doubtful: float
    failed: float


NEVER = math.inf
# From runs of benchmarks/self_check.py; docs/verdict.md says what they reach and what they do not.
INVENTED = Limits(0.25, 0.5)
GROWTH = Limits(3.0, 5.0)
EXCESS = Limits(0.001, 0.005)
MISFIT = Limits(3.0, 7.0)
TOO_CLOSE = Limits(1.8, NEVER)
COLOUR = Limits(0.3, NEVER)
BLOCKS = Limits(1.4, NEVER)
WORTH_A_LOOK = 1.3
"""Times the noise below which the colour of a residual does not matter."""
LEAST_DETAIL = 1 / 255
"""Detail of a picture that counts as flat."""


@dataclass(frozen=True)
class Verdict:
    """What became of a run.

    level    "fine", "doubtful" (look at it before using it) or "failed" (the picture is not an answer)
    reasons  in plain words, the gravest first; empty where all is fine
    numbers  what it was judged by, for [0, 1] images
    """

    level: Level
    reasons: tuple[str, ...] = ()
    numbers: Numbers = field(default_factory=dict)

    def in_words(self) -> str:
        """One sentence: the level and every reason."""
        text = f"{self.level}: {'; '.join(self.reasons)}" if self.reasons else self.level
        return text if text.endswith("?") else f"{text}."


@torch.no_grad()
def measure(
    problem: Problem,
    x: Tensor,
    prior: Prior,
    given: Tensor,
    seed: int,
    image: int = 0,
    crop: Crop | None = None,
    look: bool = False,
) -> Numbers:
    """The numbers of a finished run of one image, for [0, 1] images.

    x      [1, C, H, W] in [-1, 1], the whole frame of the problem, not clamped
    given  [C, h, w] in [0, 1]: the degraded picture
    image  its id, which with the seed chooses the noise of the pass
    crop   the picture's part of the frame, where that is larger
    look   ask the network once more, for "change" and "spread": no limit rests on them yet
    """
    cut: Crop = crop or (lambda whole: whole)
    inside = x.clamp(-1, 1)
    seen = None
    if look:
        seen = plausibility.look(prior, inside, SeededNoise(seed)([image], [0], "check", x.shape[1:]))
    shown = cut(inside)[0].cpu() / 2 + 0.5
    before = plausibility.brought_to_size(given.cpu().float(), (int(shown.shape[-2]), int(shown.shape[-1])))
    return {
        **_of_residual(problem, inside, given, cut),
        "excess": float((cut(x) / 2 - cut(inside) / 2).double().square().mean().sqrt()),
        "change": None if seen is None else float(cut(seen.change).double().square().mean().sqrt()),
        "spread": None if seen is None or seen.spread is None else float(cut(seen.spread).double().mean()),
        "detail": plausibility.detail(shown),
        "fine_detail": plausibility.fine_detail(shown),
        "saturated": plausibility.saturated(shown),
        **_of_given(problem, before),
    }


def _of_residual(problem: Problem, x: Tensor, given: Tensor, cut: Crop) -> Numbers:
    left, y = problem.residual(x) / 2, problem.y
    reached = problem.operator.reached(y).expand_as(y)
    is_picture = y.ndim == 4
    if is_picture:
        left, reached = cut(left), cut(reached)
    return {
        "sigma": float(problem.sigma[0]) / 2,
        "residual": residual.level(left, reached),
        "correlation": residual.neighbour_correlation(left[0], reached[0]) if is_picture else None,
        "blockiness": residual.blockiness(given) if is_picture and bool(reached.all()) else 1.0,
        "invented": residual.invented_share(reached[0]) if _is_mask(problem) else 0.0,
    }


def _is_mask(problem: Problem) -> bool:
    """Whether the measurement is a picture of the same size with holes."""
    y = problem.y
    return tuple(y.shape[1:]) == tuple(problem.image_shape) and not bool(problem.operator.reached(y).all())


def _of_given(problem: Problem, before: Tensor) -> Numbers:
    """Content of the given picture; where it has holes, of what is known."""
    known = None
    if _is_mask(problem):
        known = problem.operator.reached(problem.y).expand_as(problem.y)[0].all(0).cpu()
    chosen = before if known is None else before[:, known][:, None, :]
    return {
        "given_detail": plausibility.detail(before, known),
        "given_fine_detail": plausibility.fine_detail(before) if known is None else None,
        "given_saturated": plausibility.saturated(chosen),
        "given_contrast": float(chosen.double().flatten(1).std(1).mean()),
    }


def verdict(
    problem: Problem,
    x: Tensor,
    prior: Prior,
    given: Tensor,
    seed: int,
    image: int = 0,
    crop: Crop | None = None,
    look: bool = False,
) -> Verdict:
    """The verdict on a finished run of one image: `measure`, then `judge`."""
    return judge(measure(problem, x, prior, given, seed, image, crop, look))


def misfit(numbers: Mapping[str, Any]) -> float:
    """How many times larger the residual is than the noise it should be, which is at least that of rounding to 8 bits."""
    return float(numbers["residual"]) / max(float(numbers["sigma"]), residual.ROUNDING)


def growth(numbers: Mapping[str, Any]) -> float:
    """How much more detail the picture has than the given one, whose noise counts as detail."""
    return float(numbers["detail"]) / max(float(numbers["given_detail"]), LEAST_DETAIL)


def judge(numbers: Mapping[str, Any]) -> Verdict:
    """The verdict that follows from the numbers of `measure`."""
    failed, doubtful = [], []
    for value, limits, words in _findings(numbers):
        if value > limits.failed:
            failed.append(words)
        elif value > limits.doubtful:
            doubtful.append(words)
    level: Level = "failed" if failed else "doubtful" if doubtful else "fine"
    return Verdict(level, (*failed, *doubtful), dict(numbers))


def _findings(numbers: Mapping[str, Any]) -> list[tuple[float, Limits, str]]:
    """(value, limits, what to say beyond them), the gravest kind first."""
    sigma, ratio, more = float(numbers["sigma"]), misfit(numbers), growth(numbers)
    excess, invented, blocks = (float(numbers[name]) for name in ("excess", "invented", "blockiness"))
    said = f"white noise of {sigma:.2g}" if sigma > residual.ROUNDING else "rounding to 8 bits"
    return [
        (invented, INVENTED, f"{100 * invented:.0f} % of the picture is far from anything known: is the mask inverted?"),
        (more, GROWTH, f"the picture has {_number(more)} times the detail of the given one: are kernel and sigma right?"),
        (
            excess,
            EXCESS,
            f"the answer leaves black and white by {_number(255 * excess)} grey levels: are kernel and sigma right?",
        ),
        (ratio, MISFIT, f"the measurement is not explained by {said}: the residual is {_number(ratio)} times as large"),
        (
            1 / ratio if ratio > 0 and sigma > residual.ROUNDING else 0.0,
            TOO_CLOSE,
            f"the residual is only {ratio:.2f} times the noise of {sigma:.2g}: sigma is too large, or noise was kept as detail",
        ),
        (
            abs(float(numbers["correlation"] or 0.0)) if ratio > WORTH_A_LOOK else 0.0,
            COLOUR,
            f"what {said} should explain is not white: neighbours have a correlation of {numbers['correlation'] or 0.0:.2f}",
        ),
        (blocks, BLOCKS, "the given picture has the 8 x 8 blocks of JPEG, which no noise level describes"),
    ]


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}"


def improves(later: Verdict, earlier: Verdict) -> bool:
    """Whether a repetition explains the measurement better and looks more like a picture."""
    closer = _distance(later.numbers) < _distance(earlier.numbers)
    return closer and growth(later.numbers) < growth(earlier.numbers)


def _distance(numbers: Mapping[str, Any]) -> float:
    """How far the residual is from the noise, two-sided, on a logarithmic scale."""
    return abs(math.log(max(misfit(numbers), 1e-6)))
