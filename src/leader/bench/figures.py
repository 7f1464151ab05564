"""Figures from records. [figure] in an experiment says which, by its `kind`.

grid         restored pictures: a line per task and image, a column per row; `images` limits the images
path         x0 during the run: a line per row of the experiment, and one for the spread sqrt(Sigma)
sweep        numbers against T: a panel per metric, a curve per method and set of plug-ins
bars         numbers per task: a panel per metric, a bar per row, with 95 % intervals of the mean from 5 images on
uncertainty  U_t and the jumps against t: a column per task, mean and range over images

The same records give the same bytes: no dates, fixed identifiers.
"""

import io
import itertools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from leader.bench.cell import Place
from leader.bench.columns import COLUMNS
from leader.bench.experiment import Experiment
from leader.bench.records import Record, Store, write_atomically
from leader.bench.statistics import Numbers, interval_of_mean
from leader.errors import LeaderError, unknown_name
from leader.plugins import BUNDLES, PLUGINS, label_plugin

Records = Mapping[Place, Record]
COLOURS = ("#3b6fb6", "#e07b39", "#4c9a52", "#a34fa0", "#c0392b", "#7f8c8d", "#17a2a2", "#b8960c")
_STYLE = {
    "font.size": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.hashsalt": "leader",
    "svg.fonttype": "path",
    "figure.dpi": 150,
}

BLANK: dict[str, dict[str, None]] = {".png": {"Software": None}, ".jpg": {}, ".svg": {"Date": None, "Creator": None}}
"""The formats of a figure, and the metadata to blank in each because it changes from day to day."""


def draw_figure(experiment: Experiment, records: Records, store: Store, out: Path) -> None:
    save_figure(lambda: make_figure(experiment, records, store), out)


def save_figure(make: Callable[[], Any], out: Path) -> None:
    """Makes a matplotlib figure in the common style and writes it, without dates, to a .png, .jpg or .svg file."""
    if out.suffix not in BLANK:
        raise LeaderError(f"A figure is written as {', '.join(BLANK)}; found '{out.name}'.")
    buffer = io.BytesIO()
    with drawing():
        jpeg = {"pil_kwargs": {"quality": 75, "optimize": True, "progressive": True}}
        make().savefig(buffer, format=out.suffix[1:], **(jpeg if out.suffix == ".jpg" else {"metadata": BLANK[out.suffix]}))
    write_atomically(out, buffer.getvalue())


def make_figure(experiment: Experiment, records: Records, store: Store) -> Any:
    kind = experiment.figure.kind
    if kind not in KINDS:
        raise unknown_name(f"kind of figure in '{experiment.name}'", str(kind), KINDS)
    return KINDS[kind](experiment, records, store)


@contextmanager
def drawing() -> Iterator[None]:
    """matplotlib without a display, in the common style."""
    try:
        import matplotlib
    except ImportError:
        raise LeaderError("Figures need matplotlib; install it with: pip install 'leader-ir[figures]'.") from None
    matplotlib.use("Agg")
    with matplotlib.rc_context(_STYLE):
        yield


def _grid(experiment: Experiment, records: Records, store: Store) -> Any:
    shown = range(min(experiment.form.count, experiment.figure.images))
    lines = [(task.label, index) for task in experiment.tasks for index in shown]
    figure, axes = _axes(len(lines), len(experiment.rows), 1.15, 1.3)
    for i, (task, index) in enumerate(lines):
        axes[i][0].set_ylabel(_broken(task), fontsize=6)
        for axis, row in zip(axes[i], experiment.rows):
            _bare(axis)
            record = records.get((row.label, task, index, experiment.form.seeds[0]), {"error": "missing"})
            if "error" in record:
                axis.text(0.5, 0.5, "–", ha="center", va="center")
                continue
            axis.imshow(_pixels(store.picture(record, "restored")), interpolation="nearest")
            if row.method != "reference" and record.get("lpips") is not None and record.get("psnr") is not None:
                axis.set_xlabel(f"{record['psnr']:.2f} / {record['lpips']:.3f}", fontsize=5.5, labelpad=2)
    for axis, row in zip(axes[0], experiment.rows):
        axis.set_title(_broken(row.label), fontsize=6)
    _tight(figure)
    return figure


def _path(experiment: Experiment, records: Records, store: Store) -> Any:
    """x0_hat during the run of each row, followed by its spread sqrt(Sigma) if that was stored."""
    place = experiment.tasks[0].label, experiment.figure.image, experiment.form.seeds[0]
    strips: list[tuple[str, Path, list[str]]] = []
    for row in experiment.rows:
        record = records.get((row.label, *place), {"key": f"of '{row.label}'"})
        calls = [f"call {n}, t = {t}" for n, t in zip(record.get("frame_calls", []), record.get("frames", []))]
        strips.append((row.label, store.picture(record, "path"), calls))
        if "spread" in record["pictures"]:
            strips.append((f"{row.label}: spread", store.picture(record, "spread"), [""] * len(calls)))
    width, size = max(1, *(len(captions) for _, _, captions in strips)), experiment.form.size
    figure, axes = _axes(len(strips), width, 1.15, 1.3)
    for line, (label, picture, captions) in zip(axes, strips):
        pixels = _pixels(picture)
        for axis in line:
            _bare(axis)
        for j, (axis, caption) in enumerate(zip(line, captions)):
            axis.imshow(pixels[:, j * size : (j + 1) * size], interpolation="nearest")
            axis.set_xlabel(caption, fontsize=5.5, labelpad=2)
        line[0].set_ylabel(_broken(label), fontsize=6)
    _tight(figure)
    return figure


def _sweep(experiment: Experiment, records: Records, store: Store) -> Any:
    numbers, task, metrics = Numbers(experiment, records), experiment.tasks[0].label, _metrics_of(experiment)
    figure, axes = _axes(1, len(metrics), 2.4, 2.2)
    curves: dict[str, list[tuple[int, str]]] = {}
    for row in experiment.rows:
        curves.setdefault(row.label.partition(", T = ")[0], []).append((row.steps or experiment.form.steps, row.label))
    ticks = sorted({count for points in curves.values() for count, _ in points})
    plugged = tuple(map(label_plugin, (*BUNDLES, *PLUGINS)))
    for axis, metric in zip(axes[0], metrics):
        for colour, (name, points) in zip(itertools.cycle(COLOURS), curves.items()):
            found = [(count, numbers.summary(label, task, metric)) for count, label in sorted(points)]
            means = {count: summary.mean for count, summary in found if summary is not None}
            style = "--" if name.endswith(plugged) else "-"
            axis.plot(list(means), list(means.values()), style, marker="o", ms=3, color=colour, label=name)
        axis.set(title=COLUMNS[metric].title, xlabel="T", xscale="log")
        axis.set_xticks(ticks, [str(count) for count in ticks])
        axis.minorticks_off()
    figure.suptitle(task, fontsize=8)
    _tight(figure, axes[0][0])
    return figure


def _bars(experiment: Experiment, records: Records, store: Store) -> Any:
    numbers, metrics = Numbers(experiment, records), _metrics_of(experiment)
    figure, axes = _axes(1, len(metrics), 2.6, 2.6)
    width = 0.8 / len(experiment.rows)
    for axis, metric in zip(axes[0], metrics):
        for (position, row), (place, task) in itertools.product(enumerate(experiment.rows), enumerate(experiment.tasks)):
            values = list(numbers.per_image(row.label, task.label, metric).values())
            if not values:
                continue
            where, mean = place + (position - (len(experiment.rows) - 1) / 2) * width, float(np.mean(values))
            axis.bar(where, mean, width, color=COLOURS[position % len(COLOURS)], label=row.label if place == 0 else None)
            if interval := interval_of_mean(values):
                spread = [[mean - interval[0]], [interval[1] - mean]]
                axis.errorbar(where, mean, spread, color="black", lw=0.6, capsize=1.5)
        axis.set_title(COLUMNS[metric].title)
        labels = [_broken(task.label) for task in experiment.tasks]
        axis.set_xticks(range(len(labels)), labels, rotation=60, fontsize=6)
    _tight(figure, axes[0][0])
    return figure


def _uncertainty(experiment: Experiment, records: Records, store: Store) -> Any:
    figure, axes = _axes(2, len(experiment.tasks), 2.3, 1.7)
    for column, task in enumerate(experiment.tasks):
        for colour, row in zip(itertools.cycle(COLOURS), experiment.rows):
            places = sorted(place for place in records if place[:2] == (row.label, task.label))
            traces = [records[place]["trace"] for place in places if "trace" in records[place]]
            for axis, entry in zip((axes[0][column], axes[1][column]), (2, 1)):
                _draw_band(axis, traces, entry, colour, row.label)
        axes[0][column].set(title=_broken(task.label), yscale="log")
        axes[1][column].set_xlabel("t")
        for line in (0, 1):
            axes[line][column].invert_xaxis()
    axes[0][0].set_ylabel("$U_t$")
    axes[1][0].set_ylabel("jump (grid steps)")
    _tight(figure, axes[0][0])
    return figure


def _draw_band(axis: Any, traces: list[list[list[Any]]], entry: int, colour: str, row: str) -> None:
    """A value along t, its mean, smallest and largest over the images that visited t.

    entry: 1 for the jump, 2 for U in the visits [t, jump, U] of a trace
    """
    found: dict[int, list[float]] = {}
    for visit in itertools.chain(*traces):
        if visit[entry] is not None:
            found.setdefault(int(visit[0]), []).append(float(visit[entry]))
    times = sorted(found, reverse=True)
    axis.plot(times, [float(np.mean(found[t])) for t in times], color=colour, lw=1, label=row)
    axis.fill_between(times, [min(found[t]) for t in times], [max(found[t]) for t in times], color=colour, alpha=0.2, lw=0)


def _metrics_of(experiment: Experiment) -> tuple[str, ...]:
    if not experiment.figure.metrics:
        raise LeaderError(f"The figure of '{experiment.name}' names no number; leave 'metrics' out or fill it.")
    return experiment.figure.metrics


def _axes(lines: int, columns: int, width: float, height: float) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * columns + 0.4, height * lines + 0.4))
    return figure, figure.subplots(lines, columns, squeeze=False)


def _tight(figure: Any, explained: Any = None) -> None:
    """Tightens the layout; the legend of the axis `explained`, if any, goes below everything, where it covers nothing."""
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
    return label.replace(" + ", "\n+ ").replace(", σ", "\nσ").replace(" deblurring", "\ndeblurring")


def _pixels(path: Path) -> NDArray[np.uint8]:
    with Image.open(path, formats=("PNG",)) as file:  # records hold nothing else
        return np.array(file.convert("RGB"), dtype=np.uint8)


KINDS: dict[str, Callable[[Experiment, Records, Store], Any]] = {
    "grid": _grid,
    "path": _path,
    "sweep": _sweep,
    "bars": _bars,
    "uncertainty": _uncertainty,
}
