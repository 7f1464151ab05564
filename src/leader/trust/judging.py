"""The verdict on a finished run: fine, doubtful or failed, with its reasons.

`judge` only compares the numbers of `measuring.measure` with limits, so that stored numbers can be judged again.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from leader.messages import Note, Reader, Remedy, render
from leader.trust import limits, residual, score
from leader.trust.limits import Limits
from leader.trust.maps import SHARES
from leader.trust.measuring import Numbers
from leader.trust.readings import read_growth, read_kept_noise, read_loss, read_misfit, read_sharpness, read_waves

Level = Literal["fine", "doubtful", "failed"]
REASONS = {
    "inverted": "{percent:.0f} % of the picture is far from anything known: is the mask inverted?",
    "invented": "{percent:.2g} % of the picture is invented: nothing is known within {distance} pixels of it",
    "invented colours": "the colours are invented: the given picture has none",
    "unsure": "in {percent:.0f} % of the picture the error may exceed {levels} grey levels",
    "sharp": "the given picture looks sharp: it was not blurred by this kernel",
    "growth": "the picture has {detail}: {question}",
    "waves": "the picture has waves {times:.1f} times as strong as in photographs: {question}",
    "excess": "the answer exceeds black and white by {levels} grey levels: {question}",
    "kept noise": "the network sees noise of {levels} grey levels in the answer: is sigma too small?",
    "too wide": "the given picture is much sharper than a blur by this kernel would be: the kernel is too wide",
    "lost": "{times} times as much as the picture's own noise was removed: sigma is too large",
    "misfit": "the measurement is not explained by {cause}: the residual is {times} times as large",
    "too close": "the residual is only {ratio:.2f} times the noise of {sigma:.2g}: sigma is too large, or noise was kept",
    "colour": "the residual, which {cause} should explain, is not white: neighbours have a correlation of {correlation:.2f}",
    "misread": "how the thumbnail was made is a guess, wrong with a probability of {percent:.0f} %",
    "blocks": "the given picture has the 8 x 8 blocks of JPEG, which no noise level describes",
}
"""What a reason says, by its code."""
REMEDIES = {"misread": Remedy("say how it was made", {"down": None})}


@dataclass(frozen=True)
class Verdict:
    """The judgement of a run.

    level    "fine", "doubtful" (look at it before using it) or "failed" (the picture is not usable)
    reasons  the most serious first, each a sentence with a `code`; empty if all is fine
    numbers  on which it is based, for [0, 1] images
    """

    level: Level
    reasons: tuple[Note, ...] = ()
    numbers: Numbers = field(default_factory=dict)

    def in_words(self, reader: Reader = "python") -> str:
        """One sentence: the level and every reason."""
        reasons = "; ".join(render(reason, reader) for reason in self.reasons)
        text = f"{self.level}: {reasons}" if reasons else self.level
        return text if text.endswith("?") else f"{text}."

    def as_dict(self) -> dict[str, Any]:
        """The verdict as JSON values; `codes` are those of the reasons."""
        codes = [reason.code for reason in self.reasons]
        return {"level": self.level, "reasons": [str(one) for one in self.reasons], "codes": codes, "numbers": self.numbers}


def judge(numbers: Mapping[str, Any]) -> Verdict:
    """The verdict that follows from the numbers of `measure`."""
    failed: dict[str, Note] = {}
    doubtful: dict[str, Note] = {}
    for found in _list_findings(numbers):
        if found.reason.code in failed:
            continue  # a number may count alone and among others
        if found.value > found.limits.failed:
            failed[found.reason.code] = found.reason
        elif found.value > found.limits.doubtful:
            doubtful[found.reason.code] = found.reason
    level: Level = "failed" if failed else "doubtful" if doubtful else "fine"
    return Verdict(level, (*failed.values(), *doubtful.values()), dict(numbers))


def larger_sigma_may_help(numbers: Mapping[str, Any]) -> bool:
    """Whether a run failed only in ways that a larger noise level can cure."""
    failed = [found for found in _list_findings(numbers) if found.value > found.limits.failed]
    return bool(failed) and all(found.helped for found in failed)


@dataclass(frozen=True)
class _Finding:
    """A number, its limits, the reason if it exceeds them, and whether a larger noise level helps."""

    value: float
    limits: Limits
    reason: Note
    helped: bool = False


def _find(code: str, value: float, bounds: Limits, helped: bool = False, **told: Any) -> _Finding:
    """The finding of a code: `told` fills in its sentence."""
    values = {"value": value, **told}
    fact = REASONS[code].format(percent=100 * value, **told)
    return _Finding(value, bounds, Note(code, fact, REMEDIES.get(code), values), helped)


def _list_findings(numbers: Mapping[str, Any]) -> list[_Finding]:
    """What is compared with limits, the most serious kind first.

    For a run that undid a blur, the features of `score` decide together whether it failed; the reason is that of the feature
    with the largest contribution.
    """
    signs = _list_signs(numbers)
    scored: list[_Finding] = []
    if score.is_scored(numbers):
        gravest = signs[score.find_gravest(numbers)].reason
        may_help = signs["too wide"].value <= limits.TOO_WIDE.doubtful
        scored.append(_Finding(score.score_run(numbers), limits.SCORE, gravest, may_help))
        for name in ("growth", "waves", "kept noise"):
            signs[name] = replace(signs[name], limits=Limits(signs[name].limits.doubtful))
    return [
        _find("inverted", float(numbers["invented"]), limits.INVERTED),
        _find("invented", float(numbers.get("deep", 0.0)), limits.INVENTED, distance=limits.FAR),
        _find("invented colours", float(numbers.get("uncoloured", 0.0)), limits.UNCOLOURED),
        _find("unsure", float(numbers.get("unsure") or 0.0), limits.UNSURE, levels=SHARES[-1]),
        *scored,
        _find("sharp", read_sharpness(numbers), limits.SHARP),
        *signs.values(),
        *_list_misfits(numbers),
    ]


def _list_signs(numbers: Mapping[str, Any]) -> dict[str, _Finding]:
    """Traces of a wrong kernel or a wrong noise level in the result, by code."""
    growth, waves, noise, excess = read_growth(numbers), read_waves(numbers), read_kept_noise(numbers), float(numbers["excess"])
    bounds, detail = limits.GROWTH, f"{_write(growth)} times the detail to be expected"
    if float(numbers.get("enlarged", 1.0)) > 1:
        bounds = limits.find_enlarged_growth(float(numbers["enlarged"]))
        detail = f"{_write(growth / bounds.doubtful)} times the most detail that right answers have"
    strength = waves * max(1.0, growth / limits.USUAL_GROWTH)
    question = "are kernel and sigma right?" if score.is_scored(numbers) else "is its damage described right?"
    found = (
        _find("growth", growth, bounds, True, detail=detail, question=question),
        _find("waves", strength, limits.WAVES, True, times=2 ** (waves / 2), question=question),
        _find("excess", excess, limits.EXCESS, True, levels=_write(255 * excess), question=question),
        _find("kept noise", noise, limits.KEPT_NOISE, True, levels=_write(255 * noise)),
        _find("too wide", float(numbers.get("too_wide") or 0.0), limits.TOO_WIDE),
    )
    return {one.reason.code: one for one in found}


def _list_misfits(numbers: Mapping[str, Any]) -> list[_Finding]:
    """Signs that the measurement is not as stated."""
    sigma, ratio, lost = float(numbers["sigma"]), read_misfit(numbers), read_loss(numbers)
    correlation, noisy = float(numbers["correlation"] or 0.0), sigma > residual.ROUNDING
    cause = f"white noise of {sigma:.2g}" if noisy else "rounding to 8 bits"
    closeness = 1 / ratio if ratio > 0 and noisy and not numbers.get("estimated") else 0.0
    shows = noisy or float(numbers["residual"]) > limits.VISIBLE  # less than a grey level is the grain of any photograph
    colour = abs(correlation) if shows and ratio > limits.WORTH_A_LOOK else 0.0
    return [
        _find("lost", lost, limits.LOST, times=_write(lost)),
        _find("misfit", ratio, limits.MISFIT, True, cause=cause, times=_write(ratio)),
        _find("too close", closeness, limits.TOO_CLOSE, ratio=ratio, sigma=sigma),
        _find("colour", colour, limits.COLOUR, cause=cause, correlation=correlation),
        _find("misread", float(numbers.get("misread", 0.0)), limits.MISREAD),
        _find("blocks", float(numbers["blockiness"]), limits.BLOCKS),
    ]


def _write(value: float) -> str:
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}"


def improves(later: Verdict, earlier: Verdict) -> bool:
    """Whether a repetition explains the measurement better and looks more like a picture."""
    closer = _measure_distance(later.numbers) < _measure_distance(earlier.numbers)
    return closer and read_growth(later.numbers) < read_growth(earlier.numbers)


def _measure_distance(numbers: Mapping[str, Any]) -> float:
    """How far the residual is from the noise, two-sided, on a logarithmic scale."""
    return abs(math.log(max(read_misfit(numbers), 1e-6)))
