"""Names and values given by users: looks up names and rejects wrong values before anything is built.

A name refers to a part of this package, to an entry point that an installed package registers in the group, or, as
`module:Class`, to a class in a file of your own.
"""

import hashlib
import importlib
import inspect
import math
import numbers
import os
import re
import sys
import types
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache, cached_property
from importlib.metadata import entry_points
from typing import Annotated, Any, Generic, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from leader.errors import LeaderError, UsageError, unknown_name

T = TypeVar("T")
V = TypeVar("V")
REFERENCE = re.compile(r"[^\W\d][\w.]*:[^\W\d]\w*")
"""module:Class, as in mine:Blend or mine.methods:Blend."""

LARGEST_INTEGER = 2**31 - 1
"""The largest value of an integer setting; above it arithmetic elsewhere would overflow."""
WORDS = {
    float: "a finite number",
    int: "a whole number below 2^31",
    str: "a word",
    bool: "true or false",
    type(None): "nothing",
}


class Registry(Mapping[str, V], Generic[V]):
    """A mapping from names to values. It lists the package's own names and those that installed packages register;
    `module:Class` is looked up on request, with the current folder on the path. A name that cannot be loaded raises a
    one-sentence error.

    kind   what it holds, in one word
    groups of entry points, as in "leader.methods"; several with a comma
    own    the entries of this package
    adapt  converts the object found in a module to the registered value; raises a TypeError that says what was expected
    """

    def __init__(self, kind: str, groups: str, own: Mapping[str, V], adapt: Callable[[Any, str], V]) -> None:
        self.kind, self.groups, self.own, self._adapt = kind, groups.split(","), dict(own), adapt
        self._found: dict[str, V] = {}

    def __getitem__(self, name: str) -> V:
        if name in self.own:
            return self.own[name]
        if name not in self._found:
            if not isinstance(name, str) or not (name in self._announced or REFERENCE.fullmatch(name)):
                raise KeyError(name)
            self._found[name] = self._take(name, import_reference(self._announced.get(name, name), self.kind))
        return self._found[name]

    def __iter__(self) -> Iterator[str]:
        return iter({**self.own, **self._announced})

    def __len__(self) -> int:
        return len({**self.own, **self._announced})

    def name_of(self, value: V, otherwise: str) -> str:
        """The name of a registered value; `otherwise` for a value that was given as an object."""
        return next((name for name, found in {**self._found, **self.own}.items() if found is value), otherwise)

    @cached_property
    def _announced(self) -> dict[str, str]:
        """References by entry point name; the package's own names cannot be overridden."""
        found = (item for group in self.groups for item in _scan_packages().select(group=group))
        return {item.name: item.value for item in found if item.name not in self.own}

    def _take(self, name: str, found: Any) -> V:
        try:
            return self._adapt(found, name)
        except TypeError as error:
            raise UsageError(f"'{name}' cannot serve as a {self.kind}: {error}.") from error


@cache
def _scan_packages() -> Any:  # of another class before Python 3.12
    """The entry points of all installed packages, which take milliseconds to read."""
    return entry_points()


def import_reference(reference: str, kind: str) -> Any:
    """What `module:name` holds."""
    module, _, name = reference.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and (module == error.name or module.startswith(f"{error.name}.")):
            where = f"there is no module '{error.name}' here or among the installed packages"
            raise UsageError(f"The {kind} '{reference}' cannot be loaded: {where}.") from error
        raise LeaderError(
            f"The {kind} '{reference}' cannot be loaded: its module needs '{error.name}', which is missing."
        ) from error
    except Exception as error:  # importing a foreign file may raise anything
        reason = f"{type(error).__name__}: {error}"
        raise LeaderError(f"The {kind} '{reference}' cannot be loaded: importing '{module}' ended with {reason}.") from error
    if not hasattr(found, name):
        classes = (key for key, item in vars(found).items() if isinstance(item, type) and item.__module__ == found.__name__)
        raise unknown_name(f"class of the module '{module}'", name, classes)
    return getattr(found, name)


def accept_class(base: type[T]) -> Callable[[Any, str], type[T]]:
    """An `adapt` for a Registry of classes: accepts subclasses of `base` that have a name."""

    def adapt(found: Any, name: str) -> type[T]:
        if not (isinstance(found, type) and issubclass(found, base)):
            raise TypeError(
                f"expected a subclass of {base.__module__.rpartition('.')[0]}.{base.__name__}, found {show_value(found)}"
            )
        if not isinstance(getattr(found, "name", None), str):
            raise TypeError(f'the class has no name, add `name = "..."` to {found.__name__}')
        return found

    return adapt


def label_of(cls: type) -> str:
    """The name of a method or plug-in in tables: its `label`, else its class name."""
    return getattr(cls, "label", None) or cls.__name__


def revision_of(cls: type) -> int:
    """What identifies a class in the key of a record: its `revision` for classes of this package; the source text for other
    classes, so that an edited method never gets the numbers of its previous version.
    """
    revision: int = cls.revision  # type: ignore[attr-defined]
    if cls.__module__.partition(".")[0] == __name__.partition(".")[0]:
        return revision
    try:
        text = inspect.getsource(cls)
    except (OSError, TypeError):  # typed at a prompt
        return revision
    return int.from_bytes(hashlib.blake2b(f"{revision} {text}".encode(), digest_size=6).digest(), "little")


def present_name(name: T, former: Mapping[Any, T], kind: str) -> T:
    """The current name; one of the `former` names gives a DeprecationWarning."""
    if not isinstance(name, str) or name not in former:
        return name
    warn_deprecated(f"the {kind} '{name}'", f"'{former[name]}'")
    return former[name]


def warn_deprecated(what: str, instead: str) -> None:
    """Warns that a public name will be removed in the next minor version but one; see docs/stability.md."""
    warnings.warn(f"leader: {what} was renamed to {instead}; the old name will be removed.", DeprecationWarning, 3)


def settings_of(cls: type) -> list[str]:
    """The names of the settings of a class: its fields if it is a dataclass."""
    return sorted(item.name for item in fields(cls) if item.init) if is_dataclass(cls) else []


def build(kind: str, registry: Mapping[str, type[T]], name: str, settings: Mapping[str, Any]) -> T:
    """registry[name](**settings), where the registry holds dataclasses whose fields are their settings."""
    if not isinstance(name, str) or name not in registry:
        raise unknown_name(kind, name, registry)
    if not isinstance(settings, Mapping):
        raise UsageError(f"The settings of the {kind} '{name}' must be names with values; found {show_value(settings)}.")
    known = settings_of(registry[name])
    for key in settings:
        if key not in known:
            raise UsageError(f"The {kind} '{name}' has no setting '{key}'; it has {', '.join(known) or 'none'}.")
    return registry[name](**settings)


def check_settings(item: object, kind: str, name: str) -> None:
    """Rejects a dataclass instance with field values of the wrong type; see `check_values`."""
    if is_dataclass(item):
        check_values(type(item), {field.name: getattr(item, field.name) for field in fields(item)}, kind, name)


def check_values(cls: type, values: Mapping[str, Any], kind: str, name: str) -> None:
    """Rejects values that differ from the declared field of the dataclass `cls`, and numbers that are not finite.

    A field may be a Literal, or Annotated with an interval: `eta: Annotated[float, "[0, 1]"]`, `rate: Annotated[float,
    "(0, inf)"]`. A float field also takes integers; booleans are not numbers. Types other than numbers, strings, booleans,
    tuples of them and classes are not checked, and names that are not fields are left to `build`.
    """
    hints = _read_hints(cls)
    for key, value in values.items():
        hint, interval = hints.get(key, Any), None
        if get_origin(hint) is Annotated:
            hint, interval = get_args(hint)[:2]
        if not _fits(value, hint):
            expected = _describe_type(hint)
        elif interval is not None and value is not None and not _lies_in(value, interval):
            expected = _describe_interval(interval)
        else:
            continue
        raise LeaderError(f"The setting '{key}' of the {kind} '{name}' must be {expected}; found {show_value(value)}.")


def check_count(what: str, value: object, least: int, most: int) -> int:
    """`value` as an int from `least` to `most`; `what` names it in the error."""
    if not _fits(value, int) or not least <= value <= most:  # type: ignore[operator]
        raise LeaderError(f"{what} must be a whole number from {least} to {most}; found {show_value(value)}.")
    return int(value)  # type: ignore[call-overload, no-any-return]


def _lies_in(value: Any, interval: str) -> bool:
    low, high = map(float, interval[1:-1].split(","))
    return (value > low or (interval[0] == "[" and value == low)) and (value < high or (interval[-1] == "]" and value == high))


def _describe_interval(interval: str) -> str:
    if interval.endswith("inf)"):
        return f"{'>=' if interval[0] == '[' else '>'} {interval[1:].partition(',')[0]}"
    return f"in {interval}"


def _read_hints(cls: type) -> dict[str, Any]:
    try:
        return get_type_hints(cls, include_extras=True)
    except NameError:  # a user's class whose annotations cannot be resolved is not checked
        return {}


def _members(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)


def _fits(value: object, hint: Any) -> bool:
    return any(_fits_one(value, member) for member in _members(hint))


def _fits_one(value: object, kind: Any) -> bool:
    if kind is Any:
        return True
    if get_origin(kind) is Literal:
        return any(_fits_one(value, type(one)) and value == one for one in get_args(kind))
    if get_origin(kind) is tuple:  # of variable or fixed length; files give lists
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
    except OverflowError:  # an integer too large for a float
        return False


def _describe_type(hint: Any) -> str:
    return " or ".join(_describe_member(member) for member in _members(hint))


def _describe_member(kind: Any) -> str:
    if get_origin(kind) is tuple:
        return f"a list, each entry {_describe_type(get_args(kind)[0])}"
    if get_origin(kind) is Literal:
        return " or ".join(map(str, get_args(kind)))
    return WORDS.get(kind, f"an object {getattr(kind, '__name__', kind)}")


def show_value(value: object) -> str:
    """A value for an error message, shortened if it is long."""
    try:
        text = repr(value)
    except ValueError:  # integers with thousands of digits are not written out
        text = "a very large number"
    return text if len(text) <= 60 else f"{text[:57]}..."
