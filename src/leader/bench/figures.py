"""Figures from records. [figure] in an experiment says which, by its `kind`.

grid         restored pictures: a line per task and image, a column per row; `images` limits the images
path         x0 during the run: a line per row of the experiment, and one for the spread sqrt(Sigma)
sweep        numbers against T: a panel per metric, a curve per method and set of plug-ins
bars         numbers per task: a panel per metric, a bar per row, with 95 % intervals of the mean from 5 images on
uncertainty  U_t and the jumps against t: a column per task, mean and range over images

panels.py prepares the content. The same records give the same bytes: no dates, fixed identifiers.
"""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from leader.bench.columns import COLUMNS
from leader.bench.experiment import Experiment
from leader.bench.panels import Records, bar_groups, grid_shots, path_strips, sweep_curves, uncertainty_bands
from leader.bench.records import Store, write_atomically
from leader.errors import LeaderError, unknown_name
from leader.plugins import BUNDLES, PLUGINS, label_plugin

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
    """Writes the experiment's figure to `out`, a .png, .jpg or .svg file."""
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
    """The experiment's figure, as matplotlib's."""
    kind = experiment.figure.get("kind")
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
    lines = grid_shots(experiment, records, store)
    figure, axes = _axes(len(lines), len(experiment.rows), 1.15, 1.3)
    for i, line in enumerate(lines):
        for j, shot in enumerate(line):
            axis = axes[i][j]
            _bare(axis)
            if shot.picture is None:
                axis.text(0.5, 0.5, "–", ha="center", va="center")
            else:
                axis.imshow(_pixels(shot.picture), interpolation="nearest")
                if shot.caption:
                    axis.set_xlabel(shot.caption, fontsize=5.5, labelpad=2)
            if i == 0:
                axis.set_title(_broken(shot.row), fontsize=6)
            if j == 0:
                axis.set_ylabel(_broken(shot.task), fontsize=6)
    _tight(figure)
    return figure


def _path(experiment: Experiment, records: Records, store: Store) -> Any:
    strips = path_strips(experiment, records, store)
    width = max(1, *(len(strip.captions) for strip in strips))
    figure, axes = _axes(len(strips), width, 1.15, 1.3)
    size = experiment.form.size
    for i, strip in enumerate(strips):
        pixels = _pixels(strip.picture)
        for j in range(width):
            _bare(axes[i][j])
            if j < len(strip.captions):
                axes[i][j].imshow(pixels[:, j * size : (j + 1) * size], interpolation="nearest")
                axes[i][j].set_xlabel(strip.captions[j], fontsize=5.5, labelpad=2)
        axes[i][0].set_ylabel(_broken(strip.label), fontsize=6)
    _tight(figure)
    return figure


def _sweep(experiment: Experiment, records: Records, store: Store) -> Any:
    panels = sweep_curves(experiment, records)
    figure, axes = _axes(1, len(panels), 2.4, 2.2)
    ticks = sorted({row.steps or experiment.form.steps for row in experiment.rows})
    for axis, (metric, curves) in zip(axes[0], panels.items()):
        for colour, curve in zip(itertools.cycle(COLOURS), curves):
            style = "--" if any(curve.name.endswith(label) for label in map(label_plugin, (*BUNDLES, *PLUGINS))) else "-"
            axis.plot(curve.steps, curve.means, style, marker="o", ms=3, color=colour, label=curve.name)
        axis.set(title=COLUMNS[metric].title, xlabel="T", xscale="log")
        axis.set_xticks(ticks, [str(count) for count in ticks])
        axis.minorticks_off()
    figure.suptitle(experiment.tasks[0].label, fontsize=8)
    _tight(figure, axes[0][0])
    return figure


def _bars(experiment: Experiment, records: Records, store: Store) -> Any:
    panels = bar_groups(experiment, records)
    figure, axes = _axes(1, len(panels), 2.6, 2.6)
    width = 0.8 / len(experiment.rows)
    rows, tasks = [row.label for row in experiment.rows], [task.label for task in experiment.tasks]
    for axis, (metric, bars) in zip(axes[0], panels.items()):
        for bar in bars:
            position, place = rows.index(bar.row), tasks.index(bar.task)
            where = place + (position - (len(rows) - 1) / 2) * width
            axis.bar(where, bar.mean, width, color=COLOURS[position % len(COLOURS)], label=bar.row if place == 0 else None)
            if bar.low is not None and bar.high is not None:
                spread = [[bar.mean - bar.low], [bar.high - bar.mean]]
                axis.errorbar(where, bar.mean, spread, color="black", lw=0.6, capsize=1.5)
        axis.set_title(COLUMNS[metric].title)
        axis.set_xticks(range(len(tasks)), [_broken(label) for label in tasks], rotation=60, fontsize=6)
    _tight(figure, axes[0][0])
    return figure


def _uncertainty(experiment: Experiment, records: Records, store: Store) -> Any:
    panels = uncertainty_bands(experiment, records)
    figure, axes = _axes(2, len(panels), 2.3, 1.7)
    for column, (task, lines) in enumerate(panels.items()):
        for axis, bands in zip((axes[0][column], axes[1][column]), lines):
            for colour, band in zip(itertools.cycle(COLOURS), bands):
                axis.plot(band.times, band.mean, color=colour, lw=1, label=band.row)
                axis.fill_between(band.times, band.low, band.high, color=colour, alpha=0.2, lw=0)
        axes[0][column].set(title=_broken(task), yscale="log")
        axes[1][column].set_xlabel("t")
        for line in (0, 1):
            axes[line][column].invert_xaxis()
    axes[0][0].set_ylabel("$U_t$")
    axes[1][0].set_ylabel("jump (grid steps)")
    _tight(figure, axes[0][0])
    return figure


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
    """A label over several lines."""
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
