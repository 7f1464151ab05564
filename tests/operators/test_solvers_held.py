"""Conjugate gradients image by image, and the order in which sequency takes its patterns."""

from __future__ import annotations

import torch

from leader.operators.cg import conjugate_gradients, damped_least_squares
from leader.operators.hadamard import measured_indices, sequency


def test_images_of_a_batch_are_solved_each_for_itself() -> None:
    """Two systems of very different scale: with steps of one for both, neither is solved."""
    generator = torch.Generator().manual_seed(0)
    scale = torch.tensor([1e-3, 1e3], dtype=torch.float64).reshape(2, 1)
    diagonal = scale * torch.linspace(1, 4, 6, dtype=torch.float64)
    right = torch.randn(2, 6, generator=generator, dtype=torch.float64)
    solved, residual = conjugate_gradients(lambda v: diagonal * v, right, 1e-10, 20)
    assert residual < 1e-9 and torch.allclose(solved, right / diagonal, rtol=1e-7)
    weights = diagonal.sqrt()
    found, _ = damped_least_squares(
        lambda x: weights * x, lambda y: weights * y, right, torch.zeros(2, 1, dtype=torch.float64), 1e-12, 60
    )
    assert torch.allclose(found, right / weights, rtol=1e-5)


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


def test_sequency_takes_the_coarsest_patterns_of_both_axes_first() -> None:
    chosen = measured_indices(8, 8, 6 / 64, order="sequency")
    rows, columns = sequency(8)[chosen // 8], sequency(8)[chosen % 8]
    assert sorted((rows + columns).tolist()) == [0, 1, 1, 2, 2, 2]
    tall = measured_indices(16, 4, 3 / 64, order="sequency")  # relative to the side: a change in 16 rows counts a quarter
    assert sorted(zip(sequency(16)[tall // 4].tolist(), sequency(4)[tall % 4].tolist())) == [(0, 0), (1, 0), (2, 0)]


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
