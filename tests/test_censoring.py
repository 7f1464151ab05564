"""Censored measurements: what is put in place of a limit, where that ends, and who sees it."""

import dataclasses

import pytest
import torch
from torch import Tensor

from leader import LeaderError, Problem, Sampler
from leader.censoring import NARROW, Censored, mean_between, mean_beyond
from leader.operators import AveragePoolSR, Denoising, Inpainting, LinearOperator
from leader.priors.gaussian import Gaussian, GaussianPrior, stationary

SHAPE = (3, 12, 20)


def dark(sigma: float, operator: LinearOperator | None = None, clip: bool = True, seed: int = 3) -> tuple[Tensor, Problem]:
    """Draws of the prior, moved so that much of them lies near black; [0, 1]."""
    x = stationary(SHAPE, 0.35).sample(2, torch.Generator().manual_seed(seed)).float() - 0.5
    truth = ((x + 1) / 2).clamp(0, 1)
    return truth, Problem.simulate(truth, operator or Denoising(SHAPE), sigma, seed=5, clip=clip)


def prior() -> GaussianPrior:
    gaussian = stationary(SHAPE, 0.35)
    return GaussianPrior(dataclasses.replace(gaussian, mean=gaussian.mean - 0.5))


def no_masks(y: Tensor) -> Censored:
    empty = torch.zeros_like(y, dtype=torch.bool)
    return Censored(empty, empty)


# One entry


@pytest.mark.parametrize("a", [-7.0, -1.3, 0.0, 0.4, 5.0])
def test_mean_of_what_was_cut_off_by_quadrature(a: float) -> None:
    z = torch.linspace(a - 40, a, 2_000_001, dtype=torch.float64)
    weight = (-(z**2 - z[-1] ** 2) / 2).exp()  # a common factor, so that nothing underflows
    mean = torch.trapezoid((a - z) * weight, z) / torch.trapezoid(weight, z)
    assert float(mean_beyond(torch.tensor(a, dtype=torch.float64))) == pytest.approx(float(mean), rel=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("sigma", [1e-12, 0.05, 3.0])
def test_far_from_the_limit_everything_is_finite_and_outside(sigma: float, dtype: torch.dtype) -> None:
    """At a = +-40 and beyond: no overflow, never inside the range, the mean itself where it lies outside."""
    steps = torch.tensor([-1e9, -1e5, -40, -8, 0, 8, 40, 1e5, 1e9], dtype=torch.float64)
    limit = torch.full((1, 9), -1.0, dtype=dtype)
    mean = (-1 - steps * sigma).to(dtype)[None]
    column = torch.full((1, 1), sigma, dtype=torch.float64)
    low = Censored(torch.ones(1, 9, dtype=torch.bool), torch.zeros(1, 9, dtype=torch.bool)).impute(limit, mean, column)
    high = Censored(torch.zeros(1, 9, dtype=torch.bool), torch.ones(1, 9, dtype=torch.bool)).impute(-limit, -mean, column)
    assert bool(torch.isfinite(low).all()) and bool((low <= -1).all()) and bool((low <= torch.maximum(mean, limit)).all())
    assert torch.allclose(low[0, 6:], mean[0, 6:], rtol=1e-6)
    assert torch.equal(high, -low)
    falling = low[0].double().diff()
    assert bool((falling <= 0).all())  # the darker the image, the more was cut off


@pytest.mark.parametrize(
    ("low", "high"),
    [(-1.0, 2.0), (-0.3, 0.2), (1.5, 1.6), (-4.0, -0.5), (6.0, 9.0), (-30.0, 1.0), (-60.0, 70.0), (-80.0, -40.0)],
)
def test_the_mean_between_two_limits_is_that_of_the_integral(low: float, high: float) -> None:
    """By the midpoint rule on 400,000 points, whose error is below 1e-8 of the distance that carries the mass."""
    inner, outer = max(low, -50.0), min(high, 50.0)
    step = (outer - inner) / 400_000
    points = inner + step * (torch.arange(400_000, dtype=torch.float64) + 0.5)
    exponent = -(points**2) / 2
    weights = (exponent - exponent.max()).exp()
    expected = float((weights * points).sum() / weights.sum())
    a, b = torch.tensor([[low, -high]], dtype=torch.float64), torch.tensor([[high, -low]], dtype=torch.float64)
    assert mean_between(a, b)[0].tolist() == pytest.approx([expected, -expected], rel=1e-6, abs=1e-8)


def test_the_mean_between_limits_lies_between_them_also_where_they_are_far_out_or_nearly_one() -> None:
    low = torch.tensor([-300.0, 300.0, -1e3, 0.0, 2.0, -2.0], dtype=torch.float64)
    width = torch.tensor([1.0, 1.0, 2e3, 0.5 * NARROW, 2 * NARROW, 2 * NARROW], dtype=torch.float64)
    mean = mean_between(low, low + width)
    assert bool(((low <= mean) & (mean <= low + width)).all())
    assert float(mean[2]) == 0


def test_without_noise_a_limit_is_an_inequality() -> None:
    y, mean = torch.tensor([[-1.0, -1.0, 1.0, 1.0, 0.2]]), torch.tensor([[-1.3, 0.5, 0.4, 1.2, 0.7]])
    censored = Censored(y == -1, y == 1)
    made = censored.impute(y, mean, torch.zeros(1, 1, dtype=torch.float64))
    assert torch.equal(made, torch.tensor([[-1.3, -1.0, 1.0, 1.2, 0.2]]))


def test_draws_have_the_law_of_what_was_cut_off() -> None:
    """Residuals of the true image are Gaussian noise again: mean, spread, and both tails."""
    sigma, truth = 0.4, torch.linspace(-1.2, 0.0, 60_000)[None]
    noisy = truth + sigma * torch.randn(truth.shape, generator=torch.Generator().manual_seed(1))
    y = noisy.clamp_min(-1)
    uniform = 1 - torch.rand(y.shape, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    column = torch.full((1, 1), sigma, dtype=torch.float64)
    left = Censored(y <= -1, y > 9).draw(y, truth, column, uniform) - truth
    assert float(left.mean()) == pytest.approx(0, abs=0.006) and float(left.std()) == pytest.approx(sigma, rel=0.01)
    for quantile in (0.02, 0.3, 0.98):
        exact = sigma * float(torch.special.ndtri(torch.tensor(quantile, dtype=torch.float64)))
        assert float(left.quantile(quantile)) == pytest.approx(exact, abs=0.012)


# A Gaussian prior, against numerical integration


def three_pixels() -> Gaussian:
    """Neighbours correlated by 0.6, a mean below the limit in the first pixel."""
    spectrum = torch.tensor([[[2.2, 0.4, 0.4]]], dtype=torch.float64) * 0.3**2
    return Gaussian(torch.tensor([[[-0.9, -0.7, -0.4]]], dtype=torch.float64), spectrum, True)


def log_posterior(gaussian: Gaussian, x: Tensor, y: Tensor, low: Tensor, sigma: float) -> Tensor:
    """log p(x | y) of points [N, n], up to a constant: censored entries count by log Phi."""
    offset = x - gaussian.mean.reshape(-1)
    prior = -0.5 * (offset @ torch.linalg.inv(gaussian.covariance()) * offset).sum(1)
    a = (y - x) / sigma
    total: Tensor = prior + torch.where(low, torch.special.log_ndtr(a), -0.5 * a**2).sum(1)
    return total


@pytest.mark.parametrize("sigma", [0.15, 0.6])
@pytest.mark.parametrize("marks", [(True, False, False), (True, True, False), (True, True, True)])
def test_the_fixed_point_is_the_most_likely_image_and_close_to_the_mean(sigma: float, marks: tuple[bool, ...]) -> None:
    gaussian, low = three_pixels(), torch.tensor(marks)
    y = torch.where(low, -1.0, torch.tensor([-0.8, -0.75, -0.5])).double()
    operator = Denoising((1, 1, 3))
    shaped = Censored(low.reshape(1, 1, 1, 3), torch.zeros(1, 1, 1, 3, dtype=torch.bool))
    problem = Problem(y.reshape(1, 1, 1, 3), operator, sigma, "[-1, 1]", shaped)
    x = gaussian.mean[None]
    for _ in range(300):
        x = gaussian.posterior(operator, problem.impute(x).y[0], sigma)[0][None]
    side = torch.linspace(-1, 1, 101, dtype=torch.float64)
    widths = gaussian.covariance().diagonal().sqrt() * 4.5
    axes = [gaussian.mean.reshape(-1)[i] + widths[i] * side for i in range(3)]
    points = torch.cartesian_prod(*axes)
    value = log_posterior(gaussian, points, y, low, sigma)
    weight = (value - value.max()).exp()
    mean = (weight[:, None] * points).sum(0) / weight.sum()
    spread = ((weight[:, None] * (points - mean) ** 2).sum(0) / weight.sum()).sqrt()
    best = points[value.argmax()]
    step = torch.stack([axis[1] - axis[0] for axis in axes])
    assert bool(((x.reshape(-1) - best).abs() <= step).all())
    assert float(log_posterior(gaussian, x.reshape(1, -1), y, low, sigma)) >= float(value.max())
    assert bool(((x.reshape(-1) - mean).abs() < 0.35 * spread).all())  # a skewed posterior: its mean lies beside its mode


# The loop


@pytest.mark.parametrize("method", ["ddnm", "projdiff", "diffpir"])
def test_nothing_censored_changes_nothing(method: str) -> None:
    _, plain = dark(0.1, clip=False)
    marked = Problem(plain.y, plain.operator, plain.sigma, "[-1, 1]", no_masks(plain.y))
    assert marked.censored is None and marked.impute(torch.zeros(2, *SHAPE)) is marked
    sampler = Sampler(prior(), method, (), 6, use_presets=False)
    assert torch.equal(sampler.run(plain).images, sampler.run(marked).images)


# The problem


def test_simulated_files_are_clipped_and_say_where() -> None:
    _, whole = dark(0.3, clip=False)
    truth, problem = dark(0.3)
    assert problem.censored is not None
    assert torch.equal(problem.censored.low, whole.y <= -1) and torch.equal(problem.censored.high, whole.y >= 1)
    assert torch.equal(problem.y, whole.y.clamp(-1, 1))
    imputed = problem.impute(2 * truth - 1)
    assert imputed.censored is None and bool((imputed.y[problem.censored.low] < -1).all())
    assert torch.equal(imputed.y[~problem.censored.any], problem.y[~problem.censored.any])
    lost = problem.censored.any
    nearer = (imputed.y - whole.y)[lost].square().mean() / (problem.y - whole.y)[lost].square().mean()
    assert float(nearer) < 0.5


def test_the_parts_of_a_problem_keep_what_is_censored() -> None:
    _, problem = dark(0.3)
    assert problem.censored is not None
    one = problem.select(torch.tensor([1]))
    assert one.censored is not None and torch.equal(one.censored.low, problem.censored.low[1:])
    assert problem.to_dtype(torch.float64).censored is problem.censored
    louder = dataclasses.replace(problem, sigma=2 * problem.sigma)
    assert louder.censored is not None and torch.equal(louder.censored.high, problem.censored.high)
    joined = Censored.join([one.censored, None], [one.y, one.y])
    assert joined is not None and int(joined.any[0].sum()) == one.censored.count == joined.count
    assert Censored.join([None, None], [one.y, one.y]) is None


def test_what_is_not_measured_is_not_censored() -> None:
    mask = torch.ones(12, 20)
    mask[2:7, 3:15] = 0
    y = torch.zeros(1, *SHAPE)
    problem = Problem(y, Inpainting(SHAPE, mask), 0.1, censored=Censored.at_limits(y))
    assert problem.censored is not None and torch.equal(problem.censored.low[0, 2], mask.bool())
    assert bool((problem.impute().y[..., 2:7, 3:15] == 0).all())


def test_limits_follow_the_units_of_the_operator() -> None:
    """y of sums, not of means: A(1) = 1 only for some operators, and a limit is that of the measurement."""
    small = torch.tensor([0.0, 0.4, 1.0]).reshape(1, 1, 1, 3).expand(1, 3, 6, 3).repeat_interleave(2, 3)[..., :6, :5]
    operator = AveragePoolSR((3, 24, 20), 4)
    problem = Problem(small, operator, 0.1, censored=Censored.at_limits(small))
    imputed = problem.impute(torch.zeros(1, 3, 24, 20)).y
    assert bool((imputed[small <= 0] < -1).all()) and bool((imputed[small >= 1] > 1).all())


def test_masks_that_do_not_fit_are_refused() -> None:
    y = torch.full((1, *SHAPE), 0.5)
    with pytest.raises(LeaderError, match=r"\[1, 3, 12, 20\]; found \[1, 3, 20, 12\]"):
        Problem(y, Denoising(SHAPE), 0.1, censored=no_masks(y.transpose(2, 3)))
    both = torch.ones(1, *SHAPE, dtype=torch.bool)
    with pytest.raises(LeaderError, match="both ends"):
        Censored(both, both)
