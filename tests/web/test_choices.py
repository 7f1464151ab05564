"""A visitor's choices as a restoration."""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np
import pytest
from PIL import Image

from leader.errors import LeaderError, UsageError
from leader.restoration.request import RestoreRequest
from leader.web import choices
from leader.web.choices import KINDS, Wish, build_request, found_blur, kind_of, mask_of

SIZE = (20, 10)


def painted(alpha: Any) -> str:
    image = Image.fromarray(np.dstack([np.zeros((*alpha.shape, 3), np.uint8), alpha.astype(np.uint8)]), "RGBA")
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()


def test_every_kind_of_damage_has_a_task() -> None:
    found = {kind: build_request(Wish(kind, blur=2.0, painted=choices.half_painted()), SIZE).task for kind in KINDS}
    assert found == {
        "small": "sr",
        "blurred": "deblur-gaussian",
        "noisy": "denoise",
        "jpeg": "jpeg",
        "missing": "inpaint",
        "grey": "colourise",
    }
    assert kind_of("deblur-motion") == "blurred" and kind_of("cs") is None


def test_the_diagnosis_holds_where_the_visitor_agrees_and_only_there() -> None:
    proposed = ("deblur", {"kernel": "motion:3", "sigma": 0.02, "kernel_doubt": 0.3})
    agreed = build_request(Wish("blurred"), SIZE, proposed)
    assert agreed == RestoreRequest("deblur", 0.02, "motion:3", 0.3)
    assert build_request(Wish("blurred").change(sigma=0.5), SIZE, proposed).sigma == 0.5
    corrected = build_request(Wish("blurred", blur=1.5), SIZE, proposed)
    assert (corrected.task, corrected.kernel) == ("deblur-gaussian", "gaussian:1.5")
    assert [found_blur(one) for one in ({}, {"kernel": "gaussian:2.5"}, {"kernel": "motion:3"})] == [None, 2.5, 0.0]
    assert build_request(Wish("small", factor=3), SIZE, proposed) == RestoreRequest("sr", factor=3)


def test_a_method_by_hand_replaces_quality_and_look() -> None:
    wish = Wish("noisy", request=RestoreRequest(quality="best", look="faithful"))
    assert (build_request(wish, SIZE).quality, build_request(wish, SIZE).look) == ("best", "faithful")
    chosen = build_request(wish.change(method="ddrm", plugins="none"), SIZE)
    assert (chosen.method, chosen.plugins, chosen.quality, chosen.look) == ("ddrm", (), None, None)


@pytest.mark.parametrize(
    ("wish", "told"),
    [
        (Wish("torn"), "what is wrong"),
        (Wish().change(prior="/etc/passwd"), "prior must be one of"),
        (Wish("blurred", blur=float("nan")), "blur must be"),
        (Wish("blurred", blur=8.1), "at most 8 pixels; found 8.1"),
        (Wish("blurred"), "how wide the blur is"),
    ],
)
def test_what_cannot_be_chosen_is_refused(wish: Wish, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        build_request(wish, SIZE)


def test_what_is_painted_is_what_is_missing_at_any_size() -> None:
    alpha = np.zeros((40, 80))
    alpha[:, 40:] = 255
    known = mask_of(painted(alpha), SIZE)
    assert known.shape == (10, 20)
    assert known[:, :9].min() == 1
    assert known[:, 11:].max() == 0
    chosen = build_request(Wish("missing", painted=painted(alpha)), SIZE)
    assert np.array_equal(chosen.mask, known)
    assert build_request(Wish("noisy", painted=painted(alpha)), SIZE).mask is None


@pytest.mark.parametrize("text", ["data:image/png;base64,AAAA", "data:image/png;base64,%", "x", painted(np.zeros((4, 4)))])
def test_what_is_not_painted_is_told(text: str) -> None:
    with pytest.raises(LeaderError, match=r"[Pp]aint"):
        mask_of(text, SIZE)


def test_a_brush_is_needed_where_nothing_else_says_what_is_missing() -> None:
    with pytest.raises(LeaderError, match=choices.NOTHING_PAINTED):
        build_request(Wish("missing"), SIZE)
    with pytest.raises(LeaderError, match=choices.NOTHING_PAINTED):
        build_request(Wish("missing"), SIZE, ("denoise", {}))
    with pytest.raises(LeaderError, match=choices.ALL_PAINTED):
        build_request(Wish("missing", painted=painted(np.full((4, 4), 255))), SIZE)
    assert build_request(Wish("missing"), SIZE, ("inpaint", {})).mask is None  # transparent parts need no brush
    assert build_request(Wish("missing"), SIZE, ("inpaint", {"mask": "auto"})).mask == "auto"
    half = mask_of(choices.half_painted(), SIZE)
    assert half[:, 0].max() == 0 and half[:, -1].min() == 1
