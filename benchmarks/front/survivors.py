"""Round three: the best of every length, each with the same number of recorded trials, on more photographs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from lengths import again, lanes
from measure import Record, Records, run
from points import Point
from rounds import trials
from scores import Mean, means

from leader.errors import LeaderError

TAKEN = 3
"""Hosts a length."""


def survivors(
    photos: Sequence[Path], earlier: Sequence[Record], records: Records, tasks: Sequence[str], few: int = 8, many: int = 16
) -> Iterator[Record]:
    """Tunes on `few` photographs, then measures the best trial and the one that came in on `many`."""
    if not earlier:
        raise LeaderError("The survivors are those of the lengths, of which there are no records; run the lengths first.")

    def found(task: str) -> list[Mean]:
        rows = {row["key"]: row for row in [*earlier, *records.rows.values()] if row["task"] == task}
        return means(rows.values(), range(few))

    for task in tasks:
        groups: dict[str, list[str]] = {}
        for mean in _leading(found(task)):
            family = [replace(again(mean, 0), settings={**mean.first["settings"], **trial}) for trial in _around(mean)]
            groups[mean.group] = [point.group for point in family]
            yield from run((replace(point, index=i) for point in family for i in range(few)), photos, records)
        scored = {mean.group: mean for mean in found(task)}
        for group, family_groups in groups.items():
            top = max((scored[name] for name in (group, *family_groups)), key=lambda mean: mean.score)
            final: dict[str, Point] = {mean.group: again(mean, 0) for mean in (scored[group], top)}
            yield from run((replace(point, index=i) for point in final.values() for i in range(many)), photos, records)


def _leading(found: Sequence[Mean]) -> list[Mean]:
    """The best of `TAKEN` hosts in every length."""
    kept: dict[str, Mean] = {}
    for members in lanes(found).values():
        hosts: dict[str, Mean] = {}
        for mean in sorted(members, key=lambda mean: -mean.score):
            hosts.setdefault(mean.first["method"], mean)
        kept |= {mean.group: mean for mean in list(hosts.values())[:TAKEN]}
    return list(kept.values())


def _around(mean: Mean) -> list[dict[str, float]]:
    return trials(mean.first["task"], mean.first["method"], mean.first["settings"])[1:]
