"""The identity of a cell: everything that determines its record, and the keys that follow from it."""

from __future__ import annotations

from functools import lru_cache

from leader.bench.cell import BASELINES, Cell, Recipe
from leader.bench.images import file_hash
from leader.bench.priors import fingerprint, referee_fingerprint, roots_of_prior
from leader.bench.records import Record, digest
from leader.bench.setup import plan_of
from leader.bench.version import code_version, root_of
from leader.methods import METHODS
from leader.metrics import METRICS
from leader.operators.pillow_resize import PILLOW_DOWNSAMPLING
from leader.operators.tasks import TASKS, resolve

RUNNING = "leader.bench.running:numbers_and_pictures"
"""The root of all that a run does: reading the picture, its noise, the loop, scores and counts."""
TRUSTED = "leader.bench.trusting:trusted_numbers"
"""The same for a run whose error map is judged."""


def identity(cell: Cell) -> Record:
    """Everything that determines a cell's record, and the keys that follow: {"key", "cell", "what", "code"}."""
    recipe = cell.recipe
    what: Record = {
        "image": None if cell.image is None else file_hash(cell.image),
        "index": cell.index,
        "fit": recipe.fit,
        "size": recipe.size,
        "task": recipe.task,
        "options": cell.options.plain(),
        "sigma": recipe.sigma,
        "seed": recipe.seed,
        "device": recipe.device,
        "timing": recipe.timing,
        "memory": recipe.memory,
        "keep": sorted(recipe.keep),
        **_choices(recipe),
        **({"referee": referee_fingerprint(recipe.prior, recipe.size)} if "trust" in recipe.keep else {}),
    }
    return identified(what, code_of(recipe))


def identified(what: Record, code: str) -> Record:
    """The identity of what was run by a version of the code. cell: its digest without that version."""
    return {"key": digest([what, code]), "cell": digest(what), "what": what, "code": code}


def score_versions(cell: Cell) -> dict[str, str]:
    """The metrics a record of this cell holds, each with the version of its code: they are no part of the key."""
    if cell.recipe.method == "reference":  # compared with itself
        return {}
    return {name: version for name, version in _metric_versions() if METRICS[name].smallest <= cell.recipe.size}


def lacking(record: Record, cell: Cell) -> list[str]:
    """The metrics whose numbers the record lacks, or has from another version of their code."""
    if "error" in record:
        return []
    stored = record.get("scored", {})
    return [name for name, version in score_versions(cell).items() if stored.get(name) != version]


def _metric_versions() -> list[tuple[str, str]]:
    return [(name, code_version([root_of(metric.function)])[:8]) for name, metric in METRICS.items()]


@lru_cache(maxsize=4096)
def _choices(recipe: Recipe) -> Record:
    """The part of the identity that follows from the plan: resolved settings and weights."""
    if recipe.method in BASELINES:
        return {"method": {"name": recipe.method}}
    plan, _ = plan_of(recipe)
    settings = {name: plan.settings[name] for name in ("method", "plugins", "estimator", "probes")}
    times = plan.grid.times
    settings["grid"] = f"{plan.grid.visits} times from {times[0]} to {times[-2]}, {digest(times)[:8]}"
    return {**settings, "prior": {"name": recipe.prior, "weights": fingerprint(recipe.prior)}}


@lru_cache(maxsize=4096)
def code_of(recipe: Recipe) -> str:
    """The version of the code that runs a recipe."""
    roots = [TRUSTED if "trust" in recipe.keep else RUNNING, root_of(TASKS[resolve(recipe.task, {})[0]])]
    down = recipe.options.plain().get("down")
    if down in PILLOW_DOWNSAMPLING:  # not in what that builder leads to
        roots.append(root_of(PILLOW_DOWNSAMPLING[down]))
    if recipe.method not in BASELINES:
        plan, prior = plan_of(recipe)
        taken = {plugin.takes_over for plugin in plan.plugins} - {None}
        classes = [type(plan.method), *map(type, plan.plugins)]
        classes += [method for method in METHODS.values() if method.term in taken]
        roots += [*map(root_of, classes), *roots_of_prior(recipe.prior, prior)]
    return code_version(roots)
