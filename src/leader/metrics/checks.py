"""Checks of the pictures given to metrics, in one place."""

import torch

from leader.errors import LeaderError

_ROUNDING = 1e-3
"""How far outside [0, 1] a reference may lie: enough for rounding, too little for a different scale."""


def check_pair(restored: torch.Tensor, reference: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """A restored and a reference batch [B, C, H, W] of pictures in [0, 1], checked and clamped to that range.

    Overshoot of the restored pictures is clipped, however large, because saving a picture clips it: the metric judges what a
    viewer sees. The reference is already a picture, so one outside [0, 1] shows that both are on a different scale (8 bits, or
    [-1, 1]) and is rejected.
    """
    if restored.shape != reference.shape:
        raise LeaderError(
            f"The pictures to compare have shapes {list(restored.shape)} and {list(reference.shape)}; "
            "give two batches of one shape [B, C, H, W]."
        )
    restored, clamped = check_pictures(restored, "restored"), check_pictures(reference, "reference")
    low, high = float(reference.min()), float(reference.max())
    if low < -_ROUNDING or high > 1.0 + _ROUNDING:
        raise LeaderError(
            f"The reference pictures span [{low:.3g}, {high:.3g}] and metrics take pictures in [0, 1]; "
            "rescale both batches first."
        )
    return restored, clamped


def check_pictures(pictures: torch.Tensor, name: str) -> torch.Tensor:
    """One batch [B, C, H, W], C = 1 or 3, floating-point and finite, clamped to [0, 1]."""
    if pictures.ndim != 4 or pictures.shape[1] not in (1, 3) or pictures.numel() == 0:
        raise LeaderError(
            f"The {name} pictures have shape {list(pictures.shape)}; give a non-empty batch [B, C, H, W] with 1 or 3 channels."
        )
    if not pictures.is_floating_point():
        raise LeaderError(
            f"The {name} pictures hold {pictures.dtype} and metrics take floating-point values in [0, 1]; "
            "divide 8-bit data by 255."
        )
    if not bool(torch.isfinite(pictures).all()):
        raise LeaderError(
            f"The {name} pictures hold values that are not finite and metrics take values in [0, 1]; "
            "look for the step that diverged."
        )
    return pictures.clamp(0.0, 1.0)


def check_sides(pictures: torch.Tensor, size: int, metric: str) -> None:
    """Refuse pictures too small for a metric's window or network."""
    height, width = pictures.shape[-2:]
    if min(height, width) < size:
        raise LeaderError(
            f"{metric} needs pictures of at least {size} x {size} pixels and these are {width} x {height}; "
            "give larger pictures or choose another metric."
        )
