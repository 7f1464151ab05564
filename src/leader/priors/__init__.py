"""Priors over clean images: networks, checkpoints, denoisers and analytic priors behind one interface, `Prior`."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leader.priors.adapters import DenoiserPrior, HeadedPrior, NetworkPrior
    from leader.priors.base import Prediction, Prior
    from leader.priors.gaussian import GaussianMixturePrior, GaussianPrior
    from leader.priors.loading import load_prior
    from leader.priors.pyramid import PyramidPrior
    from leader.priors.tiling import PaddedPrior, TiledPrior, any_size
    from leader.priors.variance_head import VarianceHead

# Names are imported on first use: the command line lists priors without loading torch.
_MODULES = {
    "adapters": ("DenoiserPrior", "HeadedPrior", "NetworkPrior"),
    "base": ("Prediction", "Prior"),
    "gaussian": ("GaussianMixturePrior", "GaussianPrior"),
    "loading": ("load_prior",),
    "pyramid": ("PyramidPrior",),
    "tiling": ("PaddedPrior", "TiledPrior", "any_size"),
    "variance_head": ("VarianceHead",),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'leader.priors' has no attribute '{name}'")
    return getattr(import_module(f"leader.priors.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])


__all__ = [
    "DenoiserPrior",
    "GaussianMixturePrior",
    "GaussianPrior",
    "HeadedPrior",
    "NetworkPrior",
    "PaddedPrior",
    "Prediction",
    "Prior",
    "PyramidPrior",
    "TiledPrior",
    "VarianceHead",
    "any_size",
    "load_prior",
]
