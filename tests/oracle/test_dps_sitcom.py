"""DPS and SITCOM, which are not affine: gradients against finite differences, steps against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from leader.methods import DPS, SITCOM, State
from leader.operators import BicubicSR, Blur, Inpainting, LinearOperator, gaussian_kernel, random_mask
from leader.priors.gaussian import GaussianPrior, stationary
from leader.priors.ledger import Ledger, recording
from tests.methods.contexts import context, measured
from tests.oracle import plugged_hosts
from tests.oracle.cases import mixture, world_of

SHAPE = (1, 8, 8)
SIGMA = 0.1
TIME = 100
"""A time at which the prior leaves enough freedom to fit the data."""


class LearnedGaussian(GaussianPrior):
    """A Gaussian whose exact variance counts as one the network was trained to predict."""

    source = "learned"


def operator(name: str) -> LinearOperator:
    makers: dict[str, Callable[[], LinearOperator]] = {
        "sr": lambda: BicubicSR(SHAPE, 2),
        "blur": lambda: Blur(SHAPE, gaussian_kernel(1.0, 5)),
        "inpaint": lambda: Inpainting(SHAPE, random_mask(8, 8, 0.5, seed=1)),
    }
    return makers[name]()


def draw(count: int, seed: int = 0) -> Tensor:
    return mixture(SHAPE).sample(count, torch.Generator().manual_seed(seed))


def state(count: int, seed: int = 9) -> Tensor:
    return torch.randn(count, *SHAPE, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("clamp", [False, True])
@pytest.mark.parametrize("name", ["sr", "blur", "inpaint"])
def test_dps_gradient_is_that_of_finite_differences(name: str, clamp: bool) -> None:
    prior = mixture(SHAPE)
    problem = measured(operator(name), draw(1), SIGMA)
    here, x, t = context(prior, problem), state(1), torch.tensor([150])
    estimate = DPS(clamp=clamp).estimate(here, State(x), t)
    assert estimate.guidance is not None

    def norm(v: Tensor) -> float:
        x0 = prior.predict(v, t).x0
        return float((problem.y - problem.operator.A(x0.clamp(-1, 1) if clamp else x0)).norm())

    saturated = (prior.predict(x, t).x0.abs() - 1).abs().min()
    assert saturated > 1e-4  # no kink of the clamp within the difference
    step = 1e-5
    for pixel in range(0, 64, 7):
        bump = torch.zeros(64, dtype=torch.float64)
        bump[pixel] = step
        slope = (norm(x + bump.reshape(x.shape)) - norm(x - bump.reshape(x.shape))) / (2 * step)
        assert float(estimate.guidance.flatten()[pixel]) == pytest.approx(slope, abs=1e-8)


@pytest.mark.parametrize("guidance", ["norm", "annealed"])
@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.parametrize(("t", "u"), [(500, 490), (999, 898), (10, 0), (0, -1)])
def test_dps_step_is_that_of_numpy(t: int, u: int, learned: bool, guidance: Any) -> None:
    """The ancestral step between two grid times, with betas recomputed, and guidance at the last step as
    well; the annealed one is the same step around an x0 that the score of the likelihood moved.
    """
    gaussian = stationary(SHAPE, 0.4, mean=0.1)
    prior = LearnedGaussian(gaussian) if learned else GaussianPrior(gaussian)
    problem = measured(operator("sr"), draw(1), SIGMA)
    here, x, method = context(prior, problem, seed=4), state(1), DPS(scale=0.7, guidance=guidance, clamp=False)
    times, after = torch.tensor([t]), torch.tensor([u])
    estimate = method.estimate(here, State(x), times)
    found = method.advance(here, State(x), estimate, estimate.prediction.x0, times, after).x

    w, v = world_of(prior, problem), x.flatten().numpy()
    a, b, A = w.ab(t), w.ab(u), w.A
    (jacobian, spread, _), x0 = w.given(t)[0], w.D(v, t)
    r = w.y - A @ x0
    gradient = -jacobian.T @ A.T @ r / np.linalg.norm(r)
    beta = 1 - a / b
    c0 = beta * np.sqrt(b) / (1 - a)
    c1 = (1 - b) * np.sqrt(1 - beta) / (1 - a)
    variance = np.full(64, beta * (1 - b) / (1 - a))
    if learned and u >= 0:
        variance = variance + c0**2 * np.diag(spread)
    z = here.noise("step").reshape(-1).numpy()
    if guidance == "annealed":
        x0 = x0 + 0.7 * (1 - a) / np.sqrt(a) * jacobian.T @ A.T @ r / (float(problem.sigma[0]) ** 2 + (1 - a) / a)
        gradient = 0 * gradient
    expected = c0 * x0 + c1 * v + np.sqrt(variance) * z - 0.7 * gradient
    assert np.abs(found.reshape(-1).numpy() - expected).max() < 1e-9


SITCOMS = [
    ("sr", 0.0, SITCOM(inner=12)),
    ("sr", SIGMA, SITCOM(inner=12, clamp=False, lam=0.3, margin=0.0)),
    ("blur", SIGMA, SITCOM(inner=60, rate=0.1)),
    ("inpaint", SIGMA, SITCOM(inner=60, rate=0.1, clamp=False)),
]


@pytest.mark.parametrize(("name", "sigma", "method"), SITCOMS)
def test_sitcom_inner_loop_is_that_of_numpy(name: str, sigma: float, method: SITCOM) -> None:
    prior = GaussianPrior(stationary(SHAPE, 0.5, mean=0.3))
    problem, x = measured(operator(name), draw(1), sigma), state(1)
    ledger = Ledger()
    with recording(ledger):
        estimate = method.estimate(context(prior, problem), State(x), torch.tensor([TIME]))
    host = plugged_hosts.SITCOM(world_of(prior, problem), **vars(method))
    expected = host.look(x.flatten().numpy(), TIME, lambda name: None).x0
    assert np.abs(estimate.prediction.x0.reshape(-1).numpy() - expected).max() < 1e-9
    assert (ledger.total.calls, ledger.total.backwards) == (host.calls, host.calls - 1)


def test_sitcom_images_stop_for_themselves() -> None:
    """A batch whose images need different numbers of iterations equals its images alone."""
    prior = GaussianPrior(stationary(SHAPE, 0.5, mean=0.3))
    prior.one_by_one = False
    both = measured(operator("blur"), draw(2) * torch.tensor([0.2, 0.8]).reshape(2, 1, 1, 1), SIGMA)
    x, t, method = state(2), torch.tensor([TIME, TIME - 30]), SITCOM(inner=80, rate=0.1)
    together = method.estimate(context(prior, both), State(x), t)
    passes = []
    for i in range(2):
        keep, ledger = torch.tensor([i]), Ledger()
        with recording(ledger):
            alone = method.estimate(context(prior, both.select(keep)), State(x[keep]), t[keep])
        passes.append(ledger.total.calls)
        assert torch.allclose(together.prediction.x0[keep], alone.prediction.x0, atol=1e-10)
        assert torch.allclose(together.x[keep], alone.x, atol=1e-10)
    assert passes[0] != passes[1]


def test_all_that_sitcom_answers_belongs_to_the_input_it_ended_with() -> None:
    """x0, noise and variance of every image are the prior's at its last input, also where the others went on."""
    prior, method, t = mixture(SHAPE), SITCOM(inner=40, rate=0.1, clamp=False), torch.tensor([TIME, TIME - 30])
    prior.one_by_one = False
    both = measured(operator("blur"), draw(2) * torch.tensor([0.2, 0.8]).reshape(2, 1, 1, 1), SIGMA)
    for count in (1, 40):
        estimate = replace(method, inner=count).estimate(context(prior, both), State(state(2)), t)
        expected, found = prior.predict(estimate.x, t), estimate.prediction
        assert expected.variance is not None and found.variance is not None
        for one, other in ((found.x0, expected.x0), (found.eps, expected.eps), (found.variance, expected.variance)):
            assert torch.allclose(one, other, atol=1e-12)
    assert not torch.allclose(estimate.x[0] - state(2)[0], torch.zeros(()).double(), atol=1e-3)
