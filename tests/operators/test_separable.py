"""Separable operators, and the cuts of small singular values, against counts and small matrices."""

from __future__ import annotations

import pytest
import torch

from leader import Problem
from leader.operators import SeparableBlur
from leader.operators.pointwise import DiagonalOperator
from leader.operators.separable import Factor, SeparableOperator

OBLONG = (1, 4, 6)


def test_the_cut_is_relative_to_the_largest_value() -> None:
    values = torch.tensor([1e-5, 1e-6, 1e-9, 0.0], dtype=torch.float64).repeat(6).reshape(1, *OBLONG)
    operator = DiagonalOperator(OBLONG, values)
    assert operator.norm == pytest.approx(1e-5)
    assert torch.equal(operator.s > 0, values >= 1e-6)
    x = torch.randn(1, *OBLONG, dtype=torch.float64)
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


SQUARE = (1, 4, 4)


def test_entries_of_negative_weights_are_reached() -> None:
    flip = SeparableOperator(SQUARE, -torch.eye(4), torch.eye(4))
    assert bool(flip.reached(torch.zeros(1, *SQUARE)).all())
    y = -torch.rand(1, *SQUARE, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(Problem(y, flip).y, 2 * y + 1)
