"""What y leaves of Cov[x0 | x_t], against dense algebra under a Gaussian prior whose pixels hang together."""

import math

import numpy as np
import pytest
import scipy.linalg
import torch
from torch import Tensor

from leader.operators import Blur, Inpainting, LinearOperator, WalshHadamard, build_task, gaussian_kernel, random_mask
from leader.priors.gaussian import GaussianPrior, stationary
from leader.problem import Problem
from leader.sampler import Sampler
from leader.trust.evidence import CLOCKS, LATE, Watch, gather
from leader.trust.remaining import measure_remaining, measure_remaining_white
from leader.uncertainty.covariance import FLOOR, error_covariance, independent

SHAPE = (3, 4, 8)
SIZE = math.prod(SHAPE)
MASK = random_mask(4, 8, 0.5, 1)
TIME = 300
OPERATORS: dict[str, LinearOperator] = {
    "mask": Inpainting(SHAPE, MASK),
    "blur": Blur(SHAPE, gaussian_kernel(0.6)),
    "block average": build_task("sr", SHAPE, factor=2, down="average"),
    "cs": WalshHadamard(SHAPE, 0.4),
}
PRIOR = GaussianPrior(stationary(SHAPE, 0.4, slope=2.0))


def errors_before(t: int = TIME) -> Tensor:
    """Cov[x0 | x_t], dense."""
    own, abar = PRIOR.gaussian.covariance(), float(PRIOR.schedule.abar(t))
    left: Tensor = own - abar * own @ torch.linalg.inv(abar * own + (1 - abar) * torch.eye(SIZE)) @ own
    return left


def errors_after(operator: LinearOperator, sigma: float, t: int = TIME) -> Tensor:
    """Cov[x0 | x_t, y], dense."""
    before = errors_before(t)
    a = operator.A(torch.eye(SIZE, dtype=torch.float64).reshape(SIZE, *SHAPE)).reshape(SIZE, -1).T
    inverse = torch.linalg.inv(a @ before @ a.T + sigma**2 * torch.eye(len(a), dtype=torch.float64))
    left: Tensor = before - before @ a.T @ inverse @ a @ before
    return left


def diagonal(matrix: Tensor) -> Tensor:
    """Of the channels' mean, [H, W]."""
    return matrix.diagonal().reshape(SHAPE).mean(0)


def all_signs() -> Tensor:
    """Rows of a Hadamard matrix [128, 3, 4, 8]: over all of them z * (P z) has the mean diag P exactly."""
    return torch.from_numpy(scipy.linalg.hadamard(128)[:, :SIZE]).double().reshape(-1, *SHAPE)


@pytest.mark.parametrize("sigma", [0.0, 0.07])
@pytest.mark.parametrize("name", OPERATORS)
def test_with_every_probe_and_a_solve_to_its_end_the_diagonal_is_that_of_dense_algebra(name: str, sigma: float) -> None:
    operator, spread = OPERATORS[name], diagonal(errors_before())
    S = error_covariance(PRIOR, TIME, spread.expand(1, *SHAPE))
    known = MASK > 0 if name == "mask" else None
    found = measure_remaining(S, spread, operator, sigma, known, all_signs(), side=1, iterations=200, visible=1e-7)
    expected = diagonal(errors_after(operator, max(sigma, FLOOR)))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-8)
    assert float((expected / spread).max()) < 0.999, "y tells something of every pixel"


@pytest.mark.parametrize("name", OPERATORS)
def test_few_iterations_leave_more_than_all_and_never_more_than_there_was(name: str) -> None:
    operator, spread = OPERATORS[name], diagonal(errors_before())
    S = error_covariance(PRIOR, TIME, spread.expand(1, *SHAPE))
    one, four, all_of_them = (
        float(measure_remaining(S, spread, operator, 0.07, None, all_signs(), 1, count).mean()) for count in (1, 4, 200)
    )
    rounding = 1 + 1e-12  # block averages need one iteration, and give the same thrice
    assert all_of_them <= rounding * four and four <= rounding * one and one <= float(spread.mean())
    assert four < 1.05 * all_of_them


def test_pixels_are_averaged_with_those_of_their_kind_alone() -> None:
    """Under a mask without correlations the share is 1 where nothing is measured, and s^2 / (Sigma + s^2) elsewhere: two
    values, whatever the windows.
    """
    spread = torch.full(SHAPE[1:], 0.02, dtype=torch.float64)
    signs = all_signs()[:1]
    found = measure_remaining(
        independent(spread.expand(1, *SHAPE)), spread, OPERATORS["mask"], 0.1, MASK > 0, signs, side=5, iterations=3
    )
    np.testing.assert_allclose(found, torch.where(MASK > 0, 0.02 * 0.01 / 0.03, 0.02), rtol=1e-6)


@pytest.mark.parametrize("name", OPERATORS)
def test_for_equal_and_independent_pixels_no_solve_is_needed(name: str) -> None:
    operator, spread = OPERATORS[name], torch.full(SHAPE[1:], 0.03, dtype=torch.float64)
    signs = torch.randint(0, 2, (1, *SHAPE), generator=torch.Generator().manual_seed(5)).double() * 2 - 1
    known = MASK > 0 if name == "mask" else None
    S = independent(spread.expand(1, *SHAPE))
    solved = measure_remaining(S, spread, operator, 0.07, known, signs, 3, 200, 1e-9)
    np.testing.assert_allclose(measure_remaining_white(spread, operator, 0.07, known, signs, 3), solved, rtol=1e-6)


def test_the_evidence_holds_what_is_left_at_the_late_times_that_were_visited() -> None:
    """One probe and four iterations over windows of 9 x 9: the mean over the picture within a fifth, and in order of time."""
    operator = OPERATORS["blur"]
    truth = PRIOR.sample(1, torch.Generator().manual_seed(3)).float()
    problem = Problem.internal(operator.A(truth), operator, 0.07)
    watch = Watch(PRIOR.schedule)
    result = Sampler(PRIOR, "ddnm", (), 8, estimator="exact").run(problem, on_step=watch)
    evidence, way = gather(PRIOR, problem, result.images, watch), watch.find_way(0)
    assert evidence is not None and way is not None and evidence.left.shape == (LATE, *SHAPE[1:])
    visited = np.array([visit.t for visit in result.trace[0]])
    for place, clock in enumerate(CLOCKS):
        assert way.times[place] == visited[np.abs(np.log1p(visited) - np.log1p(clock)).argmin()]
    for time, left in zip(way.times, evidence.left):
        assert float(left.mean()) == pytest.approx(float(diagonal(errors_after(operator, 0.07, time)).mean()), rel=0.2)
    torch.testing.assert_close(evidence.features()[-LATE:], evidence.left.sqrt().clamp_min(2.5e-4).log() + 3)
