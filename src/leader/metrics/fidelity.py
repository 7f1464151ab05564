"""Distances to the truth, and to the measurement, that need no network: PSNR, SSIM, data consistency.

All take pictures [B, C, H, W] in [0, 1], clamp them to it and give one number per image, [B] float64. PSNR and
SSIM compute in float64, residuals in the precision of the measurement.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F

from leader.errors import LeaderError
from leader.metrics.checks import check_pair, check_pictures, check_sides

SSIM_WINDOW = 11
SSIM_STD = 1.5
_LUMINANCE = 0.01**2
_CONTRAST = 0.03**2


def psnr(restored: torch.Tensor, reference: torch.Tensor) -> torch.Tensor:
    """Peak signal-to-noise ratio in dB, [B]; infinite for equal pictures.

    Peak 1, one mean square error over all channels and pixels, no rounding to 8 bits.
    """
    restored, reference = check_pair(restored, reference)
    square_error = (restored.double() - reference.double()).square().mean(dim=(1, 2, 3))
    return -10.0 * square_error.log10()


def ssim(restored: torch.Tensor, reference: torch.Tensor) -> torch.Tensor:
    """Structural similarity (Wang et al. 2004), [B], at most 1.

    11 x 11 Gaussian window of standard deviation 1.5, K1 = 0.01, K2 = 0.03, data range 1, population covariances. The map is
    averaged over the valid region (windows that lie inside the picture) and then over channels. This is scikit-image's
    `structural_similarity(..., gaussian_weights=True, use_sample_covariance=False, data_range=1)`, which pads and then leaves
    the same 5-pixel border out of its mean.
    """
    restored, reference = check_pair(restored, reference)
    check_sides(restored, SSIM_WINDOW, "SSIM")
    x, y = restored.double(), reference.double()
    mean_x, mean_y = _local_mean(x), _local_mean(y)
    # The shift leaves (co)variances unchanged and keeps E[x^2] - E[x]^2 from cancelling on bright flat areas.
    centre = 0.5
    a, b = x - centre, y - centre
    mean_a, mean_b = mean_x - centre, mean_y - centre
    variance_x = _local_mean(a * a) - mean_a * mean_a
    variance_y = _local_mean(b * b) - mean_b * mean_b
    covariance = _local_mean(a * b) - mean_a * mean_b
    luminance = (2 * mean_x * mean_y + _LUMINANCE) / (mean_x**2 + mean_y**2 + _LUMINANCE)
    structure = (2 * covariance + _CONTRAST) / (variance_x + variance_y + _CONTRAST)
    return (luminance * structure).mean(dim=(1, 2, 3))


def data_consistency(
    restored: torch.Tensor,
    measurement: torch.Tensor,
    forward: Callable[[torch.Tensor], torch.Tensor],
    observed: torch.Tensor | None = None,
) -> torch.Tensor:
    """Root mean square of y - A x over the measurement, [B], in units of [0, 1] pictures.

    restored: [B, C, H, W] in [0, 1]. measurement: y = A x + noise of a [0, 1] picture, [B, ...], real or
    complex. forward: A on [0, 1] pictures. observed: boolean, broadcastable to y; only its true entries count (an inpainting
    operator may store zeros where nothing is measured). A perfect answer leaves the noise level sigma. With pictures in [-1, 1]
    every residual is exactly twice as large.
    """
    predicted = forward(check_pictures(restored, "restored"))
    if predicted.shape != measurement.shape:
        raise LeaderError(
            f"The operator gives a measurement of shape {list(predicted.shape)} and the measurement given "
            f"has shape {list(measurement.shape)}; use the operator that made the measurement."
        )
    if observed is None:
        return rms(measurement - predicted)
    square = (measurement - predicted).abs().double().square().flatten(1)
    counted = observed.to(square.device).expand(measurement.shape).flatten(1)
    counts = counted.sum(dim=1)
    if bool((counts == 0).any()):
        raise LeaderError("An image has no observed entry, so its data consistency is undefined; check its mask.")
    return ((square * counted).sum(dim=1) / counts).sqrt()


def rms(values: torch.Tensor) -> torch.Tensor:
    """Root mean square of each image's values [B, ...], real or complex: [B] float64."""
    return values.abs().square().flatten(1).mean(dim=1).sqrt().double()


def _local_mean(x: torch.Tensor) -> torch.Tensor:
    """Gaussian-weighted means of all windows inside the picture: [B, C, H, W] -> [B, C, H - 10, W - 10]."""
    offsets = torch.arange(SSIM_WINDOW, dtype=x.dtype, device=x.device) - SSIM_WINDOW // 2
    weights = torch.exp(-0.5 * (offsets / SSIM_STD).square())
    weights = weights / weights.sum()
    batch, channels = x.shape[:2]
    planes = x.flatten(0, 1).unsqueeze(1)
    planes = F.conv2d(F.conv2d(planes, weights.view(1, 1, -1, 1)), weights.view(1, 1, 1, -1))
    return planes.view(batch, channels, *planes.shape[-2:])
