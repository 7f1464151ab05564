"""Repeats a failed run with a larger noise level, if that was estimated and may be far too low.

Noise or waves in the result suggest that; a larger level does not cure a wrong kernel, an inverted mask or detail that was
mistaken for noise. A repetition is kept only if it explains the measurement better and looks more like a picture. A noise level
given by the user is never changed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from leader.messages import Note
from leader.trust.judging import Level, Verdict, improves, larger_sigma_may_help

if TYPE_CHECKING:
    from leader.restoration.restore import Preparation
    from leader.restoration.restored import Restoration

REPETITIONS = 2


@dataclass(frozen=True)
class Try:
    """One of several runs: its noise level for [0, 1] images, its verdict, and whether its picture was kept at the time."""

    sigma: float
    level: Level
    kept: bool


def run_with_second_try(ready: Preparation, run: Callable[[Preparation], Restoration]) -> Restoration:
    """`run(ready)`; if that failed and sigma was estimated, again with twice and four times the noise level."""
    best = run(ready)
    if best.verdict is None or best.verdict.level != "failed" or best.sigma_from != "estimated":
        return best
    judged: Verdict = best.verdict
    if ready.sigma == 0 or not larger_sigma_may_help(judged.numbers):  # twice nothing is nothing
        return best
    tries = [Try(ready.sigma, judged.level, True)]
    for number in range(1, REPETITIONS + 1):
        sigma = ready.sigma * 2**number
        fact = f"Sigma was estimated as {ready.sigma:.4f} and raised to {sigma:.4f}, since the first result was judged failed."
        note = Note("sigma raised", fact, values={"estimated": ready.sigma, "used": sigma})
        again = run(ready.with_sigma(sigma, note))
        assert again.verdict is not None
        better = improves(again.verdict, judged)
        tries.append(Try(sigma, again.verdict.level, better))
        if better:
            best, judged = again, again.verdict
        if judged.level != "failed":
            break
    return replace(best, tries=tuple(tries))
