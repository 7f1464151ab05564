"""The search for a blur, on fields whose spectrum is known exactly."""

import numpy as np
import pytest

from leader.forensics import examine
from leader.forensics.blur.candidates import Found, candidates, peak
from leader.forensics.blur.periodogram import plane
from leader.forensics.blur.search import (
    LEAST_ODDS,
    ODDS_BY_WIDTH,
    SUREST,
    BlurSearch,
    choose_candidate,
    describe_choice,
    find_blur,
    judge_candidates,
    state_confidence,
)
from leader.forensics.blur.shapes import SHARP, Shape, coarse, softness, transfer
from leader.pictures.picture import Picture
from tests.forensics.blur.fields import SCENE, estimate, field, picture

SHAPES = [
    Shape("gaussian", 2.0),
    Shape("disk", 3.0),
    Shape("line", 9.0, 20.0),
    Shape("line", 15.0, 110.0),
]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: f"{shape.family}-{shape.width:g}-{shape.angle:g}")
def test_width_and_angle_of_a_random_field_are_found(shape: Shape) -> None:
    """The likelihood is tempered by ten, so the true error is about a third of what is told: a deviation beyond what is told
    would be one of three standard deviations, and 1 % is the grid's own."""
    found = {one.shape.family: one for one in candidates(field(shape.kernel(), side=192), estimate())}
    best = max(found.values(), key=lambda one: one.evidence)
    assert best.shape.family == shape.family
    assert abs(np.log(best.shape.width / shape.width)) < best.width_error + 0.01
    assert best.width_error < 0.08
    if shape.family == "line":
        turned = (best.shape.angle - shape.angle + 90) % 180 - 90
        assert abs(turned) < 2  # a line of 9 pixels has its angle to a degree
    search = judge_candidates(tuple(found.values()))
    assert search.blur is not None and search.blur.confidence > 0.9 and search.blur.shape == best.shape
    assert best.scene.weights[1] == pytest.approx(SCENE.weights[1], abs=0.4)


def test_a_sharp_field_has_no_blur() -> None:
    search = find_blur(picture(field()).pixels, estimate())
    assert search == BlurSearch(None, "No blur was found: the picture is as sharp as photographs are.")


def test_noise_alone_and_a_flat_picture_have_no_blur() -> None:
    noise = np.random.default_rng(0).normal(0.5, 0.1, (128, 128))
    assert find_blur(picture(noise).pixels, estimate(0.1)).blur is None
    flat = examine(Picture(np.full((100, 90, 3), 0.4, dtype=np.float32))).blur
    assert flat.blur is None and "flat" in flat.seen


def test_a_small_picture_is_refused_with_its_size() -> None:
    search = examine(picture(field(side=64)[:, :40])).blur
    assert search.blur is None and "40 x 64" in search.seen


def test_a_long_motion_beyond_a_tenth_of_the_side_is_not_looked_for() -> None:
    kernel = Shape("line", 21.0, 40.0).kernel()
    assert all(one.shape.family != "line" or one.shape.width <= 19.2 for one in candidates(field(kernel, side=192), estimate()))


def test_missing_parts_are_left_out() -> None:
    values = field(Shape("gaussian", 2.0).kernel(), side=256)
    values[:64] = 1.0
    values[:64, ::3] = 0.0  # what lies in the hole is as sharp as can be
    alpha = np.ones((256, 256), dtype=np.float32)
    alpha[:64] = 0
    search = find_blur(values[..., None], estimate(), alpha > 0)
    assert search.blur is not None and search.blur.shape.width == pytest.approx(2.0, rel=0.1)
    nothing = find_blur(values[..., None], estimate(), np.zeros_like(alpha, bool))
    assert nothing.blur is None and "too little" in nothing.seen


def found_of(family: str, width: float, evidence: float, error: float = 0.05, angle: float = 40.0) -> Found:
    return Found(Shape(family, width, angle if family == "line" else 0.0), evidence, error, SCENE)  # type: ignore[arg-type]


def test_the_judgement_needs_evidence_a_width_and_a_narrow_error() -> None:
    assert judge_candidates((found_of("gaussian", 2.0, 30.0),)).blur is not None
    assert "as sharp as" in judge_candidates((found_of("gaussian", 2.0, -1.0),)).seen
    assert judge_candidates((found_of("gaussian", 0.8, 30.0),)).blur is None  # as soft as photographs are
    assert judge_candidates((found_of("gaussian", 2.0, 30.0, error=0.3),)).seen.startswith("There may be")
    assert judge_candidates((found_of("gaussian", 2.0, 30.0), found_of("disk", 3.0, 30.5))).blur is None  # one or the other
    named = [judge_candidates((found_of("line", 9.0, 6.0, angle=angle),)).blur for angle in (40.0, 2.0, 88.0, 178.0)]
    assert [blur is not None for blur in named] == [True, False, False, False], "scenes have upright lines of their own"


def test_the_choice_is_the_likeliest_and_its_lead_is_over_all_others_together() -> None:
    """Scores are evidence and odds before: 12 + log(0.3), 11 + log(0.1) and 0 for no blur."""
    chosen, ahead = choose_candidate((found_of("disk", 3.0, 11.0), found_of("gaussian", 2.0, 12.0, error=0.01)))
    assert chosen.shape.family == "gaussian"
    assert ahead == pytest.approx(12 + np.log(0.3) - np.log(np.exp(11) * 0.1 + 1))
    assert ahead is not None
    share, above = describe_choice(chosen, ahead)
    assert share == pytest.approx(1 / (1 + np.exp(-ahead))) and above == pytest.approx(np.log(2.0 / 0.9))
    assert describe_choice(found_of("gaussian", 2.0, 12.0, error=0.2), 9.0)[0] == pytest.approx(0.6827, abs=1e-3), (
        "one deviation"
    )
    assert (
        choose_candidate((found_of("disk", 1.5, 50.0),))[1] is None
        and choose_candidate((found_of("line", 9.0, 2.0),))[1] is None
    )


def test_the_confidence_is_that_of_the_map_and_never_more_than_was_counted() -> None:
    assert state_confidence(0.8, 0.2) == pytest.approx(0.8 / (1 + np.exp(-LEAST_ODDS - 0.2 * ODDS_BY_WIDTH)))
    assert state_confidence(1.0, 3.0) == SUREST < 1


def test_a_narrow_kernel_is_less_sure_than_a_wide_one_with_the_same_lead() -> None:
    """An enlarged picture looks like one behind a narrow Gaussian or a short motion, whatever the odds among blurs say."""
    narrow, wide = (judge_candidates((found_of("gaussian", width, 15.0),)) for width in (1.0, 2.5))
    assert narrow.blur is None and "There may be" in narrow.seen and wide.blur is not None and wide.blur.confidence > 0.95


def test_transfers_are_those_of_the_kernels() -> None:
    at = plane(64)
    gaussian = transfer(Shape("gaussian", 1.5), at)
    exact = np.exp(-((2 * np.pi * 1.5 * at.f) ** 2))
    assert np.abs(gaussian - exact).max() < 0.02  # the window's mixing
    assert (transfer(SHARP, at) == 1).all()
    assert np.allclose(softness(1.5, at), exact)
    shapes, transfers = coarse(64)
    assert (
        shapes[0] == SHARP
        and len(shapes) == len(transfers)
        and {shape.family for shape in shapes[1:]} == {"gaussian", "disk", "line"}
    )


def test_a_peak_is_that_of_a_parabola_and_a_flat_one_is_as_wide_as_the_search() -> None:
    places = np.linspace(-0.3, 0.3, 7)
    place, error, height = peak(places, 5.0 - (places - 0.13) ** 2 / (2 * 0.05**2))
    assert (place, error) == pytest.approx((0.13, 0.05), abs=1e-9) and 4.8 < height <= 5.0
    place, error, _ = peak(places, -((places + 0.07) ** 2) / (2 * 0.1**2))
    assert (place, error) == pytest.approx((-0.07, 0.1), abs=1e-9)
    for flat in (np.zeros(7), 0.01 * places, -1e-4 * places**2):
        assert peak(places, flat)[1] == pytest.approx(0.3)
