"""Figures of a restoration: side by side, the uncertainty map with its scale, the path of U_t and jumps.

Each is made by a function that returns it, so that a notebook can show it and a test can read the numbers it draws.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leader.errors import LeaderError, UsageError
from leader.files import printable, replacing
from leader.result import Visit

FORMATS = (".png", ".pdf", ".svg", ".jpg")


def check_figure(path: Path) -> None:
    """Refuses, before any work is done, a figure that could not be drawn."""
    if path.suffix.lower() not in FORMATS:
        raise UsageError(f"{printable(path)} ends in '{printable(path.suffix)}'; figures are written as {', '.join(FORMATS)}.")
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise LeaderError("Figures need matplotlib; install it with: pip install '.[figures]'.") from error


def _new(width: float, height: float) -> Any:
    from matplotlib.figure import Figure  # without pyplot: no window, no global state

    return Figure(figsize=(width, height), layout="constrained")


def _save(figure: Any, path: Path) -> None:
    with replacing(path) as temporary:
        figure.savefig(temporary, dpi=150)


def _show(axes: Any, pixels: NDArray[np.float32], title: str) -> None:
    grey = pixels.ndim == 3 and pixels.shape[2] == 1
    axes.imshow(
        np.clip(pixels[..., 0] if grey else pixels, 0, 1),
        cmap="gray",
        vmin=0,
        vmax=1,
        interpolation="nearest",
    )
    axes.set_title(title)
    axes.set_axis_off()


def _show_uncertainty(figure: Any, axes: Any, spread: NDArray[np.float32], title: str) -> None:
    drawn = axes.imshow(spread, cmap="magma", vmin=0, vmax=_upper(spread), interpolation="nearest")
    axes.set_title(title)
    axes.set_axis_off()
    figure.colorbar(drawn, ax=axes, shrink=0.8, label="standard deviation, of the range 0 to 1")


def _upper(spread: NDArray[np.float32]) -> float:
    """The end of the colour scale: nearly the largest value, so that a few pixels do not darken the rest."""
    return max(float(np.quantile(spread, 0.995)), 1e-6)


def map_figure(spread: NDArray[np.float32]) -> Any:
    """The uncertainty [H, W] of a [0, 1] image as a coloured map with its scale."""
    height, width = spread.shape
    figure = _new(6.5, max(2.0, 5.2 * height / width))
    _show_uncertainty(figure, figure.subplots(), spread, "uncertainty")
    return figure


def side_by_side_figure(
    pictures: Sequence[tuple[str, NDArray[np.float32]]], spread: NDArray[np.float32] | None = None, words: str = ""
) -> Any:
    """Titled pictures [H, W, C] in [0, 1] of any size beside each other, the uncertainty map last, `words` below."""
    count = len(pictures) + (spread is not None)
    height, width = pictures[-1][1].shape[:2]
    figure = _new(4.2 * count, max(2.0, 4.0 * height / width + 0.4))
    places = figure.subplots(1, count, squeeze=False)[0]
    for axes, (title, pixels) in zip(places, pictures):
        _show(axes, pixels, title)
    if spread is not None:
        _show_uncertainty(figure, places[-1], spread, "uncertainty")
    if words:
        figure.supxlabel(textwrap.fill(words, 52 * count), fontsize="medium")
    return figure


def path_figure(visits: Sequence[Visit]) -> Any:
    """U_t and the jumps of one image over the times it visited."""
    figure = _new(6.5, 4.5)
    upper, lower = figure.subplots(2, 1, sharex=True)
    times = [visit.t for visit in visits]
    if all(visit.U is not None for visit in visits):
        upper.semilogy(times, [visit.U for visit in visits], marker=".", color="tab:purple")
    else:
        upper.text(0.5, 0.5, "no uncertainty was estimated", ha="center", transform=upper.transAxes)
    upper.set_ylabel("mean variance $U_t$")
    lower.step(times, [visit.jump for visit in visits], where="mid", color="tab:orange")
    lower.set_ylabel("jump (grid steps)")
    lower.set_xlabel("time $t$ (noise on the left, picture on the right)")
    lower.invert_xaxis()
    upper.set_title(f"{len(visits)} network steps")
    return figure


def draw_map(path: Path, spread: NDArray[np.float32]) -> None:
    """Writes `map_figure`."""
    check_figure(path)
    _save(map_figure(spread), path)


def draw_side_by_side(
    path: Path,
    pictures: Sequence[tuple[str, NDArray[np.float32]]],
    spread: NDArray[np.float32] | None = None,
    words: str = "",
) -> None:
    """Writes `side_by_side_figure`."""
    check_figure(path)
    _save(side_by_side_figure(pictures, spread, words), path)


def draw_path(path: Path, visits: Sequence[Visit]) -> None:
    """Writes `path_figure`."""
    check_figure(path)
    _save(path_figure(visits), path)
