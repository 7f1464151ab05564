"""Products block by block against dense products."""

from __future__ import annotations

import pytest
import torch

from leader.operators.resize import bicubic_matrix
from leader.operators.separable import BandedMatrix
from tests.operators.cases import relative


@pytest.mark.parametrize("size", [3, 30, 157, 256])
def test_products_lose_nothing_beyond_rounding(size: int) -> None:
    """The inverse of bicubic downsampling is full but decays; what is left out must not be seen, in either precision."""
    forward = bicubic_matrix(size, 3)
    for matrix in (forward, torch.linalg.pinv(forward), torch.zeros(5, size, dtype=torch.float64)):
        banded = BandedMatrix(matrix)
        x = torch.randn(2, matrix.shape[1], 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
        for dtype in (torch.float32, torch.float64):
            limit = 4 * torch.finfo(dtype).eps
            assert relative(banded.rows(x.to(dtype)).double(), matrix @ x) <= limit
            assert relative(banded.columns(x.mT.to(dtype)).double(), (matrix @ x).mT) <= limit
