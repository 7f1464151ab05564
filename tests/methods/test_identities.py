"""Identities between methods, and the pieces that have a closed form of their own."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from leader.methods import DDNM, DDPG, DDRM, IDPG, PIRP, DiffPIR, ProjDiff, State
from leader.methods.diffpir import early_coarse_grid
from leader.methods.pirp import gradient_term
from leader.operators import SpectralOperator
from leader.priors.gaussian import GaussianPrior, stationary, white
from leader.problem import Problem
from leader.sampler import Sampler
from tests.methods.contexts import context, measured, operators
from tests.oracle.dense import Array

SHAPE = (1, 16, 16)
SIGMA = 0.1


def prior(correlated: bool = True) -> GaussianPrior:
    return GaussianPrior(stationary(SHAPE, 0.4, mean=0.1) if correlated else white(SHAPE, 0.4, 0.1))


def problem(task: str, sigma: float, correlated: bool = True) -> Problem:
    truth = prior(correlated).sample(1, torch.Generator().manual_seed(2))
    return measured(operators(SHAPE)[task], truth, sigma)


def state() -> Tensor:
    return torch.randn(1, *SHAPE, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


@pytest.mark.parametrize(("t", "u"), [(990, 980), (500, 400), (60, 50), (20, 10), (10, 0), (0, -1)])
@pytest.mark.parametrize("task", ["inpaint", "sr-bicubic", "blur", "cs"])
def test_ddnm_plus_is_ddrm_with_eta_b_one(task: str, t: int, u: int) -> None:
    """From one state with one draw: the same next state, component by component."""
    case = problem(task, SIGMA)
    here, x = context(prior(), case), state()
    times, after = torch.tensor([t]), torch.tensor([u])
    results = []
    for method in (DDNM(eta=0.7), DDRM(eta=0.7, eta_b=1.0)):
        estimate = method.estimate(here, State(x), times)
        x0_hat = method.correct(here, State(x), estimate, estimate.prediction.x0, times, after)
        results.append(method.advance(here, State(x), estimate, x0_hat, times, after).x)
    assert isinstance(case.operator, SpectralOperator)
    difference = case.operator.to(results[0]) - case.operator.to(results[1])
    assert float(difference.abs().max()) < 1e-12


@pytest.mark.parametrize("task", ["inpaint", "sr-average", "cs"])
def test_projdiff_forms_agree_where_measured(task: str) -> None:
    """With a white prior coordinates do not couple, and measured ones follow the same recursion in both forms."""
    case = problem(task, SIGMA, correlated=False)
    outputs = [
        Sampler(prior(False), ProjDiff(step=0.6, form=form), (), 50, estimator=None).run(case, seed=4).images
        for form in ("spectral", "simple")
    ]
    assert isinstance(case.operator, SpectralOperator)
    difference = (case.operator.to(outputs[0]) - case.operator.to(outputs[1])).abs()
    where = (case.operator.s > 0).expand_as(difference)
    assert float(difference[where].max()) < 1e-10
    assert float(difference[~where].max()) > 1e-3  # unmeasured ones do differ


@pytest.mark.parametrize("task", ["inpaint", "sr-bicubic", "cs"])
def test_ddpg_without_regularisation_back_projects(task: str) -> None:
    case = problem(task, 0.0)
    here, x0 = context(prior(), case), state()
    method = DDPG(eta_floor=1e-13, mode=0)
    times, after = torch.tensor([500]), torch.tensor([490])
    estimate = method.estimate(here, State(state()), times)
    moved = method.correct(here, State(state()), estimate, x0, times, after)
    assert torch.allclose(moved, x0 - case.operator.pinv(case.residual(x0)), atol=1e-9)


def test_ddpg_ends_with_the_estimate_when_noisy_and_with_the_data_when_clean() -> None:
    for sigma in (0.0, SIGMA):
        case = problem("sr-bicubic", sigma)
        walk = list(Sampler(prior(), DDPG(eta_floor=1e-12), (), 10, estimator=None).iterate(case, seed=1))
        assert torch.equal(walk[-1].state.x, walk[-1].x0_hat)
        if sigma > 0:
            assert torch.equal(walk[-1].x0_hat, walk[-1].x0)
        else:
            assert float(case.residual(walk[-1].x0_hat).abs().max()) < 1e-9


def test_idpg_carries_no_noise() -> None:
    """Another seed changes the start alone, and in IDPG every state is a multiple of the guided estimate."""
    case = problem("blur", SIGMA)
    for step in Sampler(prior(), IDPG(), (), 10, estimator=None).iterate(case, seed=1):
        scale = math.sqrt(float(prior().schedule.abar(step.u[0])))
        assert torch.allclose(step.state.x, scale * step.x0_hat, atol=1e-12)


def test_ddpg_step_sizes() -> None:
    """Mode 1 scales the move by (1 - abar_u) / (1 - abar_t), mode 2 only its least-squares part."""
    case, times, after = problem("blur", SIGMA), torch.tensor([100]), torch.tensor([50])
    here, x0 = context(prior(), case), state()
    a, b = (float(prior().schedule.abar(t)) for t in (100, 50))
    estimate = DDPG().estimate(here, State(state()), times)
    moves = [DDPG(mode=mode).correct(here, State(state()), estimate, x0, times, after) - x0 for mode in (0, 1, 2)]
    ratio = (1 - b) / (1 - a)
    assert torch.allclose(moves[1], ratio * moves[0], atol=1e-12)
    ls = -(b**8) * case.operator.AT(case.residual(x0))
    assert torch.allclose(moves[2], moves[0] - (1 - ratio) * ls, atol=1e-12)


def test_diffpir_prox_solves_its_normal_equations() -> None:
    """A^T (A x - y) + rho (x - x0) = 0 at the proximal point, in the units asked for."""
    case, times, after = problem("sr-bicubic", SIGMA), torch.tensor([100]), torch.tensor([50])
    here, x0 = context(prior(), case), state()
    abar = float(prior().schedule.abar(100))
    for published, sigma in ((True, SIGMA / 2), (False, SIGMA)):
        method = DiffPIR(published_units=published)
        estimate = method.estimate(here, State(state()), times)
        x = method.correct(here, State(state()), estimate, x0, times, after)
        rho = 7 * sigma**2 * abar / (1 - abar)
        assert float((case.operator.AT(case.residual(x)) + rho * (x - x0)).abs().max()) < 1e-10


def test_diffpir_stays_finite_for_tiny_rho() -> None:
    """Clean data at t = 999: rho is 4e-11, where the authors' closed form loses all digits in single precision."""
    case = problem("sr-bicubic", 0.0)
    single = Problem.internal(case.y.float(), case.operator, 0.0)
    here, times, after = context(prior(), single), torch.tensor([999]), torch.tensor([898])
    method = DiffPIR(lam=1.0)
    assert float(method.rho(here, times)) == pytest.approx(4.04e-11, rel=1e-2)
    estimate = method.estimate(here, State(state().float()), times)
    x = method.correct(here, State(state().float()), estimate, estimate.prediction.x0, times, after)
    assert float(single.residual(x).abs().max()) < 1e-5


def test_diffpir_returns_the_last_estimate_or_as_published_the_state() -> None:
    case = problem("inpaint", SIGMA)
    walks = [
        list(Sampler(prior(), DiffPIR(return_noisy=noisy), (), 10, estimator=None).iterate(case, seed=1))
        for noisy in (False, True)
    ]
    assert torch.equal(walks[0][-1].state.x, walks[0][-1].x0)
    assert torch.equal(walks[1][-1].state.x, walks[1][-2].state.x)


def test_diffpir_grids_are_the_published_ones() -> None:
    twenty = (999, 770, 675, 602, 541, 487, 438, 393, 351, 311, 274, 239, 205, 172, 141, 111, 82, 54, 26, 0, -1)
    assert early_coarse_grid(20).times == twenty
    hundred = early_coarse_grid(100).times
    assert hundred[:6] == (999, 899, 857, 825, 798, 775) and hundred[-5:] == (15, 10, 5, 0, -1)
    thousand = early_coarse_grid(1000).times
    assert len(thousand) - 1 == 750 and list(thousand) == sorted(thousand, reverse=True)


@pytest.mark.parametrize("sigma", [0.0, SIGMA])
def test_pirp_without_its_term_is_ddpg(sigma: float) -> None:
    case = problem("blur", sigma)
    host = Sampler(prior(), DDPG(), (), 10, estimator=None).run(case, seed=1).images
    bare = Sampler(prior(), PIRP(lam=0.3).without_term(), (), 10, estimator=None).run(case, seed=1).images
    assert torch.equal(host, bare)


def test_pirp_adds_its_term_to_the_data_step() -> None:
    """lam R(x0) on every step but the last of noisy data; F_b takes no least squares."""
    for sigma, u, added in ((0.0, 490, True), (SIGMA, 490, True), (0.0, -1, True), (SIGMA, -1, False)):
        case = problem("blur", sigma)
        here, x0, times, after = context(prior(), case), state(), torch.tensor([500]), torch.tensor([u])
        estimate = DDPG().estimate(here, State(x0), times)
        guided = DDPG().correct(here, State(x0), estimate, x0, times, after)
        found = PIRP(lam=0.3, width=0.5).correct(here, State(x0), estimate, x0, times, after)
        expected = guided + (0.3 * gradient_term(x0, 0.5) if added else 0.0)
        assert torch.allclose(found, expected, atol=1e-12)
    case = problem("blur", SIGMA)
    here, after = context(prior(), case), torch.tensor([10])
    back = PIRP(lam=0.0, variant="b", mode=0).correct(here, State(x0), estimate, x0, torch.tensor([20]), after)
    eta = 0.7 * SIGMA**2
    assert torch.allclose(back, x0 - case.operator.regularised_pinv(case.residual(x0), eta), atol=1e-12)


def test_pirp_term_is_that_of_its_definition() -> None:
    """Index by index, with periodic neighbours; every channel and image on its own."""
    x = torch.randn(2, 3, 5, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    found, values, width = gradient_term(x, 0.8).numpy(), x.numpy(), 0.8
    expected = np.zeros_like(values)
    for axis, length in ((2, 5), (3, 6)):
        for j in range(length):

            def at(k: int, axis: int = axis, length: int = length) -> Array:
                return np.take(values, k % length, axis)

            def flow(k: int) -> Array:
                curvature = 2 * at(k) - at(k - 1) - at(k + 1)
                return np.exp(-(curvature**2) / (2 * width**2)) * (at(k + 1) - at(k))

            index = [slice(None)] * 4
            index[axis] = slice(j, j + 1)
            expected[tuple(index)] += np.expand_dims(flow(j - 1) - flow(j), axis)
    assert np.abs(found - expected).max() < 1e-12


def test_pirp_term_of_the_gradient_derives_from_welschs_energy() -> None:
    x = torch.randn(1, 2, 6, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64, requires_grad=True)
    width = 0.7
    slopes = [torch.roll(x, -1, axis) - x for axis in (-1, -2)]
    energy = sum((width**2 * (1 - torch.exp(-(d**2) / (2 * width**2)))).sum() for d in slopes)
    assert isinstance(energy, Tensor)
    (slope,) = torch.autograd.grad(energy, x)
    assert torch.allclose(gradient_term(x.detach(), width, "gradient"), slope, atol=1e-12)


def test_pirp_sharpens_with_positive_and_smooths_with_negative_strength() -> None:
    ripple = 0.1 * torch.sin(torch.arange(16) * math.pi / 4).expand(1, 1, 16, 16).double()
    term = gradient_term(ripple, 1.0)
    assert float((ripple + 0.1 * term).norm()) > float(ripple.norm()) > float((ripple - 0.1 * term).norm())
