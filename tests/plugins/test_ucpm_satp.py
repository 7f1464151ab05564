"""UCPM's closed form and SATP's jumps against what they promise."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from leader.errors import UsageError
from leader.plugins import SATP, UCPM, expand
from leader.plugins.image_priors import ImagePrior, adjoint, differences, image_prior
from leader.schedule import Grid, uniform_grid

SHAPE = (1, 2, 7, 6)


def draw(seed: int, scale: float = 1.0) -> Tensor:
    return scale * torch.randn(SHAPE, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def objective(x: Tensor, x0: Tensor, sigma: Tensor, name: str, lam: float) -> float:
    data = torch.where(sigma > 0, (x - x0) ** 2 / sigma.clamp_min(1e-300), torch.zeros_like(x))
    return float(0.5 * data.sum() + lam * image_prior(name).energy(x).sum())


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    name=st.sampled_from(["tv", "tikhonov"]),
    lam=st.floats(0, 100),
    contrast=st.floats(0.001, 10),
    exponent=st.floats(-6, 2),
    solve=st.sampled_from(["diagonal", "cg"]),
)
def test_the_objective_never_rises(seed: int, name: str, lam: float, contrast: float, exponent: float, solve: Any) -> None:
    x0 = draw(seed, contrast)
    sigma = draw(seed + 1).exp() * 10**exponent
    sigma[0, 0, 0] = 0.0
    moved = x0 + UCPM(phi=name, lam=lam, solve=solve).change(x0, sigma)
    before, after = (objective(x, x0, sigma, name, lam) for x in (x0, moved))
    assert after <= before + 1e-9 * abs(before)
    assert torch.equal(moved[0, 0, 0], x0[0, 0, 0]), "a certain pixel does not move"


@pytest.mark.parametrize("name", ["tv", "tikhonov"])
def test_gradient_matches_the_energy(name: str) -> None:
    x, prior = draw(0).requires_grad_(), image_prior(name)
    (gradient,) = torch.autograd.grad(prior.energy(x).sum(), x)
    assert torch.allclose(gradient, prior.gradient(x.detach()), atol=1e-12)


def quartic() -> ImagePrior:
    """1/4 |D x|^4, of which nobody wrote the Hessian down: W = (D x)^2, H = D^T 3 (D x)^2 D."""
    return ImagePrior(
        lambda x: 0.25 * torch.stack(differences(x)).pow(4).sum((0, 2, 3, 4)),
        lambda x: (differences(x)[0] ** 2, differences(x)[1] ** 2),
    )


def test_the_hessian_of_a_custom_prior_against_a_dense_one() -> None:
    x0, sigma, lam, size = draw(4), draw(5).exp(), 0.7, draw(4)[0].numel()
    eye = torch.eye(size, dtype=torch.float64).reshape(size, *SHAPE[1:])
    table = torch.cat([part.reshape(size, size).T for part in differences(eye)])  # D, rows: differences
    bends = 3 * torch.cat([part.reshape(-1) for part in differences(x0)]) ** 2
    dense = table.T @ (bends[:, None] * table)
    product = quartic().hessian(x0)
    for v in (draw(6), draw(7)):  # one that serves a solve serves many products
        assert torch.allclose(product(v).reshape(-1), dense @ v.reshape(-1), atol=1e-9)
    frozen = table.T @ (bends[:, None] / 3 * table)  # the quadratic majoriser: the weights stay those of x0
    assert torch.allclose(quartic().curvature(x0)(draw(6)).reshape(-1), frozen @ draw(6).reshape(-1), atol=1e-9)
    assert torch.allclose(quartic().slope_and_majoriser(x0)[1].reshape(-1), 2 * frozen.diagonal(), atol=1e-9)
    slope = table.T @ (bends / 3 * (table @ x0.reshape(-1)))
    expected = torch.linalg.solve(torch.diag(1 / sigma.reshape(-1)) + lam * dense, -lam * slope)
    change = UCPM(phi=quartic(), lam=lam, solve="hessian").change(x0, sigma)
    assert torch.allclose(change.reshape(-1), expected, atol=1e-4)


@pytest.mark.parametrize(
    "satp", [SATP(budget=1e300), SATP(rho=1e-300, budget=10.0), SATP(budget=1e300, eta=1e300), SATP(eta=0.0, rho=1e-300)]
)
def test_extreme_budgets_jump_to_the_end_or_not_at_all(satp: SATP) -> None:
    grid = uniform_grid(100)
    assert satp.pace(grid, 0, 0.0) == (1 if satp.eta == 0 else 99)


@pytest.mark.parametrize("sharpen", [0.5, -0.4])
def test_sharpening_adds_to_the_image_prior_and_is_each_images_own(sharpen: float) -> None:
    x0 = torch.cat([draw(8), draw(9)])
    sigma = torch.cat([draw(10).exp() * 1e-4, draw(11).exp() * 1e-2])
    both = UCPM(lam=0.3, sharpen=sharpen).change(x0, sigma)
    alone = UCPM(lam=0.0, sharpen=sharpen).change(x0, sigma)
    assert torch.allclose(both, UCPM(lam=0.3).change(x0, sigma) + alone)
    for row in range(2):
        mean = sigma[row].mean()
        weight = (sharpen * mean * torch.exp(-sigma[row] / mean)).clamp_max(1 / 32)
        assert torch.allclose(alone[row], weight * adjoint(differences(x0[row : row + 1]))[0])


def test_a_jump_is_that_of_the_formula_to_the_last_step() -> None:
    """Values of U at which a step more or less in the count of the grid would show."""
    satp, U = SATP(budget=0.01, eta=2.0), 0.02 / 5.995 - 1e-8
    assert satp.jump(U) == 5
    assert satp.pace(uniform_grid(100), 0, U) == 5 and satp.pace(uniform_grid(1000), 0, U) == 59
    assert satp.pace(uniform_grid(50), 0, U) == 5
    root = SATP(budget=0.041, eta=3.0, rho=2.0)
    assert root.jump(0.01) == 6  # 3 sqrt(4.1) = 6.07; eta is outside the root
    assert SATP(budget=1.0, eta=0.0).jump(1e-9) == 1 and SATP(budget=0.01, eta=1.0).jump(1e-4) == 99


def test_uneven_grids_are_paced_by_their_clock_down_to_the_last_time() -> None:
    satp = SATP(budget=0.01, eta=2.0)
    grid = Grid((90, 80, 70, 30, 0, -1), clock=(900, 840, 839, 400, 0, -1))
    assert satp.pace(grid, 0, 0.0033) == 1, "sixty times of the clock: 840 itself is allowed, 839 is not"
    assert satp.pace(grid, 0, 1e-9) == 4 and satp.pace(grid, 3, 1e-9) == 4 and satp.pace(grid, 4, 1e-9) == 5


@pytest.mark.parametrize("plugins", [("satp", "satp"), ("leader", "equs", "satp"), ("leader-paper", "leader-paper")])
def test_a_plug_in_given_twice_is_refused(plugins: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match="given twice"):
        expand(plugins)
