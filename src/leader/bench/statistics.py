"""Numbers of tables: means, paired differences with bootstrap intervals over images, relative changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leader.bench.experiment import Experiment, Row
from leader.bench.records import Record
from leader.metrics import METRICS

Place = tuple[str, str, int, int]

RESAMPLES = 10_000
LEVEL = 0.95


@dataclass(frozen=True)
class Column:
    """How a number is printed: title, decimals, and which way is better (0: neither)."""

    title: str
    digits: int
    better: int


COLUMNS: dict[str, Column] = {
    "psnr": Column("PSNR", 2, 1),
    "ssim": Column("SSIM", 3, 1),
    "lpips": Column("LPIPS", 3, -1),
    "residual": Column("residual", 4, 0),
    "residual_raw": Column("raw residual", 6, 0),
    "calls": Column("calls", 1, -1),
    "jvps": Column("JVPs", 1, -1),
    "backwards": Column("backwards", 1, -1),
    "work": Column("work", 1, -1),
    "seconds": Column("seconds", 2, -1),
    "peak_mb": Column("peak MB", 1, -1),
    "run_mb": Column("run MB", 1, -1),
}

CONVENTIONS: dict[str, str] = {
    **{name: metric.convention for name, metric in METRICS.items()},
    "residual": "root mean square of y - A x of the clamped picture, in units of [0, 1] pictures",
    "residual_raw": "the same before clamping",
    "calls": "forward evaluations of the network, per image",
    "work": "full-resolution passes that the calls amount to",
    "seconds": "wall-clock time of one image with one thread; compare within a table only",
    "peak_mb": "peak resident memory of a fresh process, in MB",
    "run_mb": "the part of the peak that came after the prior was loaded, in MB",
}


@dataclass(frozen=True)
class Summary:
    """Mean and standard deviation (n - 1) over images of one number in one row and task."""

    mean: float
    std: float
    count: int


@dataclass(frozen=True)
class Difference:
    """A row minus its host over the same images: mean, 95 % interval, and the relative change of the
    means in %.
    """

    mean: float
    low: float
    high: float
    percent: float | None
    count: int

    @property
    def clear(self) -> bool:
        """Whether the interval excludes zero."""
        return self.count > 1 and (self.low > 0 or self.high < 0)


class Numbers:
    """The records of an experiment as numbers per image, averaged over seeds."""

    def __init__(self, experiment: Experiment, records: Mapping[Place, Record]) -> None:
        self.experiment = experiment
        self._records = records
        self._groups: dict[tuple[str, str], list[tuple[int, Record]]] = {}
        for (row, task, index, _), record in sorted(records.items()):
            self._groups.setdefault((row, task), []).append((index, record))
        self._differences: dict[tuple[str, str, str, str], Difference | None] = {}

    def per_image(self, row: str, task: str, metric: str) -> dict[int, float]:
        """{image index: value}; images whose run failed or lacks the number are left out."""
        found: dict[int, list[float]] = {}
        for index, record in self._groups.get((row, task), []):
            if record.get(metric) is not None:
                found.setdefault(index, []).append(float(record[metric]))
        return {index: sum(values) / len(values) for index, values in sorted(found.items())}

    def summary(self, row: str, task: str, metric: str) -> Summary | None:
        values = np.array(list(self.per_image(row, task, metric).values()))
        if not len(values):
            return None
        return Summary(float(values.mean()), float(values.std(ddof=1)) if len(values) > 1 else 0.0, len(values))

    def difference(self, row: str, host: str, task: str, metric: str) -> Difference | None:
        """Over the images that both rows have; None if there are none."""
        which = (row, host, task, metric)
        if which not in self._differences:
            self._differences[which] = self._difference(*which)
        return self._differences[which]

    def _difference(self, row: str, host: str, task: str, metric: str) -> Difference | None:
        mine, theirs = self.per_image(row, task, metric), self.per_image(host, task, metric)
        shared = sorted(mine.keys() & theirs.keys())
        if not shared:
            return None
        new, old = (np.array([side[index] for index in shared]) for side in (mine, theirs))
        low, high = bootstrap_interval(new - old)
        percent = 100 * float(new.mean() / old.mean() - 1) if old.mean() != 0 else None
        return Difference(float((new - old).mean()), low, high, percent, len(shared))

    def average_change(self, row: Row, metric: str) -> float | None:
        """The change against the host in %, averaged over tasks, like the last columns of the paper's
        Table 1.
        """
        if row.against is None:
            return None
        differences = [self.difference(row.label, row.against, t.label, metric) for t in self.experiment.tasks]
        changes = [item.percent for item in differences if item is not None and item.percent is not None]
        return sum(changes) / len(changes) if changes else None

    def compared(self) -> list[Row]:
        """The rows that have a host in the table."""
        labels = {row.label for row in self.experiment.rows}
        return [row for row in self.experiment.rows if row.against in labels]

    def failures(self) -> list[str]:
        """One line per kind of failure."""
        counts: dict[str, int] = {}
        for (row, task, _, _), record in self._records.items():
            if "error" in record:
                line = f"{row}, {task}: {record['error']}"
                counts[line] = counts.get(line, 0) + 1
        return [f"{line} ({count} images)" for line, count in sorted(counts.items())]


def bootstrap_interval(values: Sequence[float] | NDArray[np.float64], seed: int = 0) -> tuple[float, float]:
    """The 95 % percentile interval of the mean, by resampling the values; the same for the same values."""
    data = np.asarray(values, dtype=np.float64)
    picks = np.random.default_rng(seed).integers(0, len(data), (RESAMPLES, len(data)))
    low, high = np.quantile(data[picks].mean(1), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)
