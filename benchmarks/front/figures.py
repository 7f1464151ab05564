"""The front as pictures: one panel a task, a measure against work or calls."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from points import HOSTS, TASKS
from scores import Mean, Record, means

MARKS = {"top": "o", "late": "^", "data": "s"}
MEASURES = {"psnr": "PSNR (dB)", "lpips": "LPIPS"}
AXES: dict[str, tuple[str, str, tuple[int, ...]]] = {
    "work": ("cost", "work (full-resolution passes)", (5, 10, 20, 40)),
    "calls": ("calls", "network calls", (10, 25, 50, 100)),
}
"""By name: the number of a Mean, its words and its ticks."""


def draw(
    rows: Sequence[Record], now: Sequence[Record], ours: Sequence[Record], indices: Sequence[int], folder: Path
) -> list[Path]:
    """front-psnr-work.png and so on: colour is the host, shape the start, hollow with plug-ins.

    now, ours  the papers' path, a star, and quality standard, a red diamond
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    colours = {host: plt.get_cmap("tab10")(i) for i, host in enumerate(HOSTS)}
    handles = [plt.Line2D([], [], marker="o", ls="", color=colours[host], label=host) for host in HOSTS]
    handles += [plt.Line2D([], [], marker=mark, ls="", color="grey", label=f"start: {kind}") for kind, mark in MARKS.items()]
    handles.append(plt.Line2D([], [], marker="*", ls="", ms=12, color="black", label="DDNM + LEADer, 100 uniform"))
    handles.append(plt.Line2D([], [], marker="x", ls="", color="black", label="DDNM, 100 uniform"))
    handles.append(plt.Line2D([], [], marker="D", ls="", ms=8, mfc="none", mec="red", mew=2, label="quality standard"))
    written = []
    for measure in MEASURES:
        for axis in AXES:
            figure, panels = plt.subplots(2, 3, figsize=(13, 7.5), constrained_layout=True)
            for panel, task in zip(panels.flat, TASKS):
                found = [m for m in means((r for r in rows if r["task"] == task), indices) if math.isfinite(m.score)]
                default = means((r for r in now if r["task"] == task), indices)
                mine = [r for r in ours if r["task"] == task and r["index"] in indices]
                _fill(panel, found, default, mine, measure, axis, colours)
                panel.set_title(TASKS[task].label, fontsize=10)
            figure.legend(handles=handles, loc="outside lower center", ncols=7, fontsize=8)
            path = folder / f"front-{measure}-{axis}.png"
            figure.savefig(path, dpi=90)
            plt.close(figure)
            written.append(path)
    return written


def _fill(
    panel: Any,
    found: Sequence[Mean],
    default: Sequence[Mean],
    ours: Sequence[Record],
    measure: str,
    axis: str,
    colours: dict[str, Any],
) -> None:
    """One task: every mean, the best that a work or a number of calls buys, the papers' path and ours."""
    number, words, ticks = AXES[axis]
    for mean in found:
        edge = colours[mean.first["method"]]
        mark, fill = MARKS[mean.first["start"].split()[0]], "none" if mean.first["plugins"] else edge
        panel.plot(getattr(mean, number), getattr(mean, measure), mark, ms=5, mfc=fill, mec=edge, alpha=0.8)
    _staircase(panel, found, measure, number, ticks[-1])
    for mean in default:
        mark = "*" if mean.first["plugins"] else "x"
        panel.plot(getattr(mean, number), getattr(mean, measure), mark, ms=9, color="black")
    places = [(fmean(r[number] for r in ours), fmean(r[measure] for r in ours))] if ours else []
    for place in places:
        panel.plot(*place, "D", ms=9, mfc="none", mec="red", mew=2)
    panel.set_xlabel(words, fontsize=8)
    panel.set_ylabel(MEASURES[measure], fontsize=8)
    panel.set_xscale("log")
    panel.grid(alpha=0.3)
    panel.set_xticks(list(ticks), [str(tick) for tick in ticks])
    panel.set_xticks([], minor=True)
    _limits(panel, [*(getattr(mean, measure) for mean in [*found, *default]), *(value for _, value in places)], measure)


def _staircase(panel: Any, found: Sequence[Mean], measure: str, number: str, end: float) -> None:
    """The best value that a work, or a number of calls, buys."""
    sign = -1 if measure == "lpips" else 1
    costs: list[float] = []
    values: list[float] = []
    for mean in sorted(found, key=lambda mean: float(getattr(mean, number))):
        value = getattr(mean, measure)
        if not values or sign * value > sign * values[-1]:
            costs.append(getattr(mean, number))
            values.append(value)
    if costs:
        panel.step([*costs, max(costs[-1], end)], [*values, values[-1]], where="post", color="grey", lw=1)


def _limits(panel: Any, values: Sequence[float], measure: str) -> None:
    """Leaves far outliers out of the picture: what matters is near the best."""
    if values:
        room = 3.0 if measure == "psnr" else 0.15
        low, high = (max(values) - room, max(values) + 0.2) if measure == "psnr" else (min(values) - 0.01, min(values) + room)
        panel.set_ylim(low, high)
