"""Values in the files of a prior, validated before use: a number may be a string. Each error is one sentence."""

import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from leader.errors import LeaderError, unknown_name


def read_shape(text: str | None, limits: Mapping[str, int], what: str, file: Path, command: str) -> dict[str, int]:
    """The integers, from 1 to their limits, that describe a small network in the metadata of its tensors.

    what     its name in errors: "variance head"
    command  that writes such files
    """
    if text is None:
        raise LeaderError(f"{file} is not a {what}: give a file written by `{command}`.")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise LeaderError(f"The shape of the {what} {file} is not valid JSON: fit it again with `{command}`.") from error
    if not isinstance(found, dict) or sorted(found) != sorted(limits):
        raise LeaderError(f"The shape of the {what} {file} must give {', '.join(limits)}; found {show(found)}.")
    return {key: check_whole(found[key], f"{key} of the {what} {file}", 1, limits[key]) for key in limits}


def show(value: object) -> str:
    """A value for an error message, shortened."""
    if value is None or isinstance(value, (bool, int, float, str)):
        text = repr(value) if not isinstance(value, int) or abs(value) < 10**30 else "an enormous number"
        return text if len(text) <= 48 else f"{text[:45]}..."
    return {"list": "a list", "tuple": "a list", "dict": "an object"}.get(type(value).__name__, f"a {type(value).__name__}")


def check_whole(value: object, what: str, low: int, high: int) -> int:
    """An integer from low to high; `what` names it in the error."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise LeaderError(f"{what} must be a whole number from {low} to {high}; found {show(value)}.")
    return value


def check_number(value: Any, what: str, low: float, high: float) -> float:
    """A finite number from low to high; `what` names it in the error."""
    plain = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not plain or not low <= value <= high or not math.isfinite(value):
        raise LeaderError(f"{what} must be a number from {low:g} to {high:g}; found {show(value)}.")
    return float(value)


def check_word(value: object, what: str, valid: Iterable[str]) -> str:
    names = list(valid)
    if not isinstance(value, str) or value not in names:
        raise unknown_name(what, value if isinstance(value, str) and len(value) <= 48 else show(value), names)
    return value


def check_flag(value: object, what: str) -> bool:
    if not isinstance(value, bool):
        raise LeaderError(f"{what} must be true or false; found {show(value)}.")
    return value


def check_list(value: object, what: str, low: int, high: int) -> list[Any]:
    if not isinstance(value, (list, tuple)) or not low <= len(value) <= high:
        found = f"{len(value)} values" if isinstance(value, (list, tuple)) else show(value)
        wanted = f"{low}" if low == high else f"{low} to {high}"
        raise LeaderError(f"{what} must be a list of {wanted} values; found {found}.")
    return list(value)


def check_keys(found: Iterable[Any], valid: Iterable[str], what: str) -> None:
    """Rejects unknown names; `what` says what they are names of."""
    for key in found:
        if key not in valid:
            raise unknown_name(what, str(key), valid)


def check_table(value: object, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise LeaderError(f"{what} must be an object with names and values; found {show(value)}.")
    return value
