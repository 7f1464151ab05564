import numpy as np
import pytest
import torch
from scipy.linalg import sqrtm

from leader.errors import LeaderError
from leader.metrics import fid, frechet_distance, kid
from leader.metrics.distribution import frechet_of_samples, squared_mmd
from tests.sentences import refusal


def correlated(count: int, size: int, seed: int, shift: float = 0.0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    mix = torch.randn(size, size, generator=generator, dtype=torch.float64)
    return torch.randn(count, size, generator=generator, dtype=torch.float64) @ mix + shift


def test_distance_of_gaussians_in_closed_form() -> None:
    """Diagonal covariances commute: sum of (m_a - m_b)^2 + (s_a - s_b)^2."""
    mean_a, mean_b = torch.tensor([0.0, 1.0, -2.0]), torch.tensor([3.0, 1.0, 0.0])
    std_a, std_b = torch.tensor([1.0, 2.0, 0.0]), torch.tensor([4.0, 0.5, 1.0])
    rotation, _ = torch.linalg.qr(correlated(3, 3, 0).float())
    expected = float((mean_a - mean_b).square().sum() + (std_a - std_b).square().sum())
    covariances = [rotation @ torch.diag(std.square()) @ rotation.T for std in (std_a, std_b)]
    found = frechet_distance(rotation @ mean_a, covariances[0], rotation @ mean_b, covariances[1])
    # float32 inputs: a root of a rounded zero eigenvalue (1e-7 * 16) is about 1e-3.
    assert found == pytest.approx(expected, abs=1e-2)


def test_fid_is_the_formula_with_a_general_matrix_root() -> None:
    x, y = correlated(2048, 12, 1), correlated(2100, 12, 2, shift=0.3)
    mean, cov = [z.numpy().mean(axis=0) for z in (x, y)], [np.cov(z.numpy(), rowvar=False) for z in (x, y)]
    root = np.real(sqrtm(cov[0] @ cov[1]))
    expected = np.sum((mean[0] - mean[1]) ** 2) + np.trace(cov[0] + cov[1] - 2 * root)
    assert fid(x, y) == pytest.approx(float(expected), rel=1e-8)
    # Cancellation of traces of order 100 in float64.
    assert fid(x, x) == pytest.approx(0.0, abs=1e-9)
    few = x[:40], y[:50]
    moments = [part for z in few for part in (z.mean(0), torch.cov(z.T))]
    assert frechet_of_samples(*few) == pytest.approx(frechet_distance(*moments), rel=1e-8)


def test_fid_refuses_small_sets_and_offers_kid() -> None:
    x = correlated(999, 4, 0)
    with pytest.raises(LeaderError, match=r"at least 1,000 samples .* has 999; use KID"):
        fid(correlated(1000, 4, 1), x)
    with pytest.raises(LeaderError, match="at least 1 subset"):
        kid(x, x, subsets=0)


def test_squared_mmd_is_the_double_sum() -> None:
    x, y = correlated(7, 5, 3), correlated(9, 5, 4)

    def kernel(a: torch.Tensor, b: torch.Tensor) -> float:
        return (float(np.dot(a.numpy(), b.numpy())) / 5 + 1) ** 3

    within_x = sum(kernel(x[i], x[j]) for i in range(7) for j in range(7) if i != j) / (7 * 6)
    within_y = sum(kernel(y[i], y[j]) for i in range(9) for j in range(9) if i != j) / (9 * 8)
    between = sum(kernel(a, b) for a in x for b in y) / (7 * 9)
    assert float(squared_mmd(x, y)) == pytest.approx(within_x + within_y - 2 * between, rel=1e-10)


def test_kid_with_one_subset_of_everything_is_the_squared_mmd() -> None:
    x, y = correlated(40, 6, 5), correlated(40, 6, 6)
    whole = kid(x, y, subsets=1, subset_size=1000)
    assert whole.mean == pytest.approx(float(squared_mmd(x, y)), rel=1e-10)
    assert whole.std == 0.0


def test_the_spread_of_kid_is_the_standard_deviation_over_subsets() -> None:
    x, y = torch.randn(2, 300, 8, generator=torch.Generator().manual_seed(8))
    both, first = (kid(x, y, subset_size=50, subsets=count) for count in (2, 1))
    second = 2 * both.mean - first.mean
    assert both.std == pytest.approx(abs(first.mean - second) / 2**0.5) and first.std == 0


def test_wrong_features_are_refused() -> None:
    x = torch.zeros(5, 3)
    assert "with one D" in refusal(kid, x, torch.zeros(5, 4))
    assert "at least 2 samples" in refusal(kid, x, x[:1])
