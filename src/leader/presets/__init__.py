"""Presets as data: which settings a method or plug-in gets for a prior, a task and a noise level.

Every *.toml file here holds [[preset]] tables: an entry, or the keys that several entries share and their `rows`; a list of
priors, methods, tasks or levels of noise stands for an entry of each. Keys at the top of a file hold for all. An entry has

  prior    a prior's name or data set ("embedded", "celebahq", "imagenet", "ffhq"), or "any"
  method   the host's name
  task     the operator's task ("sr-bicubic", "deblur-gaussian", ...), or "any"
  noise    "none", "noisy", "any", or a number: the level quoted for [0, 1] images
  settings the method's settings; tables named after plug-ins ("ucpm", "satp") hold theirs; a table named after a bundle
           ("leader") has tables of its members, for runs that ask for the bundle
  source   where the numbers come from: "paper: ..." (published with the method), "ours: ..." (our searches), "default: ..."
           (nobody's: carried over or assumed)

The most specific entry wins; entries of later rank fill what it leaves open. What a calibration stored beside a prior
(`stored.py`) wins over all of them.
"""

from __future__ import annotations

import itertools
import sys
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leader.presets.stored import read_stored
from leader.toml import join_rows, parse_toml_text

if TYPE_CHECKING:  # moved between the versions of Python that are served
    if sys.version_info >= (3, 11):
        from importlib.resources.abc import Traversable
    else:
        from importlib.abc import Traversable

DATA_SETS = {
    "imagenet-256": "imagenet",
    "celebahq-256": "celebahq",
    "celebahq-256-repaint": "celebahq",
    "ffhq-256": "ffhq",
}


LISTED = ("prior", "method", "task", "noise", "quality", "look")
"""Keys that say what an entry is for."""


@cache
def entries() -> tuple[dict[str, Any], ...]:
    """All presets of the package, in file order."""
    found: list[dict[str, Any]] = []
    for file in sorted(resources.files(__name__).iterdir(), key=lambda item: item.name):
        if file.name.endswith(".toml"):
            found += read_entries(file, "preset")
    return tuple(found)


def expand_rows(tables: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The entries that tables stand for: one for each of its `rows`, and of these for each of what is listed under a key that
    says what an entry is for.
    """
    found = []
    for table in join_rows(tables):
        listed = {key: table[key] for key in LISTED if isinstance(table.get(key), list)}
        found += [{**table, **dict(zip(listed, chosen))} for chosen in itertools.product(*listed.values())]
    return found


def read_entries(file: Traversable, kind: str) -> list[dict[str, Any]]:
    """The entries of the [[kind]] tables in a TOML file of the package."""
    content = parsed(file)
    tables = content.pop(kind, [])
    return expand_rows([{**content, "rows": tables}])


def parsed(file: Traversable) -> dict[str, Any]:
    return parse_toml_text(file.read_text(encoding="utf-8"))


def find(prior: str, method: str, task: str, sigma: float, home: Path | None = None) -> dict[str, Any]:
    """The settings for this combination; sigma is quoted for [0, 1] images. Plug-in settings sit in sub-tables.

    home  the prior's weights, beside which presets of its own may be stored
    """
    ranked = []
    for own, found in ((False, entries()), (True, read_stored(home))):
        for entry in found:
            fit = rank(entry, prior, method, task, sigma)
            if fit is not None:
                ranked.append(((own, *fit), entry))
    merged: dict[str, Any] = {}
    for _, entry in sorted(ranked, key=lambda item: item[0]):
        for key, value in entry["settings"].items():
            merged[key] = {**merged.get(key, {}), **value} if isinstance(value, dict) else value
    return merged


def rank(entry: dict[str, Any], prior: str, method: str, task: str, sigma: float) -> tuple[float, ...] | None:
    """How well an entry fits, higher is better, or None."""
    fits = {
        "prior": {prior: 2.0, DATA_SETS.get(prior, ""): 1.0, "any": 0.0},
        "method": {method: 1.0, "any": 0.0},
        "task": {task: 1.0, "any": 0.0},
    }
    scores = []
    for key, table in fits.items():
        if entry.get(key, "any") not in table:
            return None
        scores.append(table[entry.get(key, "any")])
    noise = entry.get("noise", "any")
    if isinstance(noise, str):
        if noise not in ("any", "noisy" if sigma > 0 else "none"):
            return None
        scores.append(0.0 if noise == "any" else 1.0)
    elif (sigma > 0) == (noise > 0):
        scores.append(2.0 - min(1.0, abs(noise - sigma) / max(noise, sigma, 1e-12)))  # the nearest level wins
    else:
        return None
    return tuple(scores)
