"""Settings for cells that are equal but for their photograph: the best of some trials by PSNR - 10 LPIPS.

Trial 0 is what the presets say, so a search never ends worse than it began on its own photographs. Every run is a record, so an
interrupted search goes on where it was.
"""

import hashlib
import math
import random
from collections.abc import Sequence
from typing import Any

from leader.bench.cell import Cell, Frozen
from leader.bench.experiment import merge_settings
from leader.bench.keys import identify
from leader.bench.records import Record, Store
from leader.bench.running import run_cell
from leader.engines import Engine

Settings = dict[str, Any]
WEIGHT = 10.0
"""Decibels that a whole unit of LPIPS is worth."""
STRENGTHS = (0.02, 0.5)
"""Of UCPM's image prior in the paper's own LEADer, where its strength is all there is to choose: uniform in the logarithm."""


def draw_strengths(name: str, count: int) -> list[Settings]:
    """What the presets say, then random strengths; equal names give equal ones."""
    found: list[Settings] = [{}]
    for number in range(1, count):
        seed = hashlib.sha256(f"{name}/{number}".encode()).digest()[:8]
        drawn = random.Random(int.from_bytes(seed, "little")).uniform(*map(math.log, STRENGTHS))
        found.append({"ucpm-paper": {"lam": float(f"{math.exp(drawn):.3g}")}})
    return found


def choose_settings(cells: Sequence[Cell], trials: Sequence[Settings], store: Store, engine: Engine) -> Settings:
    """The settings of the best trial for `cells`, one per photograph; the first of them where every run failed."""
    tried = [[_with(cell, point) for cell in cells] for point in trials]
    found = {identify(cell).key: cell for group in tried for cell in group}
    with store.writing():
        for _, answer in engine.map(run_cell, [cell for key, cell in found.items() if store.find(key) is None]):
            store.append(answer.record)
    scores = [_score([store.find(identify(cell).key) or {} for cell in group]) for group in tried]
    return trials[scores.index(max(scores))]


def _with(cell: Cell, point: Settings) -> Cell:
    return cell.altered(settings=Frozen(merge_settings(cell.recipe.settings.plain(), point)))


def _score(rows: Sequence[Record]) -> float:
    if any("error" in row for row in rows):
        return -math.inf
    return sum(float(row["psnr"]) - WEIGHT * float(row["lpips"]) for row in rows) / len(rows)
