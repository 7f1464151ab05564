"""The ledger: what was asked of a network, per image. It is the truth behind every NFE printed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields


@dataclass
class Counts:
    """Work done for one image (or the sum over several).

    calls      forward evaluations of the network
    jvps       forward-mode derivatives
    backwards  reverse-mode passes
    pixels     pixels the forward evaluations processed, in pixels of the full-resolution network
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
    """Counts per image id. `images(ids)` says whom the next calls are made for."""

    rows: dict[int, Counts] = field(default_factory=dict)
    _current: tuple[int, ...] | None = None

    @contextmanager
    def images(self, ids: Sequence[int]) -> Iterator[None]:
        before, self._current = self._current, tuple(ids)
        try:
            yield
        finally:
            self._current = before

    def record(self, batch: int, each: Sequence[Counts]) -> None:
        """Adds `each[i]` to the i-th current image; outside `images` to image i."""
        ids = self._current if self._current is not None and len(self._current) == batch else tuple(range(batch))
        for image, counts in zip(ids, each):
            self.rows.setdefault(image, Counts()).add(counts)

    @property
    def total(self) -> Counts:
        total = Counts()
        for counts in self.rows.values():
            total.add(counts)
        return total
