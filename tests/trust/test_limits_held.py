"""The limits of the verdict and the scales of the trust map are those that docs/verdict.md and docs/trust.md tell people."""

from __future__ import annotations

import math
import re
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest

from leader.trust import calibration, judge, limits, maps, plausibility, residual, score
from tests.trust.test_verdict import GOOD

DOCS = Path(__file__).resolve().parents[2] / "docs"
ROWS = {
    "invented": limits.INVENTED,
    "growth": limits.GROWTH,
    "the same of enlarged pictures": limits.ENLARGED_GROWTH,
    "waves": limits.WAVES,
    "excess": limits.EXCESS,
    "kept noise": limits.KEPT_NOISE,
    "kept noise of enlarged pictures": limits.ENLARGED_KEPT_NOISE,
    "too wide": limits.TOO_WIDE,
    "sharp": limits.SHARP,
    "misread": limits.MISREAD,
    "lost": limits.LOST,
    "taken": limits.TAKEN,
    "taken detail": limits.TAKEN_DETAIL,
    "misfit": limits.MISFIT,
    "1 / misfit": limits.TOO_CLOSE,
    "correlation": limits.COLOUR,
    "blockiness": limits.BLOCKS,
}


def _told() -> dict[str, tuple[float, float]]:
    """(doubtful, failed) by the name of the number, from the table of the page."""
    found = {}
    for line in (DOCS / "verdict.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 4 and re.fullmatch(r"> [\d.]+", cells[2]):
            found[cells[0]] = (float(cells[2][2:]), float(cells[3][2:]) if cells[3] else math.inf)
    return found


def test_every_limit_is_the_one_that_is_told() -> None:
    assert _told() == {name: (row.doubtful, row.failed) for name, row in ROWS.items()}


def test_numbers_that_count_only_beyond_another_one() -> None:
    text = " ".join((DOCS / "verdict.md").read_text(encoding="utf-8").split())
    for words, value in (
        ("failed only where growth is above 0.4", limits.LITTLE_GROWTH),
        ("where A takes away 1.5 times detail or more", limits.TAKES_DETAIL),
        ("not counted above 8", limits.NOT_WHITE),
        ("where misfit > 1.3", limits.WORTH_A_LOOK),
    ):
        assert words in text and float(re.findall(r"[\d.]+", words)[-1]) == value
    for factor, level in ((1.29, "fine"), (1.31, "doubtful")):
        assert judge({**GOOD, "correlation": 0.9, "residual": factor * GOOD["sigma"]}).level == level
    assert "time 20 of the standard clock" in text and plausibility.CLOCK == 20
    assert "more than 3 pixels from anything known" in text and residual.NEAR == 3


def test_the_score_is_the_one_that_is_told() -> None:
    text = " ".join((DOCS / "verdict.md").read_text(encoding="utf-8").split())
    terms = " + ".join(f"{weight:g} {name}" for name, weight in score.WEIGHTS.items())
    assert f"{terms} - {-score.BIAS:g}" in text and f"failed where the score is above {limits.SCORE.failed:g}" in text


def test_rounding_to_8_bits_has_the_standard_deviation_that_is_held_against() -> None:
    values = np.random.default_rng(0).uniform(0, 1, 400_000)
    assert pytest.approx(np.std(values - np.round(255 * values) / 255), rel=0.01) == residual.ROUNDING


def test_the_least_detail_is_one_grey_level() -> None:
    """A flat picture's detail counts as 1/255: twice that in the answer is growth by 2, however flat the given one is."""
    flat = {**GOOD, "given_detail": 1e-6, "detail": 1.29 / 255}
    assert judge(flat).level == "fine"
    assert judge({**flat, "detail": 1.31 / 255}).level == "doubtful"


def test_shares_of_a_gaussian() -> None:
    assert calibration.LEVELS == (0.5, 0.8, 0.9, 0.95) and calibration.SHOWN == 0.9
    for share, multiple in calibration.GAUSSIAN.items():
        assert multiple == pytest.approx(NormalDist().inv_cdf((1 + share) / 2), abs=1e-4)
    assert pytest.approx(calibration.GAUSSIAN[0.9]) == maps.NINE_OF_TEN
