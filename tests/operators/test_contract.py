"""What every operator with a spectrum promises, on random shapes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from torch import Tensor

from leader.operators import (
    BicubicSR,
    Blur,
    Inpainting,
    LinearOperator,
    ReflectedBlur,
    ReleasedColourisation,
    SeparableBlur,
    SeparableOperator,
    SpectralOperator,
    random_mask,
)
from tests.operators.cases import BUILDERS, Shape, dense, images, measurements, relative, spectral_operators

LOBES = torch.tensor([[0.0, -0.2, 0.1], [-0.3, 1.8, -0.2], [0.0, -0.2, 0.0]])
quick = settings(max_examples=40, deadline=None, derandomize=True, database=None)


def inner(a: Tensor, b: Tensor) -> float:
    return float((a.double() * b.double()).sum())


@quick
@given(spectral_operators())
def test_adjoint(operator: SpectralOperator) -> None:
    x, y = images(operator), measurements(operator)
    left, right = inner(operator.A(x), y), inner(x, operator.AT(y))
    assert abs(left - right) <= 1e-5 * float(operator.norm * x.norm() * y.norm())


@quick
@given(spectral_operators())
def test_both_products_at_once_are_one_after_the_other(operator: SpectralOperator) -> None:
    x = images(operator, dtype=torch.float64)
    assert float((operator.gram(x) - operator.AT(operator.A(x))).norm()) <= 1e-12 * operator.norm**2 * float(x.norm())


@quick
@given(spectral_operators())
def test_moore_penrose(operator: SpectralOperator) -> None:
    """The four identities for the truncated operator, in float32."""
    cut = operator.truncated()
    x, z = images(cut), images(cut, seed=2)
    y, v = measurements(cut), measurements(cut, seed=3)
    limit = 1e-5
    assert relative(cut.A(cut.pinv(cut.A(x))), cut.A(x)) <= limit
    assert relative(cut.pinv(cut.A(cut.pinv(y))), cut.pinv(y)) <= limit
    assert abs(inner(cut.pinv(cut.A(x)), z) - inner(x, cut.pinv(cut.A(z)))) <= limit * float(x.norm() * z.norm())
    assert abs(inner(cut.A(cut.pinv(y)), v) - inner(y, cut.A(cut.pinv(v)))) <= limit * float(y.norm() * v.norm())


@quick
@given(spectral_operators())
def test_pinv_is_the_one_of_the_truncated_operator(operator: SpectralOperator) -> None:
    y = measurements(operator, dtype=torch.float64)
    expected = operator.back(operator.filter(torch.reciprocal, y) * operator.data(y))
    assert relative(operator.pinv(y), expected) <= 1e-10
    assert relative(operator.truncated().pinv(y), expected) <= 1e-10


@quick
@given(spectral_operators())
def test_coordinates_are_unitary(operator: SpectralOperator) -> None:
    x = images(operator, dtype=torch.float64)
    c = operator.to(x)
    assert relative(operator.back(c), x) <= 1e-12
    assert abs(float(c.norm() / x.norm()) - 1) <= 1e-12


@quick
@given(spectral_operators())
def test_spectrum_agrees_with_the_operator(operator: SpectralOperator) -> None:
    x = images(operator, dtype=torch.float64)
    y = measurements(operator, dtype=torch.float64)
    image = operator.A(x)
    assert relative(operator.measure(operator.spectrum * operator.to(x)), image) <= 1e-12
    assert float((operator.data(image) - operator.spectrum * operator.to(x)).norm() / image.norm()) <= 1e-12
    assert relative(operator.back(operator.spectrum * operator.data(y)), operator.AT(y)) <= 1e-12
    assert float((operator.data(y) * (operator.spectrum == 0)).abs().max()) == 0


@pytest.mark.parametrize("name", sorted(BUILDERS))
def test_singular_values_and_inverses_against_dense_algebra(name: str) -> None:
    operator = BUILDERS[name]((3, 4, 8), 2)
    matrix = dense(operator)
    c = operator.to(images(operator, 1, dtype=torch.float64))
    found = operator.spectrum.expand(c.shape).flatten().sort(descending=True).values
    expected = torch.linalg.svdvals(matrix)
    assert torch.allclose(found[: len(expected)], expected, atol=1e-12)
    assert float(found[len(expected) :].abs().sum()) <= 1e-12
    y = measurements(operator, 1, dtype=torch.float64)
    small = torch.linalg.pinv(dense(operator.truncated()), rtol=1e-6)
    assert relative(operator.pinv(y).flatten(), small @ y.flatten()) <= 1e-9
    for eta in (1e-1, 1e-4):
        system = matrix @ matrix.mT + eta * torch.eye(len(matrix), dtype=torch.float64)
        solution = matrix.mT @ torch.linalg.solve(system, y.flatten())
        assert relative(operator.regularised_pinv(y, eta).flatten(), solution) <= 1e-9


@pytest.mark.parametrize("name", sorted(BUILDERS))
def test_regularised_inverse_is_finite_for_tiny_eta_in_float32(name: str) -> None:
    operator = BUILDERS[name]((3, 16, 16), 5)
    y = measurements(operator)
    for eta in (1e-11, 1e-40, 0.0):
        assert bool(torch.isfinite(operator.regularised_pinv(y, eta)).all())
    assert relative(operator.regularised_pinv(y, 0.0), operator.pinv(y)) <= 1e-3
    etas = torch.tensor([1e-3, 0.5])
    both = operator.regularised_pinv(y, etas)
    for i in range(2):
        assert relative(both[i : i + 1], operator.regularised_pinv(y[i : i + 1], float(etas[i]))) <= 1e-5


@pytest.mark.parametrize("name", sorted(BUILDERS))
def test_precision_follows_the_input_and_gradients_flow(name: str) -> None:
    operator = BUILDERS[name]((3, 8, 16), 3)
    with torch.inference_mode():
        operator.pinv(operator.A(images(operator)))
    for dtype in (torch.float32, torch.float64):
        x = images(operator, dtype=dtype).requires_grad_()
        y = operator.A(x)
        assert y.dtype == operator.pinv(y).dtype == operator.AT(y).dtype == operator.null(x).dtype == dtype
        (gradient,) = torch.autograd.grad((y * y).sum() / 2, x)
        assert relative(gradient, operator.AT(y).detach()) <= (1e-5 if dtype == torch.float32 else 1e-12)


RANGED: dict[str, Callable[[Shape, int], LinearOperator]] = {
    **BUILDERS,
    "reflected blur": lambda shape, seed: ReflectedBlur(shape, LOBES),
    "sharpening blur": lambda shape, seed: Blur(shape, LOBES),
    "released colours": lambda shape, seed: ReleasedColourisation(shape),
    "lost taps": lambda shape, seed: SeparableBlur(shape, [1.0] + [0.0] * 4),  # looks 2 pixels away: some rows see nothing
    "negative": lambda shape, seed: SeparableOperator(shape, -torch.eye(shape[1]), torch.eye(shape[2]) - 0.5),
    "stacked": lambda shape, seed: Blur(shape, LOBES) + BicubicSR(shape, 2),
}


@pytest.mark.parametrize("name", RANGED)
def test_the_range_is_the_sum_of_negative_and_of_positive_weights(name: str) -> None:
    operator = RANGED[name]((3, 4, 8), 5)
    known, matrix = operator.unit_range(), dense(operator)
    assert known is not None
    found = [bound.expand(1, *operator.measurement_shape).flatten() for bound in known]
    assert torch.allclose(found[0], matrix.clamp_max(0).sum(1), atol=1e-9)
    assert torch.allclose(found[1], matrix.clamp_min(0).sum(1), atol=1e-9)
    y = measurements(operator, 1)
    assert torch.equal(operator.reached(y).expand_as(y).flatten(), (matrix.abs() > 1e-9).any(1))


def test_null_part_is_invisible() -> None:
    operator = BUILDERS["bicubic"]((3, 20, 17), 3)
    x = images(operator)
    assert float(operator.A(operator.null(x)).abs().max()) <= 1e-5


def per_image_operators() -> list[SpectralOperator]:
    kernels = torch.rand(3, 1, 4, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    masks = torch.stack([random_mask(9, 12, 0.5, seed) for seed in range(3)])[:, None]
    blur = Blur((3, 9, 12), kernels)
    return [blur, blur.truncated(), Inpainting((3, 9, 12), masks)]


@pytest.mark.parametrize("operator", per_image_operators(), ids=["blur", "truncated blur", "inpainting"])
def test_one_kernel_or_mask_per_image(operator: SpectralOperator) -> None:
    """A batch equals single runs, and `select` picks, repeats and reorders."""
    x = images(operator, 3, dtype=torch.float64)
    y = operator.A(x)
    keep = torch.tensor([2, 0, 2])
    chosen = operator.select(keep)
    assert torch.allclose(chosen.A(x[keep]), y[keep], atol=1e-13)
    assert torch.allclose(chosen.pinv(y[keep]), operator.pinv(y)[keep], atol=1e-9)
    assert chosen.task == operator.task
    for i in range(3):
        single = operator.select(torch.tensor([i]))
        assert torch.allclose(single.A(x[i : i + 1]), y[i : i + 1], atol=1e-13)
        assert torch.allclose(single.regularised_pinv(y[i : i + 1], 1e-2), operator.regularised_pinv(y, 1e-2)[i : i + 1])


def test_shared_operators_select_themselves() -> None:
    for name, build in BUILDERS.items():
        operator = build((3, 8, 8), 2)
        assert operator.select(torch.tensor([0])) is operator, name
