"""Names and values that people give: what is registered is built by its name, and wrong values are refused first."""

from __future__ import annotations

import math
import numbers
import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from leader.errors import LeaderError, UsageError, unknown_name

T = TypeVar("T")

LARGEST_INTEGER = 2**31 - 1
"""No setting counts further than this; beyond it arithmetic elsewhere would overflow."""
WORDS = {
    float: "a finite number",
    int: "a whole number below 2^31",
    str: "a word",
    bool: "true or false",
    type(None): "nothing",
}


def build(kind: str, registry: Mapping[str, type[T]], name: str, settings: Mapping[str, Any]) -> T:
    """registry[name](**settings), where the registry holds dataclasses whose fields are their settings."""
    if not isinstance(name, str) or name not in registry:
        raise unknown_name(kind, name, registry)
    if not isinstance(settings, Mapping):
        raise UsageError(f"The settings of the {kind} '{name}' are names and values; found {show_value(settings)}.")
    known = sorted(item.name for item in fields(registry[name]))  # type: ignore[arg-type]
    for key in settings:
        if key not in known:
            raise UsageError(f"The {kind} '{name}' has no setting '{key}'; it has {', '.join(known) or 'none'}.")
    return registry[name](**settings)


def check_settings(item: object, kind: str, name: str) -> None:
    """Refuses a dataclass whose fields hold values that do not fit them; see `check_values`."""
    if is_dataclass(item):
        check_values(type(item), {field.name: getattr(item, field.name) for field in fields(item)}, kind, name)


def check_values(cls: type, values: Mapping[str, Any], kind: str, name: str) -> None:
    """Refuses values of other types than the fields of the dataclass `cls` declare, and numbers that are not finite.

    A float field takes whole numbers too; true and false are no numbers. Types other than numbers, words, truth values,
    tuples of them and classes are not looked into, and names that are no fields are left to `build`.
    """
    hints = _read_hints(cls)
    for key, value in values.items():
        if key in hints and not _fits(value, hints[key]):
            raise LeaderError(
                f"The setting '{key}' of the {kind} '{name}' is {_describe_type(hints[key])}; found {show_value(value)}."
            )


def check_count(what: str, value: object, least: int, most: int) -> int:
    """`value` as an int from `least` to `most`; `what` names it in the error."""
    if not _fits(value, int) or not least <= value <= most:  # type: ignore[operator]
        raise LeaderError(f"{what} must be a whole number from {least} to {most}; found {show_value(value)}.")
    return int(value)  # type: ignore[call-overload, no-any-return]


def _read_hints(cls: type) -> dict[str, Any]:
    try:
        return get_type_hints(cls)
    except NameError:  # a class of the user's whose annotations are not in reach: its own business
        return {}


def _members(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)


def _fits(value: object, hint: Any) -> bool:
    return any(_fits_one(value, member) for member in _members(hint))


def _fits_one(value: object, kind: Any) -> bool:
    if kind is Any:
        return True
    if get_origin(kind) is tuple:  # of any length or of a fixed one; files give lists
        parts = get_args(kind)
        if not isinstance(value, (tuple, list)):
            return False
        hints = parts[:1] * len(value) if parts[-1:] == (...,) else parts
        return len(hints) == len(value) and all(_fits(item, hint) for item, hint in zip(value, hints))
    if kind is bool or isinstance(value, bool):
        return kind is bool and isinstance(value, bool)
    if kind is int:
        return isinstance(value, numbers.Integral) and abs(int(value)) <= LARGEST_INTEGER
    if kind is float:
        return isinstance(value, numbers.Real) and _finite(value)
    return not isinstance(kind, type) or isinstance(value, kind)


def _finite(value: numbers.Real) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond all floats
        return False


def _describe_type(hint: Any) -> str:
    """The types of a field in words."""
    return " or ".join(_describe_member(member) for member in _members(hint))


def _describe_member(kind: Any) -> str:
    if get_origin(kind) is tuple:
        return f"a list, each entry {_describe_type(get_args(kind)[0])}"
    return WORDS.get(kind, f"an object {getattr(kind, '__name__', kind)}")


def show_value(value: object) -> str:
    """A value for an error message, however long it is."""
    try:
        text = repr(value)
    except ValueError:  # whole numbers of thousands of digits are not written out
        text = "a very large number"
    return text if len(text) <= 60 else f"{text[:57]}..."
