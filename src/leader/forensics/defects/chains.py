"""Pixels that hang together: connected components of a mask, with what tells a line from a blot."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Flags = NDArray[np.bool_]
Floats = NDArray[np.float32]

FORWARD = ((0, 1), (1, -1), (1, 0), (1, 1))
"""Half of the eight neighbours: each pair of pixels once."""


@dataclass(frozen=True)
class Chains:
    """The components of N marked pixels, M of them.

    rows, columns  [N] of the pixels
    member         [N] the component of each, 0 to M - 1
    area           [M] pixels
    length         [M] pixels of the longer side of the component's box
    spread         [M] standard deviation of the colour within it, root mean square over channels
    """

    rows: NDArray[np.intp]
    columns: NDArray[np.intp]
    member: NDArray[np.intp]
    area: NDArray[np.float64]
    length: NDArray[np.float64]
    spread: NDArray[np.float64]

    def mask(self, chosen: Flags, shape: tuple[int, int]) -> Flags:
        """[H, W], the pixels of the chosen components [M]."""
        marked = np.zeros(shape, dtype=bool)
        kept = chosen[self.member]
        marked[self.rows[kept], self.columns[kept]] = True
        return marked

    def holds(self, flags: Flags) -> Flags:
        """[M], which components hold a pixel of flags [H, W]."""
        return np.bincount(self.member, flags[self.rows, self.columns], len(self.area)) > 0


def find_chains(marked: Flags, pixels: Floats, tolerance: float) -> Chains:
    """Components of marked [H, W] whose neighbours, eight each, differ by at most `tolerance` in pixels [H, W, C]."""
    rows, columns = np.nonzero(marked)
    colours = pixels[rows, columns].astype(np.float64)
    number = np.full((marked.shape[0] + 1, marked.shape[1] + 2), -1, dtype=np.intp)  # a frame around, but above
    number[rows, columns + 1] = np.arange(len(rows))
    first, second = [], []
    for down, right in FORWARD:
        other = number[rows + down, columns + 1 + right]
        here = np.nonzero(other >= 0)[0]
        if tolerance < np.inf:
            here = here[np.abs(colours[here] - colours[other[here]]).max(1, initial=0) <= tolerance]
        first.append(here)
        second.append(other[here])
    member = _joined(len(rows), np.concatenate(first), np.concatenate(second))
    count = int(member.max(initial=-1)) + 1
    area = np.bincount(member, minlength=count).astype(np.float64)
    mean = np.stack([np.bincount(member, colour, count) for colour in colours.T], axis=1) / area[:, None]
    off = ((colours - mean[member]) ** 2).mean(1)
    length = np.maximum(_extent(rows, member, count), _extent(columns, member, count))
    return Chains(rows, columns, member, area, length, np.sqrt(np.bincount(member, off, count) / area))


def _joined(count: int, first: NDArray[np.intp], second: NDArray[np.intp]) -> NDArray[np.intp]:
    """The component, 0 to M - 1, of each of `count` nodes joined by edges: every node follows the smallest it can reach."""
    root = np.arange(count)
    while True:
        left, right = root[first], root[second]
        apart = left != right
        if not apart.any():
            break
        low, high = np.minimum(left, right)[apart], np.maximum(left, right)[apart]
        np.minimum.at(root, high, low)
        while not np.array_equal(root[root], root):
            root = root[root]
    return np.unique(root, return_inverse=True)[1].reshape(-1).astype(np.intp)


def _extent(places: NDArray[np.intp], member: NDArray[np.intp], count: int) -> NDArray[np.float64]:
    low, high = np.full(count, places.max(initial=0)), np.zeros(count, np.intp)
    np.minimum.at(low, member, places)  # fast among numbers of one type alone
    np.maximum.at(high, member, places)
    extent: NDArray[np.float64] = (high - low + 1).astype(np.float64)
    return extent
