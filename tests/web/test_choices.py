"""A visitor's choices as arguments of a restoration."""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np
import pytest
from PIL import Image

from leader.errors import LeaderError, UsageError
from leader.web import choices
from leader.web.choices import KINDS, Wish, arguments, found_blur, kind_of, mask_of, number, whole
from leader.web.pace import Pace, in_words

SIZE = (20, 10)


def painted(alpha: Any) -> str:
    image = Image.fromarray(np.dstack([np.zeros((*alpha.shape, 3), np.uint8), alpha.astype(np.uint8)]), "RGBA")
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()


def test_every_kind_of_damage_has_a_task() -> None:
    found = {kind: arguments(Wish(kind, blur=2.0, painted=choices.half_painted()), SIZE)["task"] for kind in KINDS}
    assert found["small"] == "sr"
    assert found["blurred"] == "deblur-gaussian"
    assert found["missing"] == "inpaint"
    assert found["grey"] == "colourise"
    assert found["jpeg"] in ("jpeg", "denoise")
    assert kind_of("deblur-motion") == "blurred"
    assert kind_of("cs") is None


def test_the_diagnosis_holds_where_the_visitor_agrees_and_only_there() -> None:
    proposed = ("deblur", {"kernel": "motion:3", "sigma": 0.02})
    agreed = arguments(Wish("blurred"), SIZE, proposed)
    assert (agreed["task"], agreed["kernel"], agreed["sigma"]) == ("deblur", "motion:3", 0.02)
    corrected = arguments(Wish("blurred", blur=1.5), SIZE, proposed)
    assert (corrected["task"], corrected["kernel"]) == ("deblur-gaussian", "gaussian:1.5")
    assert [found_blur(one) for one in ({}, {"kernel": "gaussian:2.5"}, {"kernel": "motion:3"})] == [None, 2.5, 0.0]
    other = arguments(Wish("small", factor=3), SIZE, proposed)
    assert (other["task"], other["factor"]) == ("sr", 3)
    assert "kernel" not in other and "sigma" not in other


def test_a_method_by_hand_replaces_quality_and_look() -> None:
    chosen = arguments(Wish("noisy", method="ddrm", plugins="none"), SIZE)
    assert chosen["method"] == "ddrm"
    assert chosen["plugins"] == ()
    assert "quality" not in chosen and "look" not in chosen
    assert arguments(Wish("noisy", quality="best"), SIZE)["quality"] == "best"
    with_budget = arguments(Wish("noisy", budget=0.05), SIZE)
    assert with_budget["plugins"] == ("leader",)
    assert with_budget["settings"] == {"satp": {"budget": 0.05}}


@pytest.mark.parametrize(
    ("wish", "told"),
    [
        (Wish("torn"), "what is wrong"),
        (Wish(prior="/etc/passwd"), "prior must be one of"),
        (Wish(quality="superb"), "quality is one of"),
        (Wish("blurred", blur=float("nan")), "blur must be"),
        (Wish("blurred", blur=8.1), "at most 8 pixels; found 8.1"),
        (Wish("blurred"), "how wide the blur is"),
        (Wish(budget=-1.0), "budget must be finite"),
        (Wish(budget=0.1, plugins="ucpm"), "belongs to the plug-in"),
    ],
)
def test_what_cannot_be_chosen_is_refused(wish: Wish, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        arguments(wish, SIZE)


def test_what_is_painted_is_what_is_missing_at_any_size() -> None:
    alpha = np.zeros((40, 80))
    alpha[:, 40:] = 255
    known = mask_of(painted(alpha), SIZE)
    assert known.shape == (10, 20)
    assert known[:, :9].min() == 1
    assert known[:, 11:].max() == 0
    chosen = arguments(Wish("missing", painted=painted(alpha)), SIZE)
    assert np.array_equal(chosen["mask"], known)
    assert "mask" not in arguments(Wish("noisy", painted=painted(alpha)), SIZE)


@pytest.mark.parametrize("text", ["data:image/png;base64,AAAA", "data:image/png;base64,%", "x", painted(np.zeros((4, 4)))])
def test_what_is_not_painted_is_told(text: str) -> None:
    with pytest.raises(LeaderError, match=r"[Pp]aint"):
        mask_of(text, SIZE)


def test_a_brush_is_needed_where_nothing_else_says_what_is_missing() -> None:
    with pytest.raises(LeaderError, match=choices.NOTHING_PAINTED):
        arguments(Wish("missing"), SIZE)
    with pytest.raises(LeaderError, match=choices.NOTHING_PAINTED):
        arguments(Wish("missing"), SIZE, ("denoise", {}))
    with pytest.raises(LeaderError, match=choices.ALL_PAINTED):
        arguments(Wish("missing", painted=painted(np.full((4, 4), 255))), SIZE)
    assert "mask" not in arguments(Wish("missing"), SIZE, ("inpaint", {}))  # transparent parts need no brush
    assert arguments(Wish("missing"), SIZE, ("inpaint", {"mask": "auto"}))["mask"] == "auto"
    half = mask_of(choices.half_painted(), SIZE)
    assert half[:, 0].max() == 0 and half[:, -1].min() == 1


def test_what_is_painted_has_a_largest_size(monkeypatch: pytest.MonkeyPatch) -> None:
    text = choices.half_painted()
    monkeypatch.setattr(choices, "MOST_MASK", len(text))
    assert mask_of(text, SIZE)[:, 0].max() == 0
    monkeypatch.setattr(choices, "MOST_MASK", len(text) - 1)
    with pytest.raises(LeaderError, match="did not arrive"):
        mask_of(text, SIZE)


def test_whole_numbers_of_a_form() -> None:
    assert (whole(3.0, "seed"), whole(None, "seed"), whole("", "seed")) == (3, None, None)
    assert (whole("12", "seed"), whole(" ", "seed"), number("0,25", "noise level"), number("", "budget")) == (
        12,
        None,
        0.25,
        None,
    )
    with pytest.raises(UsageError, match=r"whole number from 0 to 2147483647; found 2\.5"):
        whole("2.5", "seed")
    for wrong in (0, "1001"):
        with pytest.raises(UsageError, match="number of steps must be a whole number from 1 to 1000"):
            whole(wrong, "number of steps", 1, 1000)
    for word in ("many", "nan", [1]):
        with pytest.raises(UsageError, match="The budget must be a number; found"):
            number(word, "budget")


def test_the_pace_follows_the_runs_of_this_machine() -> None:
    pace = Pace()
    before = pace.seconds(10, 1e5)
    for _ in range(3):
        pace.learn(10, 1e5, 3 * before)
    assert pace.seconds(10, 1e5) == pytest.approx(3 * before)
    assert pace.seconds(20, 2e5) == pytest.approx(6 * before)
    pace.learn(10, 1e5, 300 * before)  # one that was disturbed does not count
    assert pace.seconds(10, 1e5) == pytest.approx(3 * before)
    assert [in_words(value) for value in (0.2, 12.4, 150, 7200)] == ["about 1 s", "about 12 s", "about 2 min", "about 2.0 h"]
