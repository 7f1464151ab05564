"""From numbers to a verdict: each kind of fault on its own, both sides of every limit, and whole synthetic runs."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from leader.operators.tasks import build_task
from leader.problem import Problem
from leader.trust import Verdict, judge, score, verdict
from leader.trust.judging import improves, larger_sigma_may_help
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
    NEVER,
    NOT_WHITE,
    OVERDONE,
    SCORE,
    SEEN,
    SHARP,
    TAKEN,
    TAKEN_DETAIL,
    TAKES_DETAIL,
    TOO_CLOSE,
    TOO_WIDE,
    USUAL_GROWTH,
    WAVES,
    Limits,
)
from leader.trust.plausibility import CLOCK, look
from leader.trust.readings import waves
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
FLAT: dict[str, Any] = {f"{name}{k}": -8.0 if name == "band" else -12.0 for name in ("band", "given_band") for k in range(6)}
BEYOND: dict[str, Any] = {"removed": 1.01 * TAKES_DETAIL, "correlation": None}
"""A measurement that is no picture, from which A took detail."""
EDGES: list[tuple[Limits, str, Any]] = [
    (INVENTED, "mask", lambda limit: {"invented": limit}),
    (GROWTH, "detail", lambda limit: {"detail": 0.05 * limit}),
    (GROWTH, "detail", lambda limit: {"detail": 0.2 * limit, "removed": 4.0, "correlation": None}),
    (ENLARGED_GROWTH, "detail", lambda limit: {"detail": 0.05 * limit, "enlarged": 4.0}),
    (KEPT_NOISE, "noise of", lambda limit: {**BEYOND, "change": limit, "detail": 0.07}),
    (ENLARGED_KEPT_NOISE, "noise of", lambda limit: {**BEYOND, "change": limit, "enlarged": 4.0, "detail": 0.03}),
    (LOST, "too large", lambda limit: {"residual": 0.02, "noise": 0.02 / limit}),
    (TAKEN_DETAIL, "is detail", lambda limit: {"correlation": limit, "denoises": 1.0, "white": 1.0}),
    (TAKEN, "noise that was found", lambda limit: {"residual": 0.02 * limit, "denoises": 1.0, "white": 1.0}),
    (TOO_WIDE, "kernel is too wide", lambda limit: {"too_wide": limit, "due": 0.01, "distance": 0.1}),
    (SHARP, "looks sharp", lambda limit: {"sharp": limit}),
    (MISREAD, "is a guess, wrong with 12 %", lambda limit: {"misread": limit}),
    (WAVES, "waves", lambda limit: {**FLAT, "band4": limit - 8.0, "detail": 0.03}),
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


def test_blocks_that_nobody_knows_pass_for_the_detail_of_a_sharp_picture() -> None:
    blocky = {**GOOD, "sharp": 2 * SHARP.failed, "blockiness": 1.01 * BLOCKS.doubtful}
    assert judge(blocky).level == "doubtful" and judge({**blocky, "compressed": 1.0}).level == "failed"
    assert judge({**blocky, "blockiness": 0.99 * BLOCKS.doubtful}).level == "failed"
    assert not larger_sigma_may_help({**blocky, "compressed": 1.0}), "no noise level blurs a picture"


def test_an_improvement_needs_both() -> None:
    first = judge({**GOOD, "residual": 0.5, "detail": 0.9})
    for residual, detail, better in ((0.1, 0.5, True), (0.1, 0.95, False), (0.6, 0.5, False), (1e-5, 0.5, False)):
        assert improves(judge({**GOOD, "residual": residual, "detail": detail}), first) is better


def test_a_larger_sigma_is_tried_where_it_may_help_alone() -> None:
    worms = {**GOOD, "detail": 0.05 * 2 * GROWTH.failed}
    assert larger_sigma_may_help(worms) and larger_sigma_may_help({**GOOD, "residual": 0.02 * 2 * MISFIT.failed})
    assert not larger_sigma_may_help(GOOD) and not larger_sigma_may_help({**GOOD, "excess": 1.01 * EXCESS.doubtful})
    for other in (
        {"too_wide": 9.0, "due": 0.01, "distance": 0.1},
        {"invented": 0.9},
        {"correlation": 0.5, "denoises": 1.0, "white": 1.0},
        {"noise": 0.005},
    ):
        assert judge({**GOOD, **other}).level == "failed"
        assert not larger_sigma_may_help({**GOOD, **other}) and not larger_sigma_may_help({**worms, **other})


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
    drifted = verdict(problem, truth + 0.1, CheapPrior(), given, seed=0)
    assert drifted.level == "doubtful" and any("not white" in reason for reason in drifted.reasons)


def test_waves_are_what_rises_above_photographs_and_above_the_given_picture() -> None:
    assert waves(GOOD) == 0 and waves(FLAT) == 0
    assert waves({**FLAT, "band3": -5.0}) == 3
    assert waves({**FLAT, "band3": -5.0, "given_band3": -5.5}) == 0.5, "noise that the given picture has is not new"
    assert waves({**FLAT, "band0": -3.0}) == 0, "lower frequencies may be strong"
    assert waves({**FLAT, "band5": -4.0, "given_band2": None}) == 0, "a picture with holes has no spectrum"


def test_some_numbers_count_only_where_they_mean_something() -> None:
    noisy = {**GOOD, "change": 2 * KEPT_NOISE.failed, "correlation": None}
    assert judge({**noisy, "removed": 0.99 * TAKES_DETAIL}).level == "fine", "the given picture had that texture"
    assert judge({**noisy, "removed": 1.01 * TAKES_DETAIL}).level == "failed"
    assert judge({**GOOD, **BEYOND, "change": None}).level == "fine", "nobody looked"
    assert judge({**GOOD, "noise": 0.02 / (1.01 * NOT_WHITE)}).level == "fine", "its noise is not white"
    assert judge({**GOOD, "noise": 0.02 / (0.99 * NOT_WHITE)}).level == "failed"
    for name in ("denoises", "white"):
        alike = {**GOOD, "correlation": 2 * TAKEN_DETAIL.failed, "denoises": 1.0, "white": 1.0}
        assert judge(alike).level == "failed" and judge({**alike, name: 0.0}).level == "fine"
        assert judge({**alike, "correlation": -2 * TAKEN_DETAIL.failed}).level == "fine", "detail is smooth"
        much = {**GOOD, "residual": 0.02 * 2, "denoises": 1.0, "white": 1.0}
        assert judge(much).level == "failed" and judge({**much, name: 0.0}).level == "fine"
    wide = {**GOOD, "too_wide": 9.0, "due": 0.01}
    for due, distance, level in ((0.01, 1.01 * 0.01 * OVERDONE, "failed"), (0.01, 0.99 * 0.01 * OVERDONE, "doubtful")):
        assert judge({**wide, "due": due, "distance": distance}).level == level
    assert judge({**wide, "due": 0.0, "distance": 0.99 * SEEN}).level == "doubtful", "nobody sees it"
    faint = {**GOOD, **FLAT, "band4": 2 * WAVES.failed - 8.0}
    assert judge({**faint, "detail": 0.05 * 0.99 * LITTLE_GROWTH}).level == "doubtful"
    assert judge({**faint, "detail": 0.05 * 1.01 * LITTLE_GROWTH}).level == "failed"
    soft = {**GOOD, **FLAT, "band4": 0.8 * WAVES.failed - 8.0}
    assert judge({**soft, "detail": 0.05 * USUAL_GROWTH}).level == "doubtful"
    assert judge({**soft, "detail": 0.05 * 1.26 * USUAL_GROWTH}).level == "failed", "waves in much detail"
    grain = {**noisy, **BEYOND, "change": 0.5 * (KEPT_NOISE.failed + ENLARGED_KEPT_NOISE.failed), "detail": 0.03}
    assert judge(grain).level == "failed" and judge({**grain, "enlarged": 4.0}).level == "doubtful", "grain alone is no ruin"


BLURRED: dict[str, Any] = {
    **GOOD,
    **FLAT,
    "removed": 4.0,
    "detail": 0.1,
    "excess": 0.004,
    "too_wide": 0.2,
    "due": 0.1,
    "distance": 0.1,
}


def test_a_blur_is_judged_by_several_numbers_together() -> None:
    """The odds by hand: growth 1/2 is one octave down, an excess of 0.004 is two up from a thousandth, no waves."""
    weight = score.WEIGHTS
    assert all(value > 0 for value in weight.values())
    told = score.BIAS - weight["growth"] + 2 * weight["excess"] + 0.2 * weight["too wide"]
    assert score.of(BLURRED) == pytest.approx(told) and told < SCORE.failed and judge(BLURRED).level == "doubtful"
    narrow = {**BLURRED, "too_wide": -1.0}
    missing = (SCORE.failed - told + 1.2 * weight["too wide"]) / weight["waves"]
    for more, level in ((missing - 0.01, "doubtful"), (missing + 0.01, "failed")):
        found = judge({**narrow, "band5": more - 8.0})
        assert found.level == level
    assert "waves" in found.reasons[0] and len(set(found.reasons)) == len(found.reasons)
    assert score.of({**BLURRED, "too_wide": 9.0}) == pytest.approx(told + 2.8 * weight["too wide"]), "3 at most"
    unseen = (score.UNSEEN - 0.2) * weight["too wide"]
    assert score.of({**BLURRED, "too_wide": None}) == pytest.approx(told + unseen), "nobody looked"
    assert score.of({**BLURRED, "excess": 0.0}) == pytest.approx(told - 2 * weight["excess"])
    sharp = judge({**BLURRED, "too_wide": 3.0, "detail": 0.2})
    assert sharp.level == "failed" and "kernel is too wide" in sharp.reasons[0]
    much = judge({**BLURRED, "detail": 0.05 * 4 * 8})
    assert much.level == "failed" and "8.0 times the detail" in much.reasons[0]
    cut = judge({**BLURRED, "excess": 0.5})
    assert cut.level == "failed" and sum("black and white" in reason for reason in cut.reasons) == 1
    grown = judge({**BLURRED, "enlarged": 4.0, "detail": 0.05 * 4 * 0.84})
    assert grown.level == "failed" and "1.2 times the most detail that right answers have" in grown.reasons[0]


def test_no_single_sign_makes_an_undone_blur_a_failure() -> None:
    quiet = {**BLURRED, "excess": 0.0, "too_wide": -3.0}
    for sign in (
        {"band5": 1.5 * WAVES.failed - 8.0},
        {"detail": 0.2 * 1.01 * GROWTH.failed},
        {"change": 2 * KEPT_NOISE.failed},
    ):
        assert judge({**quiet, **sign}).level == "doubtful"
    assert judge(quiet).level == "fine"
    for other in ({"removed": TAKES_DETAIL}, {"correlation": None}, {"enlarged": 4.0}):
        assert score.applies(BLURRED) and not score.applies({**BLURRED, **other})


def test_more_noise_may_help_an_undone_blur_unless_its_kernel_is_too_wide() -> None:
    worms = {**BLURRED, "detail": 0.05 * 4 * 8, "too_wide": 0.9 * TOO_WIDE.doubtful}
    assert larger_sigma_may_help(worms) and not larger_sigma_may_help({**worms, "too_wide": 1.1 * TOO_WIDE.doubtful})


def test_too_large_a_sigma_takes_more_than_the_noise_away() -> None:
    problem, truth, given = _noisy(0.05, 0.05)
    right = verdict(problem, truth, CheapPrior(), given, seed=0, noise=0.05)
    assert right.level == "fine" and right.numbers["noise"] == 0.05 and right.numbers["enlarged"] == 1
    smooth = truth.mean((2, 3), keepdim=True).expand_as(truth)
    wrong = verdict(_noisy(0.05, 0.3)[0], smooth, CheapPrior(), given, seed=0, noise=0.05)
    assert wrong.level == "failed" and "taken away" in wrong.reasons[0]


def test_the_look_is_of_the_picture_with_the_noise_of_its_time() -> None:
    """The cheap prior's answer is known in closed form: variance 1/4 about the mean of the marginal."""
    prior = CheapPrior()
    x = 2 * photograph(32, 32)[None] - 1
    noise = torch.randn(x.shape, generator=torch.Generator().manual_seed(1))
    seen = look(prior, x, noise)
    t = prior.schedule.at_clock(CLOCK)
    abar = float(prior.schedule.abar(t))
    expected = prior.predict(abar**0.5 * x + (1 - abar) ** 0.5 * noise, torch.tensor([t]))
    torch.testing.assert_close(seen.change, ((x - expected.x0)[0] / 2), atol=1e-6, rtol=1e-5)
    assert seen.spread is not None and expected.variance is not None
    torch.testing.assert_close(seen.spread, expected.variance[0].sqrt() / 2)


def test_an_enlarged_picture_is_told_by_its_size() -> None:
    truth = 0.2 + 0.6 * photograph(64, 64)[None]
    problem = Problem.simulate(truth, build_task("sr", (3, 64, 64), factor=4))
    numbers = verdict(problem, 2 * truth - 1, CheapPrior(), (problem.y[0] + 1) / 2, seed=0).numbers
    assert numbers["enlarged"] == 16 and numbers["noise"] is None
    assert (numbers["distance"] or 0) > 0


def test_a_wrong_kernel_makes_waves_and_the_right_one_none() -> None:
    """A picture with the spectrum of photographs, blurred, and undone with the right kernel and with one too wide."""
    size = 64
    generator = torch.Generator().manual_seed(2)
    rows = torch.fft.fftfreq(size, dtype=torch.float64)
    radius = (rows[:, None] ** 2 + rows**2).sqrt().clamp_min(1 / size)
    truth = torch.fft.ifft2(torch.fft.fft2(torch.randn(size, size, generator=generator, dtype=torch.float64)) / radius).real
    truth = (0.5 + 0.1 * truth / truth.std()).float().expand(1, 3, size, size).contiguous()
    problems = {std: Problem.simulate(truth, build_task("deblur-gaussian", (3, size, size), std=std)) for std in (1.5, 2.25)}
    given = ((problems[1.5].y + 1) / 2)[0]
    right = verdict(problems[1.5], 2 * truth - 1, CheapPrior(), given, 0)
    assert right.level == "fine" and right.numbers["removed"] == pytest.approx(4.4, rel=0.15)
    wider = problems[2.25].operator
    undone = wider.regularised_pinv(problems[1.5].y, 1e-5)
    wrong = verdict(Problem.internal(problems[1.5].y, wider), undone, CheapPrior(), given, 0)
    assert wrong.level == "failed" and waves(wrong.numbers) > WAVES.failed > waves(right.numbers)


def test_a_small_residual_says_nothing_of_a_level_that_was_estimated() -> None:
    """Behind JPEG the level counts what compression did, which no answer leaves as a residual."""
    close = {**GOOD, "residual": 0.02 / (1.1 * TOO_CLOSE.doubtful)}
    assert judge(close).level == "doubtful" and judge({**close, "estimated": 1.0}).level == "fine"
