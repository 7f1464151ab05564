"""Settings files (--settings, TOML or JSON) and the runs that --json kept."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from leader.by_name import show_value
from leader.errors import UsageError
from leader.files import check_readable
from leader.toml import read_table

RUN = "leader"
"""The key that distinguishes a run kept by --json from settings; its value is the version of the format."""
MOST_BYTES = 256 << 20
"""Largest settings file in bytes: a kept run holds its masks and kernels."""

_OWN_OPTIONS = {"prior": "--prior", "method": "--method", "plugins": "--plugin", "steps": "--steps", "self": None}


def read_settings(path: Path | None) -> dict[str, Any]:
    """The names and values in a file: a method's settings by name, a plug-in's in a table under its name; or
    a run that --json kept.
    """
    if path is None:
        return {}
    check_readable(path, "settings file")
    content = read_table(path, "settings", "correct it", MOST_BYTES)
    if not is_run(content):
        _check_names(content, path)
    return content


def is_run(content: Mapping[str, Any]) -> bool:
    """Whether a settings file is a run that --json kept."""
    return isinstance(content.get(RUN), str)


def _check_names(content: Mapping[str, Any], path: Path) -> None:
    from leader.plugins import PLUGINS

    for name, value in content.items():
        if name in _OWN_OPTIONS:
            option = _OWN_OPTIONS[name]
            advice = f"use the option {option} for that" if option else "there is no such setting"
            raise UsageError(f"{path} sets '{name}'; {advice}.")
        if name in PLUGINS and not isinstance(value, dict):
            raise UsageError(f"{path} sets {name} = {show_value(value)}; the settings of a plug-in are a table under its name.")
        if value is None:
            raise UsageError(f"{path} sets '{name}' to null; leave the name out instead.")
