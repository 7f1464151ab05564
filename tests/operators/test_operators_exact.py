"""Operators: what solves report, what is reached, what a truncated choice keeps, which adjoints pass."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from leader import LeaderError, Problem
from leader.operators import Blur, Composition, Denoising, FromFunctions, Inpainting, LinearOperator, gaussian_kernel
from leader.operators.adjoint import check_adjoint
from leader.operators.base import SpectralOperator, Truncated
from leader.operators.caches import CastCache
from leader.operators.cg import conjugate_gradients, damped_least_squares
from leader.operators.masks import box_mask
from leader.operators.separable import SeparableOperator

SHAPE = (1, 4, 4)


def hard(condition: float = 1e4) -> tuple[LinearOperator, Tensor]:
    """A dense operator with singular values from 1 down, and its matrix."""
    generator = torch.Generator().manual_seed(0)
    left, right = (torch.linalg.qr(torch.randn(16, 16, generator=generator).double())[0] for _ in range(2))
    matrix = left @ torch.diag(torch.logspace(0, -math.log10(condition), 16).double()) @ right

    def forward(x: Tensor) -> Tensor:
        measured: Tensor = x.flatten(1) @ matrix.to(x).T
        return measured

    def adjoint(y: Tensor) -> Tensor:
        image: Tensor = (y @ matrix.to(y)).reshape(-1, *SHAPE)
        return image

    return FromFunctions(SHAPE, forward, adjoint), matrix


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
    eta, rows = 0.5, torch.from_numpy(right[:1])
    x, reached = damped_least_squares(lambda v: v @ apply, lambda v: v @ apply, rows, torch.tensor(eta).double(), iterations=1)
    gradient = matrix @ (right[0] - matrix @ x[0].numpy()) - eta * x[0].numpy()
    assert reached == pytest.approx(np.linalg.norm(gradient) / np.linalg.norm(matrix @ right[0]), rel=1e-9)


def test_entries_of_negative_weights_are_reached() -> None:
    flip = SeparableOperator(SHAPE, -torch.eye(4), torch.eye(4))
    assert bool(flip.reached(torch.zeros(1, *SHAPE)).all())
    low, high = flip.unit_range()
    assert bool((low == -1).all()) and bool((high == 0).all())
    y = -torch.rand(1, *SHAPE, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(Problem(y, flip).y, 2 * y + 1)


def test_some_images_of_a_truncated_operator_stay_truncated() -> None:
    kernels = torch.stack([gaussian_kernel(1.0, 5), gaussian_kernel(2.0, 5)])[:, None]
    whole = Blur((1, 8, 8), kernels, rcond=0.2)
    chosen = whole.truncated().select(torch.tensor([1]))
    assert isinstance(chosen, Truncated) and torch.equal(chosen.spectrum, whole.s[1:])
    alone = Blur((1, 8, 8), gaussian_kernel(2.0, 5), rcond=0.2).truncated()
    assert isinstance(alone, SpectralOperator)
    x = torch.rand(1, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(chosen.A(x), alone.A(x), atol=1e-6) and not torch.allclose(
        chosen.A(x), whole.select(torch.tensor([1])).A(x)
    )


class Turned(LinearOperator):
    """The identity with an adjoint that adds something orthogonal to every image: <x, A^T A x> is right, <x, A^T y> is not."""

    def A(self, x: Tensor) -> Tensor:
        return x

    def AT(self, y: Tensor) -> Tensor:
        return y + torch.roll(y, 1, -1) - torch.roll(y, -1, -1)


def test_an_adjoint_is_tried_with_a_measurement_that_is_not_its_own() -> None:
    with pytest.raises(LeaderError, match="not the adjoint"):
        check_adjoint(Turned(SHAPE), torch.zeros(1, *SHAPE))
    for composed in (Composition(Denoising(SHAPE), Turned(SHAPE)), Composition(Turned(SHAPE), Denoising(SHAPE))):
        with pytest.raises(LeaderError, match="not the adjoint"):
            Problem(torch.full((1, *SHAPE), 0.5), composed)


def test_the_range_of_a_composition_of_operators_with_negative_weights() -> None:
    inner = SeparableOperator(SHAPE, -torch.eye(4), torch.eye(4))
    outer = SeparableOperator(SHAPE, torch.eye(4) - 0.5 * torch.eye(4).roll(1, 0), torch.eye(4))
    found = Composition(outer, inner).unit_range()
    assert found is not None
    dense = Composition(outer, inner).A(torch.eye(16).double().reshape(16, *SHAPE)).reshape(16, 16).T
    low, high = (found[k].flatten().expand(16) for k in (0, 1))
    assert torch.all(low <= dense.clamp_max(0).sum(1) + 1e-12) and torch.all(high >= dense.clamp_min(0).sum(1) - 1e-12)
    assert torch.allclose(low, dense.clamp_max(0).sum(1)) and torch.allclose(high, dense.clamp_min(0).sum(1))


def test_a_constant_is_kept_in_every_precision_asked_for() -> None:
    cache = CastCache(torch.tensor([1 / 3], dtype=torch.float64))
    assert cache.like(torch.zeros(1)).dtype == torch.float32
    assert cache.like(torch.zeros(1).double()).dtype == torch.float64 and float(cache.like(torch.zeros(1).double())) == 1 / 3


def test_a_box_lies_where_it_is_said_to() -> None:
    mask = box_mask(5, 9, top=1, left=4, box_height=2, box_width=3)
    expected = np.ones((5, 9))
    expected[1:3, 4:7] = 0
    np.testing.assert_array_equal(mask.numpy(), expected)
    assert Inpainting((1, 5, 9), mask).unit_range()[1].flatten().tolist() == expected.flatten().tolist()
