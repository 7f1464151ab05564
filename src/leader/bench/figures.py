"""Figures from records. [figure] in an experiment says which, by its `kind`.

grid         restored pictures: a line per task and image, a column per row; `images` limits the images
path         x0 along the way: a line per row of the experiment, and one for the spread sqrt(Sigma)
sweep        numbers against T: a panel per metric, a curve per method and set of plug-ins
bars         numbers per task: a panel per metric, a bar per row, with 95 % intervals of the mean
uncertainty  U_t and the jumps against t: a column per task, mean and range over images

The same records give the same bytes: no dates, fixed identifiers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from leader.bench.experiment import PLUGIN_LABELS, Experiment
from leader.bench.records import Record, Store
from leader.bench.statistics import COLUMNS, Numbers, bootstrap_interval
from leader.errors import LeaderError, unknown_name

Place = tuple[str, str, int, int]
COLOURS = ("#3b6fb6", "#e07b39", "#4c9a52", "#a34fa0", "#c0392b", "#7f8c8d", "#17a2a2", "#b8960c")
_STYLE = {
    "font.size": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.hashsalt": "leader",
    "svg.fonttype": "path",
    "figure.dpi": 150,
}


def draw_figure(experiment: Experiment, records: Mapping[Place, Record], store: Store, out: Path) -> None:
    """Writes the experiment's figure to `out` (.png or .svg)."""
    kind = experiment.figure.get("kind")
    if kind not in KINDS:
        raise unknown_name(f"kind of figure in '{experiment.name}'", str(kind), KINDS)
    if out.suffix not in (".png", ".svg"):
        raise LeaderError(f"A figure is written as .png or .svg; found '{out.name}'.")
    try:
        import matplotlib
    except ImportError:
        raise LeaderError("Figures need matplotlib; install it with: pip install 'leader-ir[figures]'.") from None
    matplotlib.use("Agg")
    with matplotlib.rc_context(_STYLE):
        figure = KINDS[kind](experiment, records, store)
        out.parent.mkdir(parents=True, exist_ok=True)
        blank = {"Date": None, "Creator": None} if out.suffix == ".svg" else {"Software": None}
        figure.savefig(out, metadata=blank)


def _grid(experiment: Experiment, records: Mapping[Place, Record], store: Store) -> Any:
    shown = range(min(experiment.form.count, int(experiment.figure.get("images", 1))))
    lines = [(task, index) for task in experiment.tasks for index in shown]
    figure, axes = _axes(len(lines), len(experiment.rows), 1.15, 1.3)
    seed = experiment.form.seeds[0]
    for i, (task, index) in enumerate(lines):
        for j, row in enumerate(experiment.rows):
            axis, record = axes[i][j], records.get((row.label, task.label, index, seed))
            _bare(axis)
            if record is None or "error" in record:
                axis.text(0.5, 0.5, "–", ha="center", va="center")
            else:
                axis.imshow(_pixels(store.picture(record, "restored")), interpolation="nearest")
                if row.method != "reference" and record.get("lpips") is not None:
                    axis.set_xlabel(f"{record['psnr']:.2f} / {record['lpips']:.3f}", fontsize=5.5, labelpad=2)
            if i == 0:
                axis.set_title(_broken(row.label), fontsize=6)
            if j == 0:
                axis.set_ylabel(_broken(task.label), fontsize=6)
    _tight(figure)
    return figure


def _path(experiment: Experiment, records: Mapping[Place, Record], store: Store) -> Any:
    task, seed = experiment.tasks[0], experiment.form.seeds[0]
    index = int(experiment.figure.get("image", 0))
    strips: list[tuple[str, NDArray[np.uint8], list[str]]] = []
    for row in experiment.rows:
        record = records[(row.label, task.label, index, seed)]
        calls = [f"call {number}, t = {t}" for number, t in zip(record["frame_calls"], record["frames"])]
        strips.append((row.label, _pixels(store.picture(record, "path")), calls))
        if "spread" in record["pictures"]:
            label = f"{row.label}: spread"
            strips.append((label, _pixels(store.picture(record, "spread")), [""] * len(calls)))
    width = max(len(calls) for _, _, calls in strips)
    figure, axes = _axes(len(strips), width, 1.15, 1.3)
    size = experiment.form.size
    for i, (label, strip, calls) in enumerate(strips):
        for j in range(width):
            _bare(axes[i][j])
            if j < len(calls):
                axes[i][j].imshow(strip[:, j * size : (j + 1) * size], interpolation="nearest")
                axes[i][j].set_xlabel(calls[j], fontsize=5.5, labelpad=2)
        axes[i][0].set_ylabel(_broken(label), fontsize=6)
    _tight(figure)
    return figure


def _sweep(experiment: Experiment, records: Mapping[Place, Record], store: Store) -> Any:
    numbers = Numbers(experiment, records)
    metrics, task = _metrics(experiment), experiment.tasks[0]
    curves: dict[str, list[tuple[int, str]]] = {}
    for row in experiment.rows:
        name = row.label.partition(", T = ")[0]
        curves.setdefault(name, []).append((row.steps or experiment.form.steps, row.label))
    figure, axes = _axes(1, len(metrics), 2.4, 2.2)
    for axis, metric in zip(axes[0], metrics):
        for colour, (name, points) in zip(COLOURS, curves.items()):
            found = [(count, numbers.per_image(label, task.label, metric)) for count, label in sorted(points)]
            found = [(count, values) for count, values in found if values]
            means = [float(np.mean(list(values.values()))) for _, values in found]
            style = "--" if any(name.endswith(label) for label in PLUGIN_LABELS.values()) else "-"
            axis.plot([count for count, _ in found], means, style, marker="o", ms=3, color=colour, label=name)
        axis.set(title=COLUMNS[metric].title, xlabel="T", xscale="log")
        ticks = sorted({count for points in curves.values() for count, _ in points})
        axis.set_xticks(ticks, [str(count) for count in ticks])
        axis.minorticks_off()
    figure.suptitle(task.label, fontsize=8)
    _tight(figure, axes[0][0])
    return figure


def _bars(experiment: Experiment, records: Mapping[Place, Record], store: Store) -> Any:
    numbers, metrics, tasks = Numbers(experiment, records), _metrics(experiment), experiment.tasks
    figure, axes = _axes(1, len(metrics), 2.6, 2.6)
    width = 0.8 / len(experiment.rows)
    for axis, metric in zip(axes[0], metrics):
        for position, (colour, row) in enumerate(zip(COLOURS, experiment.rows)):
            for place, task in enumerate(tasks):
                values = list(numbers.per_image(row.label, task.label, metric).values())
                if not values:
                    continue
                mean, (low, high) = float(np.mean(values)), bootstrap_interval(values)
                where = place + (position - (len(experiment.rows) - 1) / 2) * width
                label = row.label if place == 0 else None
                axis.bar(where, mean, width, color=colour, label=label)
                axis.errorbar(where, mean, [[mean - low], [high - mean]], color="black", lw=0.6, capsize=1.5)
        axis.set_title(COLUMNS[metric].title)
        axis.set_xticks(range(len(tasks)), [_broken(task.label) for task in tasks], rotation=60, fontsize=6)
    _tight(figure, axes[0][0])
    return figure


def _uncertainty(experiment: Experiment, records: Mapping[Place, Record], store: Store) -> Any:
    figure, axes = _axes(2, len(experiment.tasks), 2.3, 1.7)
    for column, task in enumerate(experiment.tasks):
        for colour, row in zip(COLOURS, experiment.rows):
            traces = [
                r["trace"] for place, r in sorted(records.items()) if place[:2] == (row.label, task.label) and "trace" in r
            ]
            for line, field in ((0, 2), (1, 1)):
                times, middle, low, high = _over_time(traces, field)
                axes[line][column].plot(times, middle, color=colour, lw=1, label=row.label)
                axes[line][column].fill_between(times, low, high, color=colour, alpha=0.2, lw=0)
        axes[0][column].set(title=_broken(task.label), yscale="log")
        axes[1][column].set_xlabel("t")
        for line in (0, 1):
            axes[line][column].invert_xaxis()
    axes[0][0].set_ylabel("$U_t$")
    axes[1][0].set_ylabel("jump (grid steps)")
    _tight(figure, axes[0][0])
    return figure


def _over_time(traces: list[list[list[Any]]], field: int) -> tuple[list[int], list[float], list[float], list[float]]:
    """Times in visiting order with the mean, smallest and largest value over the images that visited them."""
    found: dict[int, list[float]] = {}
    for trace in traces:
        for visit in trace:
            if visit[field] is not None:
                found.setdefault(int(visit[0]), []).append(float(visit[field]))
    times = sorted(found, reverse=True)
    return (
        times,
        [float(np.mean(found[t])) for t in times],
        [min(found[t]) for t in times],
        [max(found[t]) for t in times],
    )


def _metrics(experiment: Experiment) -> list[str]:
    chosen = list(experiment.figure.get("metrics", ("psnr", "lpips", "calls", "work")))
    for name in chosen:
        if name not in COLUMNS:
            raise unknown_name("number of a figure", name, COLUMNS)
    return chosen


def _axes(lines: int, columns: int, width: float, height: float) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * columns + 0.4, height * lines + 0.4))
    return figure, figure.subplots(lines, columns, squeeze=False)


def _tight(figure: Any, explained: Any = None) -> None:
    """Close the gaps; the legend of the axis `explained`, if any, goes below everything, where it hides nothing."""
    bottom = 0.0
    if explained is not None:
        handles, labels = explained.get_legend_handles_labels()
        figure.legend(handles, labels, loc="lower center", ncols=len(labels), fontsize=6, frameon=False)
        bottom = 0.2 / figure.get_figheight()
    figure.tight_layout(pad=0.4, h_pad=0.4, w_pad=0.3, rect=(0, bottom, 1, 1))


def _bare(axis: Any) -> None:
    axis.set_xticks([])
    axis.set_yticks([])
    for side in axis.spines.values():
        side.set_visible(False)


def _broken(label: str) -> str:
    """A label over several lines."""
    return label.replace(" + ", "\n+ ").replace(", σ", "\nσ").replace(" deblurring", "\ndeblurring")


def _pixels(path: Path) -> NDArray[np.uint8]:
    with Image.open(path) as file:
        return np.array(file.convert("RGB"), dtype=np.uint8)


KINDS: dict[str, Callable[[Experiment, Mapping[Place, Record], Store], Any]] = {
    "grid": _grid,
    "path": _path,
    "sweep": _sweep,
    "bars": _bars,
    "uncertainty": _uncertainty,
}
