"""A visitor's choices as restorations: every control's value reaches the request, and nothing else gets through."""

import base64
from typing import Any

import numpy as np
import pytest

from leader.errors import LeaderError, UsageError
from leader.restoration.request import RestoreRequest
from leader.web import choices
from leader.web.choices import KINDS, Repair, Wish, build_request, draw_mask, fit_size, kind_of, mask_of, read_wish
from tests.pictures.test_pictures import header_only

SIZE = (20, 10)
ADVISED: dict[str, Any] = {"blurred": ("deblur", {"kernel": "motion:3", "sigma": 0.02, "kernel_doubt": 0.3})}


def paint(missing: Any, side: int | None = None) -> str:
    return choices.PNG + base64.b64encode(draw_mask(np.asarray(missing, dtype=bool), side)).decode()


HALF = paint([[True, False]])


def ask(*repairs: Repair, painted: str = "", number: int = 0, advised: Any = None, **request: Any) -> RestoreRequest:
    return build_request(Wish(repairs, painted, RestoreRequest(**request)), number, SIZE, advised or {})


def test_every_control_reaches_the_request() -> None:
    said: dict[str, Any] = {"quality": "best", "look": "faithful", "method": "ddrm", "plugins": "satp", "steps": "17"}
    said |= {"budget": "0.07", "estimator": "noise-energy", "sigma": "0,04", "prior": "embedded", "seed": "9"}
    repairs = [{"kind": "small", "factor": 16}, {"kind": "blurred", "blur": 8.0}, {"kind": "missing"}]
    wish = read_wish({"repairs": repairs, "painted": HALF, "draft_first": False, **said})
    assert wish.repairs == (Repair("missing"), Repair("blurred", blur=8.0), Repair("small", 16.0)), "in the order of repair"
    assert wish.painted == HALF and not wish.draft_first
    read = {"plugins": ("satp",), "steps": 17, "budget": 0.07, "sigma": 0.04, "seed": 9}
    assert wish.request == RestoreRequest(**{**said, **read}) and set(choices.EXPERT) <= set(said)
    plain = read_wish({"repairs": [{"kind": "noisy"}], "seed": "", "method": None})
    assert plain == Wish((Repair("noisy"),)) and plain.draft_first and plain.request == RestoreRequest()


@pytest.mark.parametrize(
    ("body", "told"),
    [
        *(({}, "Choose what is wrong"), ({"repairs": []}, "Choose what is wrong")),
        *(({"repairs": ["noisy"]}, "Choose what is wrong"), ({"repairs": [{"kind": "torn"}]}, "one of missing")),
        ({"repairs": [{"kind": ["noisy"]}]}, "one of missing"),
        ({"repairs": [{"kind": "noisy"}, {"kind": "noisy"}]}, "once"),
        ({"repairs": [{"kind": "blurred", "blur": 8.1}]}, "at most 8 pixels; found 8.1"),
        ({"repairs": [{"kind": "blurred", "blur": float("nan")}]}, "blur must be a number"),
        ({"repairs": [{"kind": "blurred", "blur": True}]}, "blur must be a number"),
        ({"repairs": [{"kind": "small", "factor": 1}]}, "larger than 1"),
        ({"repairs": [{"kind": "small", "factor": 17}]}, "at most 16"),
        ({"repairs": [{"kind": "small", "factor": 10**400}]}, "factor must be a number"),
        ({"repairs": [{"kind": "small", "size": [100]}]}, "width and a height"),
        ({"repairs": [{"kind": "small", "size": [100, 1.5]}]}, "width and a height"),
        ({"repairs": [{"kind": "small", "size": [0, 100]}]}, "width and a height"),
        ({"repairs": [{"kind": "small", "size": [100, 2**16]}]}, "width and a height"),
        ({"repairs": [{"kind": "blurred", "blur": 0}]}, "wider than 0"),
        ({"repairs": [{"kind": "noisy"}], "prior": "/etc/passwd"}, "prior must be one of"),
        ({"repairs": [{"kind": "noisy"}], "quality": "perfect"}, "quality must be one of"),
        ({"repairs": [{"kind": "noisy"}], "look": {"a": 1}}, "look must be one of"),
        ({"repairs": [{"kind": "noisy"}], "method": "os:system"}, "chosen from a list"),
        ({"repairs": [{"kind": "noisy"}], "seed": "-1"}, "whole number"),
    ],
)
def test_what_cannot_be_chosen_is_refused(body: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        read_wish(body)


def test_every_kind_of_damage_has_a_task() -> None:
    found = {kind: ask(Repair(kind, blur=2.0), painted=HALF).task for kind in KINDS}
    assert found == {
        "missing": "inpaint",
        "noisy": "denoise",
        "jpeg": "jpeg",
        "blurred": "deblur-gaussian",
        "grey": "colourise",
        "small": "sr",
    }
    assert kind_of("deblur-motion") == "blurred" and kind_of("cs") is None and kind_of("no such task") is None


def test_the_diagnosis_holds_where_the_visitor_agrees_and_only_there() -> None:
    assert ask(Repair("blurred"), advised=ADVISED, sigma=0.5).sigma == 0.5
    assert ask(Repair("blurred"), advised=ADVISED) == RestoreRequest("deblur", 0.02, "motion:3", 0.3), "and stays what it was"
    corrected = ask(Repair("blurred", blur=1.5), advised=ADVISED)
    assert (corrected.task, corrected.kernel, corrected.kernel_doubt) == ("deblur-gaussian", "gaussian:1.5", None)
    assert ask(Repair("small", 3.0), advised=ADVISED) == RestoreRequest("sr", factor=3.0)
    with pytest.raises(UsageError, match="how wide the blur is"):
        ask(Repair("blurred"))


def test_a_size_is_met_in_the_proportions_of_the_picture() -> None:
    assert ask(Repair("small", size=(3840, 2160))).size == (3840, 1920) and ask(Repair("small", size=(90, 30))).size == (60, 30)
    assert ask(Repair("small")).factor == 4.0
    assert fit_size((50, 31), (7, 3)) == (50, 21)
    assert fit_size((26, 90), (24, 32)) == (26, 35) and fit_size((90, 26), (32, 24)) == (35, 26), "hardly larger"
    with pytest.raises(UsageError, match="20 x 10 pixels"):
        ask(Repair("small", size=(20, 500)))


def test_a_method_by_hand_replaces_quality_and_look() -> None:
    given: dict[str, Any] = {"quality": "best", "look": "faithful"}
    assert (ask(Repair("noisy"), **given).quality, ask(Repair("noisy"), **given).look) == ("best", "faithful")
    chosen = ask(Repair("noisy"), **given, method="ddrm", plugins="none")
    assert (chosen.method, chosen.plugins, chosen.quality, chosen.look) == ("ddrm", (), None, None)


def test_the_noise_level_is_that_of_the_picture_given() -> None:
    chain = (Repair("noisy"), Repair("small", 2.0))
    assert ask(*chain, sigma=0.07, seed=5).sigma == 0.07
    later = ask(*chain, number=1, sigma=0.07, seed=5)
    assert later.sigma is None and later.seed == 5 and later.task == "sr"


def test_what_is_painted_is_what_is_missing_at_any_size() -> None:
    missing = np.zeros((40, 80), dtype=bool)
    missing[:, 40:] = True
    known = mask_of(paint(missing), SIZE)
    assert known.shape == (10, 20) and known[:, :10].min() == 1 and known[:, 10:].max() == 0, "half covered is covered"
    assert np.array_equal(mask_of(paint(missing, 16), SIZE)[:, [0, 19]], known[:, [0, 19]]), "and drawn small"
    thin = np.zeros((60, 120), dtype=bool)
    thin[:, 47] = True
    assert mask_of(paint(thin, 40), (40, 20))[:, 15].max() == 0, "a scratch is not lost in a smaller drawing"
    for advised in (None, {"missing": ("inpaint", {"mask": "auto"})}):
        assert np.array_equal(ask(Repair("missing"), painted=paint(missing), advised=advised).mask, known), "paint comes first"
    assert ask(Repair("noisy"), painted=paint(missing)).mask is None


@pytest.mark.parametrize("text", ["data:image/png;base64,AAAA", "data:image/png;base64,%", "x", paint(np.zeros((4, 5)))])
def test_what_is_not_painted_is_told(text: str) -> None:
    with pytest.raises(LeaderError, match=r"[Pp]aint"):
        mask_of(text, SIZE)
    with pytest.raises(LeaderError, match="did not arrive"):
        mask_of(choices.PNG + "A" * choices.MOST_MASK, SIZE)


def test_a_brush_is_needed_where_nothing_else_says_what_is_missing() -> None:
    for advised in (None, {"noisy": ("denoise", dict[str, Any]())}):
        with pytest.raises(LeaderError, match=choices.NOTHING_PAINTED):
            ask(Repair("missing"), advised=advised)
    with pytest.raises(LeaderError, match=choices.ALL_PAINTED):
        ask(Repair("missing"), painted=paint(np.ones((4, 5))))
    large = paint(np.tile([[True, False]], (2100, 1050)))
    with pytest.raises(LeaderError, match="larger than the page's canvas"):
        mask_of(large, SIZE)
    with pytest.raises(LeaderError, match="cannot be read"):
        mask_of(choices.PNG + base64.b64encode(header_only(60_000, 60_000)).decode(), SIZE)
    assert ask(Repair("missing"), advised={"missing": ("inpaint", {})}).mask is None  # transparent parts need no brush
    assert ask(Repair("missing"), advised={"missing": ("inpaint", {"mask": "auto"})}).mask == "auto"
