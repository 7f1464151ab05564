"""The host `posterior` is affine on Gaussian priors, and its law goes to the posterior's as the steps become many.

`path`: with the same draws the code and its equations give the same image. `law`: composed from the equations, its mean and its
covariance are first order in the step away from the exact ones.

A run that draws x0 before every data step has the posterior's own law on any grid, if Sigma is exact and data are clean: given
x_t of p(x_t | y), a draw of N(E[x0 | x_t], Sigma) moved onto the data in the metric of Sigma is one of p(x0 | x_t, y), and
DDNM's step with eta = 1 is one of p(x_u | y), however long it is. The last step answers with the mean.
"""

import math
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

from leader.methods import DDNM, Posterior
from leader.noise import SeededNoise
from leader.operators import BicubicSR, Blur, Inpainting, LinearOperator, WalshHadamard, gaussian_kernel, random_mask
from leader.plugins.ucdc import UCDC
from leader.priors.gaussian import GaussianPrior, stationary
from leader.problem import Problem
from leader.sampler import Sampler
from leader.schedule import Grid, Schedule
from tests.oracle.cases import world_of
from tests.oracle.dense import Array, At, World
from tests.oracle.plugged import Host, Look, law, walk

SHAPE = (1, 4, 8)
SIZE = 32
SIGMA = 0.15
TIMES = 1200
EXACT = UCDC(iterations=1000, visible=1e-12, floor=1e-10)
"""Solves that go on until they are exact."""
OPERATORS: dict[str, LinearOperator] = {
    "inpaint": Inpainting(SHAPE, random_mask(4, 8, 0.5, seed=3)),
    "sr": BicubicSR(SHAPE, 2),
    "blur": Blur(SHAPE, gaussian_kernel(0.6, 3)),
    "cs": WalshHadamard(SHAPE, 0.4, seed=1),
}
SIGMAS = [SIGMA, 0.0]


@cache
def prior() -> GaussianPrior:
    """Correlated pixels; equal angles: abar = cos^2, so that grids of every T are equally spaced to both ends."""
    angles = math.pi / 2 * torch.arange(TIMES + 1, dtype=torch.float64) / (TIMES + 1)
    abar = torch.cos(angles) ** 2
    return GaussianPrior(stationary(SHAPE, 0.5, slope=1.5, mean=-0.1), Schedule(1 - abar[1:] / abar[:-1]))


def grid(steps: int) -> Grid:
    """TIMES - 1 down to the last time but -1, in equal angles."""
    return Grid((*range(TIMES - 1, -1, -TIMES // steps), -1))


@cache
def problem(name: str, sigma: float) -> Problem:
    generator = torch.Generator().manual_seed(5)
    clean = OPERATORS[name].A(prior().sample(1, generator))
    noise = torch.randn(clean.shape, generator=generator, dtype=torch.float64)
    return Problem.internal(clean + sigma * noise, OPERATORS[name], sigma)


@cache
def world(name: str, sigma: float, column: bool = True) -> World:
    return world_of(prior(), problem(name, sigma), column=column)


@cache
def posterior(name: str, sigma: float) -> tuple[Array, Array]:
    """The exact mean [N, 1] and covariance [N, N]."""
    w = world(name, sigma)
    mean, cov = w.parts[0].mean, w.parts[0].cov
    gain = cov @ w.A.T @ np.linalg.pinv(w.A @ cov @ w.A.T + sigma**2 * np.eye(len(w.A)), rcond=1e-12, hermitian=True)
    return mean + gain @ (w.y - w.A @ mean), cov - gain @ w.A @ cov


def power(symmetric: Array, exponent: float) -> Array:
    values, vectors = np.linalg.eigh(symmetric)
    return vectors * np.maximum(values, 0) ** exponent @ vectors.T


class Equations(Host):
    """x_hat = E[x0 | x_t, y] by conditioning the joint law of x0, x_t and y at once; DDIM's step with x_hat and its noise."""

    def given(self, t: int) -> tuple[Array, Array]:
        """Matrix and offset of x_t -> E[x0 | x_t, y]."""
        kept = self.settings.setdefault("kept", {})
        if t not in kept:
            w, a, (part,) = self.world, self.world.ab(t), self.world.parts
            known = np.concatenate([np.sqrt(a) * np.eye(SIZE), w.A])
            noise = np.concatenate([np.full(SIZE, 1 - a), np.full(len(w.A), w.sigma**2)])
            total = known @ part.cov @ known.T + np.diag(noise)
            gain = part.cov @ known.T @ np.linalg.pinv(total, rcond=1e-13, hermitian=True)
            kept[t] = gain[:, :SIZE], part.mean - gain @ known @ part.mean + gain[:, SIZE:] @ w.y
        return kept[t]  # type: ignore[no-any-return]

    def correct(self, state: Any, look: Look, x0: Array, t: int, u: int) -> Array:
        gain, offset = self.given(t)
        return gain @ state + offset

    def advance(self, state: Any, look: Look, hat: Array, t: int, u: int, draw: At) -> Array:
        a, b = self.world.ab(t), self.world.ab(u)
        eps = (state - np.sqrt(a) * hat) / np.sqrt(1 - a)
        fresh = self.settings["eta"] * np.sqrt((1 - b) / (1 - a)) * np.sqrt(1 - a / b)
        return np.sqrt(b) * hat + np.sqrt(1 - b - fresh**2) * eps + fresh * draw("step")


class FromTheTruth(Equations):
    """The same from the exact law of x_T given y, so that all that is left is the error of the steps."""

    def start(self, first: int, draw: At) -> Array:
        mean, cov = self.settings["truth"]
        a = self.world.ab(first)
        return np.sqrt(a) * mean + power(a * cov + (1 - a) * np.eye(SIZE), 0.5) @ draw("start")


@pytest.mark.parametrize("eta", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("sigma", SIGMAS)
@pytest.mark.parametrize("name", OPERATORS)
def test_path(name: str, sigma: float, eta: float) -> None:
    source, case = SeededNoise(11), problem(name, sigma)

    def draw(position: int, draw_name: str) -> Array:
        return source([0], [position], draw_name, SHAPE).double().flatten().numpy()

    found = Sampler(prior(), Posterior(eta=eta), (EXACT,), grid=grid(12)).run(case, seed=11).images[0]
    expected = walk(Equations(world(name, sigma, column=False), eta=eta), grid(12).times, True, draw).image
    assert np.abs(found.reshape(-1).numpy() - expected).max() < 3e-6  # what conjugate gradients leave at a floor near 0


def halves(first: float, second: float, third: float) -> bool:
    """Errors c h (1 + k h + ...) of steps h, h/2 and h/4: ratios 2 (1 + k h / 2) and 2 (1 + k h / 4), whose excess halves."""
    one, two = first / second, second / third
    return abs(two - 2) < 0.75 * abs(one - 2) + 0.03 and abs(two - 2) < 0.35


@pytest.mark.parametrize("eta", [0.0, 1.0])
@pytest.mark.parametrize("sigma", SIGMAS)
@pytest.mark.parametrize("name", OPERATORS)
def test_law_is_first_order_in_the_step_away_from_the_posterior(name: str, sigma: float, eta: float) -> None:
    mean, cov = posterior(name, sigma)
    if name == "blur" and sigma == 0:
        assert np.abs(cov).max() < 1e-9, "all is measured: the posterior is a point, which any T reaches"
        found = law(FromTheTruth(world(name, sigma), eta=eta, truth=(mean, cov)), grid(10).times)
        assert np.abs(found[0] - mean[:, 0]).max() < 1e-6 and np.abs(found[1]).max() < 1e-6
        return
    laws = [law(FromTheTruth(world(name, sigma), eta=eta, truth=(mean, cov)), grid(steps).times) for steps in (50, 100, 200)]
    errors = [float(np.linalg.norm(found[1] - cov) / np.linalg.norm(cov)) for found in laws]
    assert halves(*errors), errors
    # twice the finer law less the coarser one is second order: far closer than either
    assert np.linalg.norm(2 * laws[2][1] - laws[1][1] - cov) / np.linalg.norm(cov) < 0.25 * errors[2]
    means = [np.abs(found[0] - mean[:, 0]).max() for found in laws]
    assert means[2] < 1e-8 or halves(*means), means  # the mean itself is exact where start and steps are


def test_it_gets_its_metric_by_itself_and_that_one_s_settings() -> None:
    sampler = Sampler(prior(), "posterior", (), 5, ucdc={"iterations": 3}, use_presets=False)
    plan = sampler.plan(problem("sr", SIGMA))
    assert [item.name for item in plan.plugins] == ["ucdc"] and plan.plugins[0] == UCDC(iterations=3)
    added = Sampler(prior(), "posterior", ("ucpm",), 5).plan(problem("sr", SIGMA))
    assert [item.name for item in added.plugins] == ["ucpm", "ucdc"], "beside the others"
    given = Sampler(prior(), "posterior", ("ucpm", EXACT), 5).plan(problem("sr", SIGMA))
    assert [item.name for item in given.plugins] == ["ucpm", "ucdc"] and given.plugins[1] == EXACT
    assert Sampler(prior(), "ddnm", (), 5).plan(problem("sr", SIGMA)).plugins == ()


FEW = (TIMES - 1, 800, 350, 120, -1)


class Drawn(Host):
    """DDNM with eta = 1 on clean data: x0 drawn, then conditioned on y by dense algebra."""

    def advance(self, state: Any, look: Look, hat: Array, t: int, u: int, draw: At) -> Array:
        w, ((_, cov, _),) = self.world, self.world.given(t)
        gain = cov @ w.A.T @ np.linalg.pinv(w.A @ cov @ w.A.T, rcond=1e-12, hermitian=True)
        x0 = hat if u < 0 else hat + self.settings["scatter"] * power(cov, 0.5) @ draw("scatter")
        b = w.ab(u)
        return np.sqrt(b) * (x0 + gain @ (w.y - w.A @ x0)) + np.sqrt(1 - b) * draw("step")


class DrawnFromTheTruth(Drawn):
    start = FromTheTruth.start


@pytest.mark.parametrize("scatter", [0.4, 1.0])
@pytest.mark.parametrize("name", OPERATORS)
def test_path_of_drawn_estimates(name: str, scatter: float) -> None:
    source = SeededNoise(11, ("scatter",))

    def draw(position: int, draw_name: str) -> Array:
        return source([0], [position], draw_name, SHAPE).double().flatten().numpy()

    plugin = UCDC(iterations=1000, visible=1e-12, floor=1e-8, scatter=scatter)
    sampler = Sampler(prior(), DDNM(eta=1.0), (plugin,), grid=Grid(FEW), use_presets=False)
    found = sampler.run(problem(name, 0.0), seed=11).images[0]
    expected = walk(Drawn(world(name, 0.0, column=False), scatter=scatter), FEW, True, draw).image
    assert np.abs(found.reshape(-1).numpy() - expected).max() < 1e-7


@pytest.mark.parametrize("name", ["inpaint", "sr", "cs"])
def test_law_is_the_posterior_s_in_four_steps(name: str) -> None:
    mean, cov = posterior(name, 0.0)
    w, a = world(name, 0.0), world(name, 0.0).ab(FEW[-2])
    left = cov - a * cov @ np.linalg.solve(a * cov + (1 - a) * np.eye(SIZE), cov)  # Cov[x0 | x_t, y]
    laws = {s: law(DrawnFromTheTruth(w, scatter=s, truth=(mean, cov)), FEW) for s in (0.0, 1.0)}
    assert np.abs(laws[1.0][0] - mean[:, 0]).max() < 1e-9
    assert np.abs(laws[1.0][1] - (cov - left)).max() < 1e-9
    assert np.trace(laws[0.0][1]) < 0.5 * np.trace(cov - left), "means alone lose most of what there is to know"
