"""The transforms that several rooms share, as NumPy tables in float64: blocks of JPEG, the DCT, colours."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

BLOCK = 8
"""Pixels of a side of JPEG's blocks."""

_AXES = np.array([[1, 1, 1], [1, 0, -1], [1, -2, 1]], dtype=np.float64)
OPPONENT: Array = _AXES / np.linalg.norm(_AXES, axis=1, keepdims=True)
"""[3, 3] orthonormal: rows are grey, red against blue, and magenta against green."""

YCBCR: Array = np.array([[0.299, 0.587, 0.114], [-0.168736, -0.331264, 0.5], [0.5, -0.418688, -0.081312]])
"""[3, 3]: rows are luma, Cb and Cr of R, G and B (JFIF)."""
RGB_OF_YCBCR: Array = np.array([[1, 0, 1.402], [1, -0.344136, -0.714136], [1, 1.772, 0]])
"""[3, 3]: R, G and B of luma, Cb and Cr, as decoders have it."""


@lru_cache(maxsize=32)
def dct_matrix(size: int) -> Array:
    """[size, size] orthonormal DCT-II, rows by frequency; not to be written to."""
    k, n = np.meshgrid(np.arange(size), np.arange(size), indexing="ij")
    rows: Array = np.cos(np.pi * k * (2 * n + 1) / (2 * size)) * np.sqrt(2 / size)
    rows[0] /= np.sqrt(2)
    return rows
