import numpy as np
import pytest
import torch
from skimage.metrics import structural_similarity

from leader.metrics import data_consistency, psnr, ssim
from tests.sentences import refusal


def noisy_pair(channels: int, height: int, width: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    reference = torch.rand(3, channels, height, width, generator=generator)
    return (reference + 0.1 * torch.randn(reference.shape, generator=generator)).clamp(0, 1), reference


def dense_ssim(x: np.ndarray, y: np.ndarray) -> float:
    """SSIM of two planes [H, W] window by window, straight from its definition."""
    offsets = np.arange(11) - 5
    window = np.exp(-(offsets[:, None] ** 2 + offsets[None, :] ** 2) / (2 * 1.5**2))
    window /= window.sum()
    scores = []
    for i in range(x.shape[0] - 10):
        for j in range(x.shape[1] - 10):
            a, b = x[i : i + 11, j : j + 11], y[i : i + 11, j : j + 11]
            mean_a, mean_b = (window * a).sum(), (window * b).sum()
            var_a, var_b = (window * (a - mean_a) ** 2).sum(), (window * (b - mean_b) ** 2).sum()
            covariance = (window * (a - mean_a) * (b - mean_b)).sum()
            scores.append(
                (2 * mean_a * mean_b + 1e-4)
                * (2 * covariance + 9e-4)
                / ((mean_a**2 + mean_b**2 + 1e-4) * (var_a + var_b + 9e-4))
            )
    return float(np.mean(scores))


@pytest.mark.parametrize("channels", [1, 3])
def test_psnr_is_the_definition_per_image(channels: int) -> None:
    restored, reference = noisy_pair(channels, 12, 17)
    expected = [
        10 * np.log10(1.0 / np.mean((x.numpy().astype(np.float64) - y.numpy().astype(np.float64)) ** 2))
        for x, y in zip(restored, reference)
    ]
    np.testing.assert_allclose(psnr(restored, reference).numpy(), expected, rtol=1e-12)


def test_overshoot_is_cut_before_comparing() -> None:
    reference = torch.ones(1, 1, 16, 16)
    assert float(psnr(reference + 0.3, reference)) == float("inf")
    assert float(ssim(reference + 0.3, reference)) == pytest.approx(1.0, abs=1e-12)


def skimage_ssim(x: np.ndarray, y: np.ndarray) -> float:
    how = {"gaussian_weights": True, "sigma": 1.5, "use_sample_covariance": False, "data_range": 1.0}
    return float(structural_similarity(x, y, **how))


@pytest.mark.parametrize("channels", [1, 3])
def test_ssim_agrees_with_two_independent_computations(channels: int) -> None:
    restored, reference = noisy_pair(channels, 19, 14)
    pairs = [[(p.double().numpy(), q.double().numpy()) for p, q in zip(x, y)] for x, y in zip(restored, reference)]
    for other in (dense_ssim, skimage_ssim):
        expected = [np.mean([other(*pair) for pair in image]) for image in pairs]
        # float64 throughout: sums of 121 products of numbers up to 1, divided by no less than 9e-4
        np.testing.assert_allclose(ssim(restored, reference).numpy(), expected, atol=1e-10)


def test_data_consistency_of_the_truth_is_the_noise_level() -> None:
    generator = torch.Generator().manual_seed(1)
    truth = torch.rand(2, 3, 64, 64, generator=generator)

    def halve(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.avg_pool2d(x, 2)

    noise = 0.05 * torch.randn(2, 3, 32, 32, generator=generator)
    residual = data_consistency(truth, halve(truth) + noise, halve)
    torch.testing.assert_close(residual, noise.double().square().mean(dim=(1, 2, 3)).sqrt(), rtol=1e-5, atol=0)
    # 3072 entries: the rms estimates sigma with relative standard error 1 / sqrt(2 * 3072) = 1.3 %.
    assert bool(((residual - 0.05).abs() < 5 * 0.013 * 0.05).all())


def test_data_consistency_counts_observed_entries_only_and_takes_complex_ones() -> None:
    mask = torch.zeros(1, 1, 4, 4, dtype=torch.bool)
    mask[..., :2] = True
    restored = torch.full((2, 3, 4, 4), 0.5)
    measurement = torch.where(mask, 0.6, 0.0).expand(2, 3, 4, 4)
    residual = data_consistency(restored, measurement, lambda x: x * mask, observed=mask)
    torch.testing.assert_close(residual, torch.full((2,), 0.1, dtype=torch.float64), rtol=1e-5, atol=0)
    offset = torch.full((2, 3, 4, 4), 0.3 + 0.4j)
    complex_residual = data_consistency(restored, restored + offset, lambda x: x.to(torch.complex64))
    torch.testing.assert_close(complex_residual, torch.full((2,), 0.5, dtype=torch.float64), rtol=1e-5, atol=0)


def test_wrong_pictures_are_refused_in_one_sentence() -> None:
    good = torch.rand(1, 3, 16, 16)
    assert "shapes" in refusal(psnr, good, good[..., :8])
    for wrong in (good[0], torch.rand(1, 2, 16, 16), torch.rand(1, 4, 16, 16)):
        assert "1 or 3 channels" in refusal(psnr, wrong, wrong)
    assert "reference pictures span [" in refusal(psnr, good * 255, good * 255)
    assert "reference pictures span" in refusal(ssim, 2 * good - 1, 2 * good - 1)
    assert "divide 8-bit data by 255" in refusal(psnr, good.mul(255).byte(), good.mul(255).byte())
    assert "not finite" in refusal(ssim, good / 0, good)
    assert "at least 11 x 11" in refusal(ssim, good[..., :10], good[..., :10])
    assert "the operator that made the measurement" in refusal(data_consistency, good, good[..., :8], lambda x: x)
    assert "no observed entry" in refusal(
        data_consistency, good, good, lambda x: x, observed=torch.zeros(1, 1, 1, 1, dtype=torch.bool)
    )
