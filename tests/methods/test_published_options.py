"""What methods do as published, by option: DDNM+'s noise, SITCOM's known pixels, DPS's respaced variances."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from leader import Prediction, Prior, Problem, Sampler, Schedule
from leader.errors import LeaderError
from leader.methods import DDNM, DPS, Estimate, State
from leader.operators import Blur, Inpainting, SeparableBlur, gaussian_kernel, gaussian_taps, random_mask
from leader.priors.adapters import learned_share, learned_variance
from leader.priors.base import from_eps
from tests.cheap_prior import CheapPrior
from tests.methods.contexts import context

SHAPE = (1, 6, 5)


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
    operator = SeparableBlur(SHAPE, gaussian_taps(1.5, 5), rcond_1d=0.2)
    assert int((operator.s == 0).sum()) > 0 and int((operator.spectrum == 0).sum()) == 0
    rng = torch.Generator().manual_seed(0)
    y, x0, eps = (torch.randn(1, *SHAPE, generator=rng, dtype=torch.float64) for _ in range(3))
    prior, sigma, eta = CheapPrior(), 0.1, 0.6
    here = context(prior, Problem(operator.A(0.5 + 0.05 * y), operator, sigma / 2))
    times = torch.tensor([u])
    estimate = Estimate(x0, Prediction(x0, eps))
    found = DDNM(eta=eta, noise="published").advance(here, State(x0), estimate, x0, torch.tensor([u + 10]), times).x
    abar = float(prior.schedule.abar(u))
    a, s_t = math.sqrt(abar), math.sqrt(1 - abar)
    s = operator.spectrum[0, 0].numpy()
    clean = s_t >= a * sigma / s
    d1 = np.where(clean, np.sqrt(np.maximum(0, s_t**2 - (a * sigma / s) ** 2)), s_t * eta)
    z = here.noise("step")[0, 0].numpy()
    wanted = a * x0[0, 0].numpy() + operator.back(torch.from_numpy(d1 * z)[None, None])[0, 0].numpy()  # d2 = 0: all is measured
    assert np.abs(found[0, 0].numpy() - wanted).max() < 1e-9
    ours = DDNM(eta=eta).advance(here, State(x0), estimate, x0, torch.tensor([u + 10]), times).x
    assert float((ours - found).abs().max()) > 1e-3


def test_no_noise_was_published_for_circular_blur() -> None:
    operator = Blur(SHAPE, gaussian_kernel(0.8, 3))
    problem = Problem(torch.full((1, *SHAPE), 0.5), operator, 0.05)
    with pytest.raises(LeaderError, match="complex"):
        Sampler(CheapPrior(), "ddnm", (), 3, noise="published").plan(problem)
    Sampler(CheapPrior(), "ddnm", (), 3, noise="published", form="simple").plan(problem)


def test_sitcom_overwrites_known_pixels() -> None:
    mask = random_mask(6, 5, 0.5, seed=1)
    operator = Inpainting(SHAPE, mask)
    clean = torch.rand(1, *SHAPE, generator=torch.Generator().manual_seed(4))
    problem = Problem.simulate(clean, operator, 0.2, seed=3)
    plain, written = (
        next(Sampler(CheapPrior(), "sitcom", (), 3, inner=2, overwrite=overwrite).iterate(problem))
        for overwrite in (False, True)
    )
    known = mask.bool().expand(SHAPE)
    assert torch.allclose(written.x0_hat[0][known], problem.y[0][known].clamp(-1, 1))
    assert torch.equal(written.x0_hat[0][~known], plain.x0_hat[0][~known].clamp(-1, 1))
    assert float((plain.x0_hat[0][known] - problem.y[0][known]).abs().max()) > 0.05
    blur = Problem(torch.full((1, *SHAPE), 0.5), Blur(SHAPE, gaussian_kernel(0.8, 3)), 0.05)
    with pytest.raises(LeaderError, match="in inpainting"):
        Sampler(CheapPrior(), "sitcom", (), 3, overwrite=True).plan(blur)


@pytest.mark.parametrize(("t", "u"), [(600, 500), (40, 20), (9, -1)])
def test_dps_respaced_variance(t: int, u: int) -> None:
    """exp(v log beta + (1 - v) log beta_tilde) of the schedule that has only these two times; none in the last step."""
    prior = Learned()
    x = torch.randn(1, *SHAPE, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    operator = Inpainting(SHAPE, torch.ones(6, 5))
    here = context(prior, Problem(torch.full((1, *SHAPE), 0.5, dtype=torch.float64), operator, 0.05))
    times, after = torch.tensor([t]), torch.tensor([u])
    prediction = prior.predict(x, times)
    estimate = Estimate(x, prediction, torch.zeros_like(x))
    a, b = float(prior.schedule.abar(t)), 1.0 if u < 0 else float(prior.schedule.abar(u))
    beta = 1 - a / b
    small = beta * (1 - b) / (1 - a)
    v = ((prior.raw(x) + 1) / 2).numpy()
    std = np.exp(0.5 * (v * math.log(beta) + (1 - v) * math.log(small))) if u >= 0 else 0 * v
    mean = (beta * math.sqrt(b) * prediction.x0.numpy() + (1 - b) * math.sqrt(1 - beta) * x.numpy()) / (1 - a)
    found = DPS(scale=0.0, variance="respaced").advance(here, State(x), estimate, prediction.x0, times, after).x.numpy()
    assert np.abs(found - mean - std * here.noise("step").numpy()).max() < 1e-9
    if u >= 0:
        ours = DPS(scale=0.0).advance(here, State(x), estimate, prediction.x0, times, after).x.numpy()
        assert np.abs(ours - found).max() > 1e-4


def test_the_share_of_a_learned_range_is_found_again() -> None:
    raw = torch.linspace(-1, 1, 30, dtype=torch.float64).reshape(1, *SHAPE)
    schedule = Schedule.linear()
    for t in (0, 1, 10, 500, 999):
        variance = learned_variance(raw, torch.tensor([t]), schedule)
        assert torch.allclose(learned_share(variance, torch.tensor([t]), schedule), (raw + 1) / 2, atol=1e-9)


def test_respaced_variances_need_a_learned_range() -> None:
    problem = Problem(torch.full((1, *SHAPE), 0.5), Inpainting(SHAPE, torch.ones(6, 5)), 0.05)
    with pytest.raises(LeaderError, match="learned no range"):
        next(Sampler(CheapPrior(), "dps", (), 3, variance="respaced").iterate(problem))
    assert next(Sampler(Learned(), "dps", (), 3, variance="respaced").iterate(problem)).x0_hat.isfinite().all()
