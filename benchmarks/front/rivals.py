"""Quality standard against everything else on the front that costs no more: does a grid, a start or another host beat it?

A rival beats it where one of PSNR and LPIPS is better beyond its 95 % interval over photographs and the other is not
inferior (`leader.bench.statistics.NOT_INFERIOR`). Many rivals on few photographs win by luck, so those that lead go on to more.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from measure import Record, Records, posed, run
from points import SIZE, TASKS, Point, Start, prior
from rounds import SCREEN_PHOTOS
from scores import Mean, means

from leader import Sampler
from leader.bench.images import file_hash
from leader.bench.records import digest
from leader.bench.statistics import change_of
from leader.metrics import lpips, psnr
from leader.presets.paths import RunPath, find_path

EQUAL = 1.05
"""Work up to which a rival costs as much as the path it is compared with."""
LEADING = 2
"""Rivals of a task that go on to more photographs."""


def standard_path(task: str) -> RunPath:
    """What the default of quality and look stands for."""
    name = TASKS[task].name
    return find_path("embedded", "sr-bicubic" if name == "sr" else name, TASKS[task].sigma, "standard", "natural")


def described(task: str) -> dict[str, Any]:
    """The path of quality standard as JSON values."""
    path = standard_path(task)
    return {
        "task": task,
        "method": path.method,
        "plugins": list(path.plugins),
        "settings": path.settings,
        "grid": path.grid,
        "steps": path.steps,
        "times": list(path.times),
        "start": "standard",
    }


def standard(photos: Sequence[Path], records: Records, tasks: Iterable[str], count: int) -> Iterator[Record]:
    """The records of quality standard on the first `count` photographs, posed as the front poses them."""
    for task in tasks:
        what = described(task)
        for index, photo in enumerate(photos[:count]):
            key = digest([what, index, file_hash(photo)])
            row = records.find(key)
            if row is None:
                row = {"key": key, "group": digest(what), **what, **_measured(task, standard_path(task), photo, index)}
                records.append(row)
            yield row


def present(rows: Iterable[Record]) -> list[Record]:
    """Those of what quality standard is now; it may have been another path when the others were made."""
    groups = {digest(described(task)) for task in TASKS}
    return [row for row in rows if row["group"] in groups]


def _measured(task: str, path: RunPath, photo: Path, index: int) -> Record:
    clean, problem = posed(photo, task, index, 0)
    begun = time.process_time()
    sampler = Sampler(prior(), path.method, path.plugins, path.steps, grid=path.route(), **path.settings)
    result = sampler.run(problem, 0, ids=[index])
    spent, total = time.process_time() - begun, result.ledger.total
    shown = ((result.images + 1) / 2).clamp(0, 1)
    return {
        "photo": photo.stem,
        "index": index,
        "seed": 0,
        "psnr": round(float(psnr(shown, clean)[0]), 4),
        "lpips": round(float(lpips(shown, clean)[0]), 5),
        "calls": int(total.calls),
        "cost": round(total.pixels / SIZE**2, 3),
        "cpu": round(spent, 3),
    }


def leading(rows: Sequence[Record], ours: Sequence[Record], task: str) -> list[Mean]:
    """The rivals of a task at no more work, highest score first, on the photographs that the screen had."""
    found = means((row for row in rows if row["task"] == task), range(SCREEN_PHOTOS))
    work = EQUAL * mean(row["cost"] for row in ours if row["task"] == task)
    return sorted((one for one in found if one.cost <= work), key=lambda one: -one.score)


def confirmed(
    photos: Sequence[Path],
    records: Records,
    earlier: Sequence[Record],
    ours: Sequence[Record],
    tasks: Iterable[str],
    count: int,
) -> Iterator[Record]:
    """The leading rivals of every task on the first `count` photographs."""
    for task in tasks:
        for one in leading(earlier, ours, task)[:LEADING]:
            row = one.first
            point = (task, row["method"], row["settings"], tuple(row["times"]), row["grid"], Start.parse(row["start"]))
            yield from run((Point(*point, tuple(row["plugins"]), index) for index in range(count)), photos, records)


def rivals_table(rows: Sequence[Record], ours: Sequence[Record], shown: int = LEADING) -> str:
    """Per task: how many rivals there are at equal work, the leading ones, and what the path does beside them."""
    lines = [
        "| task | rivals | leading rival | grid | start | photographs | work | beside `standard` | PSNR | LPIPS | beats it |",
        "| --- | ---: | --- | --- | --- | ---: | ---: | ---: | --- | --- | --- |",
    ]
    for task, told in TASKS.items():
        mine = {row["index"]: row for row in ours if row["task"] == task}
        if not mine:
            continue
        ranked = leading(rows, ours, task)
        for one in ranked[:shown]:
            pairs = [(row, mine[row["index"]]) for row in rows if row["group"] == one.group and row["index"] in mine]
            changes, beats = _compared(pairs)
            work = mean(row["cost"] for _, row in pairs)
            cells = [told.label, str(len(ranked)), one.name, one.first["grid"], one.first["start"], str(len(pairs))]
            lines.append(f"| {' | '.join([*cells, f'{one.cost:.1f}', f'{work:.1f}', *changes, beats])} |")
    return "\n".join(lines)


def _compared(pairs: Sequence[tuple[Record, Record]]) -> tuple[list[str], str]:
    """Paired differences with intervals, and whether the first of each pair beats the second."""
    changes = [change_of(name, [one[name] - other[name] for one, other in pairs]) for name in ("psnr", "lpips")]
    beats = any(one.better for one in changes) and not any(one.inferior for one in changes)
    return [one.words for one in changes], "yes" if beats else "no"
