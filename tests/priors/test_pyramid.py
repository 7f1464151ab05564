"""The embedded prior behind the contract of all priors."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path

import pytest
import torch
from safetensors.torch import load

from leader.errors import LeaderError
from leader.priors.ledger import Ledger, recording
from leader.priors.pyramid import PyramidPrior, VarianceScale


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


def test_noise_levels_match_the_schedule(prior: PyramidPrior) -> None:
    abar = float(prior.schedule.abar(300))
    assert prior.sigma(300) == pytest.approx(0.5 * ((1 - abar) / abar) ** 0.5)


def test_mixed_times_equal_single_ones(prior: PyramidPrior) -> None:
    prior.one_by_one = False
    x = torch.randn(3, 3, 24, 40, generator=torch.Generator().manual_seed(0))
    t = torch.tensor([10, 400, 950])
    together = prior.predict(x, t)
    prior.one_by_one = None
    for i in range(3):
        alone = prior.predict(x[i : i + 1], t[i : i + 1])
        torch.testing.assert_close(together.x0[i : i + 1], alone.x0, rtol=0, atol=1e-4)


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


def test_differentiable_with_respect_to_the_state(prior: PyramidPrior) -> None:
    for t in (20, 300, 999):
        x = torch.randn(1, 3, 32, 32, requires_grad=True)
        (gradient,) = torch.autograd.grad(prior.predict(x, torch.tensor([t])).x0.sum(), x)
        assert float(gradient.abs().sum()) > 0


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


def test_wrong_files_are_told_in_a_sentence(tmp_path: Path, prior: PyramidPrior) -> None:
    with pytest.raises(LeaderError, match="does not exist"):
        PyramidPrior.load(tmp_path / "absent.safetensors")
    weights = resources.files("leader.priors") / "weights"
    settings = json.loads((weights / "pyramid.json").read_text())
    settings["net"]["width"] = 8
    (tmp_path / "p.json").write_text(json.dumps(settings))
    (tmp_path / "p.safetensors").write_bytes((weights / "pyramid.safetensors").read_bytes())
    with pytest.raises(LeaderError, match="matching pair"):
        PyramidPrior.load(tmp_path / "p.safetensors")


def test_shipped_weights_are_small_and_half_precision() -> None:
    content = (resources.files("leader.priors") / "weights" / "pyramid.safetensors").read_bytes()
    assert len(content) <= 10 * 2**20
    assert {tensor.dtype for tensor in load(content).values()} == {torch.float16}


def test_a_loaded_network_is_for_looking_only() -> None:
    """A network that asks for gradients keeps every layer's values in memory."""
    prior = PyramidPrior.load()
    assert not any(parameter.requires_grad for parameter in prior.parameters())
    assert not any(part.training for part in prior.net.modules())
