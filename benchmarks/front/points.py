"""What is measured: tasks, grids of times, starts, and one run as a `Point`.

A point names everything that determines its numbers: the settings are those in force, not "what the presets say", so a record
keeps its meaning when presets change.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import torch

from leader import Grid, Prior, Problem, Sampler, Schedule, load_prior, operators
from leader.bench.records import canonical, digest
from leader.errors import LeaderError

Settings = dict[str, Any]

SIZE = 128
PRIOR = "embedded"
HOSTS = ("ddnm", "ddrm", "diffpir", "ddpg", "idpg", "projdiff", "pirp", "dps", "sitcom")
GRIDS = ("uniform", "quadratic", "cube")
"""Spacing: equal steps of t, of sqrt(t), or of s_t^(1/3), s_t the noise of the rescaled state."""
TOP = 990
"""Where grids start unless a start says otherwise: the first time of the hundred-step grid."""


@dataclass(frozen=True)
class Task:
    """A degradation; sigma is quoted for [0, 1] images. Kernels and masks are those of the photograph's position."""

    label: str
    name: str
    sigma: float

    def operator(self, index: int) -> operators.LinearOperator:
        return _operator(self.name, index if self.name in ("deblur-motion", "inpaint") else 0)


TASKS = {
    "sr-clean": Task("SR x4, σ 0", "sr", 0.0),
    "sr": Task("SR x4, σ 0.05", "sr", 0.05),
    "gaussian": Task("Gaussian deblurring, σ 0.05", "deblur-gaussian", 0.05),
    "motion": Task("Motion deblurring, σ 0.05", "deblur-motion", 0.05),
    "cs": Task("CS 25 %, σ 0.05", "cs", 0.05),
    "inpaint": Task("Inpainting 50 %, σ 0", "inpaint", 0.0),
}


@lru_cache(maxsize=64)
def _operator(name: str, index: int) -> operators.LinearOperator:
    shape = (3, SIZE, SIZE)
    if name == "inpaint":
        return operators.Inpainting(shape, operators.random_mask(SIZE, SIZE, 0.5, seed=index))
    options: dict[str, dict[str, Any]] = {
        "sr": {"factor": 4, "down": "bicubic"},
        "cs": {"ratio": 0.25},
        "deblur-motion": {"seed": index},
        "deblur-gaussian": {},
    }
    return operators.build_task(name, shape, **options[name])


@dataclass(frozen=True)
class Start:
    """Where a run begins.

    top    at the first time of the hundred-step grid, as the host does it
    late   one call there, then straight to t0: the host's own step brings the data to t0
    data   at t0, from sqrt(abar) A^+ y (with noise the regularised inverse) plus the noise of t0
    """

    kind: str = "top"
    t0: int = TOP

    def __post_init__(self) -> None:
        if self.kind not in ("top", "late", "data"):
            raise LeaderError(f"A start is top, late or data; found '{self.kind}'.")

    @classmethod
    def parse(cls, text: str) -> Start:
        """The inverse of str."""
        kind, _, time = text.partition(" ")
        return cls(kind, int(time) if time else TOP)

    def __str__(self) -> str:
        return self.kind if self.kind == "top" else f"{self.kind} {self.t0}"


@dataclass(frozen=True)
class Point:
    """One run: everything that determines its numbers, except the photograph's pixels."""

    task: str
    method: str
    settings: Settings
    times: tuple[int, ...]
    grid: str
    start: Start = field(default_factory=Start)
    plugins: tuple[str, ...] = ()
    index: int = 0
    seed: int = 0

    @property
    def what(self) -> Settings:
        """The point as JSON values, the photograph left out: equal for the runs that are averaged."""
        return {
            "task": self.task,
            "method": self.method,
            "settings": self.settings,
            "grid": self.grid,
            "times": list(self.times),
            "start": str(self.start),
            "plugins": list(self.plugins),
        }

    @property
    def group(self) -> str:
        return digest(self.what)

    def key(self, photo: str) -> str:
        """photo: what identifies the photograph's file."""
        return digest([self.what, self.index, self.seed, photo])


@lru_cache(maxsize=1)
def prior() -> Prior:
    return load_prior(PRIOR)


def spaced(kind: str, count: int, top: int, schedule: Schedule) -> list[int]:
    """`count` times from `top` to 0, strictly decreasing."""
    if not 1 <= count <= top + 1:
        raise LeaderError(f"Between 0 and {top} lie {top + 1} times; found a wish for {count}.")
    shares = [1 - i / max(1, count - 1) for i in range(count)]
    if kind == "uniform":
        times = [round(top * share) for share in shares]
    elif kind == "quadratic":
        times = [round(top * share**2) for share in shares]
    elif kind == "cube":
        high, low = (_noise(schedule, t) ** (1 / 3) for t in (top, 0))
        times = [schedule.nearest((low + share * (high - low)) ** 3) for share in shares]
    else:
        raise LeaderError(f"A grid is one of {', '.join(GRIDS)}; found '{kind}'.")
    for i in range(count - 2, -1, -1):  # rounding repeats small times: push the earlier ones up
        times[i] = max(times[i], times[i + 1] + 1)
    return times


def _noise(schedule: Schedule, t: int) -> float:
    abar = float(schedule.abar(t))
    return math.sqrt((1 - abar) / abar)


def times_of(kind: str, calls: int, start: Start) -> tuple[int, ...]:
    """The times of a run, -1 at the end. From the top the uniform grid is the package's own, 1000 / calls a step."""
    schedule = prior().schedule
    if start.kind == "top":
        if kind == "uniform":
            return (*(k * len(schedule) // calls for k in range(calls - 1, -1, -1)), -1)
        return (*spaced(kind, calls, TOP, schedule), -1)
    if start.kind == "late":
        return (TOP, *spaced(kind, calls - 1, start.t0, schedule), -1)
    return (*spaced(kind, calls, start.t0, schedule), -1)


def in_force(task: str, method: str, overrides: Settings, plugins: Sequence[str] = ()) -> Settings:
    """The settings that differ from the defaults once presets and overrides are applied; plug-ins' in tables of their names."""
    return _in_force(task, method, canonical(overrides), tuple(plugins))


@lru_cache(maxsize=4096)
def _in_force(task: str, method: str, overrides: str, plugins: tuple[str, ...]) -> Settings:
    given = json.loads(overrides)
    problem = blank(task)

    def plan(use_presets: bool, settings: Settings) -> Settings:
        return Sampler(prior(), method, plugins, 25, use_presets=use_presets, **settings).plan(problem).settings

    told, plain = plan(True, given), plan(False, {})
    found = _differing(told["method"], plain["method"])
    for mine, default in zip(told["plugins"], plain["plugins"]):
        if table := _differing(mine, default):
            found[str(mine["name"])] = table
    return found


def _differing(values: Settings, defaults: Settings) -> Settings:
    return {key: value for key, value in values.items() if value != defaults[key]}


def resolved(task: str, method: str) -> Settings:
    """All settings of the method for a task, presets applied."""
    settings: Settings = Sampler(prior(), method, (), 25).plan(blank(task)).settings["method"]
    return settings


@lru_cache(maxsize=8)
def blank(task: str) -> Problem:
    operator = TASKS[task].operator(0)
    return Problem(torch.zeros(1, *operator.measurement_shape), operator, TASKS[task].sigma)


def grid_of(point: Point) -> Grid:
    return Grid(point.times, uniform=point.grid == "uniform" and point.start.kind == "top")
