"""The plug-ins and their registry.

"leader" stands for UCDC and SATP: beside UCDC this project's UCPM changes next to nothing (docs/results.md).
"leader-paper" stands for UCPM and SATP as the paper writes them.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from leader.by_name import Registry, accept_class, build
from leader.errors import UsageError, unknown_name
from leader.plugins.base import Plugin, StepInfo
from leader.plugins.cells import Cells
from leader.plugins.direct import Direct
from leader.plugins.equs import EquS, EquSPlus
from leader.plugins.opposed import Opposed
from leader.plugins.pace import Pace
from leader.plugins.patches import Patches
from leader.plugins.satp import SATP, SATPPaper
from leader.plugins.start import Start
from leader.plugins.ucdc import UCDC
from leader.plugins.ucpm import UCPM, UCPMPaper
from leader.plugins.wiener import Wiener

_OWN: tuple[type[Plugin], ...] = (
    *(UCPM, SATP, UCDC, UCPMPaper, SATPPaper, EquS, EquSPlus, Start, Pace, Wiener, Cells, Direct, Patches, Opposed),
)
PLUGINS: Registry[type[Plugin]] = Registry("plug-in", "leader.plugins", {cls.name: cls for cls in _OWN}, accept_class(Plugin))
"""The plug-ins by name: those here, those of installed packages, and `module:Class`."""
BUNDLES: dict[str, tuple[str, ...]] = {"leader": ("ucdc", "satp"), "leader-paper": ("ucpm-paper", "satp-paper")}
BUNDLE_LABELS = {"leader": "LEADer", "leader-paper": "LEADer (paper)"}


def label_plugin(name: str) -> str:
    """How tables call a plug-in or bundle."""
    return BUNDLE_LABELS.get(name) or PLUGINS[name].label or PLUGINS[name].name


def expand(plugins: Sequence[str | Plugin] | str | Plugin) -> tuple[str | Plugin, ...]:
    """Plug-ins by name or as objects, one or several: bundles replaced by their members, in order.

    >>> expand("leader-paper")
    ('ucpm-paper', 'satp-paper')
    """
    out: list[str | Plugin] = []
    if not isinstance(plugins, (str, Plugin, Iterable)):
        raise UsageError(f"Plug-ins are given by name or as objects, () for none; found {plugins!r}.")
    for item in (plugins,) if isinstance(plugins, (str, Plugin)) else plugins:
        if isinstance(item, Plugin):
            out.append(item)
        elif not isinstance(item, str):
            raise UsageError(f"A plug-in is given by its name or as an object such as SATP(); found {item!r}.")
        elif item not in BUNDLES and item not in PLUGINS:
            raise unknown_name("plug-in", item, [*PLUGINS, *BUNDLES])
        else:
            out.extend(BUNDLES.get(item, (item,)))
    twice = next((item for item in out if isinstance(item, str) and out.count(item) > 1), None)
    if twice is not None:
        raise UsageError(f"The plug-in '{twice}' is given twice, by its name or within a bundle; leave one out.")
    return tuple(out)


def list_bundles(plugins: Sequence[str | Plugin] | str | Plugin) -> tuple[str, ...]:
    """The bundles among plug-ins.

    >>> list_bundles(("leader", "ucpm"))
    ('leader',)
    """
    given = (plugins,) if isinstance(plugins, (str, Plugin)) else plugins
    return tuple(item for item in given if isinstance(item, str) and item in BUNDLES)


def make_plugin(name: str, settings: dict[str, Any]) -> Plugin:
    """A plug-in by name with its settings.

    >>> make_plugin("satp", {"budget": 0.05}).budget
    0.05
    """
    return build("plug-in", PLUGINS, name, settings)


__all__ = [
    "BUNDLES",
    "PLUGINS",
    "SATP",
    "UCDC",
    "UCPM",
    "Cells",
    "Direct",
    "EquS",
    "EquSPlus",
    "Opposed",
    "Pace",
    "Patches",
    "Plugin",
    "SATPPaper",
    "Start",
    "StepInfo",
    "UCPMPaper",
    "Wiener",
    "expand",
    "make_plugin",
]
