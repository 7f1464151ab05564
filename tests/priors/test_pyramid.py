"""The embedded prior behind the contract of all priors, and its Gaussian part against dense linear algebra."""

import math

import pytest
import torch

from leader.priors import pyramid_net
from leader.priors.coarse_gaussian import OPPONENT, CoarseGaussian, dct_matrix
from leader.priors.ledger import Ledger, recording
from leader.priors.pyramid import PyramidPrior, VarianceScale
from leader.priors.pyramid_net import PyramidConfig, PyramidNet, enlarge, expand, halve


@pytest.fixture(scope="module")
def prior() -> PyramidPrior:
    return PyramidPrior.load()


def smooth_image(size: int = 64) -> torch.Tensor:
    """A soft colour gradient with an edge, [1, 3, size, size] in [-1, 1]."""
    ramp = torch.linspace(-0.6, 0.6, size)
    image = torch.stack([ramp[None].expand(size, -1), ramp[:, None].expand(-1, size), -ramp[None].expand(size, -1)])
    image = image.clone()
    image[:, size // 2 :, size // 2 :] *= -0.5
    return image[None]


@pytest.mark.parametrize("t", [5, 60, 200, 350, 600, 999])
def test_it_denoises_and_knows_its_error(prior: PyramidPrior, t: int) -> None:
    clean = smooth_image()
    level = prior.schedule.level(torch.tensor([t]), clean)
    x = level.signal * clean + level.noise * torch.randn(clean.shape, generator=torch.Generator().manual_seed(t))
    prediction = prior.predict(x, torch.tensor([t]))
    torch.testing.assert_close(level.signal * prediction.x0 + level.noise * prediction.eps, x, rtol=0, atol=1e-4)
    error = float((prediction.x0 - clean).square().mean())
    noise_power = float(level.sigma) ** 2
    assert prediction.variance is not None and bool((prediction.variance > 0).all())
    assert error < 0.6 * min(noise_power, 1.0), "an estimate far better than the noisy image, or than nothing"
    # one image is no statistics: an order of magnitude is what can be asked of it
    assert 0.05 < error / float(prediction.variance.mean()) < 20


@pytest.mark.parametrize("shape", [(1, 1, 33, 47), (1, 3, 1, 5), (1, 3, 31, 17)])
def test_grey_and_odd_sizes(prior: PyramidPrior, shape: tuple[int, ...]) -> None:
    for t in (0, 250, 999):
        prediction = prior.predict(torch.randn(shape), torch.tensor([t]))
        assert prediction.x0.shape == shape
        assert prediction.variance is not None and prediction.variance.shape == shape
        assert bool(torch.isfinite(prediction.x0).all())


def test_grey_images_are_denoised_like_colour_ones(prior: PyramidPrior) -> None:
    grey = (smooth_image().mean(1, keepdim=True) + 1) / 2
    sigma = 40 / 255
    noisy = grey + sigma * torch.randn(grey.shape, generator=torch.Generator().manual_seed(0))
    estimate, _ = prior.denoise(noisy, sigma)
    # smooth parts leave little error; copies taken for independent channels would keep most of the noise
    assert float((estimate - grey).square().mean()) < 0.05 * sigma**2


def test_high_noise_costs_little_and_the_ledger_knows(prior: PyramidPrior) -> None:
    assert prior.work(0, 256, 256) == 256 * 256
    assert prior.work(150, 256, 256) <= 1.32 * 256 * 256
    assert prior.work(600, 256, 256) < 0.03 * 256 * 256
    with recording(Ledger()) as ledger:
        prior.predict(torch.randn(1, 3, 32, 32), torch.tensor([0]))
    assert ledger.total.pixels == 32 * 32


def test_reach_is_finite_for_the_network_only(prior: PyramidPrior) -> None:
    assert prior.reach(0, 256, 256) < 60
    assert prior.reach(999, 256, 256) == float("inf")


def test_variance_scale_interpolates_in_the_logarithm() -> None:
    scale = VarianceScale((0.1, 1.0), (1.0, 4.0))
    assert scale.at(0.01) == 1.0 and scale.at(10) == 4.0
    assert scale.at(10**-0.5) == pytest.approx(2.0)


def small_pyramid() -> PyramidPrior:
    torch.manual_seed(0)
    whole = PyramidPrior.load()
    net = PyramidNet(PyramidConfig(width=6, depth=2, head_width=4)).eval().requires_grad_(False)
    return PyramidPrior(net, whole.coarse, whole.schedule)


def test_a_picture_too_small_for_the_noise_costs_the_pixels_of_its_coarsest_level() -> None:
    prior = small_pyramid()
    where = prior.plan(999, 64, 64)
    assert not where.fits and where.level == 2 and prior.work(999, 64, 64) == 64 * 64 / 16


def test_a_grey_picture_has_the_mean_of_three_equal_channels_with_as_much_noise_as_they_share() -> None:
    prior = small_pyramid()
    grey = torch.rand(1, 1, 24, 32, generator=torch.Generator().manual_seed(1))
    colour = prior.denoise(grey.expand(-1, 3, -1, -1), math.sqrt(3) * 0.05)
    for found, expected in zip(prior.denoise(grey, 0.05), colour, strict=True):
        assert torch.allclose(found, expected.mean(1, keepdim=True))


def test_a_loaded_network_is_for_looking_only() -> None:
    """A network that asks for gradients keeps every layer's values in memory."""
    prior = PyramidPrior.load()
    assert not any(parameter.requires_grad for parameter in prior.parameters())
    assert not any(part.training for part in prior.net.modules())


@pytest.mark.parametrize(("shape", "times"), [((5, 12), 1), ((33, 20), 2), ((4, 3), 4), ((1, 6), 3)])
def test_enlarging_by_products_is_interpolation(shape: tuple[int, int], times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to rounding: a long side takes torch's own way, a short one two matrix products; the average of an estimate stays."""
    image = torch.randn(2, 3, *shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    products = [enlarge(image, times), enlarge(image, times, "bilinear"), expand(image, times)]
    plain = [torch.nn.functional.interpolate(image, scale_factor=2.0**times, mode=mode) for mode in ("bicubic", "bilinear")]
    monkeypatch.setattr(pyramid_net, "LARGEST_PRODUCT", 0)
    own = [enlarge(image, times), enlarge(image, times, "bilinear"), expand(image, times)]
    for one, other, expected in zip(products, own, (*plain, own[2]), strict=True):
        assert torch.equal(other, expected) and torch.allclose(one, expected, rtol=0, atol=1e-12)
    before, after = (float((halve(found, times) - image).abs().mean()) for found in (own[0], own[2]))
    assert after < before / 2 or before < 1e-12


PRIOR = CoarseGaussian(
    mean=(0.4, 0.45, 0.5),
    dc=(0.1, 0.02, 0.01),
    scale=(6e-4, 4e-5, 1e-5),
    knee=(0.03, 0.04, 0.04),
    power=(2.8, 3.0, 2.9),
    detail=(0.0, 0.001, 0.002),
)


def dense_covariance(height: int, width: int) -> torch.Tensor:
    """Covariance of the stacked RGB image, [3 H W, 3 H W]."""
    basis = torch.kron(OPPONENT, torch.kron(dct_matrix(height), dct_matrix(width)))
    return basis.T @ torch.diag(PRIOR.spectrum(height, width).flatten()) @ basis


def test_posterior_is_that_of_the_dense_gaussian() -> None:
    height, width, sigma = 5, 6, 0.7
    noisy = torch.rand(1, 3, height, width, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    covariance = dense_covariance(height, width)
    gain = covariance @ torch.linalg.inv(covariance + sigma**2 * torch.eye(len(covariance), dtype=torch.float64))
    mean = torch.tensor(PRIOR.mean, dtype=torch.float64).view(3, 1, 1).expand(3, height, width).flatten()
    expected = mean + gain @ (noisy.flatten() - mean)
    expected_variance = torch.diagonal(covariance - gain @ covariance) + PRIOR.detail[2]
    estimate, variance = PRIOR.posterior(noisy, sigma, 2)
    torch.testing.assert_close(estimate.flatten(), expected, rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(variance.flatten(), expected_variance, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("height", "width"), [(4, 4), (2, 8)])
def test_the_spectrum_is_the_law_at_every_frequency_and_the_variance_of_the_mean_at_none(height: int, width: int) -> None:
    """An orthonormal coefficient of the mean is sqrt(pixels) times the mean: its variance has as many times that."""
    three = (1.0, 2.0, 3.0)
    coarse = CoarseGaussian(three, (0.1, 0.2, 0.3), three, (0.5, 0.4, 0.3), (2.0, 2.5, 3.0), (0.01,))
    found = coarse.spectrum(height, width)
    assert found[:, 0, 0].tolist() == pytest.approx([height * width * dc for dc in (0.1, 0.2, 0.3)])
    f = math.hypot(1 / (2 * height), 3 / (2 * width))
    expected = [scale / (f**2 + knee**2) ** (power / 2) for scale, knee, power in zip(three, coarse.knee, coarse.power)]
    assert found[:, 1, 3].tolist() == pytest.approx(expected)
