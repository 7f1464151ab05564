"""From numbers to a verdict: each kind of fault on its own, both sides of every limit, and whole synthetic runs."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from leader.operators.tasks import build_task
from leader.problem import Problem
from leader.trust import Verdict, judge, verdict
from leader.trust.judging import BLOCKS, COLOUR, EXCESS, GROWTH, INVENTED, MISFIT, NEVER, TOO_CLOSE, Limits, improves
from leader.trust.residual import ROUNDING
from tests.cheap_prior import CheapPrior, photograph

GOOD: dict[str, Any] = {
    "sigma": 0.02,
    "residual": 0.02,
    "correlation": 0.0,
    "blockiness": 1.0,
    "invented": 0.0,
    "excess": 0.0,
    "detail": 0.05,
    "given_detail": 0.05,
}
EDGES: list[tuple[Limits, str, Any]] = [
    (INVENTED, "mask", lambda limit: {"invented": limit}),
    (GROWTH, "detail", lambda limit: {"detail": 0.05 * limit}),
    (EXCESS, "grey levels", lambda limit: {"excess": limit}),
    (MISFIT, "not explained by white noise of 0.02", lambda limit: {"residual": 0.02 * limit}),
    (TOO_CLOSE, "too large", lambda limit: {"residual": 0.02 / limit}),
    (COLOUR, "not white", lambda limit: {"correlation": -limit, "residual": 0.02 * 1.5}),
    (BLOCKS, "JPEG", lambda limit: {"blockiness": limit}),
]


def test_a_good_run_is_fine() -> None:
    assert judge(GOOD) == Verdict("fine", (), GOOD)
    assert judge(GOOD).in_words() == "fine."


@pytest.mark.parametrize(("limits", "says", "change"), EDGES)
def test_both_sides_of_every_limit(limits: Limits, says: str, change: Any) -> None:
    for level, limit in (("doubtful", limits.doubtful), ("failed", limits.failed)):
        if limit == NEVER:
            continue
        below, above = (judge({**GOOD, **change(limit * factor)}) for factor in (0.99, 1.01))
        assert above.level == level and says in above.reasons[0]
        assert below.level == ("fine" if level == "doubtful" else "doubtful")
        assert above.in_words().startswith(f"{level}: ") and above.in_words()[-1] in ".?"


def test_the_gravest_reason_comes_first() -> None:
    both = judge({**GOOD, "blockiness": 2.0, "invented": INVENTED.doubtful + 0.01, "residual": 0.02 * 100})
    assert both.level == "failed" and len(both.reasons) == 3
    assert "100 times" in both.reasons[0] and "mask" in both.reasons[1] and "JPEG" in both.reasons[2]


def test_noise_free_data_are_held_against_rounding() -> None:
    exact = {**GOOD, "sigma": 0.0, "correlation": None}
    assert judge({**exact, "residual": 0.0}).level == "fine"
    assert judge({**exact, "residual": ROUNDING}).level == "fine"
    told = judge({**exact, "residual": 1.01 * MISFIT.failed * ROUNDING})
    assert told.level == "failed" and "rounding to 8 bits" in told.reasons[0]


def test_an_improvement_needs_both() -> None:
    first = judge({**GOOD, "residual": 0.5, "detail": 0.9})
    for residual, detail, better in ((0.1, 0.5, True), (0.1, 0.95, False), (0.6, 0.5, False), (1e-5, 0.5, False)):
        assert improves(judge({**GOOD, "residual": residual, "detail": detail}), first) is better


def _noisy(sigma: float, said: float) -> tuple[Problem, torch.Tensor, torch.Tensor]:
    truth = 0.2 + 0.6 * photograph(64, 64)[None]
    y = Problem.simulate(truth, build_task("denoise", (3, 64, 64)), sigma).y
    return Problem.internal(y, build_task("denoise", (3, 64, 64)), 2 * said), 2 * truth - 1, (y[0] + 1) / 2


@pytest.mark.parametrize(("said", "level"), [(0.05, "fine"), (0.05 / 8, "failed"), (0.1, "doubtful")])
def test_the_truth_is_fine_unless_sigma_is_wrong(said: float, level: str) -> None:
    problem, truth, given = _noisy(0.05, said)
    judged = verdict(problem, truth, CheapPrior(), given, seed=0)
    assert judged.level == level and judged.numbers["residual"] == pytest.approx(0.05, rel=0.05)
    assert judged.numbers["sigma"] == pytest.approx(said)


def test_worms_fail_and_a_coloured_residual_is_told() -> None:
    problem, truth, given = _noisy(0.05, 0.05)
    generator = torch.Generator().manual_seed(3)
    worms = 4 * torch.nn.functional.avg_pool2d(torch.randn(1, 3, 66, 66, generator=generator), 3, stride=1)
    judged = verdict(problem, truth + worms, CheapPrior(), given, seed=0)
    assert judged.level == "failed" and (judged.numbers["excess"] or 0) > EXCESS.failed
    drifted = verdict(problem, truth + 0.15, CheapPrior(), given, seed=0)
    assert drifted.level == "doubtful" and any("not white" in reason for reason in drifted.reasons)
