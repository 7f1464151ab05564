"""Runs a point and keeps its record: JSON lines, appended one by one, so that an interrupted round goes on where it was."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from points import SIZE, TASKS, Point, grid_of, prior
from torch import Tensor

from leader import Grid, Problem, Sampler
from leader.bench.images import file_hash, load_image
from leader.bench.records import canonical
from leader.errors import LeaderError
from leader.files import drop_torn_end
from leader.metrics import lpips, psnr

Record = dict[str, Any]
FIT = "half"
PRIOR_SPREAD = 0.25
"""Variance of photographs in [-1, 1]: with noise the start takes A^T (A A^T + sigma^2 / spread)^-1 y for A^+ y."""
BACKWARD = 2.0
"""Forward passes that a backward pass through the network is worth."""


def stored(path: Path) -> list[Record]:
    """The records of a file, none if it does not exist."""
    if not path.exists():
        return []
    whole = path.read_text(encoding="utf-8").split("\n")[:-1]  # what follows the last line end is torn, or empty
    return [json.loads(line) for line in whole]


class Records:
    """The records of one round; `known` ones of earlier rounds are not run again."""

    def __init__(self, path: Path, known: Iterable[Record] = ()) -> None:
        self.path = path
        self.rows: dict[str, Record] = {row["key"]: row for row in stored(path)}
        self.known = {row["key"]: row for row in known}

    def find(self, key: str) -> Record | None:
        return self.rows.get(key) or self.known.get(key)

    def append(self, row: Record) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        drop_torn_end(self.path)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(canonical(row) + "\n")
        self.rows[row["key"]] = row


def varied(photos: Sequence[Path]) -> list[Path]:
    """The photographs in an order that mixes neighbours in the alphabet, which often are of one maker."""
    stride = next(k for k in (7, 11, 13, 1) if math.gcd(k, len(photos)) == 1)
    return [photos[i * stride % len(photos)] for i in range(len(photos))]


def run(points: Iterable[Point], photos: Sequence[Path], records: Records) -> Iterator[Record]:
    """The records of the points, in order; only those that are missing are run."""
    for point in points:
        photo = photos[point.index]
        key = point.key(file_hash(photo))
        row = records.find(key)
        if row is None:
            row = {"key": key, "cell": key, **measured(point, photo)}
            records.append(row)
        yield row


def measured(point: Point, photo: Path) -> Record:
    """The record of one run. A run that is refused or diverges has an "error" instead of numbers."""
    row: Record = {"group": point.group, **point.what, "photo": photo.stem, "index": point.index, "seed": point.seed}
    clean, problem = posed(photo, point.task, point.index, point.seed)
    # Plug-ins that are not mentioned in the settings have none: presets are already applied, or were left out.
    sampler = Sampler(
        prior(),
        point.method,
        point.plugins,
        len(point.times) - 1,
        grid=grid_of(point),
        estimator="auto" if set(point.plugins) - {"equs", "equs+"} else None,
        use_presets=False,
        **point.settings,
    )
    wall, cpu = time.perf_counter(), time.process_time()
    try:
        result = sampler.run(problem, point.seed, ids=[point.index], x_T=beginning(point, problem))
    except LeaderError as error:
        return {**row, "error": str(error)}
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    total = result.ledger.total
    work = total.pixels / SIZE**2
    shown = ((result.images + 1) / 2).clamp(0, 1)
    return {
        **row,
        "psnr": round(float(psnr(shown, clean)[0]), 4),
        "lpips": round(float(lpips(shown, clean)[0]), 5),
        "calls": int(total.calls),
        "backwards": int(total.backwards),
        "work": round(work, 3),
        "cost": round(work * (1 + BACKWARD * total.backwards / max(1, total.calls)), 3),
        "seconds": round(wall, 3),
        "cpu": round(cpu, 3),
    }


@lru_cache(maxsize=128)
def posed(photo: Path, task: str, index: int, seed: int) -> tuple[Tensor, Problem]:
    """The photograph [1, 3, H, W] in [0, 1] and its problem; the noise is the same for all methods."""
    clean = load_image(photo, FIT, SIZE)
    operator = TASKS[task].operator(index)
    y = operator.A(clean)
    noise = torch.randn(y.shape, generator=torch.Generator().manual_seed(1_000_003 * (seed + 1) + index))
    return clean, Problem(y + TASKS[task].sigma * noise, operator, TASKS[task].sigma)


def beginning(point: Point, problem: Problem) -> Tensor | None:
    """What to hand to the sampler as x_T so that the host begins at the point's start; None: its own start.

    DDRM has no other start than its own: y where it is cleaner than t0. ProjDiff and DiffPIR add x_T to a start of their own,
    which is taken off here.
    """
    start = point.start
    if start.kind != "data" or point.method == "ddrm":
        return None
    level = prior().schedule.level(torch.tensor([start.t0]), problem.y)
    generator = torch.Generator().manual_seed(2_000_003 * (point.seed + 1) + point.index)
    fresh = torch.randn(1, *problem.image_shape, generator=generator)
    wanted = level.signal * backprojection(problem) + level.noise * fresh
    if point.method == "projdiff":
        return wanted / level.noise
    if point.method == "diffpir":
        if tuple(problem.y.shape[1:]) != problem.image_shape:
            return (wanted - level.signal * problem.operator.pinv(problem.y)) / level.noise
        brought = level.abar * problem.sigma_column(level.abar) ** 2
        added = level.cast((1 - level.abar - brought).clamp_min(0).sqrt())
        return (wanted - level.signal * problem.y) / added
    return wanted


def backprojection(problem: Problem) -> Tensor:
    """A^+ y, with noise regularised as for photographs of equal variance everywhere."""
    if problem.noise_free:
        return problem.operator.pinv(problem.y)
    return problem.operator.regularised_pinv(problem.y, problem.sigma**2 / PRIOR_SPREAD)


def work_table(step: int) -> dict[int, float]:
    """Full-resolution passes of one call at every `step`-th time, counted by the prior itself."""
    clean = torch.zeros(1, 3, SIZE, SIZE)
    operator = TASKS["sr"].operator(0)
    problem = Problem(operator.A(clean), operator, 0.0)
    table = {}
    for t in range(0, len(prior().schedule), step):
        done = Sampler(prior(), "ddim", (), 1, grid=Grid((t, -1)), estimator=None).run(problem)
        table[t] = done.ledger.total.pixels / SIZE**2
    return table
