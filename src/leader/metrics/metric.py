"""The metrics that compare a restored picture with its reference, each with the conventions its number
depends on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from leader.metrics.fidelity import psnr, ssim
from leader.metrics.perceptual import lpips


@dataclass(frozen=True)
class Metric:
    """A per-image metric: `function(restored, reference)`, both [B, C, H, W] in [0, 1], gives [B]; unit ''
    is none.
    """

    name: str
    unit: str
    higher_is_better: bool
    convention: str
    function: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric(
            "psnr",
            "dB",
            True,
            "pictures clamped to [0, 1], not rounded; peak 1; one mean square error over all channels (RGB)",
            psnr,
        ),
        Metric(
            "ssim",
            "",
            True,
            "pictures clamped to [0, 1], not rounded; 11 x 11 Gaussian window of std 1.5, K 0.01 and 0.03, "
            "range 1, population covariances; mean over the valid region, then over channels (RGB)",
            ssim,
        ),
        Metric(
            "lpips",
            "",
            False,
            "version 0.1, AlexNet (trunk in float16); pictures clamped to [0, 1], not rounded, mapped to [-1, 1]; no resizing",
            lpips,
        ),
    )
}
