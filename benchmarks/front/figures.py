"""The front as a picture: one panel a task, a measure against work."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from points import HOSTS, TASKS
from scores import Mean, Record, means

MARKS = {"top": "o", "late": "^", "data": "s"}
MEASURES = {"psnr": "PSNR (dB)", "lpips": "LPIPS"}


def draw(rows: Sequence[Record], now: Sequence[Record], indices: Sequence[int], folder: Path) -> list[Path]:
    """front-psnr.png and front-lpips.png: colour is the host, shape the start; the star is today's default."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    colours = {host: plt.get_cmap("tab10")(i) for i, host in enumerate(HOSTS)}
    written = []
    for measure, label in MEASURES.items():
        figure, panels = plt.subplots(2, 3, figsize=(13, 7.5), constrained_layout=True)
        for panel, task in zip(panels.flat, TASKS):
            found = [m for m in means((r for r in rows if r["task"] == task), indices) if math.isfinite(m.score)]
            for mean in found:
                shape = MARKS[mean.first["start"].split()[0]]
                fill = "none" if mean.first["plugins"] else colours[mean.first["method"]]
                panel.plot(
                    mean.cost, getattr(mean, measure), shape, ms=5, mfc=fill, mec=colours[mean.first["method"]], alpha=0.8
                )
            _staircase(panel, found, measure)
            default = means((r for r in now if r["task"] == task), indices)
            for mean in default:
                panel.plot(mean.cost, getattr(mean, measure), "*" if mean.first["plugins"] else "x", ms=9, color="black")
            panel.set_title(TASKS[task].label, fontsize=10)
            panel.set_xlabel("work (full-resolution passes)", fontsize=8)
            panel.set_ylabel(label, fontsize=8)
            panel.set_xscale("log")
            panel.grid(alpha=0.3)
            panel.set_xticks([5, 10, 20, 40], ["5", "10", "20", "40"])
            panel.set_xticks([], minor=True)
            _limits(panel, [getattr(mean, measure) for mean in [*found, *default]], measure)
        handles = [plt.Line2D([], [], marker="o", ls="", color=colours[host], label=host) for host in HOSTS]
        handles += [
            plt.Line2D([], [], marker=mark, ls="", color="grey", label=f"start: {kind}") for kind, mark in MARKS.items()
        ]
        handles.append(plt.Line2D([], [], marker="*", ls="", ms=12, color="black", label="DDNM + LEADer, 100 uniform"))
        handles.append(plt.Line2D([], [], marker="x", ls="", color="black", label="DDNM, 100 uniform"))
        figure.legend(handles=handles, loc="outside lower center", ncols=7, fontsize=8)
        path = folder / f"front-{measure}.png"
        figure.savefig(path, dpi=110)
        plt.close(figure)
        written.append(path)
    return written


def _staircase(panel: Any, found: Sequence[Mean], measure: str) -> None:
    """The best value that a work buys."""
    sign = -1 if measure == "lpips" else 1
    costs: list[float] = []
    values: list[float] = []
    for mean in sorted(found, key=lambda mean: mean.cost):
        value = getattr(mean, measure)
        if not values or sign * value > sign * values[-1]:
            costs.append(mean.cost)
            values.append(value)
    if costs:
        panel.step([*costs, max(costs[-1], 42)], [*values, values[-1]], where="post", color="grey", lw=1)


def _limits(panel: Any, values: Sequence[float], measure: str) -> None:
    """Leaves far outliers out of the picture: what matters is near the best."""
    if values:
        room = 3.0 if measure == "psnr" else 0.15
        low, high = (max(values) - room, max(values) + 0.2) if measure == "psnr" else (min(values) - 0.01, min(values) + room)
        panel.set_ylim(low, high)
