"""The verdict on a finished run: fine, doubtful or failed, and why, in words.

`measure` costs a few sums, and one network pass where asked to look; `judge` turns its numbers into a verdict by
thresholds alone, so that kept numbers can be judged again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import torch
from torch import Tensor

from leader.noise import SeededNoise
from leader.operators.whitened import physical
from leader.priors.base import Prior
from leader.problem import Problem
from leader.trust import plausibility, residual, score
from leader.trust.limits import (
    BLOCKS,
    COLOUR,
    ENLARGED_GROWTH,
    ENLARGED_KEPT_NOISE,
    EXCESS,
    GROWTH,
    INVENTED,
    KEPT_NOISE,
    LITTLE_GROWTH,
    LOST,
    MISFIT,
    MISREAD,
    SCORE,
    SHARP,
    TAKEN,
    TAKEN_DETAIL,
    TOO_CLOSE,
    TOO_WIDE,
    USUAL_GROWTH,
    WAVES,
    WORTH_A_LOOK,
    Limits,
)
from leader.trust.readings import growth, kept_noise, lost, misfit, sharp, taken, taken_detail, too_wide, waves

Level = Literal["fine", "doubtful", "failed"]
Numbers = dict[str, float | None]
Crop = Callable[[Tensor], Tensor]


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
    sharp: float | None = None,
    compressed: bool = False,
    misread: float = 0.0,
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
    sharp      log-odds that the given picture was not blurred at all, where a blur was undone and somebody looked
    compressed  whether that look knew how the given picture was compressed
    misread    the probability that what was found out about the picture is wrong, and no noise level makes up for it
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
        "sharp": sharp,
        "compressed": float(compressed),
        "misread": misread,
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
    sharp: float | None = None,
    compressed: bool = False,
    misread: float = 0.0,
) -> Verdict:
    """The verdict on a finished run of one image: `measure`, then `judge`."""
    found = (noise, too_wide, due, white, estimated, sharp, compressed, misread)
    return judge(measure(problem, x, prior, given, seed, image, crop, look, *found))


def judge(numbers: Mapping[str, Any]) -> Verdict:
    """The verdict that follows from the numbers of `measure`."""
    failed, doubtful = [], []
    for found in _findings(numbers):
        if found.words in failed:
            continue  # a number may count alone and among others
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
    """What was looked at, the gravest kind first.

    Of a run that undid a blur no single one of the numbers in `score.WEIGHTS` says that it failed, but all of them together;
    the words are then those of the number that says most.
    """
    sigma, ratio, more, wavy = float(numbers["sigma"]), misfit(numbers), growth(numbers), waves(numbers)
    strength = wavy * max(1.0, more / USUAL_GROWTH)
    noisy, gone, more_gone, detail_gone = kept_noise(numbers), lost(numbers), taken(numbers), taken_detail(numbers)
    excess, invented, blocks = (float(numbers[name]) for name in ("excess", "invented", "blockiness"))
    said = f"white noise of {sigma:.2g}" if sigma > residual.ROUNDING else "rounding to 8 bits"
    wide, guess = too_wide(numbers), float(numbers.get("misread", 0.0))
    together, enlarged = score.applies(numbers), float(numbers.get("enlarged", 1.0)) > 1
    about_right = "are kernel and sigma right?"
    detail = f"{_number(more)} times the detail to be expected"
    if enlarged:
        detail = f"{_number(more / ENLARGED_GROWTH.doubtful)} times the most detail that right answers have"
    words = {
        "growth": f"the picture has {detail}: {about_right}",
        "waves": f"the picture has waves {2 ** (wavy / 2):.1f} times as strong as in photographs: {about_right}",
        "excess": f"the answer leaves black and white by {_number(255 * excess)} grey levels: {about_right}",
        "too wide": "the given picture is much sharper than a blur by this kernel would be: the kernel is too wide",
    }
    alone = {
        "growth": _Finding(more, ENLARGED_GROWTH if enlarged else GROWTH, words["growth"], True),
        "waves": _Finding(strength if more > LITTLE_GROWTH else min(strength, WAVES.failed), WAVES, words["waves"], True),
        "excess": _Finding(excess, EXCESS, words["excess"], True),
        "kept noise": _Finding(
            noisy,
            ENLARGED_KEPT_NOISE if enlarged else KEPT_NOISE,
            f"the network sees noise of {_number(255 * noisy)} grey levels in the answer: is sigma too small?",
            True,
        ),
        "too wide": _Finding(wide, TOO_WIDE, words["too wide"]),
    }
    if together:
        for name in ("growth", "waves", "kept noise", "too wide"):
            alone[name] = replace(alone[name], value=min(alone[name].value, alone[name].limits.failed))
        gravest = score.gravest(numbers)
        total = _Finding(score.of(numbers), SCORE, words[gravest], wide <= TOO_WIDE.doubtful)
    return [
        _Finding(
            invented, INVENTED, f"{100 * invented:.0f} % of the picture is far from anything known: is the mask inverted?"
        ),
        *([total] if together else []),
        _Finding(sharp(numbers), SHARP, "the given picture looks sharp, not blurred by this kernel: what is there to undo?"),
        *alone.values(),
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
        _Finding(
            guess,
            MISREAD,
            f"how the thumbnail was made is a guess, wrong with {100 * guess:.0f} %: --down says what you know",
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
