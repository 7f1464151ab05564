"""Operators without a spectrum: conjugate gradients against dense algebra."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from leader.operators import AveragePoolSR, Blur, Composition, FromFunctions, gaussian_kernel
from leader.operators.cg import damped_least_squares
from tests.operators.cases import dense, images, measurements, relative

SHAPE = (3, 4, 4)
PIXELS = 48


def conditioned(rows: int, condition: float, spread: str) -> tuple[Tensor, FromFunctions]:
    """A random matrix [rows, 48] of given condition number, and the operator made from its two products."""
    generator = torch.Generator().manual_seed(rows)
    left, right = (torch.linalg.qr(torch.randn(n, n, generator=generator, dtype=torch.float64))[0] for n in (rows, PIXELS))
    rank = min(rows, PIXELS)
    ramp = torch.linspace(0, 1, rank, dtype=torch.float64)
    values = condition**-ramp if spread == "geometric" else 1 - ramp * (1 - 1 / condition)
    matrix = 3.7 * (left[:, :rank] * values) @ right[:, :rank].mT
    operator = FromFunctions(
        SHAPE, lambda x: x.flatten(1) @ matrix.to(x.dtype).mT, lambda y: (y @ matrix.to(y.dtype)).reshape(-1, *SHAPE)
    )
    return matrix, operator


@pytest.mark.parametrize("spread", ["geometric", "linear"])
@pytest.mark.parametrize("condition", [1.0, 100.0])
@pytest.mark.parametrize("rows", [20, 48, 70])
def test_inverse_in_float32(rows: int, condition: float, spread: str) -> None:
    """Equal to the dense pseudo-inverse, and the four identities, up to condition numbers of 100."""
    matrix, operator = conditioned(rows, condition, spread)
    x, z = images(operator), images(operator, seed=5)
    y, v = measurements(operator), measurements(operator, seed=6)
    inverse = torch.linalg.pinv(matrix)
    image, back = operator.A(x), operator.pinv(y)
    assert relative(back.flatten(1).double(), y.double() @ inverse.mT) <= 1e-4
    assert relative(operator.A(operator.pinv(image)), image) <= 1e-4
    assert relative(operator.pinv(operator.A(back)), back) <= 1e-4
    seen = (operator.pinv(image) * z).sum() - (x * operator.pinv(operator.A(z))).sum()
    assert abs(float(seen)) <= 1e-4 * float(x.norm() * z.norm())
    fitted = (operator.A(back) * v).sum() - (y * operator.A(operator.pinv(v))).sum()
    assert abs(float(fitted)) <= 1e-4 * float(y.norm() * v.norm())


def test_small_singular_values_are_damped() -> None:
    """Below the cut noise is not blown up: gain of at most 1 / cut, against 1e6 for the plain inverse."""
    values = torch.ones(PIXELS, dtype=torch.float64)
    values[-1] = 1e-6
    operator = FromFunctions(SHAPE, lambda x: x.flatten(1) * values, lambda y: (y * values).reshape(-1, *SHAPE))
    y = torch.ones(1, PIXELS, dtype=torch.float64)
    inverse = operator.pinv(y).flatten()
    assert torch.allclose(inverse[:-1], y[0, :-1], atol=1e-8)
    assert float(inverse[-1].abs()) <= 1 / operator.rcond


def test_least_squares_report_an_unfinished_solve() -> None:
    _, operator = conditioned(48, 100.0, "geometric")
    y = measurements(operator, dtype=torch.float64)
    _, residual = damped_least_squares(operator.A, operator.AT, y, torch.tensor(0.0).double(), iterations=3)
    assert residual > 1e-3


def test_composition_is_the_product_and_its_inverse_is_not() -> None:
    inner = Blur((1, 8, 8), gaussian_kernel(0.6, 3))
    outer = AveragePoolSR((1, 8, 8), 2)
    both = Composition(outer, inner)
    matrix = dense(outer) @ dense(inner)
    assert relative(dense(both), matrix) <= 1e-12
    y = measurements(both, dtype=torch.float64)
    expected = y.flatten(1) @ torch.linalg.pinv(matrix).mT
    assert relative(both.pinv(y).flatten(1), expected) <= 1e-4
    assert relative(inner.pinv(outer.pinv(y)).flatten(1), expected) > 1e-2


OBLONG = (1, 4, 6)


def test_the_norm_is_the_largest_singular_value() -> None:
    weights = torch.linspace(0.1, 3.0, 24).reshape(1, *OBLONG)

    def scaled(x: Tensor) -> Tensor:
        return weights.to(x) * x

    assert FromFunctions(OBLONG, scaled, scaled).norm == pytest.approx(3.0, rel=0.02)


SQUARE = (1, 4, 4)
