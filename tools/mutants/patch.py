"""Puts a bug into a process that has the package loaded: the code of the functions that differ is exchanged.

That is the same as loading the package with the bug in it if and only if nothing outside of functions differs (constants,
defaults, decorators, fields of a class) and none of these functions has run yet. Both are checked; otherwise the tests run
in a process that loads the changed file (cold).
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from types import CodeType, FunctionType

Key = tuple[str, int]
"""Name and first line of a function, as the unchanged file has them."""
FUNCTION = 0x1
"""The flag of code that belongs to a function, and not to a module or the body of a class (CO_OPTIMIZED)."""
PARTS = (
    "co_code",
    "co_names",
    "co_varnames",
    "co_freevars",
    "co_cellvars",
    "co_argcount",
    "co_kwonlyargcount",
    "co_posonlyargcount",
    "co_flags",
    "co_exceptiontable",
)


def changed(before: str, after: str, path: str) -> dict[Key, CodeType] | None:
    """The new code of the functions that differ, the innermost first; None where something outside of functions differs."""
    old, new = compile(before, path, "exec"), compile(after, path, "exec")
    found: dict[Key, CodeType] = {}
    if not _compared(old, new, found):
        return None
    names = [key_of(code) for code in _all(old)]
    return None if any(names.count(key) > 1 for key in found) else found


def key_of(code: CodeType) -> Key:
    return code.co_name, code.co_firstlineno


def put_in(codes: dict[Key, CodeType], path: str) -> bool:
    """Exchanges the code of the live functions of this file; whether it could be done."""
    for thing in gc.get_objects():
        if type(thing) is FunctionType and thing.__code__.co_filename == path:
            code = codes.get(key_of(thing.__code__))
            if code is not None:
                if len(code.co_freevars) != len(thing.__code__.co_freevars):
                    return False
                thing.__code__ = code
    return True


def _compared(old: CodeType, new: CodeType, found: dict[Key, CodeType]) -> bool:
    """Fills `found`; False where a module or the body of a class differs itself."""
    pairs = list(zip(old.co_consts, new.co_consts, strict=False))
    inner = [(a, b) for a, b in pairs if isinstance(a, CodeType) and isinstance(b, CodeType)]
    agree = [_compared(a, b, found) for a, b in inner]  # all of them, for each fills `found`
    if old.co_flags & FUNCTION:
        if not _same(old, new) or any(key_of(a) in found for a, _ in inner):
            found[key_of(old)] = new
        return True  # what an inner class has of its own is made when the function runs
    return all(agree) and _same(old, new)


def _same(old: CodeType, new: CodeType) -> bool:
    """Whether two pieces of code agree, apart from the lines they stand in and the functions inside them."""
    parts = all(getattr(old, name, None) == getattr(new, name, None) for name in PARTS)
    return parts and list(map(_constant, old.co_consts)) == list(map(_constant, new.co_consts))


def _constant(value: object) -> str:
    return "code" if isinstance(value, CodeType) else repr(value)


def _all(code: CodeType) -> Iterator[CodeType]:
    yield code
    for value in code.co_consts:
        if isinstance(value, CodeType):
            yield from _all(value)
