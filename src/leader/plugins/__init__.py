"""The plug-ins and their registry. "leader" stands for both UCPM and SATP."""

from __future__ import annotations

from typing import Any

from leader.by_name import build
from leader.errors import unknown_name
from leader.plugins.base import Moment, Plugin
from leader.plugins.equs import EquS, EquSPlus
from leader.plugins.satp import SATP
from leader.plugins.ucpm import UCPM

PLUGINS: dict[str, type[Plugin]] = {cls.name: cls for cls in (UCPM, SATP, EquS, EquSPlus)}
BUNDLES: dict[str, tuple[str, ...]] = {"leader": ("ucpm", "satp")}


def expand(names: tuple[str | Plugin, ...]) -> tuple[str | Plugin, ...]:
    """Bundles replaced by their members, in order."""
    out: list[str | Plugin] = []
    for name in names:
        if isinstance(name, str) and name not in PLUGINS and name not in BUNDLES:
            raise unknown_name("plug-in", name, [*PLUGINS, *BUNDLES])
        out.extend(BUNDLES.get(name, (name,)) if isinstance(name, str) else (name,))
    return tuple(out)


def make_plugin(name: str, settings: dict[str, Any]) -> Plugin:
    """A plug-in by name with its settings."""
    return build("plug-in", PLUGINS, name, settings)


__all__ = ["BUNDLES", "PLUGINS", "SATP", "UCPM", "EquS", "EquSPlus", "Moment", "Plugin", "expand", "make_plugin"]
