"""What surrounds a pixel: shifted copies, medians, wider masks. The border is repeated."""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Flags = NDArray[np.bool_]
AnyArray = TypeVar("AnyArray", Floats, Flags)

NEIGHBOURS = tuple((down, right) for down in (-1, 0, 1) for right in (-1, 0, 1) if (down, right) != (0, 0))


def shift_values(values: AnyArray, down: int, right: int) -> AnyArray:
    """values [H, W, ...] taken `down` rows and `right` columns further on."""
    rows = (np.arange(values.shape[0]) + down).clip(0, values.shape[0] - 1)
    columns = (np.arange(values.shape[1]) + right).clip(0, values.shape[1] - 1)
    moved: AnyArray = values.take(rows, 0).take(columns, 1)
    return moved


def median_around(values: Floats, step: int, side: int = 5) -> Floats:
    """The median of side x side values [H, W, ...] around each, `step` pixels apart."""
    offsets = range(-(side // 2) * step, side // 2 * step + 1, step)
    stack = [shift_values(values, down, right) for down in offsets for right in offsets]
    middle: Floats = np.partition(np.stack(stack), side * side // 2, axis=0)[side * side // 2]
    return middle


def grow_mask(flags: Flags, by: int) -> Flags:
    """Flags [H, W] widened by so many pixels in all eight directions."""
    for _ in range(by):
        flags = np.logical_or.reduce([flags, *(shift_values(flags, down, right) for down, right in NEIGHBOURS)])
    return flags
