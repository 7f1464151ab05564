"""How much each limit of the verdict and each weight of its score matters in the kept runs of benchmarks/self_check.py.

    python benchmarks/self_check_limits.py

Every number of trust/limits.toml is moved to 0.8 and 1.25 times its value, and to 0 and 100 times, where what it limits always
or never happens. Of the runs that may choose limits (not those of `third`) it says how many are judged better or worse then, a
ruined one by how grave its verdict is, an unharmed one of right settings by how mild, and how many others change.
"""

import copy
import importlib.resources
from collections import Counter
from collections.abc import Iterator
from typing import Any

from common import Record, print_rows, read_records
from constants_moved import import_again
from self_check import CASES, RECORDS

import leader.presets
import leader.trust.limits

LEVELS = ("fine", "doubtful", "failed")
TIMES = (0.8, 1.25, 0, 100)
RIGHT = {case.name for case in CASES if case.right}
SOURCED = {"unit", "source", "about"}


def judge_runs(runs: list[Record], tables: dict[str, Any]) -> list[int]:
    """The level of every run's verdict with these limits."""
    judge = import_again(tables, ("leader.trust",))["leader.trust.judging"].judge
    try:
        return [LEVELS.index(judge(run["numbers"]).level) for run in runs]
    except (ZeroDivisionError, ValueError):  # a limit of 0 that others are divided by
        return []


def list_numbers(table: dict[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The keys of every number or list of numbers."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from list_numbers(value, (*path, name))
        elif name not in SOURCED:
            yield (*path, name)


def move_number(tables: dict[str, Any], path: tuple[str, ...], times: float) -> dict[str, Any]:
    moved = copy.deepcopy(tables)
    row = moved
    for name in path[:-1]:
        row = row[name]
    value = row[path[-1]]
    row[path[-1]] = [times * one for one in value] if isinstance(value, list) else times * value
    return moved


def describe_changes(runs: list[Record], usual: list[int], moved: list[int]) -> str:
    counts: Counter[str] = Counter()
    if not moved:
        return "impossible"
    for run, before, after in zip(runs, usual, moved, strict=True):
        gain = run["psnr"] - run["psnr_given"]
        wanted = 1 if gain <= -3 else -1 if gain > -1 and run["case"] in RIGHT else 0
        if before != after:
            counts["other" if not wanted else "better" if (after - before) * wanted > 0 else "worse"] += 1
    return ", ".join(f"{counts[name]} {name}" for name in ("worse", "better", "other") if counts[name]) or "none"


def main() -> None:
    tables = leader.presets.parsed(importlib.resources.files("leader.trust") / "limits.toml")
    runs = [run for run in read_records(RECORDS) if run["part"] != "third"]
    usual = judge_runs(runs, tables)
    print(
        f"{len(runs)} runs\n\n| number | value | {' | '.join(f'times {times}' for times in TIMES)} |\n|---|---|---|---|---|---|"
    )
    for path in list_numbers({name: tables[name] for name in ("limits", "numbers", "score")}):
        value: Any = tables
        for name in path:
            value = value[name]
        changes = [describe_changes(runs, usual, judge_runs(runs, move_number(tables, path, times))) for times in TIMES]
        print_rows([[".".join(path).removesuffix(".value"), value, *changes]])


if __name__ == "__main__":
    main()
