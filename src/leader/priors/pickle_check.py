"""Looking at the pickle of a torch file before torch reads it: what would take for ever is refused by its structure alone.

torch's reader executes nothing, but it hashes the keys of dictionaries, and a tuple of tuples that share their parts doubles
with every level: a hundred bytes name a key of 2^30 parts. Here the operations are walked through with the sizes of tuples in
place of values; nothing is built.
"""

from __future__ import annotations

import io
import pickletools
from collections.abc import Iterator
from typing import IO, Any

LARGEST_TUPLE = 10_000
"""Parts of a tuple, those of the tuples inside it counted as often as they are named; a tensor's own has some twenty."""
MOST_HASHED = 10_000_000
"""The same, over all keys and members that are hashed in one file."""
HASHING = {"SETITEM", "SETITEMS", "DICT", "ADDITEMS", "FROZENSET"}
TUPLES = {"TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "EMPTY_TUPLE"}
LEGACY_PICKLES = 5
"""Pickles at the start of a torch file that is no archive: magic number, protocol, system, content, keys of storages."""
_MARK = -1


def is_harmless(data: bytes, pickles: int = 1) -> bool:
    """Whether the first pickles in `data` name no tuples without end. What is no pickle is harmless: torch refuses it."""
    stream = io.BytesIO(data)
    try:
        return all(_walk(_operations(stream)) for _ in range(pickles))
    except Exception:  # cut short, or of unknown operations: the reader of strangers' bytes says so itself
        return True


def _operations(stream: IO[bytes]) -> Iterator[tuple[Any, Any]]:
    for operation, argument, _ in pickletools.genops(stream):
        yield operation, argument


def _walk(operations: Iterator[tuple[Any, Any]]) -> bool:
    """The machine of a pickle with sizes for values: 1 for all but tuples."""
    stack: list[int] = []
    memo: dict[Any, int] = {}
    hashed = 0
    for operation, argument in operations:
        name = operation.name
        if name == "MARK":
            stack.append(_MARK)
            continue
        if name in ("PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"):
            memo[len(memo) if name == "MEMOIZE" else argument] = stack[-1]
            continue
        if name in ("GET", "BINGET", "LONG_BINGET"):
            stack.append(memo.get(argument, 1))
            continue
        taken = _taken(stack, operation.stack_before)
        if name in HASHING:
            hashed += sum(taken)
        size = 1 + sum(taken) if name in TUPLES else 1
        if size > LARGEST_TUPLE or hashed > MOST_HASHED:
            return False
        stack.extend([size] * len(operation.stack_after))
    return True


def _taken(stack: list[int], before: list[Any]) -> list[int]:
    """The sizes that an operation takes from the stack: down to the last mark where it takes a slice, and what lies below."""
    taken: list[int] = []
    for item in reversed(before):
        if item is pickletools.stackslice:
            while stack[-1] != _MARK:
                taken.append(stack.pop())
        elif item is pickletools.markobject:
            stack.pop()
        else:
            taken.append(stack.pop())
    return taken
