"""The measured components of an operator: what is left when the others are left out."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings

from leader.operators import SeparableBlur, SeparableOperator, SpectralOperator
from leader.operators.base import where_measured
from leader.operators.components import MirroredColumns, SeparableComponents, measured_axis
from tests.operators.cases import images, measurements, relative, spectral_operators

quick = settings(max_examples=60, deadline=None, derandomize=True, database=None)
TAPS = (0.1, 0.2, 0.4, 0.2, 0.1)


@quick
@given(spectral_operators())
def test_a_function_of_the_singular_values_needs_the_measured_components_only(operator: SpectralOperator) -> None:
    x, part = images(operator, dtype=torch.float64), operator.measured
    whole = operator.back(torch.cos(3 * operator.s) * operator.to(x))
    assert relative(x + part.back((torch.cos(3 * part.s) - 1) * part.to(x)), whole) <= 1e-12
    unseen = x - part.back((part.s > 0) * part.to(x))
    assert float((unseen - operator.truncated().null(x)).norm() / x.norm()) <= 1e-9


@quick
@given(spectral_operators())
def test_what_y_says_of_them_gives_the_inverse(operator: SpectralOperator) -> None:
    y, part = measurements(operator, dtype=torch.float64), operator.measured
    assert relative(part.back(where_measured(torch.reciprocal, part.s) * part.data(y)), operator.pinv(y)) <= 1e-9


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
