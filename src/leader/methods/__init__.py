"""The methods, one file per paper, and their registry."""

from typing import Any

from leader.by_name import Registry, accept_class, build
from leader.methods.base import Context, Cost, Estimate, Method, State
from leader.methods.daps import DAPS
from leader.methods.dcdp import DCDP
from leader.methods.ddim import DDIM
from leader.methods.ddnm import DDNM
from leader.methods.ddpg import DDPG, IDPG
from leader.methods.ddrm import DDRM
from leader.methods.diffpir import DiffPIR
from leader.methods.dps import DPS
from leader.methods.mcg import MCG
from leader.methods.pigdm import PiGDM
from leader.methods.pirp import PIRP
from leader.methods.posterior import Posterior
from leader.methods.projdiff import ProjDiff
from leader.methods.red_diff import REDDiff
from leader.methods.repaint import RePaint
from leader.methods.sitcom import SITCOM

_OWN: tuple[type[Method], ...] = (
    *(DDIM, DDNM, DDRM, DPS, DiffPIR, DDPG, IDPG, ProjDiff, SITCOM, PIRP),
    *(PiGDM, DAPS, REDDiff, RePaint, MCG, DCDP),
    Posterior,
)
METHODS: Registry[type[Method]] = Registry("method", "leader.methods", {cls.name: cls for cls in _OWN}, accept_class(Method))
"""The methods by name: those here, those of installed packages, and `module:Class`."""


def make_method(name: str, settings: dict[str, Any]) -> Method:
    """A method by name with its settings.

    >>> make_method("ddnm", {"eta": 0.5}).eta
    0.5
    """
    return build("method", METHODS, name, settings)


__all__ = [
    "DAPS",
    "DCDP",
    "DDIM",
    "DDNM",
    "DDPG",
    "DDRM",
    "DPS",
    "IDPG",
    "MCG",
    "METHODS",
    "PIRP",
    "SITCOM",
    "Context",
    "Cost",
    "DiffPIR",
    "Estimate",
    "Method",
    "PiGDM",
    "Posterior",
    "ProjDiff",
    "REDDiff",
    "RePaint",
    "State",
    "make_method",
]
