"""The detectors with one constant moved, for benchmarks/constants.py: what the constant does not reach is not computed again.

A constant is read when a module is imported, and may be a part of other values and of defaults. So the modules are imported
again with the constant moved, and what differs in them is what a move sets. Every function of the detectors is wrapped: it
remembers its answers for the present picture, by its arguments, and which constants were read on the way.
"""

import importlib
import inspect
import pickle
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import _lru_cache_wrapper, wraps
from hashlib import blake2b
from pathlib import Path
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

import numpy as np

import leader
import leader.presets
import leader.restoration.diagnose

PLACES = ("leader.forensics", "leader.restoration.diagnose")
ROOMS = tuple(f"leader.forensics.{room}." for room in ("jpeg", "noise", "blur", "defects", "size"))
SLOW = 0.001
"""Seconds from which on an answer is worth remembering."""
FILE = Path(leader.__file__).parent / "forensics" / "constants.toml"
Setting = tuple[Any, str, Any]


def list_constants(tables: dict[str, Any], place: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """(name, row) of every constant."""
    for name, row in tables.items():
        if isinstance(row, dict):
            yield from [(place + name, row)] if "value" in row else list_constants(row, f"{place}{name}.")


def read_constants() -> dict[str, dict[str, Any]]:
    return dict(list_constants(leader.presets.parsed(FILE)))


def move_value(value: Any, times: float) -> Any:
    """A whole number moves by 1 at least; ten times is much for it."""
    if isinstance(value, list):
        return [move_value(one, times) for one in value]
    if isinstance(value, int):
        moved = round(value * min(times, 10))
        return moved if times in (0, 100) else min(moved, value - 1) if times < 1 else max(moved, value + 1)
    return value * times


def move_constant(name: str, times: float) -> dict[str, Any]:
    """All tables, with one constant moved."""
    tables = leader.presets.parsed(FILE)
    row = dict(list_constants(tables))[name]
    row["value"] = move_value(row["value"], times)
    return tables


def list_modules(places: tuple[str, ...] = PLACES) -> dict[str, ModuleType]:
    return {name: module for name, module in sys.modules.items() if name.startswith(places)}


def import_again(tables: dict[str, Any], places: tuple[str, ...] = PLACES) -> dict[str, ModuleType]:
    """Fresh copies of the modules at `places`, with these tables instead of those in their file."""
    kept, read = list_modules(places), leader.presets.parsed
    for name in kept:
        del sys.modules[name]
    leader.presets.parsed = lambda file: tables
    try:
        return {name: importlib.import_module(name) for name in kept}
    finally:
        leader.presets.parsed = read
        for name in list_modules(places):
            del sys.modules[name]
        sys.modules.update(kept)


def list_settings(modules: dict[str, ModuleType]) -> Iterator[tuple[str, Setting]]:
    """(name, (owner, attribute, value)) of everything that may hold a constant: values of modules, defaults of functions."""
    for place, module in modules.items():
        for name, value in vars(module).items():
            if isinstance(value, (int, float, tuple, np.ndarray)):
                yield f"{place}:{name}", (module, name, value)
            members = vars(value) if isinstance(value, type) else {name: inspect.unwrap(value) if callable(value) else value}
            for member, function in members.items():
                if isinstance(function, FunctionType) and function.__module__ == place and function.__defaults__:
                    yield f"{place}:{name}.{member}()", (function, "__defaults__", function.__defaults__)


def is_same(one: Any, other: Any) -> bool:
    try:
        return pickle.dumps(one) == pickle.dumps(other)
    except (pickle.PicklingError, AttributeError, TypeError):
        return True  # holds a class or function of the copy: no number


class Detectors:
    """The detectors in use: what each move sets, what was read in the last run, answers for the present picture."""

    def __init__(self, moves: list[tuple[str, float]]) -> None:
        """moves  (constant, by how many times)"""
        self.settings: dict[tuple[str, float], list[Setting]] = {}
        self.readers: dict[Any, set[str]] = defaultdict(set)
        self.codes: dict[CodeType, frozenset[str]] = {}
        self.moved = ""
        usual = dict(list_settings(list_modules()))
        for constant, times in moves:
            changed = dict(list_settings(import_again(move_constant(constant, times))))
            found = [(*usual[name][:2], value) for name, (_, _, value) in changed.items() if not is_same(usual[name][2], value)]
            self.settings[constant, times] = found
            for owner, name, _ in found:
                self.readers[owner.__code__ if name == "__defaults__" else (owner.__name__, name)].add(constant)
        self.forget()
        self._wrap()

    def forget(self) -> None:
        """The next picture."""
        self.answers: dict[bytes, list[tuple[bytes, set[str]]]] = defaultdict(list)
        self.reads: list[set[str]] = [set()]

    def run(self, move: tuple[str, float] | None, function: Callable[[], Any]) -> Any:
        """What a function returns with a constant moved; None: as they are."""
        self.moved, settings = ("", []) if move is None else (move[0], self.settings[move])
        usual = [(owner, name, getattr(owner, name)) for owner, name, _ in settings]
        for owner, name, value in settings:
            setattr(owner, name, value)
        self.reads = [set()]
        sys.setprofile(self._note)
        try:
            return function()
        finally:
            sys.setprofile(None)
            for owner, name, value in usual:
                setattr(owner, name, value)

    def _note(self, frame: FrameType, event: str, _: Any) -> None:
        if event != "call":
            return
        code = frame.f_code
        found = self.codes.get(code)
        if found is None:
            place = frame.f_globals.get("__name__", "")
            names = [self.readers.get((place, name), set()) for name in code.co_names]
            found = self.codes[code] = frozenset().union(self.readers.get(code, set()), *names)
        self.reads[-1] |= found

    def _wrap(self) -> None:
        modules, wrapped = list_modules(), {}
        for place, module in modules.items():
            for value in vars(module).values() if place.startswith(ROOMS) else ():
                if isinstance(value, (FunctionType, _lru_cache_wrapper)) and value.__module__ == place:
                    wrapped[value] = self._remember(inspect.unwrap(value))
        for module in modules.values():
            for name, value in list(vars(module).items()):
                if isinstance(value, (FunctionType, _lru_cache_wrapper)) and value in wrapped:
                    setattr(module, name, wrapped[value])

    def _remember(self, function: Callable[..., Any]) -> Callable[..., Any]:
        times: list[float] = []
        label = f"{function.__module__}.{function.__qualname__}".encode()

        @wraps(function)
        def answer(*args: Any, **options: Any) -> Any:
            if len(times) > 20 and sum(times) < SLOW * len(times):
                return function(*args, **options)
            try:
                key = blake2b(label + pickle.dumps((args, options), 5)).digest()
            except (pickle.PicklingError, AttributeError, TypeError):
                return function(*args, **options)  # takes a function or a generator
            for kept, read in self.answers[key]:
                if self.moved not in read:  # answers that read what was moved for them are not kept
                    self.reads[-1] |= read
                    return pickle.loads(kept)
            self.reads.append(set())
            begin = time.perf_counter()
            try:
                found = function(*args, **options)
            finally:
                read = self.reads.pop()
                self.reads[-1] |= read
            times.append(time.perf_counter() - begin)
            if times[-1] > SLOW and self.moved not in read:
                self.answers[key].append((pickle.dumps(found, 5), read))
            return found

        return answer
