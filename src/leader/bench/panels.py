"""The content of figures: the pictures and numbers of every panel, taken from the records.

`figures.py` draws exactly these, so a figure can be tested by its data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from leader.bench.cell import Place
from leader.bench.columns import DEFAULT
from leader.bench.experiment import Experiment
from leader.bench.records import Record, Store
from leader.bench.statistics import Numbers, interval_of_mean
from leader.errors import LeaderError

Records = Mapping[Place, Record]


@dataclass(frozen=True)
class Shot:
    """A restored picture. picture: its file, None if the run failed; caption: "PSNR / LPIPS" or empty."""

    task: str
    row: str
    index: int
    picture: Path | None
    caption: str = ""


@dataclass(frozen=True)
class Strip:
    """Pictures side by side along a run, in one file, with a caption each."""

    label: str
    picture: Path
    captions: tuple[str, ...]


@dataclass(frozen=True)
class Curve:
    """Means against T, in the order of T."""

    name: str
    steps: tuple[int, ...]
    means: tuple[float, ...]


@dataclass(frozen=True)
class Bar:
    """A mean over images, with its 95 % interval if there are enough images."""

    row: str
    task: str
    mean: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Band:
    """A value along t, in the order of visits: its mean, smallest and largest over the images that visited t."""

    row: str
    times: tuple[int, ...]
    mean: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


def grid_shots(experiment: Experiment, records: Records, store: Store) -> list[list[Shot]]:
    """A line per task and image, a shot per row of the experiment."""
    shown = range(min(experiment.form.count, int(experiment.figure.get("images", 1))))
    seed = experiment.form.seeds[0]

    def shot(task: str, index: int, label: str, method: str) -> Shot:
        record = records.get((label, task, index, seed))
        if record is None or "error" in record:
            return Shot(task, label, index, None)
        scored = method != "reference" and record.get("lpips") is not None and record.get("psnr") is not None
        caption = f"{record['psnr']:.2f} / {record['lpips']:.3f}" if scored else ""
        return Shot(task, label, index, store.picture(record, "restored"), caption)

    return [
        [shot(task.label, index, row.label, row.method) for row in experiment.rows]
        for task in experiment.tasks
        for index in shown
    ]


def path_strips(experiment: Experiment, records: Records, store: Store) -> list[Strip]:
    """x0_hat during the run of each row, followed by its spread sqrt(Sigma) if that was stored."""
    task, seed = experiment.tasks[0], experiment.form.seeds[0]
    index = int(experiment.figure.get("image", 0))
    strips: list[Strip] = []
    for row in experiment.rows:
        record = records.get((row.label, task.label, index, seed), {"key": f"of '{row.label}'"})
        picture = store.picture(record, "path")
        calls = tuple(f"call {n}, t = {t}" for n, t in zip(record.get("frame_calls", []), record.get("frames", [])))
        strips.append(Strip(row.label, picture, calls))
        if "spread" in record["pictures"]:
            strips.append(Strip(f"{row.label}: spread", store.picture(record, "spread"), ("",) * len(calls)))
    return strips


def sweep_curves(experiment: Experiment, records: Records) -> dict[str, list[Curve]]:
    """By number: a curve per method and set of plug-ins."""
    numbers, task = Numbers(experiment, records), experiment.tasks[0].label
    points: dict[str, list[tuple[int, str]]] = {}
    for row in experiment.rows:
        name = row.label.partition(", T = ")[0]
        points.setdefault(name, []).append((row.steps or experiment.form.steps, row.label))

    def curve(name: str, metric: str) -> Curve:
        found = [(count, numbers.per_image(label, task, metric)) for count, label in sorted(points[name])]
        found = [(count, values) for count, values in found if values]
        return Curve(
            name,
            tuple(count for count, _ in found),
            tuple(float(np.mean(list(values.values()))) for _, values in found),
        )

    return {metric: [curve(name, metric) for name in points] for metric in metrics_of(experiment)}


def bar_groups(experiment: Experiment, records: Records) -> dict[str, list[Bar]]:
    """By number: a bar per row and task that has any value."""
    numbers = Numbers(experiment, records)

    def bars(metric: str) -> list[Bar]:
        found: list[Bar] = []
        for row in experiment.rows:
            for task in experiment.tasks:
                values = list(numbers.per_image(row.label, task.label, metric).values())
                if values:
                    found.append(Bar(row.label, task.label, float(np.mean(values)), *interval_of_mean(values)))
        return found

    return {metric: bars(metric) for metric in metrics_of(experiment)}


def uncertainty_bands(experiment: Experiment, records: Records) -> dict[str, tuple[list[Band], list[Band]]]:
    """By task: the bands of U_t and those of the jumps (grid steps), one per row."""
    found: dict[str, tuple[list[Band], list[Band]]] = {}
    for task in experiment.tasks:
        levels: list[Band] = []
        jumps: list[Band] = []
        for row in experiment.rows:
            places = sorted(place for place in records if place[:2] == (row.label, task.label))
            traces = [records[place]["trace"] for place in places if "trace" in records[place]]
            levels.append(_band(row.label, traces, 2))
            jumps.append(_band(row.label, traces, 1))
        found[task.label] = (levels, jumps)
    return found


def _band(row: str, traces: list[list[list[Any]]], entry: int) -> Band:
    """entry: 1 for the jump, 2 for U in the visits [t, jump, U] of a trace."""
    found: dict[int, list[float]] = {}
    for trace in traces:
        for visit in trace:
            if visit[entry] is not None:
                found.setdefault(int(visit[0]), []).append(float(visit[entry]))
    times = sorted(found, reverse=True)
    return Band(
        row,
        tuple(times),
        tuple(float(np.mean(found[t])) for t in times),
        tuple(min(found[t]) for t in times),
        tuple(max(found[t]) for t in times),
    )


def metrics_of(experiment: Experiment) -> list[str]:
    """The numbers that the experiment's figure shows, a panel each."""
    chosen = list(experiment.figure.get("metrics", DEFAULT))
    if not chosen:
        raise LeaderError(f"The figure of '{experiment.name}' names no number; leave 'metrics' out or fill it.")
    return chosen
