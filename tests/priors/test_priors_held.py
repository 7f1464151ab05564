"""Priors, number by number: densities against SciPy, units and noise levels inside the pyramid, the head's bounds."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from torch import Tensor

from leader.errors import LeaderError
from leader.operators import AveragePoolSR
from leader.priors.adapters import HeadedPrior, WrappedPrior
from leader.priors.ask import Ask
from leader.priors.base import Prediction, from_eps, from_x0
from leader.priors.gaussian import Gaussian, GaussianMixturePrior, stationary
from leader.priors.ledger import Counts, Ledger, recording
from leader.priors.pyramid import PyramidPrior, _scale
from leader.priors.pyramid_net import Body, PyramidConfig, PyramidNet, guide_levels, halve
from leader.priors.spectrum import Spectrum
from leader.priors.tensor_files import check_weights
from leader.priors.variance_head import LARGEST, HeadShape, VarianceHead, node_weights, scale
from tests.cheap_prior import CheapPrior
from tests.uncertainty.spectra import toy_spectrum

SHAPE = (1, 4, 4)
NET = PyramidConfig(width=8, depth=2, head_width=4)


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


def test_times_beyond_the_schedule_are_refused() -> None:
    prior, x = CheapPrior(), torch.zeros(1, 1, 4, 4)
    prior.predict(x, torch.tensor([999]))
    for time in (1000, -1):
        with pytest.raises(LeaderError, match=r"0\.\.999"):
            prior.predict(x, torch.tensor([time]))


def test_counts_say_each_its_own() -> None:
    assert Counts(1, 2, 3, 4.5).as_dict() == {"calls": 1, "jvps": 2, "backwards": 3, "pixels": 4.5}


def test_the_pyramid_answers_in_the_units_of_the_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inside [0, 1] with noise s_t / 2; outside [-1, 1]: estimates 2 e - 1, variances four times as large."""
    prior = PyramidPrior(PyramidNet(NET).eval(), PyramidPrior.load().coarse)
    seen: list[tuple[Tensor, float]] = []

    def denoise(noisy: Tensor, sigma: float) -> tuple[Tensor, Tensor]:
        seen.append((noisy, sigma))
        return torch.full_like(noisy, 0.8), torch.full_like(noisy, 0.01)

    monkeypatch.setattr(prior, "denoise", denoise)
    x = torch.randn(1, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    found = prior.predict(x, torch.tensor([200]))
    abar = math.prod(1 - beta for beta in prior.schedule.betas[:201].tolist())
    assert found.variance is not None
    assert torch.allclose(found.x0, torch.tensor(0.6)) and torch.allclose(found.variance, torch.tensor(0.04))
    noisy, sigma = seen[0]
    assert sigma == pytest.approx(math.sqrt((1 - abar) / abar) / 2)
    assert torch.allclose(noisy, (x / math.sqrt(abar) + 1) / 2, atol=1e-5)


def test_coarser_levels_hear_half_of_the_noise() -> None:
    """Averages of four pixels have half the noise; the estimate is moved towards theirs by the share a + b sigma."""
    torch.manual_seed(0)
    net = PyramidNet(NET)
    assert net.expert is not None and net.share is not None
    noisy, sigma = torch.rand(1, 3, 16, 16), torch.tensor([0.3])
    with torch.no_grad():
        fine, _ = net.main(noisy, sigma)
        coarse = net.body(0)(halve(noisy), sigma / 2)[0]
        share = float(net.share[0] + net.share[1] * 0.3)
        gap = torch.nn.functional.interpolate(coarse - halve(fine), scale_factor=2.0, mode="bicubic", align_corners=False)
        assert torch.allclose(net.features(noisy, sigma, 1)[0], fine + share * gap, atol=1e-6)


def test_what_a_variance_head_sees_and_says_is_bounded() -> None:
    head = VarianceHead(HeadShape(1, 4, 1))
    first, last = head.convs[0], head.out.bias
    assert isinstance(first, torch.nn.Conv2d) and last is not None
    x0, abar = torch.zeros(1, 1, 5, 5), torch.tensor([0.5])
    with torch.no_grad():
        for item in head.parameters():
            item.fill_(0)
        first.weight[:, 2, 1, 1] = 1.0  # of x_t, x0, eps and the two constants: eps alone
        head.out.weight.fill_(1e-3)
        at_bound, beyond, inside = (
            head.log_factor(torch.full((1, 1, 5, 5), value * math.sqrt(0.5)), x0, abar) for value in (5.0, 50.0, 4.0)
        )
        assert torch.allclose(at_bound, beyond) and not torch.allclose(at_bound, inside)
        last.fill_(1e3)
        assert float(head.log_factor(x0, x0, abar).max()) == pytest.approx(LARGEST) and LARGEST == 6.0
        last.fill_(3.0)
        head.out.weight.fill_(0.0)
        assert float(head.log_factor(x0, x0, abar).max()) == pytest.approx(6 * math.tanh(0.5))


def test_derivatives_are_each_images_own_and_counted_for_each() -> None:
    class Square(CheapPrior):
        def _predict(self, x: Tensor, t: Tensor) -> Prediction:
            return Prediction(x**2, x, None)

    ask, ledger, t = Ask(Square()), Ledger(), torch.tensor([10, 20, 30])
    x = torch.arange(1.0, 4.0).reshape(3, 1, 1, 1).requires_grad_()
    with recording(ledger, [7, 8, 9]):
        values = ask(x, t).x0.flatten(1).sum(1)
        assert ask.gradient(values, x).flatten().tolist() == [2.0, 4.0, 6.0]
        assert ask.jvp(x.detach(), t, torch.ones_like(x)).flatten().tolist() == [2.0, 4.0, 6.0]
    for image in (7, 8, 9):
        assert ledger.rows[image] == Counts(calls=1, jvps=1, backwards=1, pixels=1.0)


def test_a_prior_around_another_takes_over_everything() -> None:
    base = CheapPrior()
    base.size, base.multiple, base.channels, base.home = (8, 16), 4, 3, Path("weights.pt")
    base.spectrum = toy_spectrum()
    around = WrappedPrior(base)
    for name in ("name", "channels", "source", "size", "multiple", "spectrum", "home", "schedule"):
        assert getattr(around, name) is getattr(base, name) or getattr(around, name) == getattr(base, name)
    assert around.work(5, 8, 16) == 128.0


def test_images_are_taken_one_by_one_on_the_cpu_unless_a_prior_says_otherwise() -> None:
    prior = CheapPrior()
    assert prior.takes_one_by_one(torch.device("cpu")) and not prior.takes_one_by_one(torch.device("cuda"))
    prior.one_by_one = False
    assert not prior.takes_one_by_one(torch.device("cpu"))


def test_a_heads_variance_of_grey_images_is_the_mean_of_the_channels() -> None:
    class Head(torch.nn.Module):
        def forward(self, x: Tensor, x0: Tensor, abar: Tensor) -> Tensor:
            assert x.shape[1] == x0.shape[1] == 3
            return torch.tensor([1.0, 2.0, 6.0]).reshape(1, 3, 1, 1).expand_as(x)

    base = CheapPrior()
    base.channels = 3
    prior = HeadedPrior(base, Head())
    grey = prior.predict(torch.zeros(1, 1, 4, 4), torch.tensor([5])).variance
    assert grey is not None and grey.shape == (1, 1, 4, 4) and bool((grey == 3).all()) and prior.source == "head"


def test_the_spectrum_of_photographs_has_their_mean_at_its_origin() -> None:
    spectrum = toy_spectrum()
    table = spectrum.photographs(8, 16)
    assert torch.allclose(table[0, 0], spectrum.images_mean * 128)
    assert torch.allclose(table[0, 8], spectrum.images[2]) and torch.allclose(table[4, 0], spectrum.images[2])  # radius 0.25
    radius = math.hypot(2 / 16, 2 / 32)
    low, high = (float(r) for r in spectrum.radii[1:3])  # between 0.12 and 0.25, a share in the logarithm
    share = (math.log(radius) - math.log(low)) / (math.log(high) - math.log(low))
    first, second = spectrum.images[1], spectrum.images[2]
    sizes = [float(item.diagonal().sum()) for item in (first, second)]
    shape = (1 - share) * first / sizes[0] + share * second / sizes[1]
    assert torch.allclose(table[2, 2], shape * math.exp((1 - share) * math.log(sizes[0]) + share * math.log(sizes[1])))


def test_an_estimate_follows_from_the_noise_and_the_noise_from_it() -> None:
    schedule, x, t = CheapPrior().schedule, torch.full((1, 1, 2, 2), 0.3), torch.tensor([400])
    abar = float(schedule.abar(400))
    from_noise = from_eps(x, t, torch.full_like(x, 0.5), schedule)
    assert float(from_noise.x0[0, 0, 0, 0]) == pytest.approx((0.3 - math.sqrt(1 - abar) * 0.5) / math.sqrt(abar), rel=1e-5)
    back = from_x0(x, t, from_noise.x0, schedule)
    assert torch.allclose(back.eps, torch.tensor(0.5), atol=1e-5)


def test_a_variance_head_stays_constant_beyond_its_noise_levels() -> None:
    """Nodes lie at log s^2 of -10, -8, ... 20: half of each of two at -9, and the last one beyond either end."""
    levels = torch.tensor([-30.0, -10.0, -9.0, 20.0, 25.0], dtype=torch.float64)
    weights = node_weights(1 / (1 + levels.exp()))
    count = weights.shape[1]
    assert count == 16
    for row, expected in enumerate(({0: 1.0}, {0: 1.0}, {0: 0.5, 1: 0.5}, {count - 1: 1.0}, {count - 1: 1.0})):
        wanted = torch.zeros(count, dtype=torch.float64)
        for place, value in expected.items():
            wanted[place] = value
        torch.testing.assert_close(weights[row], wanted, atol=1e-3, rtol=0)


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
        (torch.zeros(1, 2, 4, 4), torch.tensor([3]), "knows images of 3 channels; found 2"),
        (torch.zeros(1, 4, 4, 4), torch.tensor([3]), "knows images of 3 channels; found 4"),
        (torch.zeros(1, 3, 4, 4), torch.tensor([-1]), "must lie in 0..999"),
        (torch.zeros(1, 3, 4, 4), torch.tensor([1000]), "must lie in 0..999"),
    ],
)
def test_what_no_prior_can_be_asked_is_refused(x: Tensor, t: Tensor, words: str) -> None:
    prior = CheapPrior()
    prior.channels = 3
    with pytest.raises(LeaderError, match=words):
        prior.predict(x, t)
    assert prior.predict(torch.zeros(1, 1, 4, 4), torch.tensor([999])).x0.shape == (1, 1, 4, 4)


@pytest.mark.parametrize(("height", "width"), [(8, 16), (16, 8)])
def test_a_photo_like_gaussian_has_its_power_law_with_a_corner_at_the_longer_side(height: int, width: int) -> None:
    found = stationary((2, height, width), 0.5, slope=3.0).variances
    rows, columns = np.fft.fftfreq(height)[:, None], np.fft.fftfreq(width)
    power = (rows**2 + columns**2 + 1 / 16**2) ** -1.5
    assert np.allclose(found.numpy(), power / power.mean() * 0.25)


@pytest.mark.parametrize(("sigma", "factor"), [([0.1, 0.1], [1.0, 2.0]), ([0.2, 0.1], [1.0, 2.0]), ([0.1, 0.2], [1.0])])
def test_the_noise_levels_of_a_variance_scale_rise_and_have_a_factor_each(sigma: list[float], factor: list[float]) -> None:
    with pytest.raises(LeaderError, match="rising noise levels and a factor for each"):
        _scale({"sigma": sigma, "factor": factor}, Path("net.json"))
    assert _scale({"sigma": [0.1, 0.2], "factor": [1.0, 2.0]}, Path("net.json")).at(0.2) == pytest.approx(2.0)


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


def test_the_expert_answers_alone_up_to_its_own_limit() -> None:
    config = PyramidConfig()
    assert [guide_levels(share * config.expert_max, config) for share in (0.5, 1.0, 1.001, 2.0, 2.001)] == [0, 0, 1, 1, 2]
    assert guide_levels(1.0, PyramidConfig(cascade=False)) == 0


def test_the_head_is_told_ten_times_the_noise_and_a_quarter_of_the_level() -> None:
    body = Body(4, 1, 2).requires_grad_(False)
    for channel, expected in ((4, 10 * 0.03), (5, 3 / 4)):
        for parameter in (*body.h1.parameters(), *body.h2.parameters()):
            parameter.zero_()
        body.h1.weight[0, channel, 1, 1] = 1
        body.h2.weight[:, 0, 1, 1] = 1
        found = body.log_variance(torch.zeros(1, 4, 3, 5), torch.tensor([0.03]), torch.tensor([3.0]))
        assert found.shape == (1, 3, 6, 10) and torch.allclose(found, torch.tensor(expected))


@pytest.mark.parametrize("name", ["radii", "log_noise"])
def test_the_nodes_of_a_spectrum_ascend(name: str) -> None:
    spectrum = toy_spectrum()
    content = {key: getattr(spectrum, key).tolist() for key in spectrum.__dataclass_fields__}
    assert Spectrum.checked(content).channels == 3
    content[name][1] = content[name][0]
    with pytest.raises(ValueError, match=f"{name} does not ascend"):
        Spectrum.checked(content)


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_weights_are_finite(tmp_path: Path, value: float) -> None:
    file = tmp_path / "net.pt"
    file.write_bytes(bytes(64))
    check_weights({"one": torch.ones(4)}, file)
    with pytest.raises(LeaderError, match=r"values that are not finite \(first in two\)"):
        check_weights({"one": torch.ones(4), "two": torch.tensor([1.0, value])}, file)


def test_what_a_variance_head_is_told() -> None:
    head = VarianceHead(HeadShape(channels=1, width=2, depth=1))
    told: list[Tensor] = []
    head.convs[0].register_forward_pre_hook(lambda _, inputs: told.append(inputs[0]))
    x_t, x0 = torch.full((1, 1, 2, 2), 0.5), torch.full((1, 1, 2, 2), 3.0)
    head(x_t, x0, torch.tensor([0.2]))
    noise = (0.5 - math.sqrt(0.2) * 3.0) / math.sqrt(0.8)
    assert told[0][0, :, 1, 1].tolist() == pytest.approx([0.5, 1.5, noise, 0.25 * math.log(4.0), 0.2], rel=1e-5)
    head(x_t, x0, torch.tensor([0.9999]))
    assert float(told[1][0, 2, 0, 0]) == -5.0, "the noise it implies is bounded"


def test_the_usual_error_of_a_clean_image_is_a_millionth() -> None:
    assert scale(torch.tensor([0.3, 0.99999, 1.0])).flatten().tolist() == pytest.approx([0.7, 1e-5, 1e-6], rel=2e-2)
