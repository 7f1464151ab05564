"""The key of a record: the request, and the revision of every part that took part.

A revision is an integer of a method, plug-in, operator, prior or metric, raised by hand whenever its numbers change.
Refactoring changes no key; `tests/canaries.py` detects a revision that should have been raised.
"""

import subprocess
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import leader
from leader.bench.cell import BASELINES, Cell, Recipe
from leader.bench.images import file_hash
from leader.bench.priors import fingerprint, priors_within, referee_fingerprint
from leader.bench.records import Record, digest
from leader.bench.setup import operator_of, plan_of
from leader.by_name import revision_of
from leader.methods import METHODS
from leader.metrics import METRICS
from leader.sampler import Sampler
from leader.uncertainty.estimators import REVISION as ESTIMATOR_REVISION

HARNESS_REVISION = 1
"""Revision of what all runs share: how a picture is read, its noise, residuals and counts."""
TRUST_REVISION = 2
"""Revision of the error map and its scores, in records that have them."""


@dataclass(frozen=True)
class Identity:
    """The identity of a record. asked: settings, picture, seed, weights; revisions: of the parts that ran, by name."""

    asked: Record
    revisions: dict[str, int]

    @property
    def key(self) -> str:
        return digest([self.asked, self.revisions])


def identify(cell: Cell) -> Identity:
    recipe = cell.recipe
    asked: Record = {
        "image": None if cell.image is None else file_hash(cell.image),
        "index": cell.index,
        "fit": recipe.fit,
        "size": recipe.size,
        "task": recipe.task,
        "options": cell.options.plain(),
        "sigma": recipe.sigma,
        "seed": recipe.seed,
        "device": recipe.device,
        **({} if recipe.precision == "float32" else {"precision": recipe.precision}),
        "timing": recipe.timing,
        "memory": recipe.memory,
        "keep": sorted(recipe.keep),
        **_choices(recipe),
        **({"referee": referee_fingerprint(recipe.prior, recipe.size)} if "trust" in recipe.keep else {}),
    }
    operator = type(operator_of(recipe, cell.index))
    return Identity(asked, {operator.__name__: revision_of(operator), **_revisions(recipe)})


def metrics_of_record(recipe: Recipe) -> tuple[str, ...]:
    if recipe.method == "reference":  # compared with itself
        return ()
    return tuple(name for name in (*METRICS.own, *recipe.metrics) if METRICS[name].smallest <= recipe.size)


@lru_cache(maxsize=4096)
def _choices(recipe: Recipe) -> Record:
    """The part of the request that follows from the plan: resolved settings and weights."""
    if recipe.method in BASELINES:
        return {"method": {"name": recipe.method}}
    plan, _ = plan_of(recipe)
    settings = {name: plan.settings[name] for name in ("method", "plugins", "estimator", "probes")}
    times = plan.grid.times
    settings["grid"] = f"{plan.grid.visits} times from {times[0]} to {times[-2]}, {digest(times)[:8]}"
    return {**settings, "prior": {"name": recipe.prior, "weights": fingerprint(recipe.prior, recipe.size)}}


@lru_cache(maxsize=4096)
def _revisions(recipe: Recipe) -> dict[str, int]:
    """The revisions of all parts of a recipe except its operator."""
    found = {"harness": HARNESS_REVISION}
    found |= {name: METRICS[name].revision for name in metrics_of_record(recipe)}
    if "trust" in recipe.keep:
        found["trust"] = TRUST_REVISION
    if recipe.method in BASELINES:
        return found
    plan, prior = plan_of(recipe)
    taken = {plugin.takes_over for plugin in plan.plugins} - {None}
    methods = {type(plan.method), *(method for method in METHODS.own.values() if method.term in taken)}
    found |= {"sampler": Sampler.revision, **{method.name: revision_of(method) for method in methods}}
    found |= {plugin.name: revision_of(type(plugin)) for plugin in plan.plugins}
    found |= {kind.__name__: revision_of(kind) for kind in priors_within(recipe.prior, prior)}
    if plan.settings["estimator"] is not None:
        found["estimators"] = ESTIMATOR_REVISION
    return found


@lru_cache(maxsize=1)
def provenance() -> Record:
    """The version of the package and, in a clone of its repository, the commit: stored beside the key, not in it."""
    home = Path(leader.__file__).resolve().parent
    found: Record = {"package": leader.__version__}
    if (home.parents[1] / ".git").exists():
        command = ["git", "-C", str(home), "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
        try:
            said = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
        except (OSError, subprocess.TimeoutExpired):  # without git the commit is unknown
            return found
        if said.returncode == 0:
            found["commit"] = said.stdout.strip()
    return found
