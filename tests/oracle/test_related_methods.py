"""The methods of the related work against NumPy, written from the equations of their papers: one step each, gradients against
finite differences, the laws that are known in closed form, and every plug-in on all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from leader import Sampler
from leader.methods import DAPS, DCDP, DPS, MCG, Context, Method, PiGDM, REDDiff, RePaint, State, make_method
from leader.methods.red_diff import REDDiffState
from leader.noise import inner_name
from leader.operators import BicubicSR, Inpainting, LinearOperator, SeparableBlur, gaussian_taps, random_mask
from leader.priors.base import Prior
from leader.priors.gaussian import GaussianPrior, white
from leader.problem import Problem
from leader.schedule import Grid
from leader.uncertainty.metric import Euclidean
from tests.methods.contexts import context, measured
from tests.oracle.cases import gaussian, mixture, world_of
from tests.oracle.dense import Array
from tests.oracle.scenes import scene

SHAPE = (1, 6, 8)
SIZE = 48
SIGMA = 0.2
RELATED: dict[str, dict[str, Any]] = {
    "pigdm": {},
    "daps": {"flow": 2, "inner": 10},
    "red-diff": {},
    "repaint": {"travel_length": 2, "travel_repeats": 2},
    "mcg": {},
    "dcdp": {"flow": 2},
}
"""The six, with settings that keep tests short."""
OPERATORS: dict[str, Callable[[], LinearOperator]] = {
    "sr": lambda: BicubicSR(SHAPE, 2),
    "blur": lambda: SeparableBlur(SHAPE, gaussian_taps(0.7)),
    "inpaint": lambda: Inpainting(SHAPE, random_mask(6, 8, 0.4, seed=1)),
}


class Case:
    """One problem as the package sees it and as NumPy does, with a correlated Gaussian prior."""

    def __init__(self, name: str, sigma: float, seed: int = 3) -> None:
        self.prior = gaussian("correlated", SHAPE)
        truth = self.prior.sample(1, torch.Generator().manual_seed(seed))
        self.problem = measured(OPERATORS[name](), truth, sigma)
        self.context: Context = context(self.prior, self.problem, seed=4)
        self.world = world_of(self.prior, self.problem, column=True)
        self.x = torch.randn(1, *SHAPE, generator=torch.Generator().manual_seed(8), dtype=torch.float64)

    def draw(self, name: str) -> Array:
        return column(self.context.noise(name))

    def step(self, method: Method, t: int, u: int, state: State | None = None) -> State:
        """The method's own step from x, or from a state of its own."""
        times, after = torch.tensor([t]), torch.tensor([u])
        before = State(self.x) if state is None else state
        estimate = method.estimate(self.context, before, times)
        x0_hat = method.correct(self.context, before, estimate, estimate.prediction.x0, times, after)
        return method.advance(self.context, before, estimate, x0_hat, times, after)

    def jacobian(self, t: int) -> Array:
        """dx0/dx_t, symmetric."""
        return self.world.given(t)[0][0]

    def weighted_inverse(self, eta: float) -> Array:
        """A^T (A A^T + eta)^{-1}; A^+ for eta = 0."""
        A = self.world.A
        return self.world.pinv if eta == 0 else A.T @ np.linalg.inv(A @ A.T + eta * np.eye(len(A)))


def column(values: Tensor) -> Array:
    return values.detach().reshape(-1, 1).numpy().astype(float)


def same(found: Tensor, expected: Array, atol: float = 1e-8) -> None:
    assert np.allclose(column(found), expected, atol=atol), np.abs(column(found) - expected).max()


def ancestral(case: Case, x: Array, t: int, u: int) -> Array:
    """The posterior q(x_u | x_t, x0) of DDPM, with the draw of the step."""
    a, b = case.world.ab(t), case.world.ab(u)
    beta = 1 - a / b
    mean = beta * np.sqrt(b) / (1 - a) * case.world.D(x, t) + (1 - b) * np.sqrt(a / b) / (1 - a) * x
    return mean + np.sqrt(beta * (1 - b) / (1 - a)) * case.draw("step")


def replaced(case: Case, x: Array, t: int, u: int, damping: float) -> Array:
    """x with its measured part from y at the noise of u."""
    w, b = case.world, case.world.ab(u)
    known = np.sqrt(b) * w.y + np.sqrt(1 - b) * w.A @ case.draw("observation")
    eta = damping * w.sigma**2 / (1 - w.ab(t))
    return x + case.weighted_inverse(eta) @ (known - w.A @ x)


@pytest.mark.parametrize("weights", ["adaptive", "score"])
@pytest.mark.parametrize(("name", "sigma"), [("sr", 0.0), ("blur", SIGMA), ("inpaint", SIGMA)])
@pytest.mark.parametrize(("t", "u"), [(600, 480), (40, 0), (0, -1)])
def test_step_of_pigdm(name: str, sigma: float, weights: Any, t: int, u: int) -> None:
    case, v, eta = Case(name, sigma), 0.3, 0.6
    w, x = case.world, column(case.x)
    a, b = w.ab(t), w.ab(u)
    r2 = v * (1 - a) / (1 - a + v * a)
    score = (
        case.jacobian(t).T
        @ w.A.T
        @ np.linalg.lstsq(r2 * w.A @ w.A.T + sigma**2 * np.eye(len(w.A)), w.y - w.A @ w.D(x, t), rcond=1e-6)[0]
    )
    fresh = eta * np.sqrt((1 - b) / (1 - a)) * np.sqrt(1 - a / b)
    if weights == "adaptive":
        x0, eps = w.D(x, t) + np.sqrt(a) * r2 * score, w.eps(x, t)
    else:
        x0, eps = w.D(x, t) + (1 - a) / np.sqrt(a) * score, w.eps(x, t) - np.sqrt(1 - a) * score
    expected = np.sqrt(b) * x0 + np.sqrt(max(0.0, 1 - b - fresh**2)) * eps + fresh * case.draw("step")
    same(case.step(PiGDM(eta=eta, variance=v, weights=weights), t, u).x, expected)


@pytest.mark.parametrize("sigma", [0.0, SIGMA])
def test_guidance_of_pigdm_by_finite_differences(sigma: float) -> None:
    """On a mixture, whose Jacobian changes with x: the derivative of x0 along a fixed direction."""
    prior, t = mixture(SHAPE), torch.tensor([150])
    problem = measured(OPERATORS["blur"](), prior.sample(1, torch.Generator().manual_seed(2)), sigma)
    x = torch.randn(1, *SHAPE, generator=torch.Generator().manual_seed(9), dtype=torch.float64)
    guidance = PiGDM().estimate(context(prior, problem), State(x), t).guidance
    assert guidance is not None
    r2 = 1 - float(prior.schedule.abar(150))
    missing = problem.y - problem.operator.A(prior.predict(x, t).x0)
    move = problem.operator.regularised_pinv(missing, sigma**2 / r2) if sigma else problem.operator.pinv(missing)
    for pixel in range(0, SIZE, 5):
        bump = torch.zeros(SIZE, dtype=torch.float64)
        bump[pixel] = 1e-5
        ends = [float((prior.predict(x + way * bump.reshape(x.shape), t).x0 * move).sum()) for way in (1, -1)]
        assert float(guidance.flatten()[pixel]) == pytest.approx((ends[0] - ends[1]) / 2e-5, abs=1e-7)


def test_pigdm_with_the_true_variance_reaches_the_posterior() -> None:
    """Independent pixels, half of them measured: spread and answer to y are the posterior's as steps become many."""
    side, std, sigma = 48, 0.4, 0.1
    mask = ((torch.arange(side)[:, None] + torch.arange(side)) % 2).double()
    prior = GaussianPrior(white((1, side, side), std))
    gain = std**2 / (std**2 + sigma**2)

    def answer(method: Method, level: float) -> Tensor:
        problem = Problem.internal(level * mask.expand(1, 1, side, side), Inpainting((1, side, side), mask), sigma)
        return Sampler(prior, method, (), 400, estimator=None).run(problem, seed=1).images[0, 0]

    exact = PiGDM(variance=std**2, weights="score")
    still, moved = (answer(exact, level) for level in (0.0, 1.0))
    known = mask.bool()
    assert float((moved - still)[known].mean()) == pytest.approx(gain, rel=1e-5), "with any number of steps"
    assert float(still[known].std()) == pytest.approx(std * math.sqrt(1 - gain), rel=0.1)
    assert float(still[~known].std()) == pytest.approx(std, rel=0.07)
    published = PiGDM(weights="score")  # a variance of 1 for pixels of 0.16
    assert float((answer(published, 1.0) - answer(published, 0.0))[known].mean()) < 0.96 * gain


@pytest.mark.parametrize(("name", "sigma", "damping"), [("sr", 0.0, 4.0), ("blur", SIGMA, 2.5), ("inpaint", SIGMA, 0.0)])
@pytest.mark.parametrize(("t", "u"), [(600, 480), (40, 0), (0, -1)])
def test_step_of_repaint_and_mcg(name: str, sigma: float, damping: float, t: int, u: int) -> None:
    case = Case(name, sigma)
    x = column(case.x)
    same(case.step(RePaint(clamp=False, damping=damping), t, u).x, replaced(case, ancestral(case, x, t, u), t, u, damping))
    residual = case.world.A @ case.world.D(x, t) - case.world.y
    gradient = case.jacobian(t).T @ case.world.A.T @ residual / np.linalg.norm(residual)
    guided = ancestral(case, x, t, u) - 0.7 * gradient
    found = case.step(MCG(scale=0.7, clamp=False, variance="small", damping=damping), t, u).x
    same(found, replaced(case, guided, t, u, damping))


def test_repaint_goes_up_by_the_forward_process() -> None:
    case = Case("inpaint", 0.0)
    a, b = case.world.ab(100), case.world.ab(300)
    found = RePaint().travel(case.context, State(case.x), torch.tensor([100]), torch.tensor([300]))
    same(found.x, np.sqrt(b / a) * column(case.x) + np.sqrt(1 - b / a) * case.draw("travel"))
    grid = RePaint(travel_length=3, travel_repeats=4).default_grid(case.prior.schedule, 20)
    assert grid.visits > 20 and RePaint(travel_repeats=1).default_grid(case.prior.schedule, 20).visits == 20


@pytest.mark.parametrize("name", ["repaint", "mcg"])
def test_known_pixels_are_those_of_y_in_the_end(name: str) -> None:
    """Bit for bit, in single precision, with a mixture as the prior and with all that time travel does in between."""
    prior = mixture(SHAPE)
    problem = measured(OPERATORS["inpaint"](), prior.sample(2, torch.Generator().manual_seed(1)).float(), 0.0)
    result = Sampler(prior, name, ("satp",), 20, use_presets=False, **RELATED[name]).run(problem, seed=5)
    known = problem.operator.reached(problem.y).expand(result.images.shape)
    assert float((result.images - problem.y)[known].abs().max()) < 1e-6
    assert float(result.images[~known].std()) > 0.05


@pytest.mark.parametrize(("name", "sigma"), [("sr", 0.0), ("blur", SIGMA), ("inpaint", SIGMA)])
@pytest.mark.parametrize(("t", "u"), [(600, 480), (40, 0), (0, -1)])
def test_step_of_daps(name: str, sigma: float, t: int, u: int) -> None:
    """The flow by DDIM between equal thirds of the time, Langevin steps of the published length, noise of the next time."""
    case, method = Case(name, sigma), DAPS(flow=3, inner=4, rate=3e-3, fall=0.1, tau=0.02, end=1.5)
    w = case.world
    here = column(case.x)
    walk: tuple[tuple[int, int], ...] = ((t, 2 * t // 3), (2 * t // 3, t // 3), (t // 3, -1))
    for now, after in walk:
        x0 = w.D(here, now)
        here = np.sqrt(w.ab(after)) * x0 + np.sqrt(1 - w.ab(after)) * w.eps(here, now)
    tau2, s2 = 0.02**2, (1 - w.ab(t)) / w.ab(t)
    length = min(3e-3 * (0.1 + 0.9 * t / 999), float(1 / (np.linalg.norm(w.A, 2) ** 2 / tau2 + 1 / s2)))
    taken = s2 >= (1.5 * sigma) ** 2
    assert taken == (t == 600 or sigma == 0)
    x = x0
    for k in range(4 if taken and u >= 0 else 0):
        slope = w.A.T @ (w.A @ x - w.y) / tau2 + (x - x0) / s2
        x = x - length * slope + np.sqrt(2 * length) * case.draw(inner_name(k))
    b = w.ab(u)
    left = (column(case.x) - np.sqrt(w.ab(t)) * x0) / np.sqrt(1 - w.ab(t))
    same(case.step(method, t, u).x, np.sqrt(b) * x + np.sqrt(1 - b) * (case.draw("step") if taken else left))


def test_the_langevin_chain_of_daps_reaches_its_target() -> None:
    """Many independent pixels of one value: the mean and the spread of N(x0, s_t^2) given y, within the error of few steps."""
    side, t, sigma = 96, 100, 0.3
    shape = (1, side, side)
    mask = (torch.arange(side)[:, None] % 2).double().expand(side, side)
    prior = GaussianPrior(white(shape, 0.5))
    problem = Problem.internal(0.9 * mask.expand(1, *shape), Inpainting(shape, mask), sigma)
    x0 = torch.full((1, *shape), -0.2, dtype=torch.float64)
    found = DAPS(inner=120, rate=0.015, fall=1.0, tau=sigma).sample(context(prior, problem), x0, torch.tensor([t]))[0, 0]
    a = float(prior.schedule.abar(t))
    precision = np.array([a / (1 - a), a / (1 - a) + 1 / sigma**2])
    means = (-0.2 * a / (1 - a) + np.array([0.0, 0.9 / sigma**2])) / precision
    length = 0.015
    for row, (mean, kappa) in enumerate(zip(means, precision)):
        pixels = found[row::2]
        assert float(pixels.mean()) == pytest.approx(mean, abs=0.03)
        # Steps of a finite length widen the law: 1 / kappa / (1 - length kappa / 2).
        assert float(pixels.var()) == pytest.approx(1 / kappa / (1 - length * kappa / 2), rel=0.06)


def test_red_diff_slows_down_where_its_mean_gradient_is_as_small_as_adams_epsilon() -> None:
    """Far from y by d, with no prior: Adam's first step is rate g / (g + 1e-8) for a gradient of g = d / entries."""
    shape = (1, 64, 96)
    prior, mask = gaussian("correlated", shape), torch.ones(64, 96, dtype=torch.float64)
    for distance in (1e-5, 1e-3):
        y = torch.full((1, *shape), distance, dtype=torch.float64)
        none = torch.zeros_like(y)
        state = REDDiffState(none, none, none, none, none[:, :1, :1, :1])
        made = context(prior, Problem.internal(y, Inpainting(shape, mask), 0.0))
        method, t, u = REDDiff(lam=0.0, rate=0.1), torch.tensor([300]), torch.tensor([200])
        estimate = method.estimate(made, state, t)
        moved = method.finish(made, method.advance(made, state, estimate, estimate.prediction.x0, t, u))
        slope = distance / y.numel()
        assert torch.allclose(moved, torch.full_like(y, 0.1 * slope / (slope + 1e-8)), rtol=1e-6)


@pytest.mark.parametrize("power", [1.0, 0.5])
@pytest.mark.parametrize(("name", "sigma"), [("sr", 0.0), ("inpaint", SIGMA)])
def test_two_steps_of_red_diff(name: str, sigma: float, power: float) -> None:
    """Adam with the residual of the predicted noise: the losses are means over pixels and over measured entries."""
    case, lam, rate = Case(name, sigma), 0.4, 0.05
    w, method = case.world, REDDiff(lam=lam, power=power, rate=rate)
    mu = case.weighted_inverse(sigma**2) @ w.y
    state: State = method.start(case.context, torch.tensor([600]))
    first = second = np.zeros((SIZE, 1))
    entries = int((np.abs(w.A).sum(1) > 0).sum())
    for count, (t, u) in enumerate(((600, 480), (480, 350)), start=1):
        a = w.ab(t)
        z = case.draw("step")
        noise = w.eps(np.sqrt(a) * mu + np.sqrt(1 - a) * z, t) - z
        gradient = lam * np.sqrt((1 - a) / a) ** power * noise / SIZE + w.A.T @ (w.A @ mu - w.y) / entries
        first, second = 0.9 * first + 0.1 * gradient, 0.99 * second + 0.01 * gradient**2
        mu = mu - rate * (first / (1 - 0.9**count)) / (np.sqrt(second / (1 - 0.99**count)) + 1e-8)
        state = case.step(method, t, u, state)
    same(method.finish(case.context, state), mu, atol=1e-7)


@pytest.mark.parametrize(("name", "sigma"), [("sr", 0.0), ("blur", SIGMA), ("inpaint", SIGMA)])
@pytest.mark.parametrize(("t", "u"), [(600, 480), (40, 0), (0, -1)])
def test_step_of_dcdp(name: str, sigma: float, t: int, u: int) -> None:
    """Purification by two DDIM steps, then gradient descent with momentum on the proximal problem."""
    case, method = Case(name, sigma), DCDP(flow=2, inner=6, rate=0.8, lam=2.0)
    w = case.world
    here = np.sqrt(w.ab(t // 2)) * w.D(column(case.x), t) + np.sqrt(1 - w.ab(t // 2)) * w.eps(column(case.x), t)
    expected = w.D(here, t // 2)
    if u >= 0:
        expected = descended(case, expected, t)
    b = w.ab(u)
    same(case.step(method, t, u).x, np.sqrt(b) * expected + np.sqrt(1 - b) * case.draw("step"))
    begun = method.start(case.context, torch.tensor([400]))
    a = w.ab(400)
    same(begun.x, np.sqrt(a) * descended(case, np.zeros((SIZE, 1)), 400) + np.sqrt(1 - a) * case.draw("start"))
    begun = method.start(replace(case.context, origin=case.x), torch.tensor([400]))
    same(begun.x, np.sqrt(a) * column(case.x) + np.sqrt(1 - a) * case.draw("start"))


def descended(case: Case, x0: Array, t: int) -> Array:
    w, a = case.world, case.world.ab(t)
    weight = 2.0 * w.sigma**2 * a / (1 - a)
    x, speed = x0, np.zeros_like(x0)
    for _ in range(6):
        slope = w.A.T @ (w.A @ x - w.y) + weight * (x - x0)
        speed = 0.9 * speed + 0.8 / (np.linalg.norm(w.A, 2) ** 2 + weight) * slope
        x = x - speed
    return x


def test_dcdp_with_many_steps_solves_the_proximal_problem() -> None:
    case = Case("blur", SIGMA)
    w, t = case.world, 300
    weight = SIGMA**2 * w.ab(t) / (1 - w.ab(t))
    expected = np.linalg.solve(w.A.T @ w.A + weight * np.eye(SIZE), w.A.T @ w.y + weight * column(case.x))
    same(DCDP(inner=600, lam=1.0).fit(case.context, case.x, torch.tensor([t])), expected, atol=1e-6)


def test_the_flow_of_many_steps_carries_the_prior_to_itself() -> None:
    """The probability flow of a Gaussian maps x_t, of variance abar v + 1 - abar, linearly to a clean image of variance v."""
    side, v, t = 8, 0.25, 800
    prior = GaussianPrior(white((1, side, side), v**0.5))
    problem = Problem.internal(torch.zeros(1, 1, side, side).double(), Inpainting((1, side, side), torch.ones(side, side)), 0.1)
    x = torch.randn(1, 1, side, side, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    a = float(prior.schedule.abar(t))
    exact = x * (v / (a * v + 1 - a)) ** 0.5
    errors = []
    for steps in (1, 20, 400):
        estimate = DAPS(flow=steps).estimate(context(prior, problem), State(x), torch.tensor([t]))
        errors.append(float((estimate.prediction.x0 - exact).abs().max()))
    assert errors[2] < 0.02 < errors[1] < errors[0]


def moving(method: str, prior: Prior, problem: Problem, plugins: Any, **settings: Any) -> Any:
    given = {**RELATED[method], **settings}
    return Sampler(prior, method, plugins, 20, use_presets=False, **given).run(problem, seed=3)


@pytest.mark.parametrize("sigmas", [(0.0, 0.0), (0.05, 0.03)])
@pytest.mark.parametrize("method", RELATED)
def test_every_plug_in_on_every_one(method: str, sigmas: tuple[float, float]) -> None:
    """UCPM, SATP and EquS change the picture or the path of each, UCDC of all but PiGDM, and none goes astray."""
    made = scene("sr", sigmas)
    plain = moving(method, made.prior, made.problem, ())
    visits = sum(len(walk) for walk in plain.trace.values())
    for plugins, settings in (
        ("ucpm", {"ucpm": {"lam": 0.5}}),
        ("satp", {"satp": {"budget": 0.05, "eta": 4.0}}),
        ("equs", {}),
        ("ucdc", {}),
        ("leader", {"ucdc": {"power": 0.5}, "satp": {"budget": 0.05, "eta": 4.0}}),
        ("leader-paper", {}),
    ):
        found = moving(method, made.prior, made.problem, (plugins,), **settings)
        assert float(found.images.abs().max()) < 10
        assert torch.equal(found.images, plain.images) == (plugins == "ucdc" and method == "pigdm"), plugins
        if "satp" in settings:
            assert sum(len(walk) for walk in found.trace.values()) < visits


@pytest.mark.parametrize("sigma", [0.0, SIGMA])
@pytest.mark.parametrize("method", RELATED)
def test_none_is_far_from_the_truth(method: str, sigma: float) -> None:
    """Super-resolution, default settings, 40 steps: the error is about that of a draw of the posterior, 2 of its variances."""
    prior = gaussian("correlated", (1, 16, 12))
    truth = prior.sample(1, torch.Generator().manual_seed(4))
    problem = measured(BicubicSR((1, 16, 12), 2), truth, sigma)
    _, covariance = prior.gaussian.posterior(problem.operator, problem.y[0], sigma)
    images = Sampler(prior, make_method(method, {}), (), 40, estimator=None).run(problem).images
    assert float((images - truth).square().mean()) < 2.6 * float(covariance.diagonal().mean())


def test_mcg_is_dps_where_nothing_is_replaced() -> None:
    """Their steps differ by the replacement alone, so not where the data are all noise."""
    case = Case("inpaint", 1e6)
    found = case.step(MCG(scale=0.7, clamp=False), 300, 200).x
    assert torch.allclose(found, case.step(DPS(scale=0.7, clamp=False), 300, 200).x, atol=1e-5)


@pytest.mark.parametrize(("name", "sigma"), [("sr", 0.0), ("blur", SIGMA), ("inpaint", SIGMA)])
def test_the_metric_moves_the_estimate_and_what_is_replaced_stays_white(name: str, sigma: float) -> None:
    """RePaint and MCG, with E[x0 | x_t, y] in DDPM's step and nothing else of the metric; DCDP's data phase is that."""
    case, t, u = Case(name, sigma), 300, 200
    w, x = case.world, column(case.x)
    abar = w.ab(t)
    spread = (1 - abar) / np.sqrt(abar) * case.jacobian(t)  # Cov[x0 | x_t]
    gain = spread @ w.A.T @ np.linalg.pinv(w.A @ spread @ w.A.T + sigma**2 * np.eye(len(w.A)), rcond=1e-9)

    told: list[bool] = []

    class Exact(Euclidean):
        def expect(self, r: Tensor, sigma: Tensor, taken: bool = False) -> Tensor:
            told.append(taken)
            return torch.from_numpy(gain @ column(r)).reshape(1, *SHAPE)

    case.context = replace(case.context, given_metric=Exact(case.problem.operator))
    estimate = w.D(x, t) + gain @ (w.y - w.A @ w.D(x, t))
    to_x0 = (1 - abar / w.ab(u)) * np.sqrt(w.ab(u)) / (1 - abar)
    expected = replaced(case, ancestral(case, x, t, u) + to_x0 * (estimate - w.D(x, t)), t, u, 2.5)
    for method in (RePaint(clamp=False, damping=2.5), MCG(clamp=False, damping=2.5, scale=9.0, variance="small")):
        same(case.step(method, t, u).x, expected)
    wider = case.step(MCG(clamp=False, damping=2.5, variance="predicted"), t, u).x
    assert not np.allclose(column(wider), expected), "the metric leaves the variance of the step as it is set"
    same(DCDP().fit(case.context, torch.from_numpy(w.D(x, t)).reshape(1, *SHAPE), torch.tensor([t])), estimate)
    assert told == [True, True, True, False], "RePaint and MCG then take what is measured from y"


def test_repeated_and_pruned_times_of_the_inner_draws() -> None:
    """An inner loop's draws are addressed by the place in the grid: a step seen twice draws alike, another one does not."""
    case = Case("sr", SIGMA)
    method = DAPS(flow=1, inner=3)
    grid = Grid((500, 300, -1))
    first, second = (
        Sampler(case.prior, method, (), grid=grid, estimator=None).run(case.problem, seed=seed).images for seed in (1, 1)
    )
    assert torch.equal(first, second)
    assert not torch.equal(first, Sampler(case.prior, method, (), grid=grid, estimator=None).run(case.problem, seed=2).images)
