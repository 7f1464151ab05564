"""Separable operators: cuts, measured components, and products block by block."""

import pytest
import torch

from leader.operators import SeparableBlur
from leader.operators.components import MirroredColumns, SeparableComponents, measured_axis
from leader.operators.pointwise import DiagonalOperator
from leader.operators.resize import bicubic_matrix
from leader.operators.separable import BandedMatrix, Factor, SeparableOperator
from tests.operators.cases import relative

TAPS = (0.1, 0.2, 0.4, 0.2, 0.1)


def test_components_below_the_cut_are_left_out() -> None:
    operator = SeparableBlur((1, 16, 16), TAPS, boundary="symmetric", rcond_1d=0.3)
    values = torch.linalg.svdvals(operator.vertical.matrix.constant)
    kept = int((values > 0.3 * values[0]).sum())
    assert 0 < kept < 16 and operator.measured.s.shape == (1, 1, kept, kept)
    assert torch.equal(operator.measured.s > 0, torch.ones_like(operator.measured.s, dtype=torch.bool))
    assert operator.truncated().measured.s.shape == operator.measured.s.shape


@pytest.mark.parametrize(("size", "taps", "folded"), [(12, TAPS, True), (13, TAPS, False), (12, (0.2, 0.5, 0.3), False)])
def test_a_matrix_that_is_the_same_backwards_is_folded(size: int, taps: tuple[float, ...], folded: bool) -> None:
    """Even lengths only; the components are those of the plain decomposition, in another order."""
    factor = SeparableBlur((1, size, size), taps, rcond_1d=1e-3).vertical
    found = measured_axis(factor.matrix.constant, 1e-3 * float(factor.singular[0]))
    assert isinstance(found.right, MirroredColumns) is folded
    assert torch.allclose(found.values.sort(descending=True).values, factor.kept[factor.kept > 0], atol=1e-12)
    basis = found.right.back(torch.eye(len(found.values), dtype=torch.float64), -2)
    assert torch.allclose(basis.mT @ basis, torch.eye(len(found.values), dtype=torch.float64), atol=1e-12)
    assert torch.allclose(factor.matrix.constant @ basis, found.left.constant * found.values, atol=1e-12)
    assert torch.allclose(found.right.back(torch.eye(len(found.values), dtype=torch.float64), -1), basis.mT, atol=1e-13)
    x = torch.randn(2, size, size, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(found.right.to(x, -2), basis.mT @ x, atol=1e-13)
    assert torch.allclose(found.right.to(x, -1), x @ basis, atol=1e-13)


def test_a_kind_that_is_not_measured_at_all_leaves_no_components() -> None:
    """The mean of a row is even: nothing odd is measured."""
    operator = SeparableOperator((1, 4, 6), torch.full((1, 4), 0.25), torch.full((1, 6), 1 / 6))
    part = operator.measured
    assert isinstance(part, SeparableComponents) and part.s.shape == (1, 1, 1, 1)
    x = torch.rand(1, 1, 4, 6, dtype=torch.float64)
    assert torch.allclose(part.back(part.to(x)), x.mean((2, 3), keepdim=True).expand_as(x))


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


def test_the_cut_is_relative_to_the_largest_value() -> None:
    values = torch.tensor([1e-5, 1e-6, 1e-9, 0.0], dtype=torch.float64).repeat(6).reshape(1, *(1, 4, 6))
    operator = DiagonalOperator((1, 4, 6), values)
    assert operator.norm == pytest.approx(1e-5)
    assert torch.equal(operator.s > 0, values >= 1e-6)
    x = torch.randn(1, *(1, 4, 6), dtype=torch.float64)
    assert torch.allclose(operator.pinv(operator.A(x)), torch.where(values >= 1e-6, x, 0.0))


def test_a_factor_cuts_what_is_below_its_share_of_the_largest() -> None:
    factor = Factor(torch.diag(torch.tensor([2.0, 1.0, 1e-3, 0.0], dtype=torch.float64)), rcond=1e-2)
    assert factor.kept.tolist() == [2.0, 1.0, 0.0, 0.0]
    assert torch.allclose(factor.inverse.constant, torch.diag(torch.tensor([0.5, 1.0, 0.0, 0.0], dtype=torch.float64)))


def test_rows_and_columns_of_a_separable_blur_have_their_own_taps_and_convolve() -> None:
    operator = SeparableBlur((1, 5, 7), [1.0, 2.0, 4.0], [1.0, 0.0, 0.0])
    x = torch.zeros(1, 1, 5, 7, dtype=torch.float64)
    x[0, 0, 2, 3] = 1
    y = operator.A(x)[0, 0]
    assert y[1:4, 2].tolist() == [1.0, 2.0, 4.0], "a point spreads as the taps do, not mirrored"
    assert float(y.sum()) == 7.0
