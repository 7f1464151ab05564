"""The 8 x 8 blocks of a JPEG, recovered from its pixels: planes of luma and chroma, their DCT coefficients."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leader.transforms import BLOCK, RGB_OF_YCBCR, YCBCR, dct_matrix

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

LUMA, CHROMA = YCBCR[0], YCBCR[1:]
LUMA_GAIN = float(np.sqrt((LUMA**2).sum()))
"""Standard deviation that white noise of 1 in R, G and B has in luma."""
BLUE_ERROR, RED_ERROR = ((RGB_OF_YCBCR[:, 1:] ** 2).sum(0) / 3).tolist()
"""Mean squared error of R, G and B for one of Cb, and of Cr."""
DCT = dct_matrix(BLOCK)
PATH = ("einsum_path", (0, 1), (0, 1))
"""The order in which a transform of blocks is multiplied, rows first: NumPy would find the same one at every call."""


@dataclass(frozen=True)
class Blocks:
    """Coefficients [R, C, 8, 8] in grey levels of 0..255, 128 taken off, and which blocks are `known` [R, C]."""

    coefficients: NDArray[Any]
    known: Flags


def compute_luma(pixels: Array) -> Array:
    """[H, W, 1 or 3] in [0, 1] -> luma [H, W] in 0..255."""
    plane: Array = 255 * (pixels[..., 0] if pixels.shape[2] == 1 else pixels @ LUMA)
    return plane


def compute_chroma(pixels: Array, sampling: tuple[int, int], offset: tuple[int, int]) -> Array:
    """[H, W, 3] in [0, 1] -> Cb and Cr [2, H / rows, W / columns] around 128, averaged as encoders do, starting at `offset`."""
    rows, columns = sampling
    top, left = offset[0] % (BLOCK * rows), offset[1] % (BLOCK * columns)
    planes: Array = 255 * np.moveaxis(pixels[top:, left:] @ CHROMA.T, 2, 0) + 128
    height, width = planes.shape[1] // rows, planes.shape[2] // columns
    cut = planes[:, : height * rows, : width * columns]
    averaged: Array = cut.reshape(2, height, rows, width, columns).mean(axis=(2, 4))
    return averaged


def finest_detail(plane: Array) -> float:
    """Mean squared difference of a plane from its averages over 2 x 2 pixels."""
    height, width = plane.shape[0] // 2 * 2, plane.shape[1] // 2 * 2
    cut = plane[:height, :width].reshape(height // 2, 2, width // 2, 2)
    return float(((cut - cut.mean(axis=(1, 3), keepdims=True)) ** 2).mean()) if cut.size else 0.0


def transform_blocks(plane: Array, offset: tuple[int, int] = (0, 0), known: Flags | None = None) -> Blocks:
    """The whole blocks of a plane [H, W] in 0..255; a block is known where all its pixels are."""
    top, left = offset[0] % BLOCK, offset[1] % BLOCK
    tiles = split_blocks(plane[top:, left:] - 128)
    coefficients = np.einsum("ki,rcij,lj->rckl", DCT, tiles, DCT, optimize=PATH)
    whole = np.ones(tiles.shape[:2], bool)
    if known is not None:
        whole = np.asarray(split_blocks(known[top:, left:]).all(axis=(2, 3)))
    return Blocks(coefficients, whole)


def transform_all_offsets(plane: Array, known: Flags) -> Iterator[tuple[tuple[int, int], Blocks]]:
    """Each of the 64 offsets with its `transform_blocks`, in single precision.

    What has the same rows is multiplied along them once. All blocks together would take longer to store than to compute.
    """
    dct, values = DCT.astype(np.float32), (plane - 128).astype(np.float32)
    below, width = len(plane) - BLOCK + 1, plane.shape[1]
    rows = np.stack([values[row : row + below] for row in range(BLOCK)]).reshape(BLOCK, -1)
    turned = (dct @ rows).reshape(BLOCK, below, width).swapaxes(0, 1)  # [H - 7, 8, W]
    for step in (1, 2, 4):  # whether 8 pixels in a row are known, then 8 rows of them
        known = known[:-step] & known[step:]
        known = known[:, :-step] & known[:, step:]
    for top in range(BLOCK):
        lines = np.ascontiguousarray(turned[top::BLOCK])
        for left in range(BLOCK):
            whole = known[top::BLOCK, left::BLOCK]
            cut = lines[..., left : left + BLOCK * whole.shape[1]].reshape(-1, BLOCK)
            coefficients = (cut @ dct.T).reshape(len(lines), BLOCK, -1, BLOCK).swapaxes(1, 2)
            yield (top, left), Blocks(coefficients, whole)


def middle_blocks(shape: tuple[int, ...], most: int) -> tuple[slice, slice]:
    """The rows and columns of about `most` blocks in the middle of a plane, at any offset, cut where blocks begin."""
    side = BLOCK * int(np.sqrt(most))
    top, left = (max(0, (length - side) // 2 // BLOCK * BLOCK) for length in shape)
    return slice(top, top + side + BLOCK), slice(left, left + side + BLOCK)


def split_blocks(plane: NDArray[Any]) -> NDArray[Any]:
    """The blocks [R, C, 8, 8] of a plane [H, W], without what is left over at the end."""
    rows, columns = plane.shape[0] // BLOCK, plane.shape[1] // BLOCK
    cut = plane[: rows * BLOCK, : columns * BLOCK]
    return cut.reshape(rows, BLOCK, columns, BLOCK).swapaxes(1, 2)
