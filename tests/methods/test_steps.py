"""What only shows in one step of a method: grids, travel, origins, options as published, and SITCOM's inner loop in a batch."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from leader import Grid, LeaderError, Prediction, Prior, Problem, Sampler, operators
from leader.methods import DDNM, DPS, METHODS, SITCOM, DiffPIR, Estimate, State
from leader.methods.ddnm import DDNMState
from leader.methods.diffpir import early_coarse_grid
from leader.methods.projdiff import ProjDiffState
from leader.operators import Blur, Inpainting, SeparableOperator, gaussian_kernel, gaussian_taps
from leader.operators.separable_blur import blur_matrix
from leader.priors.adapters import learned_variance
from leader.priors.base import from_eps
from leader.priors.gaussian import GaussianPrior, stationary
from leader.priors.ledger import Ledger, recording
from leader.schedule import Schedule, travel_grid
from tests.cheap_prior import CheapPrior
from tests.methods.contexts import context, measured
from tests.oracle.cases import gaussian, mixture

SHAPE = (1, 4, 4)


def noisy_problem(sigma: float = 0.3, count: int = 1) -> Problem:
    operator = operators.AveragePoolSR(SHAPE, 2)
    generator = torch.Generator().manual_seed(0)
    return Problem.internal(torch.randn(count, 1, 2, 2, generator=generator, dtype=torch.float64), operator, sigma)


def test_ddnm_travels_when_told_to() -> None:
    schedule = Schedule.linear()
    grid = DDNM(travel_length=3, travel_repeats=2).default_grid(schedule, 10)
    assert grid == travel_grid(10, 3, 2) and any(b > a for a, b in zip(grid.times, grid.times[1:]))
    assert DDNM(travel_length=3).default_grid(schedule, 10).times == (*range(900, -1, -100), -1)
    assert DPS().default_grid(schedule, 10).times == (*range(999, -1, -111), -1), "from the very top, as its authors respace"


@pytest.mark.parametrize("sigma", [0.0, 0.1])
@pytest.mark.parametrize("name", [name for name, cls in METHODS.items() if cls.takes_origin])
def test_a_known_origin_is_taken_to_the_noise_of_the_first_time(name: str, sigma: float) -> None:
    """x = sqrt(abar) origin + sqrt(1 - abar) z, whatever the method would start from otherwise."""
    prior, problem = gaussian("white", SHAPE), noisy_problem(sigma)
    origin = torch.full((1, *SHAPE), 0.3, dtype=torch.float64)
    here = replace(context(prior, problem), origin=origin)
    t = torch.tensor([300])
    abar = float(prior.schedule.abar(300))
    state = METHODS[name]().start(here, t)
    expected = abar**0.5 * origin + (1 - abar) ** 0.5 * here.noise("start")
    assert torch.allclose(state.x, expected, atol=1e-6)
    if isinstance(state, ProjDiffState):
        assert torch.equal(state.x0, origin), "the clean variable is the origin itself"


def test_a_selection_keeps_its_order_also_where_it_holds_all() -> None:
    x = torch.arange(3.0).reshape(3, 1, 1, 1)
    state = DDNMState(x, 10 + x)
    for order in ([2, 0, 1], [1], [0, 1, 2], [1, 1, 0]):
        chosen = state.select(torch.tensor(order))
        assert chosen.x.flatten().tolist() == order and (chosen.x0.flatten() - 10).tolist() == order
    problem = noisy_problem(count=3)
    turned = problem.select(torch.tensor([2, 1, 0]))
    assert torch.equal(turned.y, problem.y.flip(0))


@pytest.mark.parametrize("name", sorted(set(METHODS) - {"ddnm", "ddrm", "repaint"}))
def test_methods_that_cannot_travel_say_so(name: str) -> None:
    sampler = Sampler(gaussian("white", SHAPE), name, (), grid=Grid((300, 200, 300, -1)), estimator=None)
    with pytest.raises(LeaderError, match=f"'{name}' does not support time travel"):
        sampler.run(noisy_problem())


def test_diffpir_stays_finite_for_tiny_rho() -> None:
    """Clean data at t = 999: rho is 4e-11, where the authors' closed form loses all digits in single precision."""
    prior = gaussian("correlated", (1, 16, 16))
    x = prior.sample(1, torch.Generator().manual_seed(2))
    operator = operators.BicubicSR((1, 16, 16), 4)
    single = Problem.internal(operator.A(x).float(), operator, 0.0)
    here, times, after = context(prior, single), torch.tensor([999]), torch.tensor([898])
    method = DiffPIR(lam=1.0)
    assert float(method.rho(here, times)) == pytest.approx(4.04e-11, rel=1e-2)
    estimate = method.estimate(here, State(x.float()), times)
    x = method.correct(here, State(x.float()), estimate, estimate.prediction.x0, times, after)
    assert float(single.residual(x).abs().max()) < 1e-5


def test_diffpir_grids_are_the_published_ones() -> None:
    twenty = (999, 770, 675, 602, 541, 487, 438, 393, 351, 311, 274, 239, 205, 172, 141, 111, 82, 54, 26, 0, -1)
    assert early_coarse_grid(20).times == twenty
    hundred = early_coarse_grid(100).times
    assert hundred[:6] == (999, 899, 857, 825, 798, 775) and hundred[-5:] == (15, 10, 5, 0, -1)
    thousand = early_coarse_grid(1000).times
    assert len(thousand) - 1 == 750 and list(thousand) == sorted(thousand, reverse=True)
    assert early_coarse_grid(4, 100).times == (99, 42, 18, 0, -1), "of any number of times"


SMALL = (1, 6, 5)


class Learned(Prior):
    """A network trained with a learned range, as far as its variance goes: v differs from pixel to pixel."""

    name, source = "range", "learned"

    def __init__(self) -> None:
        super().__init__(Schedule.linear())

    def raw(self, x: Tensor) -> Tensor:
        return torch.linspace(-1, 1, x[0].numel(), dtype=x.dtype).reshape(1, *x.shape[1:]).expand_as(x)

    def _predict(self, x: Tensor, t: Tensor) -> Prediction:
        return from_eps(x, t, 0.3 * x, self.schedule, learned_variance(self.raw(x), t, self.schedule))


@pytest.mark.parametrize("u", [700, 30, 2])
def test_ddnm_published_noise(u: int) -> None:
    """V (d1 z + d2 e) with the pixels of e for coefficients and the table of the spectrum before the cut."""
    operator = SeparableOperator(SMALL, blur_matrix(6, tuple(gaussian_taps(1.5, 5).tolist()), "zero")[:5], torch.eye(5), 0.2)
    assert 5 == int((operator.spectrum == 0).sum()) < int((operator.s == 0).sum()), "nothing to measure, and cut off"
    rng = torch.Generator().manual_seed(0)
    y, x0, eps = (torch.randn(1, *SMALL, generator=rng, dtype=torch.float64) for _ in range(3))
    prior, sigma, eta = CheapPrior(), 0.1, 0.6
    here = context(prior, Problem(operator.A(0.5 + 0.05 * y), operator, sigma / 2))
    times = torch.tensor([u])
    estimate = Estimate(x0, Prediction(x0, eps))
    found = DDNM(eta=eta, noise="published").advance(here, State(x0), estimate, x0, torch.tensor([u + 10]), times).x
    abar = float(prior.schedule.abar(u))
    a, s_t = math.sqrt(abar), math.sqrt(1 - abar)
    s = operator.spectrum[0, 0].numpy()
    carried = a * sigma / np.where(s > 0, s, 1e-9)
    d1 = np.where(s_t >= carried, np.sqrt(np.maximum(0, s_t**2 - carried**2)), s_t * eta)
    d2 = np.where(s > 0, 0, s_t * math.sqrt(1 - eta**2))
    mixed = d1 * here.noise("step")[0, 0].numpy() + d2 * eps[0, 0].numpy()
    wanted = a * x0[0, 0].numpy() + operator.back(torch.from_numpy(mixed)[None, None])[0, 0].numpy()
    assert np.abs(found[0, 0].numpy() - wanted).max() < 1e-9
    ours = DDNM(eta=eta).advance(here, State(x0), estimate, x0, torch.tensor([u + 10]), times).x
    assert float((ours - found).abs().max()) > 1e-3


@pytest.mark.parametrize(("t", "u"), [(600, 500), (40, 20), (9, -1)])
def test_dps_respaced_variance(t: int, u: int) -> None:
    """exp(v log beta + (1 - v) log beta_tilde) of the schedule that has only these two times; none in the last step."""
    prior = Learned()
    x = torch.randn(1, *SMALL, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    operator = Inpainting(SMALL, torch.ones(6, 5))
    here = context(prior, Problem(torch.full((1, *SMALL), 0.5, dtype=torch.float64), operator, 0.05))
    times, after = torch.tensor([t]), torch.tensor([u])
    prediction = prior.predict(x, times)
    estimate = Estimate(x, prediction, torch.zeros_like(x))
    a, b = float(prior.schedule.abar(t)), 1.0 if u < 0 else float(prior.schedule.abar(u))
    beta = 1 - a / b
    small = beta * (1 - b) / (1 - a)
    v = ((prior.raw(x) + 1) / 2).numpy()
    std = np.exp(0.5 * (v * math.log(beta) + (1 - v) * math.log(small))) if u >= 0 else 0 * v
    mean = (beta * math.sqrt(b) * prediction.x0.numpy() + (1 - b) * math.sqrt(1 - beta) * x.numpy()) / (1 - a)
    method = DPS(scale=0.0, variance="respaced")
    method.start(here, times)  # a prior that learned its variance is not refused
    found = method.advance(here, State(x), estimate, prediction.x0, times, after).x.numpy()
    assert np.abs(found - mean - std * here.noise("step").numpy()).max() < 1e-9
    if u >= 0:
        ours = DPS(scale=0.0).advance(here, State(x), estimate, prediction.x0, times, after).x.numpy()
        assert np.abs(ours - found).max() > 1e-4


SQUARE = (1, 8, 8)
SIGMA = 0.1
TIME = 100
"""A time at which the prior leaves enough freedom to fit the data."""


def draw(count: int, seed: int = 0) -> Tensor:
    return mixture(SQUARE).sample(count, torch.Generator().manual_seed(seed))


def state(count: int, seed: int = 9) -> Tensor:
    return torch.randn(count, *SQUARE, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_sitcom_images_stop_for_themselves() -> None:
    """A batch whose images need different numbers of iterations equals its images alone."""
    prior = GaussianPrior(stationary(SQUARE, 0.5, mean=0.3))
    prior.one_by_one = False
    both = measured(Blur(SQUARE, gaussian_kernel(1.0, 5)), draw(2) * torch.tensor([0.2, 0.8]).reshape(2, 1, 1, 1), SIGMA)
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
    prior, method, t = mixture(SQUARE), SITCOM(inner=40, rate=0.1, clamp=False), torch.tensor([TIME, TIME - 30])
    prior.one_by_one = False
    both = measured(Blur(SQUARE, gaussian_kernel(1.0, 5)), draw(2) * torch.tensor([0.2, 0.8]).reshape(2, 1, 1, 1), SIGMA)
    for count in (1, 40):
        estimate = replace(method, inner=count).estimate(context(prior, both), State(state(2)), t)
        expected, found = prior.predict(estimate.x, t), estimate.prediction
        assert expected.variance is not None and found.variance is not None
        for one, other in ((found.x0, expected.x0), (found.eps, expected.eps), (found.variance, expected.variance)):
            assert torch.allclose(one, other, atol=1e-12)
    assert not torch.allclose(estimate.x[0] - state(2)[0], torch.zeros(()).double(), atol=1e-3)
