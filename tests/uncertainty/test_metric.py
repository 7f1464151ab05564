"""The data step in a metric against dense algebra, for every operator, noisy and clean."""

import math

import pytest
import torch
from torch import Tensor

from leader.operators import FromFunctions, Inpainting, LinearOperator, random_mask
from leader.operators.base import SpectralOperator
from leader.uncertainty.covariance import Covariance, independent
from leader.uncertainty.metric import ByImage, Calibrated, Euclidean
from tests.operators.cases import BUILDERS, dense, relative
from tests.uncertainty.spectra import Shape, correlated, uneven_spread

SHAPE: Shape = (1, 8, 12)
VISIBLE = 1e-9
NO_FLOOR = 1e-12


def operator(name: str) -> LinearOperator:
    """One of every kind for images of 8 x 12; the last has neither an SVD nor closed forms."""
    if name != "functions":
        return BUILDERS[name](SHAPE, 7)
    weights = 0.3 + torch.rand(SHAPE, generator=torch.Generator().manual_seed(4), dtype=torch.float64)

    def forward(x: Tensor) -> Tensor:
        return (weights.to(x) * x)[..., 1:, ::2] + x[..., :-1, 1::2]

    def adjoint(y: Tensor) -> Tensor:
        x = y.new_zeros(len(y), *SHAPE)
        x[..., 1:, ::2] = weights.to(y)[..., 1:, ::2] * y
        x[..., :-1, 1::2] += y
        return x

    return FromFunctions(SHAPE, forward, adjoint)


OPERATORS = [*BUILDERS, "functions"]


def metric(
    op: LinearOperator,
    S: Covariance,
    full: Tensor,
    floor: float = NO_FLOOR,
    trust: float = 1.0,
    only_unmeasured: bool = False,
) -> Calibrated:
    """A metric whose solves go on until they are exact."""
    return Calibrated(S, op, float(full.diagonal().mean()), trust, 3000, VISIBLE, floor, only_unmeasured)


def misfit(op: LinearOperator, S: Covariance, sigma: float, seed: int = 0) -> Tensor:
    """A d + sigma z with d a draw of the covariance; nothing where A reaches nothing."""
    generator = torch.Generator().manual_seed(seed)
    change = S.draw(torch.randn(1, *op.image_shape, generator=generator, dtype=torch.float64))
    clean = op.A(change)
    noise = torch.randn(clean.shape, generator=generator, dtype=torch.float64)
    return clean + sigma * noise * op.reached(clean)


def gain(A: Tensor, S: Tensor, variance: float) -> Tensor:
    """S A^T (A S A^T + variance)^{-1}."""
    made: Tensor = torch.linalg.solve(A @ S @ A.mT + variance * torch.eye(len(A), dtype=A.dtype), A @ S)
    return made.mT


def allowed(full: Tensor) -> float:
    """v = L^{-1} change is found to VISIBLE in root mean square, so the change to |L| VISIBLE sqrt(N); and rounding."""
    return VISIBLE * math.sqrt(float(torch.linalg.eigvalsh(full)[-1]) * len(full)) + 1e-11


@pytest.mark.parametrize("sigma", [0.03, 0.4])
@pytest.mark.parametrize("name", OPERATORS)
def test_noisy_data_move_the_estimate_to_its_conditional_mean(name: str, sigma: float) -> None:
    op = operator(name)
    S, full = correlated(op.image_shape)
    r = misfit(op, S, sigma)
    found = metric(op, S, full).expect(r, torch.tensor([sigma], dtype=torch.float64))
    expected = gain(dense(op), full, sigma**2) @ r.flatten()
    assert float((found.flatten() - expected).norm()) <= allowed(full)
    halved = metric(op, S, full, trust=0.5).expect(r, torch.tensor([sigma], dtype=torch.float64))
    assert float((halved.flatten() - gain(dense(op), full, 2 * sigma**2) @ r.flatten()).norm()) <= allowed(full)


@pytest.mark.parametrize("name", OPERATORS)
def test_components_that_a_method_takes_itself_are_left_alone_where_asked(name: str) -> None:
    """(1 - V V^T) (E[x0 | x_t, y] - x0) with V what is measured; an operator without an SVD has no components to take."""
    op = operator(name)
    S, full = correlated(op.image_shape)
    r, sigma = misfit(op, S, 0.4), torch.tensor([0.4], dtype=torch.float64)
    one = metric(op, S, full, only_unmeasured=True)
    whole = metric(op, S, full).expect(r, sigma, taken=True)
    assert torch.equal(one.expect(r, sigma), whole), "only where the method says that it takes them"
    left = one.expect(r, sigma, taken=True)
    if name == "functions":
        assert torch.equal(left, whole)
        return
    assert isinstance(op, SpectralOperator)
    seen = op.measured.to(left) * (op.measured.s > 0)
    assert float(seen.norm()) <= 1e-9 * float(whole.norm()), "nothing of what is measured"
    assert relative(left + op.measured.back(op.measured.to(whole) * (op.measured.s > 0)), whole) < 1e-9
    assert torch.equal(ByImage([one, one]).expect(r.repeat(2, *[1] * (r.ndim - 1)), sigma.repeat(2), taken=True)[1:], left)


@pytest.mark.parametrize("name", OPERATORS)
def test_clean_data_are_met_by_the_smallest_change_up_to_the_floor(name: str) -> None:
    """With floor f, K = A S A^T and r in the range of A: the error is f (A^+ - S A^T K^+) (K + f)^{-1} r, first order in f."""
    op = operator(name)
    S, full = correlated(op.image_shape)
    A, r = dense(op), misfit(op, S, 0.0)
    back = torch.cat([op.pinv(row) for row in torch.eye(len(A), dtype=A.dtype).reshape(-1, 1, *op.measurement_shape)])
    inverse = back.flatten(1).mT
    mean = float(full.diagonal().mean())
    # where A^+ cuts or damps nothing, and where S A^T K^+ is not itself lost in rounding
    whole = relative(A @ inverse @ A, A) < 1e-9
    K = A @ full @ A.mT
    smallest = full @ A.mT @ torch.linalg.pinv(K, rtol=1e-11) @ r.flatten()
    whole = whole and relative(A @ smallest, r.flatten()) < 1e-8
    for floor in (0.01, 1e-4):
        found = metric(op, S, full, floor).pinv(r).flatten()
        first = gain(A, full, floor * mean) @ r.flatten()
        left = r.flatten() - A @ first
        slack = allowed(full) * (1 + float(torch.linalg.matrix_norm(inverse @ A, 2)))
        assert float((found - first - inverse @ left).norm()) <= slack + 1e-9 * float(inverse.norm() * left.norm())
        if whole:
            unexplained = torch.linalg.solve(K + floor * mean * torch.eye(len(A), dtype=A.dtype), r.flatten())
            bound = floor * mean * float(unexplained.norm())
            spread = inverse - full @ A.mT @ torch.linalg.pinv(K, rtol=1e-11)
            assert float((found - smallest).norm()) <= bound * float(torch.linalg.matrix_norm(spread, 2)) + slack + 1e-7
    if name in ("denoising", "inpainting", "colourisation", "average", "hadamard", "weighted pixels", "bicubic"):
        assert whole, "nothing of these is cut off: the bound has been looked at"


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", BUILDERS)
def test_clean_data_are_met_after_few_iterations_too(name: str, dtype: torch.dtype) -> None:
    """Proposition 4.1 in every metric: the last part is a projection, whatever the solve before it has reached."""
    op = BUILDERS[name](SHAPE, 7).truncated()
    S, _ = correlated(op.image_shape)
    spread = uneven_spread(op.image_shape).to(dtype)
    r = misfit(op, S, 0.0).to(dtype)
    for iterations, made in (
        (1, independent(spread)),
        (8, independent(spread)),
        (8, correlated(op.image_shape, 0.3, dtype)[0]),
    ):
        few = Calibrated(made, op, float(spread.mean()), 1.0, iterations, 0.02, 0.01)
        limit = (1e-5 if dtype == torch.float32 else 1e-9) * max(1.0, float(r.abs().max()))
        for change in (few.pinv(r), few.expect(r, torch.zeros(1))):
            assert change.dtype == dtype
            assert float((op.A(change) - r).abs().max()) <= limit, name


@pytest.mark.parametrize("eta", [0.05, 1.3])
@pytest.mark.parametrize("name", OPERATORS)
def test_regularised_inverse_has_weights_of_mean_one(name: str, eta: float) -> None:
    op = operator(name)
    S, full = correlated(op.image_shape)
    r = misfit(op, S, 0.1)
    W = full / full.diagonal().mean()
    expected = gain(dense(op), W, eta) @ r.flatten()
    for given in (eta, torch.tensor([eta], dtype=torch.float64)):
        found = metric(op, S, full, floor=0.01).regularised_pinv(r, given)
        assert float((found.flatten() - expected).norm()) <= allowed(full)


@pytest.mark.parametrize("eta", [1e-4, 5e-3])
@pytest.mark.parametrize("name", ["inpainting", "average", "circular blur", "hadamard"])
def test_below_the_floor_the_operator_s_own_inverse_does_the_rest(name: str, eta: float) -> None:
    """Exact where all pixels are alike; elsewhere the rest of the misfit is spread evenly."""
    op = operator(name)
    S, full = correlated(op.image_shape)
    A, r, W, floor = dense(op), misfit(op, S, 0.1), full / full.diagonal().mean(), 0.02
    found = metric(op, S, full, floor).regularised_pinv(r, eta)
    first = gain(A, W, floor) @ r.flatten()
    eye = torch.eye(A.shape[1], dtype=A.dtype)
    expected = first + gain(A, eye, eta) @ ((1 - eta / floor) * (r.flatten() - A @ first))
    assert float((found.flatten() - expected).norm()) <= 100 * allowed(full)  # A^T (A A^T + eta)^{-1} is at most 50 here
    flat = independent(torch.full((1, *op.image_shape), 0.3, dtype=torch.float64))
    alike = metric(op, flat, 0.3 * eye, floor).regularised_pinv(r, eta)
    assert relative(alike, op.regularised_pinv(r, eta)) < 1e-6


@pytest.mark.parametrize("name", ["inpainting", "average", "bicubic", "circular blur", "hadamard"])
def test_equal_pixels_are_the_euclidean_step(name: str) -> None:
    op = operator(name).truncated()
    r = misfit(op, correlated(op.image_shape)[0], 0.0)
    flat = Calibrated(independent(torch.full((1, *op.image_shape), 0.3, dtype=torch.float64)), op, 0.3, 1.0, 8, 0.02, 0.01)
    assert relative(flat.pinv(r), op.pinv(r)) < 1e-9
    plain = Euclidean(op)
    assert torch.equal(plain.pinv(r), op.pinv(r))
    assert torch.equal(plain.regularised_pinv(r, 0.2), op.regularised_pinv(r, 0.2))
    assert torch.equal(plain.expect(r, torch.ones(1)), torch.zeros(1, *op.image_shape, dtype=torch.float64))


def test_images_of_a_batch_have_masks_noises_and_covariances_of_their_own() -> None:
    masks = torch.stack([random_mask(8, 12, share, seed=2)[None] for share in (0.3, 0.7, 0.5)])
    op = Inpainting(SHAPE, masks.double())
    S, full = correlated(SHAPE)
    r = torch.cat([misfit(op.select(torch.tensor([row])), S, 0.1, seed=row) for row in range(3)])
    alone = [
        metric(op.select(torch.tensor([row])), *made)
        for row, made in enumerate(((S, full), correlated(SHAPE, 0.9), (independent(uneven_spread(SHAPE)), torch.eye(96))))
    ]
    together, sigma, eta = ByImage(alone), torch.tensor([0.1, 0.3, 0.2]), torch.tensor([0.5, 0.1, 0.7])
    for row, one in enumerate(alone):
        here = slice(row, row + 1)
        assert torch.equal(together.pinv(r)[here], one.pinv(r[here]))
        assert torch.equal(together.expect(r, sigma)[here], one.expect(r[here], sigma[here]))
        assert torch.equal(together.regularised_pinv(r, eta)[here], one.regularised_pinv(r[here], eta[here]))
        assert torch.equal(together.regularised_pinv(r, 0.4)[here], one.regularised_pinv(r[here], 0.4))


def test_a_solve_ends_where_its_error_is_not_visible() -> None:
    """A looser limit asks less of the camera, and the error in standard deviations stays below it."""
    op = operator("circular blur")
    S, full = correlated(SHAPE)
    r, asked = misfit(op, S, 0.05), []
    forward = op.gram
    expected = torch.linalg.solve(full, gain(dense(op), full, 0.05**2) @ r.flatten())
    for visible in (0.3, 0.03, 1e-3):
        count = 0

        def counted(x: Tensor) -> Tensor:
            nonlocal count
            count += 1
            return forward(x)

        op.gram = counted  # type: ignore[method-assign]
        found = Calibrated(S, op, 0.1, 1.0, 1000, visible, NO_FLOOR).expect(r, torch.tensor([0.05])).flatten()
        asked.append(count)
        gap = torch.linalg.solve(full, found) - expected
        assert math.sqrt(float(gap @ full @ gap) / len(gap)) <= visible
    assert asked[0] < asked[1] < asked[2]
