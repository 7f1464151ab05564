import numpy as np
import pytest
import torch
from scipy.stats import spearmanr

from leader.metrics import (
    block_rank_correlation,
    calibration_error,
    coverage,
    interval_coverage,
    sparsification_curve,
    sparsification_error,
)
from tests.sentences import refusal


def draws(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_coverage_of_gaussian_intervals_is_their_level() -> None:
    std = draws(0, 2, 3, 64, 64).exp()
    truth = draws(1, 2, 3, 64, 64) * std
    # 90 % intervals; 12,288 pixels give the share a standard error of 0.0027.
    found = coverage(truth, -1.644854 * std, 1.644854 * std)
    assert bool(((found - 0.9).abs() < 5 * 0.0027).all())
    half = torch.arange(4.0).view(1, 1, 2, 2)
    assert float(coverage(half, torch.zeros_like(half), torch.ones_like(half))) == 0.5


def test_sparsification_curve_is_what_a_loop_computes() -> None:
    error, std = draws(2, 2, 1, 5, 7), draws(3, 2, 1, 5, 7).abs()
    found = sparsification_curve(error, std, steps=10)
    for image in range(2):
        order = np.argsort(std[image].numpy().ravel())
        square = error[image].numpy().ravel()[order] ** 2
        for step in range(10):
            kept = 35 - step * 35 // 10
            assert float(found[image, step]) == pytest.approx(float(np.sqrt(square[:kept].mean())), rel=1e-12)


@pytest.mark.parametrize("ties", [False, True])
def test_block_rank_correlation_is_spearman_of_block_means(ties: bool) -> None:
    error, std = draws(6, 2, 3, 33, 26), draws(7, 2, 3, 33, 26).abs()
    if ties:
        error, std = (torch.arange(33.0) // 12).view(-1, 1).expand_as(error).double(), std.round()
        std[..., :16, :] = 1.0
    found = block_rank_correlation(error, std, block=8)
    for image in range(2):
        squares = [values[image, :, :32, :24].square().mean(dim=0) for values in (error, std)]
        means = [square.reshape(4, 8, 3, 8).mean(dim=(1, 3)).numpy().ravel() for square in squares]
        # Means of whole numbers are exact up to the last place: round them so that ties stay ties.
        expected = spearmanr(means[0].round(9), means[1].round(9)).statistic
        assert float(found[image]) == pytest.approx(float(expected), abs=1e-12)


def test_wrong_maps_are_refused() -> None:
    maps = torch.ones(1, 1, 8, 8)
    assert "one shape" in refusal(coverage, maps, maps, maps[..., :4])
    upper = maps.clone()
    assert float(coverage(0.5 * maps, 0 * maps, upper)[0]) == 1
    upper[0, 0, 2, 1] = -0.1
    assert "lower end above" in refusal(coverage, 0.5 * maps, 0 * maps, upper)
    assert "fewer than two blocks" in refusal(block_rank_correlation, maps, maps)
    two = torch.rand(1, 1, 4, 9)
    assert float(block_rank_correlation(two, two, block=4)) == pytest.approx(1), "two blocks of four are enough"


def test_interval_coverage_counts_and_calibration_error_is_the_mean_distance() -> None:
    error = torch.tensor([[0.5, -1.0, 1.5, -3.0], [0.0, 0.0, 0.0, 9.0]]).reshape(2, 1, 1, 4)
    std = torch.ones(2, 1, 1, 4)
    assert interval_coverage(error, std, 1.0).tolist() == [0.5, 0.75]
    assert interval_coverage(error, 2 * std, 1.0).tolist() == [0.75, 0.75]
    off = calibration_error(error, std, {0.5: 1.0, 0.9: 2.0})
    assert off.tolist() == pytest.approx([(0 + 0.15) / 2, (0.25 + 0.15) / 2])
    gaussian = torch.randn(1, 3, 100, 100, generator=torch.Generator().manual_seed(0))
    exact = {0.5: 0.6745, 0.9: 1.6449}
    assert float(calibration_error(0.3 * gaussian, torch.full_like(gaussian, 0.3), exact)) < 0.005
    assert float(calibration_error(0.3 * gaussian, torch.full_like(gaussian, 0.2), exact)) > 0.1
    assert "at least one level" in refusal(calibration_error, error, std, {})


def test_sparsification_error_orders_knowledge() -> None:
    std = draws(4, 3, 1, 32, 32).exp()
    error = draws(5, 3, 1, 32, 32) * std
    oracle = sparsification_error(error, error.abs())
    informed, constant = sparsification_error(error, std), sparsification_error(error, torch.ones_like(std))
    wrong = sparsification_error(error, 1 / std)
    torch.testing.assert_close(oracle, torch.zeros(3, dtype=torch.float64), rtol=0, atol=1e-12)
    assert bool((oracle < informed).all() and (informed < constant).all() and (constant < wrong).all())
