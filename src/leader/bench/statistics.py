"""Numbers of tables: means, paired differences with bootstrap intervals over images, relative changes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leader.bench.cell import Place
from leader.bench.experiment import Experiment, Row
from leader.bench.records import Record
from leader.bench.setup import work_of

RESAMPLES = 10_000
LEVEL = 0.95
FEWEST_IMAGES = 5
"""Fewest images for an interval, and for the word "clear": resampling fewer says nothing about other images."""


@dataclass(frozen=True)
class Summary:
    """Mean and standard deviation (n - 1) over images of one number in one row and task."""

    mean: float
    std: float
    count: int


Interval = tuple[float, float]


@dataclass(frozen=True)
class Difference:
    """A row minus its host over the same images.

    mean, percent  of the difference, and the relative change of the means in %
    interval       95 %; None from fewer than FEWEST_IMAGES images
    """

    mean: float
    interval: Interval | None
    percent: float | None


class Numbers:
    """The records of an experiment as numbers per image, averaged over seeds."""

    def __init__(self, experiment: Experiment, records: Mapping[Place, Record]) -> None:
        self.experiment = experiment
        self._records = records
        self._groups: dict[tuple[str, str], list[tuple[tuple[int, int], Record]]] = {}
        for (row, task, index, seed), record in sorted(records.items(), key=lambda item: item[0]):
            self._groups.setdefault((row, task), []).append(((index, seed), record))
        self._differences: dict[tuple[str, str, str, str], Difference | None] = {}

    def per_run(self, row: str, task: str, metric: str) -> dict[tuple[int, int], float]:
        """{(image index, seed): value}; runs that failed or lack the number are left out."""
        found = {run: value_of(record, metric) for run, record in self._groups.get((row, task), [])}
        return {run: value for run, value in found.items() if value is not None}

    def per_image(self, row: str, task: str, metric: str) -> dict[int, float]:
        """{image index: value, averaged over seeds}."""
        return _over_seeds(self.per_run(row, task, metric))

    def summary(self, row: str, task: str, metric: str) -> Summary | None:
        values = np.array(list(self.per_image(row, task, metric).values()))
        if not len(values):
            return None
        return Summary(float(values.mean()), float(values.std(ddof=1)) if len(values) > 1 else 0.0, len(values))

    def difference(self, row: str, host: str, task: str, metric: str) -> Difference | None:
        """Over the images and seeds that both rows have; None if there are none."""
        which = (row, host, task, metric)
        if which not in self._differences:
            self._differences[which] = self._difference(*which)
        return self._differences[which]

    def _difference(self, row: str, host: str, task: str, metric: str) -> Difference | None:
        mine, theirs = self.per_run(row, task, metric), self.per_run(host, task, metric)
        shared = sorted(mine.keys() & theirs.keys())
        if not shared:
            return None
        new, old = (np.array(list(_over_seeds({run: side[run] for run in shared}).values())) for side in (mine, theirs))
        percent = 100 * float(new.mean() / old.mean() - 1) if old.mean() != 0 else None
        return Difference(float((new - old).mean()), interval_of_mean(new - old), percent)

    def average_change(self, row: Row, metric: str) -> float | None:
        """The change against the host in %, averaged over tasks, like the last columns of the paper's Table 1."""
        if row.against is None:
            return None
        differences = [self.difference(row.label, row.against, t.label, metric) for t in self.experiment.tasks]
        changes = [item.percent for item in differences if item is not None and item.percent is not None]
        return sum(changes) / len(changes) if changes else None

    def average_interval(self, row: Row, metric: str) -> Interval | None:
        """The 95 % interval of `average_change`, by resampling the images that all tasks have; None if there are too few."""
        if row.against is None:
            return None
        pairs = [
            (self.per_image(row.label, task.label, metric), self.per_image(row.against, task.label, metric))
            for task in self.experiment.tasks
        ]
        pairs = [(mine, theirs) for mine, theirs in pairs if mine and theirs]  # tasks that both rows have
        if not pairs:
            return None
        shared = sorted(set.intersection(*(mine.keys() & theirs.keys() for mine, theirs in pairs)))
        if len(shared) < FEWEST_IMAGES:
            return None
        new, old = (np.array([[side[index] for index in shared] for side in sides]) for sides in zip(*pairs, strict=True))
        with np.errstate(divide="ignore", invalid="ignore"):
            found = bootstrap(len(shared), lambda picks: 100 * (new[:, picks].mean(2) / old[:, picks].mean(2) - 1).mean(0))
        return found if np.isfinite(found).all() else None

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


def value_of(record: Record, metric: str) -> float | None:
    """A number of a record; "work" with the derivatives of the network."""
    value = work_of(record) if metric == "work" else record.get(metric)
    return None if value is None else float(value)


def _over_seeds(runs: Mapping[tuple[int, int], float]) -> dict[int, float]:
    found: dict[int, list[float]] = {}
    for (index, _), value in sorted(runs.items()):
        found.setdefault(index, []).append(value)
    return {index: sum(values) / len(values) for index, values in found.items()}


def interval_of_mean(values: Sequence[float] | NDArray[np.float64]) -> Interval | None:
    """The bootstrap interval; None from fewer than FEWEST_IMAGES values."""
    return bootstrap_interval(values) if len(values) >= FEWEST_IMAGES else None


def bootstrap_interval(values: Sequence[float] | NDArray[np.float64]) -> Interval:
    """The 95 % percentile interval of the mean, by resampling the values; the same for the same values."""
    data = np.asarray(values, dtype=np.float64)
    return bootstrap(len(data), lambda picks: data[picks].mean(1))


def bootstrap(count: int, statistic: Callable[[NDArray[np.int64]], NDArray[np.float64]]) -> Interval:
    """The 95 % percentile interval of a statistic of draws [RESAMPLES, count] with replacement."""
    picks = np.random.default_rng(0).integers(0, count, (RESAMPLES, count))
    low, high = np.quantile(statistic(picks), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def tell_interval(mean: float, interval: Interval | None, digits: int, unit: str = "") -> str:
    """+0.05 [+0.01, +0.09], bold where the interval excludes zero."""
    text = f"{mean:+.{digits}f}{unit}"
    if interval is None:
        return text
    low, high = interval
    text = f"{text} [{low:+.{digits}f}, {high:+.{digits}f}]"
    return f"**{text}**" if low > 0 or high < 0 else text


NOT_INFERIOR = {"psnr": (-0.15, -0.3), "lpips": (0.01, 0.02)}
"""How much worse than another a path may be, on average and at its 95 % bound, and still replace it."""


@dataclass(frozen=True)
class Change:
    """Paired differences of one measure, in words and as a judgement."""

    words: str
    better: bool
    inferior: bool


def change_of(measure: str, differences: Sequence[float]) -> Change:
    """The change of PSNR (higher is better) or LPIPS (lower is better): the mean difference with its interval over pictures."""
    (most, bound), (sign, digits) = NOT_INFERIOR[measure], {"psnr": (1, 2), "lpips": (-1, 3)}[measure]
    middle, (low, high) = sum(differences) / len(differences), bootstrap_interval(differences)
    worst = low if sign > 0 else high
    words = f"{middle:+.{digits}f} [{low:+.{digits}f}, {high:+.{digits}f}]"
    return Change(words, sign * worst > 0, sign * middle < sign * most or sign * worst < sign * bound)
