"""The metrics that compare a restored picture with its reference, each with its column and its conventions."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from leader.by_name import Registry, show_value
from leader.metrics.fidelity import SSIM_WINDOW, psnr, ssim
from leader.metrics.perceptual import TRUNKS, lpips


@dataclass(frozen=True)
class Column:
    """How a number is printed.

    title       the head of its column
    digits      decimals
    better      1: larger is better, -1: smaller is, 0: neither
    convention  what exactly was computed, in a few words
    """

    title: str
    digits: int
    better: int
    convention: str = ""


@dataclass(frozen=True)
class Metric:
    """A per-image metric: `function(restored, reference)`, both [B, C, H, W] in [0, 1], gives [B].

    unit      of its numbers; '' for none
    smallest  side of the smallest picture it takes, in pixels
    revision  raised by one whenever its numbers change; part of the keys of benchmark records
    """

    name: str
    unit: str
    column: Column
    function: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
    smallest: int = 1
    revision: int = 1


_CLAMPED = "pictures clamped to [0, 1], not rounded"
_PSNR = Column("PSNR", 2, 1, f"{_CLAMPED}; peak 1; one mean square error over all channels (RGB)")
_SSIM_CONVENTION = (
    f"{_CLAMPED}; 11 x 11 Gaussian window of std 1.5, K 0.01 and 0.03, range 1, population covariances; mean over the valid "
    "region, then over channels (RGB)"
)
_LPIPS_CONVENTION = f"version 0.1, AlexNet (trunk in float16); {_CLAMPED}, mapped to [-1, 1]; no resizing"
_OWN: dict[str, Metric] = {
    "psnr": Metric("psnr", "dB", _PSNR, psnr),
    "ssim": Metric("ssim", "", Column("SSIM", 3, 1, _SSIM_CONVENTION), ssim, SSIM_WINDOW),
    "lpips": Metric("lpips", "", Column("LPIPS", 3, -1, _LPIPS_CONVENTION), lpips, TRUNKS["alex"].smallest),
}


def _adapt(found: Any, name: str) -> Metric:
    """A user-defined metric: an object, or a class that makes one without arguments."""
    metric = found() if isinstance(found, type) else found
    if not isinstance(metric, Metric):
        raise TypeError(f"expected a leader.metrics.Metric, found {show_value(found)}")
    return metric


METRICS: Registry[Metric] = Registry("metric", "leader.metrics", _OWN, _adapt)
"""The metrics by name: those here, those of installed packages, and `module:name`."""
