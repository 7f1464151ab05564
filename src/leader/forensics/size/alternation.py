"""What the lines of a thumbnail tell of its kernel where the factor is no whole number: at 1.5, for one, they alternate.

From line to line the weights of a kernel change, and repeat. To a smooth picture that adds its gradient times the change of the
weights' first moment and half its curvature times that of the second; every kernel adds something else, known exactly. It is
looked for in the fourth differences, in which smooth pictures are weak.
"""

from functools import lru_cache

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from leader.forensics.size.kernel_features import ROUNDING
from leader.operators.pillow_resize import pillow_matrix

Array = NDArray[np.float64]

NEAR = 5
"""Pixels, along each side, of the surroundings that tell how strong the fourth differences of a picture itself are."""


def compare_alternations(
    plane: Array, factor: float, size: tuple[int, int], starts: tuple[int, int], kernels: tuple[str, ...]
) -> Array:
    """[kernels]: by how much each explains a pixel better than no alternation does; mean log-likelihoods.

    size, starts  rows and columns of the whole thumbnail, and the first ones of its part `plane`
    """
    along = [_compare(lines, factor, length, start, kernels) for lines, length, start in zip((plane, plane.T), size, starts)]
    return np.asarray(np.concatenate(along, axis=1).mean(1))


def _compare(lines: Array, factor: float, length: int, start: int, kernels: tuple[str, ...]) -> Array:
    """[kernels, pixels]: the same for every pixel, along the first axis."""
    gradient, curvature = np.zeros_like(lines), np.zeros_like(lines)
    gradient[1:-1] = (lines[2:] - lines[:-2]) / 2  # both of every other line, which hides the alternation
    curvature[2:-2] = (lines[4:] - 2 * lines[2:-2] + lines[:-4]) / 4
    found = _fourth(lines)
    variance = sliding_window_view(np.pad(found**2, NEAR // 2, mode="edge"), (NEAR, NEAR)).mean((2, 3)) + ROUNDING
    likely = []
    for large in np.maximum(round(length * factor) + np.arange(-1, 2), length):  # which of them it was is lost in rounding
        moments = find_moments(int(large), length, start, len(lines), kernels)
        added = [_fourth(first * gradient + second / 2 * curvature) for first, second in moments]
        likely.append([((found - one / 2) * one / variance).ravel() for one in added])
    return np.array([max(values, key=np.sum) for values in zip(*likely)])


def _fourth(lines: Array) -> Array:
    """Fourth differences, of the size of what alternates, where gradient and curvature are known."""
    return np.diff(lines, 4, axis=0)[2:-2] / 16


@lru_cache(maxsize=64)
def find_moments(large: int, length: int, start: int, lines: int, kernels: tuple[str, ...]) -> Array:
    """[kernels, 2, lines, 1] of the weights of these lines: the first two moments about the middle of their cells, in pixels of
    the thumbnail, less their means.
    """
    part, factor = slice(start, start + lines), large / length
    distances = (np.arange(large) + 0.5) / factor - (np.arange(length)[part, None] + 0.5)
    powers = np.stack([distances, distances**2])
    moments = np.array([(pillow_matrix(large, length, kernel, part).numpy() * powers).sum(2) for kernel in kernels])
    changes: Array = (moments - moments[..., 4:-4].mean(2, keepdims=True))[..., None]
    return changes
