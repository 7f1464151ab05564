"""Building a registered thing by its name, with every wrong word told before anything runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar

from leader.errors import UsageError, unknown_name

T = TypeVar("T")


def build(kind: str, registry: Mapping[str, type[T]], name: str, settings: Mapping[str, Any]) -> T:
    """registry[name](**settings), where the registry holds dataclasses whose fields are their settings."""
    if name not in registry:
        raise unknown_name(kind, name, registry)
    known = sorted(item.name for item in fields(registry[name]))  # type: ignore[arg-type]
    for key in settings:
        if key not in known:
            raise UsageError(f"The {kind} '{name}' has no setting '{key}'; it has {', '.join(known) or 'none'}.")
    return registry[name](**settings)
