"""Operators without a spectrum: A^T by autograd, sums and products, and the iterative solvers, against dense algebra."""

import numpy as np
import pytest
import torch
from torch import Tensor

from leader import LeaderError, Problem, Sampler
from leader.operators import (
    AveragePoolSR,
    Blur,
    Composition,
    FromFunctions,
    Inpainting,
    LinearOperator,
    box_mask,
    gaussian_kernel,
)
from leader.operators.cg import conjugate_gradients, damped_least_squares
from tests.cheap_prior import CheapPrior, photograph
from tests.operators.cases import dense, images, measurements, relative

SHAPE = (3, 4, 4)
PIXELS = 48
SCENE = (3, 12, 16)
X = photograph(*SCENE[1:])[None]


class Shear(LinearOperator):
    """Only A, and not its own adjoint."""

    def A(self, x: Tensor) -> Tensor:
        return 0.5 * x[..., 1:] + 2 * x[..., :-1].roll(1, -2)


def mismatch(operator: LinearOperator) -> float:
    x = torch.randn(2, *operator.image_shape, dtype=torch.float64)
    image = operator.A(x)
    y = torch.randn_like(image)
    return float((image * y).sum() - (x * operator.AT(y)).sum())


def test_at_by_autograd_is_the_adjoint() -> None:
    operator = Shear(SCENE)
    assert abs(mismatch(operator)) < 1e-9 and abs(mismatch(FromFunctions(SCENE, lambda x: x.flip(-1)[:, :1] * 3))) < 1e-9
    with torch.no_grad():
        assert abs(mismatch(operator)) < 1e-9, "inside a run too"
    y = torch.randn(1, 3, 12, 15, requires_grad=True)
    (back,) = torch.autograd.grad((operator.AT(y) ** 2).sum(), y)
    assert torch.allclose(back, 2 * operator.A(operator.AT(y.detach())), atol=1e-4), "methods differentiate through it"
    assert Sampler(CheapPrior(), "ddnm", (), 4).run(Problem.simulate(X, operator, 0.05)).images.shape == X.shape


def test_operators_compose_and_stack() -> None:
    blur, small = Blur(SCENE, gaussian_kernel(1.0)), AveragePoolSR(SCENE, 2)
    assert torch.equal((small @ blur)(X), small.A(blur.A(X))) and not torch.allclose((small @ blur)(X), small(X))
    known = Inpainting(SCENE, box_mask(12, 16, 2, 3, 4, 5))
    both = known + small
    first, second = both.split(both(X))  # type: ignore[attr-defined]
    assert torch.equal(first, known(X)) and torch.equal(second, small(X)) and abs(mismatch(both)) < 1e-9
    problem = Problem.simulate(X, both, 0.02)
    holes = known.reached(first).expand_as(first).flatten(1).logical_not()
    assert float(problem.y[:, : first[0].numel()][holes].abs().max()) == 0, "what no pixel reaches says nothing"
    with pytest.raises(LeaderError, match="values from"):
        Problem(both(X) * 200, both)
    assert torch.allclose(both.pinv(both(X)) - X, torch.zeros(()), atol=0.3) and repr(both) == "Stacked('stacked', [3, 12, 16])"
    for shared in (both, small @ blur):
        assert shared.select(torch.tensor([0])) is shared


def test_a_composition_is_the_product_and_its_inverse_is_not() -> None:
    inner, outer = Blur((1, 8, 6), gaussian_kernel(0.6, 3)), AveragePoolSR((1, 8, 6), 2)
    both = Composition(outer, inner)
    matrix = dense(outer) @ dense(inner)
    assert relative(dense(both), matrix) <= 1e-12
    y = measurements(both, dtype=torch.float64)
    expected = y.flatten(1) @ torch.linalg.pinv(matrix).mT
    assert relative(both.pinv(y).flatten(1), expected) <= 1e-4
    assert relative(inner.pinv(outer.pinv(y)).flatten(1), expected) > 1e-2


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
def test_inverses_are_those_of_the_matrix(rows: int, condition: float, spread: str) -> None:
    """In float32, up to condition numbers of 100; the damped one of two images of very different size, in float64."""
    matrix, operator = conditioned(rows, condition, spread)
    y = measurements(operator)
    assert relative(operator.pinv(y).flatten(1).double(), y.double() @ torch.linalg.pinv(matrix).mT) <= 1e-4
    assert operator.norm == pytest.approx(3.7, rel=0.02), "the largest singular value"
    y = measurements(operator, dtype=torch.float64) * torch.tensor([[1.0], [1e-3]], dtype=torch.float64)
    for row, eta in enumerate((0.3, 1e-4)):
        found = operator.regularised_pinv(y, torch.tensor([0.3, 1e-4], dtype=torch.float64))[row].flatten()
        system = matrix @ matrix.mT + eta * torch.eye(rows, dtype=torch.float64)
        assert relative(found, matrix.mT @ torch.linalg.solve(system, y[row])) <= 1e-4


def test_small_singular_values_are_damped_and_the_first_residual_is_reported() -> None:
    """Below the cut noise is not blown up: gain of at most 1 / cut, against 1e6 for the plain inverse."""
    values = torch.ones(PIXELS, dtype=torch.float64)
    values[-2:] = torch.tensor([2e-3, 1e-6])
    operator = FromFunctions(SHAPE, lambda x: x.flatten(1) * values, lambda y: (y * values).reshape(-1, *SHAPE))
    y = torch.ones(1, PIXELS, dtype=torch.float64)
    inverse = operator.pinv(y).flatten()
    share = 1 - (1 + (values / (operator.rcond * operator.norm)) ** 2) ** -3  # of iterated Tikhonov
    assert torch.allclose(inverse, share * y[0] / values, rtol=1e-5)
    assert float(inverse[-1].abs()) <= 1 / operator.rcond
    _, hard = conditioned(48, 1e4, "geometric")
    y = hard.A(images(hard, 1, dtype=torch.float64))
    hard.regularised_pinv(y, (1e-3 * hard.norm) ** 2)
    alone = hard.residual
    hard.pinv(y)
    assert hard.residual == alone > 0


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
    right = values * torch.randn(1, 64, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for eta in (0.0, 1e-4):
        found, _ = damped_least_squares(values.mul, values.mul, right, torch.tensor(eta).double())
        exact = values * right / (values**2 + eta)
        assert float((values * (found - exact)).norm()) <= 1e-5 * float((values * exact).norm())


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
