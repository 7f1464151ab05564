"""Round two: the best hosts of the screen through lengths and starts.

Stages, each for all tasks before the next begins: `starts`, at the top and late, at ten calls and at the work of `STANDARD`;
`refine`, the best two of each length on the other grids and from the data at the same t0; `long`, 25 and 50 calls; `others`,
EquS+ and the paper's SATP. All begin with a look on two photographs; the best of every length go on to four, and in `final` to
eight.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from measure import Record, Records, run
from points import GRIDS, Point, Start, in_force
from recipes import STANDARD, Recipe, expected_cost
from rounds import LOOK_PHOTOS, SCREEN_PHOTOS
from scores import Mean, means, pareto

from leader.errors import LeaderError, unknown_name

DRAFT_CALLS = 10
LATE = (100, 200, 300, 500)
BUDGETS = (0.01, 0.05, 0.1)
SATP_ETA = 0.7
HOSTS_TAKEN = 4
FINAL_PHOTOS = 8
STAGES = ("starts", "refine", "long", "others", "final")
LONGEST = 41.2
"""Full-resolution passes of a hundred uniform steps."""
BEHIND = 1.5


def chosen(rows: Iterable[Record], task: str) -> list[Mean]:
    """The hosts taken further: the best by score; the last place goes to a host of the non-dominated set if one is left out."""
    found = means((row for row in rows if row["task"] == task), range(SCREEN_PHOTOS))
    ranked: dict[str, Mean] = {}
    for mean in sorted(found, key=lambda mean: -mean.score):
        ranked.setdefault(mean.first["method"], mean)
    hosts = list(ranked)
    taken = hosts[:HOSTS_TAKEN]
    limit = ranked[hosts[0]].score - BEHIND
    spare = [m for m in pareto(found) if m.first["method"] not in taken and m.score > limit]
    if spare:
        taken[-1] = max(spare, key=lambda mean: mean.score).first["method"]
    return [ranked[host] for host in taken]


def _recipe(mean: Mean, start: Start, calls: int | None) -> Recipe:
    row = mean.first
    return Recipe(row["method"], row["settings"], row["grid"], start, calls, tuple(row["plugins"]))


def starts(mean: Mean) -> Iterator[Recipe]:
    """For one host with the settings and the grid that the screen found."""
    for calls in (None, DRAFT_CALLS):
        for start in (Start(), *(Start("late", t0) for t0 in LATE)):
            yield _recipe(mean, start, calls)


def refinements(found: Sequence[Mean], cap: int | None) -> Iterator[Recipe]:
    """Around the best two of a length."""
    for mean in sorted(found, key=lambda mean: -mean.score)[:2]:
        start = Start.parse(mean.first["start"])
        plain = _recipe(mean, start, cap)
        yield from (replace(plain, grid=grid) for grid in GRIDS if grid != plain.grid)
        if start.kind == "late":
            yield replace(plain, start=Start("data", start.t0))


def long_runs(found: Sequence[Mean]) -> Iterator[Recipe]:
    """The best two hosts with more calls, as far as they cost less than a hundred uniform steps."""
    hosts: dict[str, Mean] = {}
    for mean in sorted(found, key=lambda mean: -mean.score):
        hosts.setdefault(mean.first["method"], mean)
    for mean in list(hosts.values())[:2]:
        for start, calls in ((Start(), 25), (Start(), 50), (Start("late", 300), 25), (Start("late", 500), 50)):
            recipe = _recipe(mean, start, calls)
            if expected_cost(recipe, recipe.point(mean.first["task"], 0).times) <= LONGEST:
                yield recipe


def others(screened: Sequence[Record], task: str) -> Iterator[Recipe]:
    """EquS+ on DDNM and on the best host, the paper's SATP on DDNM's hundred steps."""
    ddnm = in_force(task, "ddnm", {})
    yield Recipe("ddnm", ddnm, "quadratic", Start(), 25, ("equs+",))
    first = chosen(screened, task)[0]
    if first.first["method"] != "ddnm":
        yield replace(_recipe(first, Start(), 25), plugins=("equs+",), grid="quadratic")
    for budget in BUDGETS:
        yield Recipe("ddnm", {**ddnm, "satp": {"budget": budget, "eta": SATP_ETA}}, "uniform", Start(), 100, ("satp",))


def winners(found: Sequence[Mean], keep: int) -> list[Mean]:
    """Who goes on to more photographs: by length the `keep` best scores, the best PSNR and the best LPIPS."""
    kept: dict[str, Mean] = {}
    for lane in lanes(found).values():
        ranked = sorted(lane, key=lambda mean: -mean.score)
        wanted = [
            *ranked[:keep],
            *sorted(lane, key=lambda mean: -mean.psnr)[:1],
            *sorted(lane, key=lambda mean: mean.lpips)[:1],
        ]
        kept |= {mean.group: mean for mean in wanted}
    return list(kept.values())


def lanes(found: Iterable[Mean]) -> dict[str, list[Mean]]:
    """Runs by what they may cost: about ten calls, the work of `STANDARD`, anything."""
    finite = [mean for mean in found if mean.score > float("-inf")]
    return {
        "draft": [mean for mean in finite if mean.calls <= DRAFT_CALLS + 1],
        "standard": [mean for mean in finite if mean.cost <= STANDARD + 0.05],
        "best": finite,
    }


def again(mean: Mean, index: int) -> Point:
    """The point of a record's group for another photograph."""
    row = mean.first
    times, start, plugins = tuple(row["times"]), Start.parse(row["start"]), tuple(row["plugins"])
    return Point(row["task"], row["method"], row["settings"], times, row["grid"], start, plugins, index)


def lengths(
    photos: Sequence[Path],
    screened: Sequence[Record],
    records: Records,
    tasks: Sequence[str],
    stages: Sequence[str] = STAGES,
    ranks: int = HOSTS_TAKEN,
    keep: int = 3,
) -> Iterator[Record]:
    """The stages asked for, each for all tasks; the best host of every task comes before the second best of any.

    ranks  hosts a task; keep: best scores of a length that go on to more photographs
    """
    if not screened:
        raise LeaderError("The lengths start from the records of the screen, of which there are none; run the screen first.")

    def look(task: str, recipes: Iterable[Recipe]) -> Iterator[Record]:
        seen = {point.group: point for point in (recipe.point(task, 0) for recipe in recipes)}
        yield from run((replace(p, index=i) for p in seen.values() for i in range(LOOK_PHOTOS)), photos, records)

    def found(task: str, count: int) -> list[Mean]:
        rows = {row["key"]: row for row in [*screened, *records.rows.values()] if row["task"] == task}
        return means(rows.values(), range(count))

    def promote(seen: int, count: int) -> Iterator[Record]:
        for task in tasks:
            yield from run((again(mean, i) for mean in winners(found(task, seen), keep) for i in range(count)), photos, records)

    def refined(task: str) -> list[Recipe]:
        groups = lanes(found(task, SCREEN_PHOTOS))
        return [*refinements(groups["draft"], DRAFT_CALLS), *refinements(groups["standard"], None)]

    def stage(name: str) -> Iterator[Record]:
        if name == "starts":
            for rank in range(ranks):
                for task in tasks:
                    yield from look(task, (item for mean in chosen(screened, task)[rank : rank + 1] for item in starts(mean)))
        elif name == "final":
            yield from promote(SCREEN_PHOTOS, FINAL_PHOTOS)
            return
        else:
            for task in tasks:
                if name == "refine":
                    yield from look(task, refined(task))
                elif name == "long":
                    yield from look(task, long_runs(found(task, SCREEN_PHOTOS)))
                else:
                    yield from look(task, others(screened, task))
        yield from promote(LOOK_PHOTOS, SCREEN_PHOTOS)

    for name in stages:
        if name not in STAGES:
            raise unknown_name("stage", name, STAGES)
        yield from stage(name)
