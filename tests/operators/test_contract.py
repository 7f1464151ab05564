"""What every operator with a spectrum promises, on shapes of all kinds, against dense algebra."""

from collections.abc import Callable

import pytest
import torch

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
from leader.operators.base import where_measured
from tests.operators.cases import BUILDERS, Shape, dense, images, measurements, relative

LOBES = torch.tensor([[0.0, -0.2, 0.1], [-0.3, 1.8, -0.2], [0.0, -0.2, 0.0]])
SIZES: tuple[tuple[Shape, int], ...] = (((3, 4, 8), 2), ((1, 9, 3), 7), ((3, 5, 6), 103), ((1, 8, 13), 31), ((3, 3, 7), 500))
"""Shapes and seeds: even, odd, narrow, grey and colour."""


@pytest.mark.parametrize(("shape", "seed"), SIZES, ids=str)
@pytest.mark.parametrize("name", BUILDERS)
def test_it_is_its_matrix(name: str, shape: Shape, seed: int) -> None:
    """A, its adjoint, both at once, its SVD, its cut inverse and the damped one, image by image."""
    operator = BUILDERS[name](shape, seed)
    x, y, matrix = images(operator, dtype=torch.float64), measurements(operator, dtype=torch.float64), dense(operator)
    flat, image, c = y.flatten(1), operator.A(x), operator.to(x)
    assert relative(image.flatten(1), x.flatten(1) @ matrix.mT) <= 1e-12
    assert relative(operator.AT(y).flatten(1), flat @ matrix) <= 1e-12
    assert float((operator.gram(x).flatten(1) - image.flatten(1) @ matrix).norm()) <= 1e-12 * operator.norm**2 * x.norm()
    assert relative(operator.back(c), x) <= 1e-12 and abs(float(c.norm() / x.norm()) - 1) <= 1e-12, "unitary"
    assert relative(operator.measure(operator.spectrum * c), image) <= 1e-12
    assert float((operator.data(image) - operator.spectrum * c).norm() / image.norm()) <= 1e-12
    assert float((operator.data(y) * (operator.spectrum == 0)).abs().max()) == 0
    values = operator.spectrum.expand(operator.to(x[:1]).shape).flatten().sort(descending=True).values
    expected = torch.linalg.svdvals(matrix)
    assert torch.allclose(values[: len(expected)], expected, atol=1e-12) and float(values[len(expected) :].sum()) <= 1e-12
    assert operator.norm == pytest.approx(float(expected[0]))
    cut = operator.truncated()
    inverse = torch.linalg.pinv(dense(cut), rtol=1e-6)
    assert relative(operator.pinv(y).flatten(1), flat @ inverse.mT) <= 1e-9
    assert relative(cut.pinv(y), operator.pinv(y)) <= 1e-9 and cut.task == operator.task
    etas = torch.tensor([1e-1, 1e-4], dtype=torch.float64)
    for row, found in enumerate(operator.regularised_pinv(y, etas)):
        system = matrix @ matrix.mT + etas[row] * torch.eye(len(matrix), dtype=torch.float64)
        assert relative(found.flatten(), matrix.mT @ torch.linalg.solve(system, flat[row])) <= 1e-9


@pytest.mark.parametrize(("shape", "seed"), SIZES, ids=str)
@pytest.mark.parametrize("name", BUILDERS)
def test_the_measured_components_are_all_that_is_needed(name: str, shape: Shape, seed: int) -> None:
    operator = BUILDERS[name](shape, seed)
    x, y, part = images(operator, dtype=torch.float64), measurements(operator, dtype=torch.float64), operator.measured
    whole = operator.back(torch.cos(3 * operator.s) * operator.to(x))
    assert relative(x + part.back((torch.cos(3 * part.s) - 1) * part.to(x)), whole) <= 1e-12
    unseen = x - part.back((part.s > 0) * part.to(x))
    assert float((unseen - operator.truncated().null(x)).norm() / x.norm()) <= 1e-9
    assert relative(part.back(where_measured(torch.reciprocal, part.s) * part.data(y)), operator.pinv(y)) <= 1e-9


@pytest.mark.parametrize("name", BUILDERS)
def test_precision_follows_the_input_gradients_flow_and_tiny_eta_is_harmless(name: str) -> None:
    operator = BUILDERS[name]((3, 8, 16), 3)
    with torch.inference_mode():
        operator.pinv(operator.A(images(operator)))
    for dtype in (torch.float32, torch.float64):
        x = images(operator, dtype=dtype).requires_grad_()
        y = operator.A(x)
        assert y.dtype == operator.pinv(y).dtype == operator.AT(y).dtype == operator.null(x).dtype == dtype
        (gradient,) = torch.autograd.grad((y * y).sum() / 2, x)
        assert relative(gradient, operator.AT(y).detach()) <= (1e-5 if dtype == torch.float32 else 1e-12)
    single = measurements(operator)
    for eta in (1e-11, 1e-40, 0.0):
        assert bool(torch.isfinite(operator.regularised_pinv(single, eta)).all())
    assert relative(operator.regularised_pinv(single, 0.0), operator.pinv(single)) <= 1e-3
    assert operator.select(torch.tensor([0])) is operator, "shared by all images"


RANGED: dict[str, Callable[[Shape, int], LinearOperator]] = {
    **BUILDERS,
    "reflected blur": lambda shape, seed: ReflectedBlur(shape, LOBES),
    "sharpening blur": lambda shape, seed: Blur(shape, LOBES),
    "released colours": lambda shape, seed: ReleasedColourisation(shape),
    "lost taps": lambda shape, seed: SeparableBlur(shape, [1.0] + [0.0] * 4),  # looks 2 pixels away: some rows see nothing
    "negative": lambda shape, seed: SeparableOperator(shape, -torch.eye(shape[1]), torch.eye(shape[2]) - 0.5),
    "stacked": lambda shape, seed: Blur(shape, LOBES) + BicubicSR(shape, 2),
    "composed": lambda shape, seed: (
        SeparableOperator(shape, torch.eye(shape[1]) - 0.5 * torch.eye(shape[1]).roll(1, 0), torch.eye(shape[2]))
        @ SeparableOperator(shape, -torch.eye(shape[1]), torch.eye(shape[2]))
    ),
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


def per_image_operators() -> dict[str, LinearOperator]:
    kernels = torch.rand(3, 1, 4, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    masks = torch.stack([random_mask(9, 12, 0.5, seed) for seed in range(3)])[:, None]
    shape = (3, 9, 12)
    made: dict[str, LinearOperator] = {"blur": Blur(shape, kernels, rcond=0.1), "holes": Inpainting(shape, masks)}
    made["blur"].task = "mine"
    made |= {"cut": made["blur"].truncated(), "reflected": ReflectedBlur(shape, kernels)}
    made |= {"composed": BicubicSR(shape, 3) @ made["holes"], "stacked": made["holes"] + BicubicSR(shape, 3)}
    return made | {"stacked below": BicubicSR(shape, 3) + made["holes"]}


@pytest.mark.parametrize("name", per_image_operators())
def test_one_kernel_or_mask_per_image(name: str) -> None:
    """A batch equals single runs, and `select` picks, repeats and reorders."""
    operator = per_image_operators()[name]
    x, keep = images(operator, 3, dtype=torch.float64), torch.tensor([2, 0, 2])
    y, chosen = operator.A(x), operator.select(keep)
    assert torch.allclose(chosen.A(x[keep]), y[keep], atol=1e-13)
    assert chosen.task == operator.task
    for i in range(3):
        single = operator.select(torch.tensor([i]))
        assert torch.allclose(single.A(x[i : i + 1]), y[i : i + 1], atol=1e-13)
        if isinstance(operator, SpectralOperator):
            assert torch.allclose(single.pinv(y[i : i + 1]), operator.pinv(y)[i : i + 1], atol=1e-9)
            damped = operator.regularised_pinv(y, 1e-2)[i : i + 1]
            assert torch.allclose(single.regularised_pinv(y[i : i + 1], 1e-2), damped)
