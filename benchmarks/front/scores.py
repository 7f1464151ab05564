"""Means over photographs, the score, and the non-dominated set."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

Record = dict[str, Any]
WEIGHT = 10.0
"""Decibels that a whole unit of LPIPS is worth in the score."""
NUMBERS = ("psnr", "lpips", "calls", "work", "cost", "seconds", "cpu")


@dataclass(frozen=True)
class Mean:
    """The runs of one setting on several photographs. A run that failed makes the score minus infinity."""

    group: str
    first: Record
    count: int
    psnr: float
    lpips: float
    calls: float
    work: float
    cost: float
    seconds: float
    cpu: float

    @property
    def score(self) -> float:
        value = self.psnr - WEIGHT * self.lpips
        return value if math.isfinite(value) else -math.inf

    @property
    def name(self) -> str:
        """Host, plug-ins, grid, start and settings in one line."""
        plugins = "".join(f"+{name}" for name in self.first["plugins"])
        settings = " ".join(f"{key}={_short(value)}" for key, value in sorted(self.first["settings"].items()))
        return " ".join(part for part in (self.first["method"] + plugins, settings) if part)


def _short(value: Any) -> str:
    if isinstance(value, dict):
        return "(" + ",".join(f"{key}={_short(item)}" for key, item in sorted(value.items())) + ")"
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def means(rows: Iterable[Record], indices: Sequence[int] | None = None) -> list[Mean]:
    """One Mean a group, over the photographs `indices` (all by default), in the order of the records.

    Groups that lack one of the `indices` are left out: means are compared on the same photographs only.
    """
    groups: dict[str, list[Record]] = defaultdict(list)
    for row in rows:
        if indices is None or row["index"] in indices:
            groups[row["group"]].append(row)
    wanted = None if indices is None else len(indices)
    return [_mean(group, found) for group, found in groups.items() if wanted is None or len(found) == wanted]


def _mean(group: str, rows: Sequence[Record]) -> Mean:
    failed = any("error" in row for row in rows)
    values = {key: math.nan if failed else sum(row[key] for row in rows) / len(rows) for key in NUMBERS}
    return Mean(group, rows[0], len(rows), **values)


def best(rows: Iterable[Record]) -> str:
    """The group with the highest score."""
    return max(means(rows), key=lambda mean: mean.score).group


def front(candidates: Iterable[Mean]) -> list[Mean]:
    """Those that no other beats in PSNR and LPIPS at no more cost, cheapest first."""
    finite = [mean for mean in candidates if math.isfinite(mean.score)]
    return sorted((one for one in finite if not any(_beats(other, one) for other in finite)), key=lambda mean: mean.cost)


def pareto(candidates: Iterable[Mean]) -> list[Mean]:
    """Those that no other beats in PSNR and LPIPS, whatever they cost, highest PSNR first."""
    finite = [mean for mean in candidates if math.isfinite(mean.score)]
    chosen = [one for one in finite if not any(_better(other, one) for other in finite)]
    return sorted(chosen, key=lambda mean: -mean.psnr)


def _beats(other: Mean, one: Mean) -> bool:
    mine, theirs = (one.psnr, -one.lpips, -one.cost), (other.psnr, -other.lpips, -other.cost)
    return theirs != mine and all(a >= b for a, b in zip(theirs, mine))


def _better(other: Mean, one: Mean) -> bool:
    mine, theirs = (one.psnr, -one.lpips), (other.psnr, -other.lpips)
    return theirs != mine and all(a >= b for a, b in zip(theirs, mine))
