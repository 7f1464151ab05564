"""Restore a degraded image with a diffusion prior, and know, pixel by pixel, how far to trust the answer."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leader import interop, methods, metrics, operators, plugins, priors, uncertainty
    from leader.errors import LeaderError, UsageError
    from leader.priors.adapters import DenoiserPrior
    from leader.priors.base import Prediction, Prior
    from leader.priors.loading import load_prior
    from leader.problem import Problem
    from leader.restoration.degrade import Degraded, degrade
    from leader.restoration.diagnose import Diagnosis, diagnose
    from leader.restoration.ensemble import Ensemble, ensemble
    from leader.restoration.restore import prepare, restore
    from leader.restoration.restored import Restoration
    from leader.result import Result, Step
    from leader.sampler import Sampler
    from leader.schedule import Grid, Schedule

__version__ = "0.2.0"

# Names are imported when they are used: the command line answers --help without loading torch.
_MODULES = {
    "errors": ("LeaderError", "UsageError"),
    "priors.adapters": ("DenoiserPrior",),
    "priors.base": ("Prediction", "Prior"),
    "priors.loading": ("load_prior",),
    "problem": ("Problem",),
    "restoration.degrade": ("Degraded", "degrade"),
    "restoration.diagnose": ("Diagnosis", "diagnose"),
    "restoration.ensemble": ("Ensemble", "ensemble"),
    "restoration.restore": ("prepare", "restore"),
    "restoration.restored": ("Restoration",),
    "result": ("Result", "Step"),
    "sampler": ("Sampler",),
    "schedule": ("Grid", "Schedule"),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}
_FOLDERS = ("interop", "methods", "metrics", "operators", "plugins", "priors", "uncertainty")


def __getattr__(name: str) -> Any:
    if name in _FOLDERS:
        return import_module(f"leader.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'leader' has no attribute '{name}'")
    return getattr(import_module(f"leader.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)


__all__ = [
    "Degraded",
    "DenoiserPrior",
    "Diagnosis",
    "Ensemble",
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
    "degrade",
    "diagnose",
    "ensemble",
    "interop",
    "load_prior",
    "methods",
    "metrics",
    "operators",
    "plugins",
    "prepare",
    "priors",
    "restore",
    "uncertainty",
]
