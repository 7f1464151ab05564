"""Overlapping square windows of a picture, half a side apart: which are known, how much of them is clipped, their DCT."""

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from leader.forensics.constants import read_constants
from leader.forensics.jpeg.blocks import PATH, Array, Flags
from leader.transforms import dct_matrix

_CONSTANTS = read_constants("noise.windows")
SATURATED = _CONSTANTS.number("saturated")


def view_windows(pixels: Array, known: Flags | None, side: int) -> tuple[NDArray[np.float64], Flags]:
    """Windows [R, X, C, n, n] of pixels [H, W, C], and which of them are known as a whole."""
    windows = sliding_window_view(pixels, (side, side), axis=(0, 1))[:: side // 2, :: side // 2]
    if known is None:
        return windows, np.ones(windows.shape[:2], bool)
    return windows, np.asarray(sliding_window_view(known, (side, side))[:: side // 2, :: side // 2].all(axis=(2, 3)))


def transform_windows(pixels: Array, axes: Array, side: int) -> Array:
    """The DCT [A, R, X, n, n] of the windows of pixels [H, W, C] along axes [A, C] of colour."""
    planes = np.einsum("ac,hwc->ahw", axes, pixels)
    windows = sliding_window_view(planes, (side, side), axis=(1, 2))[:, :: side // 2, :: side // 2]
    dct = dct_matrix(side)
    found: Array = np.einsum("ki,arxij,lj->arxkl", dct, windows, dct, optimize=PATH)
    return found


def share_clipped(pixels: Array, side: int, step: int) -> Array:
    """The largest share of pixels at black or white in any channel of windows [R, X] of pixels [H, W, C], a step apart."""
    clipped = sum_windows((pixels <= 0) | (pixels >= 1), side, side)[::step, ::step]
    share: Array = clipped.max(-1) / side**2
    return share


def sum_windows(values: NDArray[Any], height: int, width: int) -> NDArray[Any]:
    """Sums over all windows of height x width of values [H, W, ...], from running totals."""
    totals = np.pad(values.cumsum(0).cumsum(1), ((1, 0), (1, 0), *[(0, 0)] * (values.ndim - 2)))
    sums: NDArray[Any] = (
        totals[height:, width:] - totals[:-height, width:] - totals[height:, :-width] + totals[:-height, :-width]
    )
    return sums


def find_unsaturated(share: Array, least: float = 0.1, instead: float = 0.5) -> Flags:
    """Which patches have a small share of pixels at black or white; if fewer than `least` of them do, the best `instead`.

    Choosing fewer than half would select patches that happen to have little noise: the best tenth reads 7 % too little at
    75 / 255, the better half 2 %.
    """
    few = float(np.quantile(share, least)) > SATURATED
    return np.asarray(share <= (float(np.quantile(share, instead)) if few else SATURATED))
