"""The iterative solvers, image by image, against dense algebra."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from leader.operators import FromFunctions, LinearOperator
from leader.operators.cg import conjugate_gradients, damped_least_squares


def test_a_step_of_damped_least_squares_is_the_images_own() -> None:
    """Stopped after two steps, an image has come as far in a batch as alone."""
    generator = torch.Generator().manual_seed(1)
    scale = torch.tensor([0.1, 1.0, 7.0], dtype=torch.float64).reshape(3, 1)
    weights = scale * torch.linspace(1, 4, 6, dtype=torch.float64)
    right = torch.randn(3, 6, generator=generator, dtype=torch.float64)
    eta = torch.tensor([0.3, 0.1, 2.0], dtype=torch.float64).reshape(3, 1)
    together, _ = damped_least_squares(weights.mul, weights.mul, right, eta, 1e-12, 2)
    for i in range(3):
        one = slice(i, i + 1)
        alone, _ = damped_least_squares(weights[one].mul, weights[one].mul, right[one], eta[one], 1e-12, 2)
        assert torch.allclose(together[one], alone, rtol=1e-10)


def test_a_dark_image_is_solved_as_well_as_a_bright_one_beside_it() -> None:
    """The bright one is done after one step; the dark one, ten million times weaker, needs as many as there are values."""
    values = torch.linspace(1, 30, 12, dtype=torch.float64)
    right = torch.stack([torch.eye(12, dtype=torch.float64)[3], 1e-7 * torch.ones(12, dtype=torch.float64)])
    solution, reached = conjugate_gradients(lambda v: values * v, right, tolerance=1e-6)
    assert torch.allclose(solution[0], right[0] / values) and torch.allclose(solution[1], right[1] / values, rtol=1e-5, atol=0)
    assert reached <= 1e-6


def test_least_squares_go_on_until_what_is_seen_is_right_to_a_millionth() -> None:
    values = torch.logspace(0, -2.5, 64, dtype=torch.float64)
    truth = torch.randn(1, 64, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    right = values * truth
    for eta in (0.0, 1e-4):
        found, _ = damped_least_squares(lambda x: values * x, lambda y: values * y, right, torch.tensor(eta).double())
        exact = values * right / (values**2 + eta)
        assert float((values * (found - exact)).norm()) <= 1e-5 * float((values * exact).norm())


OBLONG = (1, 4, 6)


@pytest.mark.parametrize("eta", [0.0, 1e-4, 0.3])
def test_damped_least_squares_solve_the_damped_equations(eta: float) -> None:
    """Batch of two of very different size, an operator without an SVD, against a dense solve."""
    generator = torch.Generator().manual_seed(0)
    matrix = torch.randn(10, 24, generator=generator, dtype=torch.float64)

    def forward(x: Tensor) -> Tensor:
        return x.flatten(1) @ matrix.T.to(x)

    def adjoint(y: Tensor) -> Tensor:
        return (y @ matrix.to(y)).reshape(-1, *OBLONG)

    operator = FromFunctions(OBLONG, forward, adjoint)
    y = torch.randn(2, 10, generator=generator, dtype=torch.float64) * torch.tensor([[1.0], [1e-3]], dtype=torch.float64)
    damped = matrix.T @ torch.linalg.solve(matrix @ matrix.T + eta * torch.eye(10, dtype=torch.float64), y.T)
    found = operator.regularised_pinv(y, torch.tensor([eta, eta], dtype=torch.float64)).flatten(1)
    assert torch.allclose(found, damped.T, rtol=1e-5, atol=1e-9)


SQUARE = (1, 4, 4)


def hard(condition: float = 1e4) -> tuple[LinearOperator, Tensor]:
    """A dense operator with singular values from 1 down, and its matrix."""
    generator = torch.Generator().manual_seed(0)
    left, right = (torch.linalg.qr(torch.randn(16, 16, generator=generator).double())[0] for _ in range(2))
    matrix = left @ torch.diag(torch.logspace(0, -math.log10(condition), 16).double()) @ right

    def forward(x: Tensor) -> Tensor:
        measured: Tensor = x.flatten(1) @ matrix.to(x).T
        return measured

    def adjoint(y: Tensor) -> Tensor:
        image: Tensor = (y @ matrix.to(y)).reshape(-1, *SQUARE)
        return image

    return FromFunctions(SQUARE, forward, adjoint), matrix


def test_an_inverse_reports_the_residual_of_its_first_solve() -> None:
    operator, matrix = hard()
    y = matrix @ torch.ones(16).double()
    operator.regularised_pinv(y[None], (1e-3 * operator.norm) ** 2)
    alone = operator.residual
    operator.pinv(y[None])
    assert alone > 0 and operator.residual == alone


def test_residuals_are_those_of_the_worst_image() -> None:
    """One iteration of conjugate gradients, by hand: step = r.r / r.M r."""
    matrix = np.diag([1.0, 2.0, 10.0])
    right = np.array([[1.0, 1.0, 1.0], [1.0, 0.0, 0.0]])
    exact = []
    for b in right:
        left = b - (b @ b) / (b @ matrix @ b) * (matrix @ b)
        exact.append(np.linalg.norm(left) / np.linalg.norm(b))
    apply = torch.from_numpy(matrix)
    found = conjugate_gradients(lambda v: v @ apply, torch.from_numpy(right), iterations=1)[1]
    assert found == pytest.approx(max(exact), rel=1e-9) and min(exact) < 1e-12
    # damped: |A^T (b - A x) - eta x| / |A^T b| after one step
    eta, rows = 0.5, torch.from_numpy(right)
    x, reached = damped_least_squares(lambda v: v @ apply, lambda v: v @ apply, rows, torch.tensor(eta).double(), iterations=1)
    gradient = (right - x.numpy() @ matrix) @ matrix - eta * x.numpy()
    each = np.linalg.norm(gradient, axis=1) / np.linalg.norm(right @ matrix, axis=1)
    assert reached == pytest.approx(max(each), rel=1e-9) and min(each) < 1e-12
