"""The ledger: counts of network calls per image, the source of every printed NFE.

A ledger belongs to a run, not to the prior, which runs may share: `recording` sets the ledger for the calls of the current
thread (or asynchronous task), and the images they are for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, fields

from leader.errors import LeaderError


@dataclass
class Counts:
    """Work done for one image (or the sum over several).

    calls      forward evaluations of the network
    jvps       forward-mode derivatives
    backwards  reverse-mode passes
    pixels     pixels processed by the forward evaluations, in pixels of the full-resolution network
    """

    calls: int = 0
    jvps: int = 0
    backwards: int = 0
    pixels: float = 0.0

    def add(self, other: Counts) -> None:
        for item in fields(self):
            setattr(self, item.name, getattr(self, item.name) + getattr(other, item.name))

    def as_dict(self) -> dict[str, float]:
        return {item.name: getattr(self, item.name) for item in fields(self)}


@dataclass
class Ledger:
    """Counts per image id."""

    rows: dict[int, Counts] = field(default_factory=dict)

    @property
    def total(self) -> Counts:
        total = Counts()
        for counts in self.rows.values():
            total.add(counts)
        return total


_OPEN: ContextVar[tuple[Ledger | None, tuple[int, ...] | None]] = ContextVar("leader_ledger", default=(None, None))
"""The ledger for calls, and the ids of the batch, or None for 0, 1, ..."""


@contextmanager
def recording(ledger: Ledger, ids: Sequence[int] | None = None) -> Iterator[Ledger]:
    """Calls inside this context are counted in `ledger`, for the images `ids` (0, 1, ... by default)."""
    token = _OPEN.set((ledger, None if ids is None else tuple(ids)))
    try:
        yield ledger
    finally:
        _OPEN.reset(token)


@contextmanager
def uncounted() -> Iterator[None]:
    """Calls inside this context are not counted: the caller counts them as a whole."""
    token = _OPEN.set((None, None))
    try:
        yield
    finally:
        _OPEN.reset(token)


def record(each: Sequence[Counts]) -> None:
    """Adds each[i] to the i-th image of the open ledger; does nothing if no ledger is open."""
    ledger, ids = _OPEN.get()
    if ledger is None:
        return
    if ids is not None and len(ids) != len(each):
        raise LeaderError(f"The network was called with {len(each)} images for {len(ids)} ids; give one id per image.")
    for image, counts in zip(range(len(each)) if ids is None else ids, each):
        ledger.rows.setdefault(image, Counts()).add(counts)
