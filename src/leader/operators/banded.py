"""Products with matrices whose large entries lie near the diagonal, block of rows by block of rows.

The factors of resizing and blur are exactly zero away from the diagonal, and the inverses of
well-conditioned ones decay exponentially. Multiplying only the columns that matter is several times cheaper
than a dense product at 1024 x 1024 pixels.
"""

from __future__ import annotations

import torch
from torch import Tensor

from leader.operators.caches import CastCache

_BLOCKS = 8


class BandedMatrix(CastCache):
    """M [m, n], built in float64. Entries below 1 % of the rounding of the largest are left out."""

    def __init__(self, matrix: Tensor) -> None:
        super().__init__(matrix)
        self._spans: dict[torch.dtype, list[tuple[slice, slice]]] = {}

    def rows(self, x: Tensor) -> Tensor:
        """M x on the second last axis: [..., n, k] -> [..., m, k]."""
        matrix = self.like(x)
        return torch.cat([matrix[r, c] @ x[..., c, :] for r, c in self._blocks(matrix)], dim=-2)

    def columns(self, x: Tensor) -> Tensor:
        """x M^T, i.e. M on the last axis: [..., n] -> [..., m]."""
        matrix = self.like(x)
        return torch.cat([x[..., c] @ matrix[r, c].mT for r, c in self._blocks(matrix)], dim=-1)

    def _blocks(self, matrix: Tensor) -> list[tuple[slice, slice]]:
        """Blocks of rows, each with the columns where it is not negligible in the precision of `matrix`."""
        if matrix.dtype not in self._spans:
            size = self.constant.abs()
            present = size > 0.01 * torch.finfo(matrix.dtype).eps * size.max()
            height = -(-matrix.shape[0] // _BLOCKS)
            spans = []
            for top in range(0, matrix.shape[0], height):
                used = present[top : top + height].any(0).nonzero().flatten().tolist() or [0]
                spans.append((slice(top, min(top + height, matrix.shape[0])), slice(used[0], used[-1] + 1)))
            covered = sum((r.stop - r.start) * (c.stop - c.start) for r, c in spans)
            # Little to save: one dense product is faster than several.
            whole = [(slice(0, matrix.shape[0]), slice(0, matrix.shape[1]))]
            self._spans[matrix.dtype] = spans if covered < 0.7 * matrix.numel() else whole
        return self._spans[matrix.dtype]
