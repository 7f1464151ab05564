"""Good company: this package's parts as those of other libraries, and theirs as parts here. Each library has a module."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leader.interop import deepinv

__all__ = ["deepinv"]


def __getattr__(name: str) -> Any:
    """Imports a module when it is first used: the other library may take seconds."""
    if name not in __all__:
        raise AttributeError(f"module 'leader.interop' has no attribute '{name}'")
    return import_module(f"leader.interop.{name}")
