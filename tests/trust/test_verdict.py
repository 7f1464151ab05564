"""From numbers to a verdict: each kind of fault on its own, both sides of every limit, and whole synthetic runs."""

import json
import math
import pickle
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch

from leader.operators import Colourisation, Denoising, Inpainting
from leader.operators.pointwise import box_mask
from leader.operators.tasks import build_task
from leader.presets import parsed
from leader.problem import Problem
from leader.trust import RunFacts, Verdict, judge, limits, measure, score
from leader.trust.judging import improves, larger_sigma_may_help
from leader.trust.limits import Limits
from leader.trust.readings import read_waves
from leader.trust.residual import ROUNDING
from tests.cheap_prior import CheapPrior, photograph

ROOT = Path(__file__).resolve().parents[2]
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
BEYOND: dict[str, Any] = {"removed": 1.01 * limits.TAKES_DETAIL, "correlation": None}
"""A measurement that is no picture, from which A took detail."""
EDGES: list[tuple[str, Limits, Any]] = [
    ("inverted", limits.INVERTED, lambda limit: {"invented": limit}),
    ("invented", limits.INVENTED, lambda limit: {"deep": limit}),
    ("invented colours", limits.UNCOLOURED, lambda limit: {"uncoloured": limit}),
    ("unsure", limits.UNSURE, lambda limit: {"unsure": limit}),
    ("growth", limits.GROWTH, lambda limit: {"detail": 0.05 * limit}),
    ("growth", limits.GROWTH, lambda limit: {"detail": 0.2 * limit, "removed": 4.0, "correlation": None}),
    ("growth", limits.ENLARGED_GROWTH, lambda limit: {"detail": 0.05 * limit, "enlarged": 4.0}),
    ("kept noise", limits.KEPT_NOISE, lambda limit: {**BEYOND, "change": limit, "detail": 0.07}),
    ("lost", limits.LOST, lambda limit: {"residual": 0.02, "noise": 0.02 / limit}),
    ("too wide", limits.TOO_WIDE, lambda limit: {"too_wide": limit}),
    ("sharp", limits.SHARP, lambda limit: {"sharp": limit}),
    ("misread", limits.MISREAD, lambda limit: {"misread": limit}),
    ("waves", limits.WAVES, lambda limit: {**FLAT, "band4": limit - 8.0, "detail": 0.03}),
    ("excess", limits.EXCESS, lambda limit: {"excess": limit}),
    ("misfit", limits.MISFIT, lambda limit: {"residual": 0.02 * limit}),
    ("too close", limits.TOO_CLOSE, lambda limit: {"residual": 0.02 / limit}),
    ("colour", limits.COLOUR, lambda limit: {"correlation": -limit, "residual": 0.02 * 1.5}),
    ("blocks", limits.BLOCKS, lambda limit: {"blockiness": limit}),
]


def test_a_good_run_is_fine() -> None:
    assert judge(GOOD) == Verdict("fine", (), GOOD) and judge(GOOD).in_words() == "fine."


@pytest.mark.parametrize(("code", "edges", "change"), EDGES)
def test_both_sides_of_every_limit(code: str, edges: Limits, change: Any) -> None:
    for level, limit in (("doubtful", edges.doubtful), ("failed", edges.failed)):
        if math.isinf(limit):
            continue
        below, above = (judge({**GOOD, **change(limit * factor)}) for factor in (0.99, 1.01))
        assert above.level == level and above.reasons[0].code == code
        assert below.level == ("fine" if level == "doubtful" or math.isinf(edges.doubtful) else "doubtful")
        assert above.in_words().startswith(f"{level}: ") and above.in_words()[-1] in ".?"


def test_a_picture_that_is_hardly_enlarged_may_keep_the_detail_it_had() -> None:
    """Right answers have 0.5 to 0.8 of it at a factor of 1.5 and up to 0.9 at 1.25; at 2 and above 0.7 at most."""
    for factor, growth, level in ((1.25, 0.9, "fine"), (1.5, 0.8, "fine"), (1.5, 1.0, "doubtful"), (1.5, 1.25, "failed")):
        assert judge({**GOOD, "detail": 0.05 * growth, "enlarged": factor**2}).level == level
    assert limits.find_enlarged_growth(4.0) == limits.find_enlarged_growth(16.0) == limits.ENLARGED_GROWTH
    assert limits.find_enlarged_growth(1.0) == limits.GROWTH


def test_the_kept_runs_are_judged_as_the_page_says() -> None:
    """The rates of docs/verdict-rates.md for fresh photographs; a verdict needs nothing but its numbers."""
    lines = (ROOT / "benchmarks" / "records" / "self-check.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [row for row in map(json.loads, lines) if row["part"] == "third"]
    gains = [row["psnr"] - row["psnr_given"] for row in rows]
    ruined = Counter(judge(row["numbers"]).level for row, gain in zip(rows, gains) if gain <= -3)
    harmless = Counter(judge(row["numbers"]).level for row, gain in zip(rows, gains) if gain > -1)
    text = " ".join((ROOT / "docs" / "verdict-rates.md").read_text(encoding="utf-8").split())
    assert f"{ruined['failed']} of {ruined.total()} ruined runs fail" in text
    assert f"{harmless['failed']} of {harmless.total()} unharmed ones fail" in text


def test_every_limit_has_a_unit_and_a_source_and_is_the_one_that_the_page_gives() -> None:
    tables = parsed(ROOT / "src" / "leader" / "trust" / "limits.toml")
    for entry in (*tables["limits"].values(), *tables["numbers"].values(), tables["score"]):
        assert entry["unit"] and set(tables["sources"][entry["source"]]) == {"measured_on", "command"}
    told = {}
    for line in (ROOT / "docs" / "verdict.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 4 and re.fullmatch(r"(> [\d.]+)?", cells[2]) and re.fullmatch(r"(> [\d.]+)?", cells[3]):
            told[cells[0]] = tuple(float(cell[2:]) if cell else None for cell in cells[2:])
    words = {"the same of enlarged pictures": "enlarged_growth", "1 / misfit": "too_close", "correlation": "colour"}
    words["blockiness"] = "blocks"
    found = {words.get(name, name.replace(" ", "_")): pair for name, pair in told.items()}
    own = {name: (entry.get("doubtful"), entry.get("failed")) for name, entry in tables["limits"].items() if name != "score"}
    assert found == own


def test_a_verdict_survives_a_pickle_and_becomes_plain_json() -> None:
    judged = judge({**GOOD, "misread": 0.5, "blockiness": 9.0})
    again = pickle.loads(pickle.dumps(judged))
    assert again == judged and [reason.code for reason in again.reasons] == ["misread", "blocks"]
    table = json.loads(json.dumps(judged.as_dict()))
    assert table["codes"] == ["misread", "blocks"] and table["reasons"] == [str(reason) for reason in judged.reasons]
    assert "--down" in judged.in_words("terminal") and "--down" not in judged.in_words()
    assert judged.reasons[0].values == {"value": 0.5}


def test_the_gravest_reason_comes_first() -> None:
    both = judge({**GOOD, "blockiness": 2.0, "deep": limits.INVENTED.doubtful + 0.01, "residual": 0.02 * 100})
    assert both.level == "failed" and [reason.code for reason in both.reasons] == ["misfit", "invented", "blocks"]
    assert "100 times" in both.reasons[0]


def test_noise_free_data_are_held_against_rounding() -> None:
    exact = {**GOOD, "sigma": 0.0, "correlation": None}
    assert judge({**exact, "residual": 0.0}).level == "fine"
    assert judge({**exact, "residual": ROUNDING}).level == "fine"
    told = judge({**exact, "residual": 1.01 * limits.MISFIT.failed * ROUNDING})
    assert told.level == "failed" and "rounding to 8 bits" in told.reasons[0]


def test_the_grain_of_a_photograph_without_noise_is_not_held_against_it() -> None:
    """A residual of less than a grey level has the colour of film, not of a mistake."""
    old = {**GOOD, "sigma": ROUNDING, "residual": 2 * ROUNDING, "correlation": 0.35}
    assert judge(old).level == "fine" and judge({**old, "sigma": 1.2 * ROUNDING}).level == "doubtful"
    assert "colour" in [reason.code for reason in judge({**old, "residual": 1.01 * limits.VISIBLE}).reasons]


def test_a_large_hole_is_invented_and_says_how_much_of_the_picture_it_is() -> None:
    mask, truth = box_mask(48, 64, 10, 20, 20, 33), photograph(48, 64)[None]
    problem = Problem(truth * mask, Inpainting((3, 48, 64), mask), 0.0)
    judged = judge(measure(RunFacts(problem, 2 * truth - 1, CheapPrior(), (truth * mask)[0])))
    side = 2 * limits.FAR
    share = (20 - side) * (33 - side) / 48 / 64
    assert judged.level == "doubtful" and judged.reasons[0].code == "invented"
    assert judged.reasons[0].values["value"] == pytest.approx(share) and f"{100 * share:.2g} %" in judged.in_words("page")
    narrow = box_mask(48, 64, 10, 20, side, 33)
    problem = Problem(truth * narrow, Inpainting((3, 48, 64), narrow), 0.0)
    assert judge(measure(RunFacts(problem, 2 * truth - 1, CheapPrior(), (truth * narrow)[0]))).level == "fine"


def test_invented_colours_are_doubtful_however_sure_the_map_is() -> None:
    truth = photograph(48, 64)[None]
    for operator, share in ((Colourisation((3, 48, 64)), 2 / 3), (Denoising((3, 48, 64)), 0.0)):
        problem = Problem.simulate(truth, operator, 0.0)
        judged = judge(measure(RunFacts(problem, 2 * truth - 1, CheapPrior(), truth[0], error=torch.full_like(truth, 1e-3))))
        assert judged.numbers["uncoloured"] == pytest.approx(share)
        assert ("invented colours" in [reason.code for reason in judged.reasons]) is (share > 0)
        assert judged.level == "doubtful" or not share


def test_a_map_that_knows_nothing_is_doubtful() -> None:
    truth = photograph(48, 64)[None]
    problem = Problem(truth, Denoising((3, 48, 64)), 0.0)
    wide = torch.full((1, 3, 48, 64), 2 * 20 / 255 / 1.6449)  # at 20 levels of 255, for [-1, 1] images
    for factor, told, share in ((0.99, False, 0.0), (1.01, True, 1.0)):
        judged = judge(measure(RunFacts(problem, 2 * truth - 1, CheapPrior(), truth[0], error=factor * wide)))
        assert ("unsure" in [reason.code for reason in judged.reasons]) is told and judged.numbers["unsure"] == share
        assert judged.level == "doubtful" or not told


def test_blocks_that_nobody_knows_pass_for_the_detail_of_a_sharp_picture() -> None:
    blocky = {**GOOD, "sharp": 2 * limits.SHARP.failed, "blockiness": 1.01 * limits.BLOCKS.doubtful}
    assert judge(blocky).level == "doubtful" and judge({**blocky, "compressed": 1.0}).level == "failed"
    assert judge({**blocky, "blockiness": 0.99 * limits.BLOCKS.doubtful}).level == "failed"
    assert not larger_sigma_may_help({**blocky, "compressed": 1.0}), "no noise level blurs a picture"


def test_an_improvement_needs_both() -> None:
    first = judge({**GOOD, "residual": 0.5, "detail": 0.9})
    for residual, detail, better in ((0.1, 0.5, True), (0.1, 0.95, False), (0.6, 0.5, False), (1e-5, 0.5, False)):
        assert improves(judge({**GOOD, "residual": residual, "detail": detail}), first) is better


def test_a_larger_sigma_is_tried_where_it_may_help_alone() -> None:
    worms = {**GOOD, "detail": 0.05 * 2 * limits.GROWTH.failed}
    assert larger_sigma_may_help(worms) and larger_sigma_may_help({**GOOD, "residual": 0.02 * 2 * limits.MISFIT.failed})
    assert not larger_sigma_may_help(GOOD) and not larger_sigma_may_help({**GOOD, "excess": 1.01 * limits.EXCESS.doubtful})
    for other in (
        {"sharp": 9.0},
        {"invented": 0.9},
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
    judged = judge(measure(RunFacts(problem, truth, CheapPrior(), given)))
    assert judged.level == level and judged.numbers["residual"] == pytest.approx(0.05, rel=0.05)
    assert judged.numbers["sigma"] == pytest.approx(said)


def test_worms_fail_and_a_coloured_residual_is_told() -> None:
    problem, truth, given = _noisy(0.05, 0.05)
    generator = torch.Generator().manual_seed(3)
    worms = 4 * torch.nn.functional.avg_pool2d(torch.randn(1, 3, 66, 66, generator=generator), 3, stride=1)
    judged = judge(measure(RunFacts(problem, truth + worms, CheapPrior(), given)))
    assert judged.level == "failed" and (judged.numbers["excess"] or 0) > limits.EXCESS.failed
    drifted = judge(measure(RunFacts(problem, truth + 0.1, CheapPrior(), given)))
    assert drifted.level == "doubtful" and "colour" in [reason.code for reason in drifted.reasons]


def test_waves_are_what_rises_above_photographs_and_above_the_given_picture() -> None:
    assert read_waves(GOOD) == 0 and read_waves(FLAT) == 0
    assert read_waves({**FLAT, "band3": -5.0}) == 3
    assert read_waves({**FLAT, "band3": -5.0, "given_band3": -5.5}) == 0.5, "noise that the given picture has is not new"
    assert read_waves({**FLAT, "band0": -3.0}) == 0, "lower frequencies may be strong"
    assert read_waves({**FLAT, "band5": -4.0, "given_band2": None}) == 0, "a picture with holes has no spectrum"


def test_some_numbers_count_only_where_they_mean_something() -> None:
    noisy = {**GOOD, "change": 2 * limits.KEPT_NOISE.failed, "correlation": None}
    assert judge({**noisy, "removed": 0.99 * limits.TAKES_DETAIL}).level == "fine", "the given picture had that texture"
    assert judge({**noisy, "removed": 1.01 * limits.TAKES_DETAIL}).level == "failed"
    assert judge({**GOOD, **BEYOND, "change": None}).level == "fine", "the network was not asked"
    assert judge({**GOOD, "noise": 0.02 / (1.01 * limits.NOT_WHITE)}).level == "fine", "its noise is not white"
    assert judge({**GOOD, "noise": 0.02 / (0.99 * limits.NOT_WHITE)}).level == "failed"
    soft = {**GOOD, **FLAT, "band4": 0.8 * limits.WAVES.failed - 8.0}
    assert judge({**soft, "detail": 0.05 * limits.USUAL_GROWTH}).level == "doubtful"
    assert judge({**soft, "detail": 0.05 * 1.26 * limits.USUAL_GROWTH}).level == "failed", "waves in much detail"
    for factor, level in ((0.99, "fine"), (1.01, "doubtful")):
        loud = {**GOOD, "correlation": 0.9, "residual": factor * limits.WORTH_A_LOOK * GOOD["sigma"]}
        assert judge(loud).level == level
    flat = {**GOOD, "given_detail": 1e-6, "detail": 1.29 / 255}
    assert judge(flat).level == "fine" and judge({**flat, "detail": 1.31 / 255}).level == "doubtful", "one grey level is flat"


BLURRED: dict[str, Any] = {
    **GOOD,
    **FLAT,
    "removed": 4.0,
    "detail": 0.1,
    "excess": 0.004,
    "too_wide": 0.2,
}


def test_a_blur_is_judged_by_several_numbers_together() -> None:
    """The odds by hand: growth 1/2 is one octave down, an excess of 0.004 is two up from a thousandth, no waves."""
    weight = limits.WEIGHTS
    assert all(value > 0 for value in weight.values())
    told = limits.BIAS - weight["growth"] + 2 * weight["excess"] + 0.2 * weight["too wide"]
    assert score.score_run(BLURRED) == pytest.approx(told) and told < limits.SCORE.failed and judge(BLURRED).level == "doubtful"
    narrow = {**BLURRED, "too_wide": -1.0}
    missing = (limits.SCORE.failed - told + 1.2 * weight["too wide"]) / weight["waves"]
    for more, level in ((missing - 0.01, "doubtful"), (missing + 0.01, "failed")):
        found = judge({**narrow, "band5": more - 8.0})
        assert found.level == level
    assert found.reasons[0].code == "waves" and len(set(found.reasons)) == len(found.reasons)
    assert score.score_run({**BLURRED, "too_wide": 9.0}) == pytest.approx(told + 2.8 * weight["too wide"]), "3 at most"
    unseen = (limits.UNSEEN - 0.2) * weight["too wide"]
    assert score.score_run({**BLURRED, "too_wide": None}) == pytest.approx(told + unseen), "nobody looked"
    assert score.score_run({**BLURRED, "excess": 0.0}) == pytest.approx(told - 2 * weight["excess"])
    sharp = judge({**BLURRED, "too_wide": 3.0, "detail": 0.2})
    assert sharp.level == "failed" and sharp.reasons[0].code == "too wide"
    much = judge({**BLURRED, "detail": 0.05 * 4 * 8})
    assert much.level == "failed" and "8.0 times the detail" in much.reasons[0]
    cut = judge({**BLURRED, "excess": 0.5})
    assert cut.level == "failed" and [reason.code for reason in cut.reasons].count("excess") == 1
    grown = judge({**BLURRED, "enlarged": 4.0, "detail": 0.05 * 4 * 0.84})
    assert grown.level == "failed" and "1.2 times the most detail that right answers have" in grown.reasons[0]


def test_no_single_sign_makes_an_undone_blur_a_failure() -> None:
    quiet = {**BLURRED, "excess": 0.0, "too_wide": -3.0}
    for sign in (
        {"band5": 1.5 * limits.WAVES.failed - 8.0},
        {"detail": 0.2 * 1.01 * limits.GROWTH.failed},
        {"change": 2 * limits.KEPT_NOISE.failed},
    ):
        assert judge({**quiet, **sign}).level == "doubtful"
    assert judge(quiet).level == "fine"
    for other in ({"removed": limits.TAKES_DETAIL}, {"correlation": None}, {"enlarged": 4.0}):
        assert score.is_scored(BLURRED) and not score.is_scored({**BLURRED, **other})


def test_more_noise_may_help_an_undone_blur_unless_its_kernel_is_too_wide() -> None:
    worms = {**BLURRED, "detail": 0.05 * 4 * 8, "too_wide": 0.9 * limits.TOO_WIDE.doubtful}
    assert larger_sigma_may_help(worms) and not larger_sigma_may_help({**worms, "too_wide": 1.1 * limits.TOO_WIDE.doubtful})


def test_too_large_a_sigma_takes_more_than_the_noise_away() -> None:
    problem, truth, given = _noisy(0.05, 0.05)
    right = judge(measure(RunFacts(problem, truth, CheapPrior(), given, noise=0.05)))
    assert right.level == "fine" and right.numbers["noise"] == 0.05 and right.numbers["enlarged"] == 1
    smooth = truth.mean((2, 3), keepdim=True).expand_as(truth)
    wrong = judge(measure(RunFacts(_noisy(0.05, 0.3)[0], smooth, CheapPrior(), given, noise=0.05)))
    assert wrong.level == "failed" and wrong.reasons[0].code == "lost"


def test_an_enlarged_picture_is_told_by_its_size() -> None:
    truth = 0.2 + 0.6 * photograph(64, 64)[None]
    problem = Problem.simulate(truth, build_task("sr", (3, 64, 64), factor=4))
    numbers = judge(measure(RunFacts(problem, 2 * truth - 1, CheapPrior(), (problem.y[0] + 1) / 2))).numbers
    assert numbers["enlarged"] == 16 and numbers["noise"] is None


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
    right = judge(measure(RunFacts(problems[1.5], 2 * truth - 1, CheapPrior(), given)))
    assert right.level == "fine" and right.numbers["removed"] == pytest.approx(4.4, rel=0.15)
    wider = problems[2.25].operator
    undone = wider.regularised_pinv(problems[1.5].y, 1e-5)
    wrong = judge(measure(RunFacts(Problem.internal(problems[1.5].y, wider), undone, CheapPrior(), given)))
    assert wrong.level == "failed" and read_waves(wrong.numbers) > limits.WAVES.failed > read_waves(right.numbers)


def test_a_small_residual_says_nothing_of_a_level_that_was_estimated() -> None:
    """Behind JPEG the level counts what compression did, which no answer leaves as a residual."""
    close = {**GOOD, "residual": 0.02 / (1.1 * limits.TOO_CLOSE.doubtful)}
    assert judge(close).level == "doubtful" and judge({**close, "estimated": 1.0}).level == "fine"
