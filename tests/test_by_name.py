"""Names and settings: what is near is suggested, what does not fit is refused before anything runs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, get_args, get_origin, get_type_hints

import numpy as np
import pytest

from leader.by_name import build, check_count, check_settings
from leader.errors import LeaderError, unknown_name
from leader.methods import METHODS
from leader.plugins import PLUGINS


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


def test_settings_are_taken_up_to_their_limits_and_refused_beyond() -> None:
    for registry in (METHODS.own, PLUGINS.own):
        for cls in registry.values():
            hints = get_type_hints(cls, include_extras=True)
            for key in (key for key in vars(cls)["__annotations__"] if get_origin(hints[key]) is Annotated):
                kind, limits = get_args(hints[key])[:2]
                step = 1 if kind is int or int in get_args(kind) else 1e-9
                for end, way, included in zip(limits[1:-1].split(","), (-1, 1), (limits[0] == "[", limits[-1] == "]")):
                    if end.strip() == "inf":
                        assert getattr(cls(**{key: 10**6}), key) == 10**6
                        continue
                    value = type(step)(float(end))
                    taken, refused = (value, value + way * step) if included else (value - way * step, value)
                    assert getattr(cls(**{key: taken}), key) == taken
                    with pytest.raises(LeaderError):
                        cls(**{key: refused})


@pytest.mark.parametrize(
    ("name", "key", "taken", "refused"),
    [
        ("ucpm", "lam", (0.0, 1e6), (-1e-9,)),
        ("pirp", "lam", (-0.2, 0.2), ()),
        ("red-diff", "power", (-1.0, 2.0), ()),
        ("direct", "before", ((), (999, 998), (2,)), ((1000,), (5, 5), (5, 9), (5, 0))),
        ("ddpg", "mode", (None, 0, 1, 2), (-1, 3)),
        ("ddnm", "form", ("auto", "spectral", "simple", "plain"), ("dense",)),
    ],
)
def test_settings_with_rules_of_their_own(name: str, key: str, taken: tuple[Any, ...], refused: tuple[Any, ...]) -> None:
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
