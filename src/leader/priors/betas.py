"""Reads noise schedules from checkpoint options, side-car files, diffusers folders and pyramids; the only place that does.

A schedule is a name ("linear", "scaled_linear", "cosine"), or an object with "type" and its settings:

    linear, scaled_linear  beta_start, beta_end, steps
    cosine                 steps
    table                  betas, one for each time
"""

from collections.abc import Mapping
from typing import Any

import torch

from leader.errors import LeaderError
from leader.priors.json_files import check_keys, check_list, check_number, check_whole, check_word, show
from leader.schedule import Schedule

MOST_STEPS = 100_000
LEAST_SIGNAL = 1e-20
"""Smallest abar at the last time; below it x0 cannot be recovered from x_t in float32."""

LINEAR = {"beta_start": 1e-4, "beta_end": 2e-2, "steps": 1000}
SETTINGS: dict[str, dict[str, Any]] = {
    "linear": LINEAR,
    "scaled_linear": LINEAR,
    "cosine": {"steps": 1000},
    "table": {"betas": None},
}
"""The settings of each type of schedule, with their defaults."""

DIFFUSERS = {"linear": "linear", "scaled_linear": "scaled_linear", "squaredcos_cap_v2": "cosine"}


def make_schedule(spec: Any, origin: str = "the option 'schedule'") -> Schedule:
    """A schedule from its description; a Schedule is returned unchanged. Errors name `origin`."""
    if isinstance(spec, Schedule):
        return spec
    if not isinstance(spec, (str, Mapping)):
        raise LeaderError(f"The schedule of {origin} must be a name or an object with a type; found {show(spec)}.")
    given = {"type": spec} if isinstance(spec, str) else dict(spec)
    kind = check_word(given.pop("type", "linear"), "schedule", SETTINGS)
    check_keys(given, SETTINGS[kind], f"setting of a {kind} schedule")
    values = {**SETTINGS[kind], **given}
    if kind == "table":
        rows = check_list(values["betas"], f"The betas of {origin}", 2, MOST_STEPS)
        table = [check_number(value, f"A beta of {origin}", 0, 1) for value in rows]
        schedule = Schedule(torch.tensor(table, dtype=torch.float64))
    else:
        ends = [check_number(values[key], f"{key} of {origin}", 0, 1) for key in ("beta_start", "beta_end") if key in values]
        steps = check_whole(values["steps"], f"The number of times of {origin}", 2, MOST_STEPS)
        schedule = getattr(Schedule, kind)(*ends, steps)
    last = float(schedule.abar_table[-1])
    if last < LEAST_SIGNAL:
        raise LeaderError(
            f"The schedule of {origin} leaves a signal of {last:.1g} at its last time, too little to recover x0: "
            "check its betas and its number of times."
        )
    return schedule


def from_diffusers(config: Mapping[str, Any], origin: str) -> Schedule:
    """The schedule of a diffusers scheduler configuration."""
    if config.get("rescale_betas_zero_snr"):
        raise LeaderError(f"{origin} has a last step without signal, at which x0 cannot be recovered; it is not supported.")
    if config.get("trained_betas") is not None:
        return make_schedule({"type": "table", "betas": config["trained_betas"]}, origin)
    kind = config.get("beta_schedule")
    if not isinstance(kind, str) or kind not in DIFFUSERS:
        raise LeaderError(
            f"{origin} has the noise schedule {show(kind)}, where linear, scaled_linear, squaredcos_cap_v2 or "
            "trained_betas were expected: give the option 'schedule'."
        )
    wanted = {"steps": "num_train_timesteps", "beta_start": "beta_start", "beta_end": "beta_end"}
    names = {key: wanted[key] for key in SETTINGS[DIFFUSERS[kind]]}
    given = {key: config[name] for key, name in names.items() if name in config}
    return make_schedule({"type": DIFFUSERS[kind], **given}, origin)
