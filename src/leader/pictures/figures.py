"""Figures of a restoration: side by side, the trust map with its scale, the path of U_t and jumps.

Each function returns its figure, so a notebook can show it and a test can read its numbers.
"""

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leader.errors import LeaderError, UsageError
from leader.files import printable, replacing
from leader.result import Visit
from leader.trust import maps

FORMATS = (".png", ".pdf", ".svg", ".jpg")
HOLES = (1.0, 0.0, 1.0)
DRAWN = (".pdf", ".svg")
"""Formats of a map that matplotlib draws; pictures need none."""


def check_figure(path: Path) -> None:
    """Rejects, before any work is done, a figure that cannot be drawn."""
    if path.suffix.lower() not in FORMATS:
        raise UsageError(f"{printable(path)} ends in '{printable(path.suffix)}'; figures are written as {', '.join(FORMATS)}.")


def check_map(path: Path) -> None:
    """Rejects, before any work is done, a trust map that cannot be written."""
    if path.suffix.lower() not in (*FORMATS, ".npy"):
        raise UsageError(
            f"{printable(path)} ends in '{printable(path.suffix)}'; maps are figures or numbers, and figures are written as "
            f"{', '.join(FORMATS)}, numbers as .npy or .16.png, the faded picture as .fade.png."
        )


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


def _show_trust(figure: Any, axes: Any, spread: NDArray[np.float32], title: str) -> None:
    """The map on the scale of `leader.trust.maps`, the same for every picture."""
    from matplotlib.colors import LinearSegmentedColormap, LogNorm

    nodes = np.log([maps.FIRST, *maps.LEVELS, maps.LAST])
    places = (nodes - nodes[0]) / (nodes[-1] - nodes[0])
    colours = [tuple(value / 255 for value in colour) for colour in maps.COLOURS]
    drawn = axes.imshow(
        maps.reach(spread).clip(maps.FIRST, maps.LAST),
        cmap=LinearSegmentedColormap.from_list("trust", list(zip(places, colours))),
        norm=LogNorm(maps.FIRST, maps.LAST),
        interpolation="nearest",
    )
    axes.set_title(title)
    axes.set_axis_off()
    bar = figure.colorbar(drawn, ax=axes, shrink=0.8, label="grey levels of 255, nine times of ten")
    bar.set_ticks(list(maps.LEVELS), labels=[f"within {level}" for level in maps.LEVELS])
    bar.ax.minorticks_off()


def map_figure(spread: NDArray[np.float32]) -> Any:
    """The standard deviation [H, W] of a [0, 1] image as a coloured map with its scale."""
    height, width = spread.shape
    figure = _new(6.5, max(2.0, 5.2 * height / width))
    _show_trust(figure, figure.subplots(), spread, "uncertainty")
    return figure


def side_by_side_figure(
    pictures: Sequence[tuple[str, NDArray[np.float32]]], spread: NDArray[np.float32] | None = None, words: str = ""
) -> Any:
    """Titled pictures [H, W, C] in [0, 1] of any size side by side, the trust map last, `words` below."""
    count = len(pictures) + (spread is not None)
    height, width = pictures[-1][1].shape[:2]
    figure = _new(4.2 * count, max(2.0, 4.0 * height / width + 0.4))
    places = figure.subplots(1, count, squeeze=False)[0]
    for axes, (title, pixels) in zip(places, pictures):
        _show(axes, pixels, title)
    if spread is not None:
        _show_trust(figure, places[-1], spread, "uncertainty")
    if words:
        figure.supxlabel(textwrap.fill(words, 52 * count), fontsize="medium")
    return figure


def with_holes(pixels: NDArray[np.float32], known: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Pixels [H, W, C] in colour, with the pixels outside known [H, W] in a colour that is rare in pictures."""
    shown: NDArray[np.float32] = np.repeat(pixels, 3, axis=2) if pixels.shape[2] == 1 else pixels.copy()
    shown[~known] = HOLES
    return shown


def path_figure(visits: Sequence[Visit]) -> Any:
    """U_t and the jumps of one image over the times it visited."""
    figure = _new(6.5, 4.5)
    upper, lower = figure.subplots(2, 1, sharex=True)
    times = [visit.t for visit in visits]
    known = [(visit.t, visit.U) for visit in visits if visit.U is not None]
    if known:
        upper.semilogy(*zip(*known), marker=".", color="tab:purple")
    else:
        upper.text(0.5, 0.5, "no uncertainty was estimated", ha="center", transform=upper.transAxes)
    upper.set_ylabel("mean variance $U_t$")
    lower.step(times, [visit.jump for visit in visits], where="mid", color="tab:orange")
    lower.set_ylabel("jump (grid steps)")
    lower.set_xlabel("time $t$ (noise on the left, picture on the right)")
    lower.invert_xaxis()
    upper.set_title(f"{len(visits)} network steps")
    return figure


def draw_map(path: Path, spread: NDArray[np.float32], pixels: NDArray[np.float32] | None = None) -> None:
    """Writes the trust map [H, W] of a picture [H, W, C], which a faded picture needs; the suffix determines the format.

    .npy       numbers: standard deviations, of the range 0 to 1
    .16.png    the same in 16 bits: 65535 is 1
    .fade.png  the picture, faded where it is not supported
    otherwise  the map in colours, with its legend
    """
    check_map(path)
    name = path.name.lower()
    if name.endswith(DRAWN):
        _save(map_figure(spread), path)
        return
    with replacing(path) as temporary:
        if name.endswith(".npy"):
            with temporary.open("wb") as file:
                np.save(file, spread, allow_pickle=False)
            return
        if name.endswith(".16.png"):
            image = maps.numbers(spread)
        elif name.endswith(".fade.png"):
            if pixels is None:
                raise LeaderError("A faded picture needs the picture as well as its map.")
            image = maps.fade(pixels, spread)
        else:
            image = maps.heat(spread)
        image.save(temporary, format="JPEG" if name.endswith(".jpg") else "PNG")


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
