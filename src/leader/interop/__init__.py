"""Adapters between this package and other libraries, in both directions; one module per library."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leader.interop import deepinv

__all__ = ["deepinv"]


def __getattr__(name: str) -> Any:
    """Imports a module on first use: the other library may take seconds to import."""
    if name not in __all__:
        raise AttributeError(f"module 'leader.interop' has no attribute '{name}'")
    return import_module(f"leader.interop.{name}")
