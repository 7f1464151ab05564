"""Names and settings: what is near is suggested, what does not fit is refused before anything runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pytest

from leader.by_name import build, check_count, check_settings
from leader.errors import LeaderError, unknown_name
from leader.methods import METHODS, make_method
from leader.plugins import PLUGINS, make_plugin


class Thing:
    """A class of its own."""


@dataclass(frozen=True)
class Sample:
    name: ClassVar[str] = "sample"

    share: float = 0.5
    count: int = 1
    word: str = "a"
    flag: bool = True
    level: float | None = None
    mode: int | None = None
    thing: str | Thing = "x"
    table: Any = None
    part: Annotated[float | None, "(0, 1]"] = 1.0
    size: Annotated[int, "[0, inf)"] = 0
    form: Literal["a", "b", 2] = "a"

    def __post_init__(self) -> None:
        check_settings(self, "sample", self.name)


REGISTRY: Mapping[str, type[Sample]] = {"sample": Sample}


@pytest.mark.parametrize(
    "settings",
    [
        *({"share": 1}, {"share": np.float32(0.5)}, {"count": np.int64(3)}, {"level": None}, {"level": 2}, {"mode": 2}),
        *({"thing": Thing()}, {"table": [1, {}]}, {"count": -(2**31 - 1)}),
        *({"part": None}, {"part": 1}, {"part": 1e-9}, {"size": 0}, {"form": "b"}, {"form": np.int64(2)}),
    ],
)
def test_values_that_fit_are_taken(settings: dict[str, Any]) -> None:
    made = build("sample", REGISTRY, "sample", settings)
    assert all(getattr(made, key) is value for key, value in settings.items())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"share": "0.5"}, "'share' of the sample 'sample' must be a finite number; found '0.5'"),
        ({"share": True}, "found True"),
        ({"share": float("nan")}, "found nan"),
        ({"share": 10**400}, "found 1000"),
        ({"share": 10**10000}, "found a very large number"),
        ({"count": 1.0}, "whole number"),
        ({"count": False}, "whole number"),
        ({"count": 2**31}, "below 2\\^31"),
        ({"word": 3}, "a word"),
        ({"flag": 1}, "true or false"),
        ({"level": "x"}, "a finite number or nothing"),
        ({"mode": 1.5}, "whole number below 2\\^31 or nothing"),
        ({"thing": 3}, "a word or an object Thing"),
        ({"part": 0}, r"'part' of the sample 'sample' must be in \(0, 1\]; found 0"),
        ({"part": 1.01}, r"in \(0, 1\]"),
        ({"size": -1}, "must be >= 0; found -1"),
        ({"size": 0.5}, "a whole number"),
        ({"form": "c"}, "must be a or b or 2; found 'c'"),
        ({"form": 2.0}, "found 2.0"),
        ({"sise": 3}, "no setting 'sise'; it has count, flag"),
        ("x", "names with values; found 'x'"),
    ],
)
def test_values_that_do_not_fit_are_refused(settings: Any, message: str) -> None:
    with pytest.raises(LeaderError, match=message):
        build("sample", REGISTRY, "sample", settings)


@pytest.mark.parametrize("name", ["sampel", 3, None, ["sample"]])
def test_names_that_are_none_are_refused(name: Any) -> None:
    with pytest.raises(LeaderError, match="Unknown sample"):
        build("sample", REGISTRY, name, {})


@pytest.mark.parametrize("value", [0, 11, 2.0, True, "3", None, float("nan")])
def test_counts_have_their_bounds(value: object) -> None:
    with pytest.raises(LeaderError, match="from 1 to 10"):
        check_count("The count", value, 1, 10)
    assert check_count("The count", 10, 1, 10) == 10


def test_every_number_of_every_method_and_plug_in_is_guarded() -> None:
    """By name and as objects: text, NaN and endless numbers never get in."""
    tried = 0
    for registry, make in ((METHODS, make_method), (PLUGINS, make_plugin)):
        for name, cls in registry.items():
            for key, value in vars(make(name, {})).items():
                if not isinstance(value, (int, float)):
                    continue
                for wrong in ("x", float("nan"), float("inf"), 2**63 if isinstance(value, int) else 10**400):
                    with pytest.raises(LeaderError):
                        make(name, {key: wrong})
                    with pytest.raises(LeaderError):
                        cls(**{key: wrong})
                    tried += 1
    assert tried > 100


UNIT = ((0.0, 1.0), (-0.01, 1.01))
"""Values at the ends of [0, 1], and just beyond."""
NOT_NEGATIVE = ((0.0, 1e-9, 1e6), (-1e-9,))
POSITIVE = ((1e-9, 1e6), (0.0, -1.0))
RANGES: dict[tuple[str, str], tuple[tuple[Any, ...], tuple[Any, ...]]] = {
    ("ddim", "eta"): UNIT,
    ("ddnm", "eta"): UNIT,
    ("ddnm", "travel_length"): ((1, 1000), (0, 1001)),
    ("ddnm", "travel_repeats"): ((1, 100), (0, 101)),
    ("ddnm", "form"): (("auto", "spectral", "simple", "plain"), ("dense",)),
    ("ddnm", "noise"): (("rotated", "published"), ("pixels",)),
    ("ddrm", "eta"): UNIT,
    ("ddrm", "eta_b"): UNIT,
    ("ddrm", "travel_length"): ((1, 1000), (0, 1001)),
    ("ddrm", "travel_repeats"): ((1, 100), (0, 101)),
    ("dps", "scale"): ((None, *NOT_NEGATIVE[0]), NOT_NEGATIVE[1]),
    ("diffpir", "lam"): POSITIVE,
    ("diffpir", "zeta"): UNIT,
    ("diffpir", "eta"): UNIT,
    ("ddpg", "gamma"): NOT_NEGATIVE,
    ("ddpg", "zeta"): UNIT,
    ("ddpg", "eta_tilde"): NOT_NEGATIVE,
    ("ddpg", "eta_floor"): POSITIVE,
    ("ddpg", "mode"): ((None, 0, 1, 2), (-1, 3)),
    ("pirp", "width"): POSITIVE,
    ("pirp", "lam"): ((-0.2, 0.0, 0.2), ()),
    ("projdiff", "step"): POSITIVE,
    ("projdiff", "early_step"): ((0.5, 1.0, 1.99), (0.0, 2.0, -1.0)),
    ("projdiff", "form"): (("spectral", "simple"), ("dense",)),
    ("sitcom", "inner"): ((1, 1000), (0, 1001)),
    ("sitcom", "rate"): POSITIVE,
    ("sitcom", "lam"): NOT_NEGATIVE,
    ("sitcom", "margin"): NOT_NEGATIVE,
    ("pigdm", "eta"): UNIT,
    ("pigdm", "variance"): POSITIVE,
    ("pigdm", "weights"): (("adaptive", "score"), ("published",)),
    ("daps", "flow"): ((1, 1000), (0, 1001)),
    ("daps", "inner"): ((1, 1000), (0, 1001)),
    ("daps", "rate"): POSITIVE,
    ("daps", "fall"): ((1e-9, 1.0), (0.0, 1.01)),
    ("daps", "tau"): POSITIVE,
    ("daps", "end"): NOT_NEGATIVE,
    ("red-diff", "lam"): NOT_NEGATIVE,
    ("red-diff", "rate"): POSITIVE,
    ("red-diff", "power"): ((-1.0, 0.0, 2.0), ()),
    ("repaint", "travel_length"): ((1, 1000), (0, 1001)),
    ("repaint", "travel_repeats"): ((1, 100), (0, 101)),
    ("repaint", "damping"): NOT_NEGATIVE,
    ("mcg", "damping"): NOT_NEGATIVE,
    ("mcg", "scale"): ((None, *NOT_NEGATIVE[0]), NOT_NEGATIVE[1]),
    ("dcdp", "flow"): ((1, 1000), (0, 1001)),
    ("dcdp", "inner"): ((1, 1000), (0, 1001)),
    ("dcdp", "rate"): ((1e-9, 3.79), (0.0, 3.8)),
    ("dcdp", "lam"): NOT_NEGATIVE,
    ("dcdp", "first"): ((1, 999), (0, 1000)),
    ("ucpm", "lam"): NOT_NEGATIVE,
    ("ucpm", "width"): POSITIVE,
    ("satp", "budget"): NOT_NEGATIVE,
    ("satp", "eta"): NOT_NEGATIVE,
    ("satp", "rho"): POSITIVE,
    ("start", "share"): ((1e-9, 0.999), (0.0, 1.0)),
    ("start", "time"): ((None, 0, 999), (-1, 1000)),
    ("pace", "power"): UNIT,
    ("wiener", "trust"): POSITIVE,
    ("cells", "begin"): ((None, *POSITIVE[0]), POSITIVE[1]),
    ("cells", "end"): POSITIVE,
    ("cells", "doubt"): ((None, *POSITIVE[0]), POSITIVE[1]),
    ("cells", "enlarge_luma"): UNIT,
    ("cells", "enlarge_chroma"): UNIT,
    ("cells", "inner"): UNIT,
    ("direct", "calls"): ((1, 50), (0,)),
    ("direct", "before"): (((), (999, 998), (2,)), ((1000,), (5, 5), (5, 9), (5, 0))),
}


@pytest.mark.parametrize(("name", "key"), RANGES)
def test_settings_are_taken_up_to_their_limits_and_refused_beyond(name: str, key: str) -> None:
    taken, refused = RANGES[name, key]
    make: Any = METHODS[name] if name in METHODS else PLUGINS[name]
    for value in taken:
        assert getattr(make(**{key: value}), key) == value
    for value in refused:
        with pytest.raises(LeaderError):
            make(**{key: value})


def test_near_names_are_suggested_and_far_ones_are_not() -> None:
    assert "did you mean 'ddnm'" in str(unknown_name("method", "DNNM", ["ddnm", "ddrm", "dps"]))
    assert "use one of a, b." in str(unknown_name("thing", "zebra", ["b", "a"]))
    far = str(unknown_name("task", "super-resolution", ["deblur-motion", "sr", "deblur"]))
    assert "deblur-motion'?" not in far and "use one of" in far
    assert "did you mean 'DDNM + LEADer'" in str(unknown_name("row", "ddnm+leader", ["DDNM + LEADer", "DPS"]))
