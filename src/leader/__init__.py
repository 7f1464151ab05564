"""Restore a degraded image with a diffusion prior, and know, pixel by pixel, how far to trust the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from leader import operators
from leader.errors import LeaderError, UsageError
from leader.priors.base import Prediction, Prior
from leader.problem import Problem
from leader.result import Result, Step
from leader.sampler import Sampler
from leader.schedule import Grid, Schedule

if TYPE_CHECKING:
    from leader.priors.loading import load_prior
    from leader.restoration import Restoration, restore

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    # What needs Pillow or weights is imported when it is used.
    if name == "load_prior":
        from leader.priors.loading import load_prior

        return load_prior
    if name in ("restore", "Restoration"):
        from leader import restoration

        return getattr(restoration, name)
    raise AttributeError(f"module 'leader' has no attribute '{name}'")


__all__ = [
    "Grid",
    "LeaderError",
    "Prediction",
    "Prior",
    "Problem",
    "Restoration",
    "Result",
    "Sampler",
    "Schedule",
    "Step",
    "UsageError",
    "load_prior",
    "operators",
    "restore",
]
