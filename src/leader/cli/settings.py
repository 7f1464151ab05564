"""Settings files (--settings, TOML or JSON) and the options that override them."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from leader.errors import LeaderError, UsageError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def read_settings(path: Path | None) -> dict[str, Any]:
    """The settings in a file: a method's by name, a plug-in's in a table under its name."""
    if path is None:
        return {}
    if not path.is_file():
        raise LeaderError(f"There is no settings file {path}; check its name.")
    try:
        text = path.read_text(encoding="utf-8")
        content = json.loads(text) if path.suffix.lower() == ".json" else tomllib.loads(text)
    except (OSError, ValueError) as error:
        raise LeaderError(f"{path} is not a valid TOML or JSON file ({error}); correct it.") from error
    if not isinstance(content, dict):
        raise LeaderError(f"{path} must hold names and values; found a {type(content).__name__}.")
    reserved = {"prior", "method", "plugins", "steps"} & content.keys()
    if reserved:
        raise UsageError(f"{path} sets {', '.join(sorted(reserved))}; use the options of the command line for that.")
    return content


def with_budget(settings: dict[str, Any], budget: float | None, plugins: Sequence[str]) -> dict[str, Any]:
    """The settings with SATP's budget."""
    if budget is None:
        return settings
    if not (math.isfinite(budget) and budget >= 0):
        raise UsageError(f"The budget must be finite and >= 0; found {budget}.")
    if not {"leader", "satp"} & set(plugins):
        raise UsageError("A budget belongs to the plug-in 'satp'; add --plugin leader or --plugin satp.")
    return {**settings, "satp": {**settings.get("satp", {}), "budget": budget}}
