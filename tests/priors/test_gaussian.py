"""Gaussian priors and mixtures against SciPy, and what every prior refuses and answers."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from torch import Tensor

from leader.operators import AveragePoolSR
from leader.priors.gaussian import Gaussian, GaussianMixturePrior, stationary
from tests.cheap_prior import CheapPrior
from tests.sentences import refusal

SHAPE = (1, 4, 4)


def mixture() -> GaussianMixturePrior:
    """A narrow and a wide Gaussian whose shares hang on their determinants."""
    narrow = Gaussian(torch.full(SHAPE, 0.1).double(), torch.full(SHAPE, 0.02).double())
    return GaussianMixturePrior([narrow, stationary(SHAPE, 0.6, mean=-0.1)], [0.3, 0.7])


def dense(part: Gaussian) -> tuple[Any, Any]:
    return part.mean.flatten().numpy(), part.covariance().numpy()


def test_a_log_density_is_that_of_scipy_up_to_its_constant() -> None:
    x = torch.randn(3, *SHAPE, generator=torch.Generator().manual_seed(0)).double() * 0.4
    abar = torch.tensor([0.9, 0.5, 0.1]).double().reshape(-1, 1, 1, 1)
    for part in mixture().components:
        mean, cov = dense(part)
        for row in range(3):
            a = float(abar[row])
            exact = multivariate_normal(math.sqrt(a) * mean, a * cov + (1 - a) * np.eye(16)).logpdf(x[row].flatten().numpy())
            found = float(part.log_density(x, abar)[row]) - 8 * math.log(2 * math.pi)
            assert found == pytest.approx(exact, abs=1e-8)


def test_a_mixtures_estimate_weighs_its_parts_by_density() -> None:
    prior, t = mixture(), 300
    a = float(prior.schedule.abar(t))
    x = torch.randn(1, *SHAPE, generator=torch.Generator().manual_seed(1)).double() * 0.6
    logs, means, variances = [], [], []
    for part, share in zip(prior.components, (0.3, 0.7)):
        mean, cov = dense(part)
        total = a * cov + (1 - a) * np.eye(16)
        flat = x.flatten().numpy() - math.sqrt(a) * mean
        logs.append(math.log(share) + multivariate_normal(np.zeros(16), total).logpdf(flat))
        gain = math.sqrt(a) * cov @ np.linalg.inv(total)
        means.append(mean + gain @ flat)
        variances.append(np.diag(cov - math.sqrt(a) * gain @ cov))
    weights = np.exp(np.array(logs) - logsumexp(logs))
    assert 0.02 < weights[0] < 0.98, "both parts must matter"
    x0 = weights @ np.stack(means)
    spread = weights @ (np.stack(variances) + (np.stack(means) - x0) ** 2)
    found = prior.predict(x, torch.tensor([t]))
    assert found.variance is not None
    np.testing.assert_allclose(found.x0.flatten().numpy(), x0, atol=1e-9)
    np.testing.assert_allclose(found.variance.flatten().numpy(), spread, atol=1e-9)


def test_a_mixtures_posterior_weighs_its_parts_by_evidence() -> None:
    prior, operator, sigma = mixture(), AveragePoolSR(SHAPE, 2), 0.2
    y = operator.A(prior.sample(1, torch.Generator().manual_seed(3)))[0]
    matrix = operator.A(torch.eye(16).double().reshape(16, *SHAPE)).reshape(16, -1).T.numpy()
    logs, means, covs = [], [], []
    for part, share in zip(prior.components, (0.3, 0.7)):
        mean, cov = dense(part)
        data = matrix @ cov @ matrix.T + sigma**2 * np.eye(4)
        logs.append(math.log(share) + multivariate_normal(matrix @ mean, data).logpdf(y.flatten().numpy()))
        gain = cov @ matrix.T @ np.linalg.inv(data)
        means.append(mean + gain @ (y.flatten().numpy() - matrix @ mean))
        covs.append(cov - gain @ matrix @ cov)
    weights = np.exp(np.array(logs) - logsumexp(logs))
    assert 0.02 < weights[0] < 0.98, "both parts must matter"
    mean = weights @ np.stack(means)
    total = sum(w * (c + np.outer(m - mean, m - mean)) for w, c, m in zip(weights, covs, means))
    found_mean, found_cov = prior.posterior(operator, y, sigma)
    np.testing.assert_allclose(found_mean.flatten().numpy(), mean, atol=1e-8)
    np.testing.assert_allclose(found_cov.numpy(), total, atol=1e-8)


def test_images_are_taken_one_by_one_on_the_cpu_unless_a_prior_says_otherwise() -> None:
    prior = CheapPrior()
    assert prior.takes_one_by_one(torch.device("cpu")) and not prior.takes_one_by_one(torch.device("cuda"))
    prior.one_by_one = False
    assert not prior.takes_one_by_one(torch.device("cpu"))


def test_states_have_the_precision_of_the_network() -> None:
    prior = CheapPrior()
    assert [prior.state_dtype(given) for given in (torch.float32, torch.float64)] == [torch.float32, torch.float64]
    for kind, states in ((torch.float64, torch.float64), (torch.float32, torch.float32), (torch.bfloat16, torch.float32)):
        prior.weights = torch.nn.Parameter(torch.zeros(1, dtype=kind))
        assert {prior.state_dtype(given) for given in (torch.float32, torch.float64)} == {states}


@pytest.mark.parametrize(
    ("x", "t", "words"),
    [
        (torch.zeros(1, 3, 4, 4), torch.tensor([3.0]), "integer times"),
        (torch.zeros(2, 3, 4, 4), torch.tensor([3]), "integer times"),
        (torch.zeros(3, 4, 4), torch.tensor([3, 3, 3]), "integer times"),
        (torch.zeros(1, 2, 4, 4), torch.tensor([3]), "takes images with 3 channels; found 2"),
        (torch.zeros(1, 4, 4, 4), torch.tensor([3]), "takes images with 3 channels; found 4"),
        (torch.zeros(1, 3, 4, 4), torch.tensor([-1]), "must lie in 0..999"),
        (torch.zeros(1, 3, 4, 4), torch.tensor([1000]), "must lie in 0..999"),
    ],
)
def test_what_no_prior_can_be_asked_is_refused(x: Tensor, t: Tensor, words: str) -> None:
    prior = CheapPrior()
    prior.channels = 3
    assert words in refusal(prior.predict, x, t)
    assert prior.predict(torch.zeros(1, 1, 4, 4), torch.tensor([999])).x0.shape == (1, 1, 4, 4)


@pytest.mark.parametrize(("height", "width"), [(8, 16), (16, 8)])
def test_a_photo_like_gaussian_has_its_power_law_with_a_corner_at_the_longer_side(height: int, width: int) -> None:
    found = stationary((2, height, width), 0.5, slope=3.0).variances
    rows, columns = np.fft.fftfreq(height)[:, None], np.fft.fftfreq(width)
    power = (rows**2 + columns**2 + 1 / 16**2) ** -1.5
    assert np.allclose(found.numpy(), power / power.mean() * 0.25)


def test_every_image_of_a_batch_gets_its_own_answer() -> None:
    """One by one, as on the CPU, and all at once: estimate, noise and variance differ from image to image."""
    prior = mixture()
    x, t = torch.randn(3, *SHAPE, generator=torch.Generator().manual_seed(2)).double(), torch.tensor([200, 300, 300])
    alone = [prior.predict(x[row : row + 1], t[row : row + 1]) for row in range(3)]
    for one_by_one in (True, False):
        prior.one_by_one = one_by_one
        together = prior.predict(x, t)
        for name in ("x0", "eps", "variance"):
            rows = torch.cat([getattr(part, name) for part in alone])
            assert torch.allclose(getattr(together, name), rows, atol=1e-12)
            assert len({tuple(row.flatten().tolist()) for row in rows}) == 3
