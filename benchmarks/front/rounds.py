"""The rounds: which points each of them runs, and in which order, so that a round cut short is still of use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from measure import Record, Records, run
from points import HOSTS, TASKS, Point, Settings, Start, in_force, resolved, times_of
from recipes import Recipe
from scores import means

CALLS = 25
SITCOM_INNER = 5
SCREEN_PHOTOS = 4
GRADIENTS = ("dps", "sitcom")
TRIALS = 2
"""Trials of a host besides its presets."""
LOOK_PHOTOS = 2
NEAR = 1.5
"""Score (decibels) up to which a host is near the best one of a task."""


def base(method: str) -> Settings:
    """What every trial of a host has: SITCOM spends its calls on inner iterations."""
    return {"inner": SITCOM_INNER} if method == "sitcom" else {}


def trials(task: str, method: str, around: Settings | None = None) -> list[Settings]:
    """Four trials a host and task: trial 0 changes nothing, the others surround the presets, or the settings `around`."""
    now, clean = {**resolved(task, method), **(around or {})}, TASKS[task].sigma == 0

    def other(name: str, low: float, high: float) -> Settings:
        """The value of the two that is farther from the present one."""
        return {name: low if abs(now[name] - low) > abs(now[name] - high) else high}

    def scaled(name: str, *factors: float) -> list[Settings]:
        value = 0.3 if now[name] is None else now[name]
        return [{name: float(f"{value * factor:.3g}")} for factor in factors]

    tables: dict[str, Callable[[], list[Settings]]] = {
        "ddnm": lambda: [{"eta": 0.5}, {"eta": 1.0 if now["eta"] < 0.9 else 0.75}, {"eta": 0.2}],
        "ddrm": lambda: [{"eta": 0.5, "eta_b": 1.0}, {"eta": 0.9, "eta_b": 0.9}, {"eta": 0.9, "eta_b": 0.5}],
        "diffpir": lambda: [*([] if clean else scaled("lam", 3)), other("zeta", 0.2, 1.0), *scaled("lam", 1 / 3, 10)][:3],
        "ddpg": lambda: (
            [{"zeta": z} for z in (1.0, 0.2, 0.6)]
            if clean
            else [*scaled("gamma", 3), other("zeta", 0.2, 1.0), *scaled("gamma", 1 / 3)]
        ),
        "idpg": lambda: (
            [{"eta_floor": e} for e in (1e-5, 1e-3, 1e-2)] if clean else [*scaled("gamma", 3, 1 / 3), *scaled("eta_tilde", 3)]
        ),
        "projdiff": lambda: [{"step": s} for s in (0.5, 1.3, 0.2)],
        "pirp": lambda: [{"lam": -0.1}, *scaled("lam", 1 / 3), other("zeta", 0.2, 1.0)],
        "dps": lambda: scaled("scale", 3, 1 / 3, 9),
        "sitcom": lambda: scaled("rate", 2, 1 / 2, 4),
    }
    return [{}, *tables[method]()]


def recipe(task: str, method: str, grid: str, trial: Settings) -> Recipe:
    """A run of the screen: about 25 calls from the top."""
    return Recipe(method, in_force(task, method, {**base(method), **trial}), grid, Start(), CALLS)


def screen(
    photos: Sequence[Path], records: Records, tasks: Iterable[str], hosts: Iterable[str], grids: Sequence[str], count: int
) -> Iterator[Record]:
    """A first look at every host with its presets; then those near the best of a task on the grids, with `count` trials more.

    Nothing is spent on a host that is far behind on the first photographs: no grid or trial would bring it back.
    """
    tasks, hosts, several = list(tasks), list(hosts), range(min(SCREEN_PHOTOS, len(photos)))

    def walk(task: str, recipes: Iterable[Recipe], indices: Sequence[int] = several) -> Iterator[Record]:
        yield from run((item.point(task, i) for item in recipes for i in indices), photos, records)

    def first(task: str, host: str) -> Recipe:
        return recipe(task, host, "uniform" if host in GRADIENTS else "quadratic", {})

    for host in hosts:
        for task in tasks:
            yield from walk(task, [first(task, host)], range(LOOK_PHOTOS))
    for task in tasks:
        looks = {first(task, host).point(task, 0).group: host for host in HOSTS}
        found = means((row for row in records.rows.values() if row["group"] in looks), range(LOOK_PHOTOS))
        limit = max(mean.score for mean in found) - NEAR
        near = [looks[mean.group] for mean in found if mean.score >= limit and looks[mean.group] in hosts]
        for host in near:
            yield from walk(task, (recipe(task, host, grid, {}) for grid in grids))
        for host in near if count else ():
            groups = {recipe(task, host, grid, {}).point(task, 0).group for grid in grids}
            top = max(means((r for r in records.rows.values() if r["group"] in groups), several), key=lambda m: m.score)
            wanted = trials(task, host)[1 : 1 + count]
            yield from walk(task, (recipe(task, host, top.first["grid"], trial) for trial in wanted))


def today(photos: Sequence[Path], records: Records, tasks: Iterable[str], count: int) -> Iterator[Record]:
    """What people get so far: DDNM on a hundred uniform times with LEADer, and plain, settings of the presets."""
    tasks, times = list(tasks), times_of("uniform", 100, Start())
    for plugins in (("leader",), ()):
        for task in tasks:
            settings = in_force(task, "ddnm", {}, plugins)
            several = range(min(count, len(photos)))
            points = (Point(task, "ddnm", settings, times, "uniform", plugins=expanded(plugins), index=i) for i in several)
            yield from run(points, photos, records)


def expanded(plugins: tuple[str, ...]) -> tuple[str, ...]:
    return ("ucpm", "satp") if plugins == ("leader",) else plugins
