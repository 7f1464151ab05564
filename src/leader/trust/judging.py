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
from leader.operators.whitened import physical
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
GROWTH = Limits(1.3, 1.8)
ENLARGED_GROWTH = Limits(0.7, 0.77)
"""Of pictures made larger, which end with less detail than the spectrum of photographs promises."""
WAVES = Limits(1.2, 1.85)
KEPT_NOISE = Limits(0.023, 0.026)
LOST = Limits(1.35, 1.5)
TAKEN_DETAIL = Limits(0.06, 0.1)
TAKEN = Limits(1.25, 1.5)
TOO_WIDE = Limits(0.3, 0.5)
"""Natural logarithms of odds."""
OVERDONE = 2.25
"""Times what was due to be changed of a picture from which on too wide a kernel has ruined it."""
SEEN = 1.5 / 255
"""Difference between pictures below which nobody sees it."""
EXCESS = Limits(0.002, 0.03)
MISFIT = Limits(3.0, 7.0)
TOO_CLOSE = Limits(1.8, NEVER)
COLOUR = Limits(0.3, NEVER)
BLOCKS = Limits(1.4, NEVER)
WORTH_A_LOOK = 1.3
"""Times the noise below which the colour of a residual does not matter."""
LEAST_DETAIL = 1 / 255
"""Detail of a picture that counts as flat."""
LITTLE_GROWTH, USUAL_GROWTH = 0.4, 0.7
"""Times the detail to be expected: below the first waves are too faint to have ruined a picture, beyond the second, which right
answers hardly pass, they count for more.
"""
TAKES_DETAIL = 1.5
"""Times the detail that A takes from photographs above which noise in the answer was not in what was given."""
NOT_WHITE = 8.0
"""Times its white noise beyond which a picture's noise is not white, as after JPEG, and says nothing."""


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
    noise: float | None = None,
    too_wide: float | None = None,
    due: float | None = None,
    white: bool = False,
    estimated: bool = False,
) -> Numbers:
    """The numbers of a finished run of one image, for [0, 1] images.

    x          [1, C, H, W] in [-1, 1], the whole frame of the problem, not clamped
    given      [C, h, w] in [0, 1]: the degraded picture
    image      its id, which with the seed chooses the noise of the pass
    crop       the picture's part of the frame, where that is larger
    look       ask the network once more, for "change" and "spread"
    noise      of the given picture by its own estimate, where A is the identity
    too_wide   log-odds that the kernel of a blur is much too wide, where somebody looked at the spectrum
    due        root mean square of what undoing a narrower blur, and the noise, would change
    white      whether sigma was estimated, of noise that is taken to be white and was never compressed
    estimated  whether sigma rests on the given picture itself: what compression did, which is no residual, may count in it
    """
    cut: Crop = crop or (lambda whole: whole)
    inside = x.clamp(-1, 1)
    change = spread = None
    if look:
        change, spread = _looked_at(prior, inside, SeededNoise(seed)([image], [0], "check", x.shape[1:]), cut)
    shown = cut(inside)[0].cpu() / 2 + 0.5
    before = plausibility.brought_to_size(given.cpu().float(), (int(shown.shape[-2]), int(shown.shape[-1])))
    return {
        **_of_residual(problem, inside, given, cut),
        "noise": noise,
        "too_wide": too_wide,
        "due": due,
        "white": float(white),
        "estimated": float(estimated),
        "denoises": float(problem.operator.task == "denoise"),
        "excess": plausibility.root_mean_square(cut(x) / 2 - cut(inside) / 2),
        "change": change,
        "spread": spread,
        "distance": _distance_from(before, shown, problem),
        "detail": plausibility.detail(shown),
        "fine_detail": plausibility.fine_detail(shown),
        "saturated": plausibility.saturated(shown),
        "removed": 1.0 if _is_mask(problem) else plausibility.removed(physical(problem.operator), problem.image_shape),
        **{f"band{number}": value for number, value in enumerate(plausibility.bands(shown))},
        **_of_given(problem, before),
    }


def _looked_at(prior: Prior, inside: Tensor, noise: Tensor, cut: Crop) -> tuple[float, float | None]:
    """ "change" and "spread": what one pass of the network says of the answer."""
    seen = plausibility.look(prior, inside, noise)
    spread = None if seen.spread is None else float(cut(seen.spread).double().mean())
    return plausibility.root_mean_square(cut(seen.change)), spread


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
        "enlarged": x[0, 0].numel() / y[0, 0].numel() if is_picture else 1.0,
    }


def _is_mask(problem: Problem) -> bool:
    """Whether the measurement is a picture of the same size with holes."""
    y = problem.y
    return tuple(y.shape[1:]) == tuple(problem.image_shape) and not bool(problem.operator.reached(y).all())


def _distance_from(before: Tensor, shown: Tensor, problem: Problem) -> float:
    """Root mean square of the answer minus the given picture, both [C, H, W] in [0, 1]; of known pixels where it has holes."""
    away = before - shown
    if _is_mask(problem):
        away = away[:, problem.operator.reached(problem.y).expand_as(problem.y)[0].all(0).cpu()]
    return plausibility.root_mean_square(away) if away.numel() else 0.0


def _of_given(problem: Problem, before: Tensor) -> Numbers:
    """Content of the given picture; where it has holes, of what is known."""
    known = None
    if _is_mask(problem):
        known = problem.operator.reached(problem.y).expand_as(problem.y)[0].all(0).cpu()
    chosen = before if known is None else before[:, known][:, None, :]
    return {
        "given_detail": plausibility.detail(before, known),
        "given_fine_detail": plausibility.fine_detail(before) if known is None else None,
        **({} if known is not None else {f"given_band{n}": value for n, value in enumerate(plausibility.bands(before))}),
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
    noise: float | None = None,
    too_wide: float | None = None,
    due: float | None = None,
    white: bool = False,
    estimated: bool = False,
) -> Verdict:
    """The verdict on a finished run of one image: `measure`, then `judge`."""
    return judge(measure(problem, x, prior, given, seed, image, crop, look, noise, too_wide, due, white, estimated))


def misfit(numbers: Mapping[str, Any]) -> float:
    """How many times larger the residual is than the noise it should be, which is at least that of rounding to 8 bits."""
    return float(numbers["residual"]) / max(float(numbers["sigma"]), residual.ROUNDING)


def growth(numbers: Mapping[str, Any]) -> float:
    """How many times the detail the picture has that undoing A would give the given one, whose noise counts as detail."""
    return float(numbers["detail"]) / max(float(numbers["given_detail"]), LEAST_DETAIL) / float(numbers.get("removed", 1.0))


def lost(numbers: Mapping[str, Any]) -> float:
    """How many times the given picture's own noise was taken away; 0 where A is not the identity, or noise not white."""
    noise = numbers.get("noise")
    ratio = 0.0 if noise is None else float(numbers["residual"]) / max(float(noise), residual.ROUNDING)
    return ratio if ratio <= NOT_WHITE else 0.0


def taken(numbers: Mapping[str, Any]) -> float:
    """How many times the white noise that was found in a picture denoising took away, which has no more than that to take."""
    return float(numbers.get("denoises", 0.0)) * float(numbers.get("white", 0.0)) * misfit(numbers)


def taken_detail(numbers: Mapping[str, Any]) -> float:
    """The correlation of neighbours of what denoising took away, where white noise was found in the picture; 0 elsewhere.

    White noise has none: what hangs together was detail, and the estimate too large. A level that was given is judged by
    `lost`; noise of another colour, or compressed, hangs together itself.
    """
    counts = float(numbers.get("denoises", 0.0)) * float(numbers.get("white", 0.0))
    return counts * max(0.0, float(numbers["correlation"] or 0.0))


def too_wide(numbers: Mapping[str, Any]) -> float:
    """Log-odds that the kernel is much too wide; at most doubtful where the picture was hardly changed more than was due.

    What is uncertain of a kernel counts as noise, so that a run with a wrong one may have done little, and no harm.
    """
    odds, due = numbers.get("too_wide"), numbers.get("due")
    if odds is None or due is None:
        return 0.0
    harmed = float(numbers["distance"]) > max(OVERDONE * float(due), SEEN)
    return float(odds) if harmed else min(float(odds), TOO_WIDE.failed)


def kept_noise(numbers: Mapping[str, Any]) -> float:
    """What the network would change of the answer, where noise in it was not in the given picture; 0 without a look.

    At most doubtful where the picture was made larger: there it is judged by its growth, and grain alone is no ruin.
    """
    change = numbers.get("change")
    if change is None or float(numbers.get("removed", 1.0)) <= TAKES_DETAIL:
        return 0.0
    return min(float(change), KEPT_NOISE.failed) if float(numbers.get("enlarged", 1.0)) > 1 else float(change)


def waves(numbers: Mapping[str, Any]) -> float:
    """How far the spectrum rises above the 1/f of photographs, in octaves of power, where the given picture's does not.

    A band of frequencies counts by how much it exceeds the mean of those below it, and the same band of the given picture: what
    inverting a wrong kernel amplifies. 0 where the given picture has holes, whose spectrum says nothing.
    """
    found = [[numbers.get(f"{name}{k}") for k in range(len(plausibility.BANDS) - 1)] for name in ("band", "given_band")]
    if any(value is None for row in found for value in row):
        return 0.0
    bands, before = ([float(value) for value in row if value is not None] for row in found)
    rises = [min(bands[k] - sum(bands[:k]) / k, bands[k] - before[k]) for k in range(1, len(bands))]
    return float(max(0.0, *rises))


def judge(numbers: Mapping[str, Any]) -> Verdict:
    """The verdict that follows from the numbers of `measure`."""
    failed, doubtful = [], []
    for found in _findings(numbers):
        if found.value > found.limits.failed:
            failed.append(found.words)
        elif found.value > found.limits.doubtful:
            doubtful.append(found.words)
    level: Level = "failed" if failed else "doubtful" if doubtful else "fine"
    return Verdict(level, (*failed, *doubtful), dict(numbers))


def larger_sigma_may_help(numbers: Mapping[str, Any]) -> bool:
    """Whether a run failed by what too small a noise level does, and by nothing that a larger one makes worse or leaves."""
    failed = [found for found in _findings(numbers) if found.value > found.limits.failed]
    return bool(failed) and all(found.helped for found in failed)


@dataclass(frozen=True)
class _Finding:
    """A number, its limits, what to say beyond them, and whether a larger noise level helps there."""

    value: float
    limits: Limits
    words: str
    helped: bool = False


def _findings(numbers: Mapping[str, Any]) -> list[_Finding]:
    """What was looked at, the gravest kind first."""
    sigma, ratio, more, wavy = float(numbers["sigma"]), misfit(numbers), growth(numbers), waves(numbers)
    strength = wavy * max(1.0, more / USUAL_GROWTH)
    noisy, gone, more_gone, detail_gone = kept_noise(numbers), lost(numbers), taken(numbers), taken_detail(numbers)
    excess, invented, blocks = (float(numbers[name]) for name in ("excess", "invented", "blockiness"))
    said = f"white noise of {sigma:.2g}" if sigma > residual.ROUNDING else "rounding to 8 bits"
    return [
        _Finding(
            invented, INVENTED, f"{100 * invented:.0f} % of the picture is far from anything known: is the mask inverted?"
        ),
        _Finding(
            more,
            ENLARGED_GROWTH if float(numbers.get("enlarged", 1.0)) > 1 else GROWTH,
            f"the picture has {_number(more)} times the detail to be expected: are kernel and sigma right?",
            True,
        ),
        _Finding(
            strength if more > LITTLE_GROWTH else min(strength, WAVES.failed),
            WAVES,
            f"the picture has waves {2 ** (wavy / 2):.1f} times as strong as in photographs: are kernel and sigma right?",
            True,
        ),
        _Finding(
            excess,
            EXCESS,
            f"the answer leaves black and white by {_number(255 * excess)} grey levels: are kernel and sigma right?",
            True,
        ),
        _Finding(
            noisy,
            KEPT_NOISE,
            f"the network sees noise of {_number(255 * noisy)} grey levels in the answer: is sigma too small?",
            True,
        ),
        _Finding(
            too_wide(numbers),
            TOO_WIDE,
            "the given picture is much sharper than a blur by this kernel would be: the kernel is too wide",
        ),
        _Finding(
            detail_gone,
            TAKEN_DETAIL,
            f"what was taken away is detail, not noise (its neighbours correlate by {detail_gone:.2f}): sigma is too large",
        ),
        _Finding(more_gone, TAKEN, f"{_number(more_gone)} times as much as the noise that was found was taken away"),
        _Finding(gone, LOST, f"{_number(gone)} times as much as the picture's own noise was taken away: sigma is too large"),
        _Finding(
            ratio, MISFIT, f"the measurement is not explained by {said}: the residual is {_number(ratio)} times as large", True
        ),
        _Finding(
            1 / ratio if ratio > 0 and sigma > residual.ROUNDING and not numbers.get("estimated") else 0.0,
            TOO_CLOSE,
            f"the residual is only {ratio:.2f} times the noise of {sigma:.2g}: sigma is too large, or noise was kept as detail",
        ),
        _Finding(
            abs(float(numbers["correlation"] or 0.0)) if ratio > WORTH_A_LOOK else 0.0,
            COLOUR,
            f"what {said} should explain is not white: neighbours have a correlation of {numbers['correlation'] or 0.0:.2f}",
        ),
        _Finding(blocks, BLOCKS, "the given picture has the 8 x 8 blocks of JPEG, which no noise level describes"),
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
