"""`python -m tools.mutants`: runs the list, prints who went unnoticed and a summary by room; exit 1 below 95 %.

`--random N --seed S` makes N bugs from the syntax tree instead and tries them on whatever tests reach them.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from random import Random

from tools.mutants.made import make_mutants
from tools.mutants.mutant import Mutant, read_list
from tools.mutants.outcomes import NOTICED, Outcome, Outcomes
from tools.mutants.reach import Reach
from tools.mutants.runner import SOURCE, Place, make_map, run_all

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
SHARE = 0.95


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    asked = _parser().parse_args(arguments)
    os.environ |= {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    out = asked.root / "out" / "mutants"
    source = asked.root / SOURCE
    every = make_mutants(source, asked.random, asked.seed) if asked.random else read_list(asked.list)
    mutants = [mutant for mutant in every if _wanted(mutant, asked.only)]
    if not mutants:
        print(f"No mutant matches {asked.only}; see --list.")
        return 2
    if asked.minutes < float("inf"):
        Random(asked.seed).shuffle(mutants)  # a part of the list is a fair sample of it
    if asked.show:
        for mutant in mutants:
            print(f"{mutant.room}\t{mutant.file}\t{mutant.breaks}\t{' '.join(mutant.tests)}")
        return 0
    with tempfile.TemporaryDirectory(prefix="mutants-") as name:
        folder = Path(name)
        reach = Reach(out / "reach").read()
        if asked.map:
            place = Place(asked.root, folder)
            make_map(place, reach, ["tests"], time.monotonic() + 60 * asked.minutes, partial(print, flush=True))
            place.nursery.close()
            for test in sorted(reach.failing):
                print(f"It fails without any mutant: {test}")
            return 2 if reach.failing else 0
        usual = out / f"made-{asked.seed}.jsonl" if asked.random else HERE / "outcomes.jsonl"
        outcomes = Outcomes(asked.results or usual)
        found = run_all(
            mutants,
            asked.root,
            folder,
            outcomes,
            reach,
            jobs=asked.jobs,
            timeout=asked.timeout,
            again=asked.again,
            minutes=asked.minutes,
            narrow=asked.narrow,
            say=_say,
        )
        outcomes.tidy(every)
    return _summary(mutants, found)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__)
    parser.add_argument("--only", action="append", metavar="TEXT", help="a room, or a text in file or words; may be repeated")
    parser.add_argument("--list", dest="show", action="store_true", help="print the mutants and run nothing")
    parser.add_argument(
        "--map",
        action="store_true",
        help="find out which test reaches what, for test files that changed (with --only: those named by these mutants)",
    )
    parser.add_argument("--random", type=int, default=0, metavar="N", help="make this many bugs in place of the list")
    parser.add_argument("--seed", type=int, default=0, help="of --random (0)")
    parser.add_argument("--jobs", type=int, default=2, help="mutants at a time (2)")
    parser.add_argument("--timeout", type=float, default=300, help="seconds for the tests of one mutant (300)")
    parser.add_argument(
        "--minutes", type=float, default=float("inf"), help="begin no mutant after that; the next run continues"
    )
    parser.add_argument(
        "--narrow", action="store_true", help="try only tests that a mutant names, not all that reach its function"
    )
    parser.add_argument("--again", action="store_true", help="run also what has a stored outcome that stands")
    parser.add_argument("--results", type=Path, help="the file of outcomes (tools/mutants/outcomes.jsonl)")
    parser.add_argument("--root", type=Path, default=ROOT, help=argparse.SUPPRESS)
    parser.add_argument("--lists", dest="list", type=Path, default=HERE / "list", help=argparse.SUPPRESS)
    return parser


def _wanted(mutant: Mutant, only: list[str] | None) -> bool:
    return only is None or any(text == mutant.room or text in mutant.file or text in mutant.breaks for text in only)


def _say(mutant: Mutant, outcome: Outcome) -> None:
    by = f" ({outcome.by})" if outcome.by else ""
    print(f"{outcome.status:9} {outcome.seconds:6.1f} s  {mutant.file}: {mutant.breaks}{by}", flush=True)


def _summary(mutants: list[Mutant], outcomes: list[Outcome | None]) -> int:
    """Prints who went unnoticed and a table by room; the exit code."""
    rooms: dict[str, Counter[str]] = {}
    run = [(mutant, outcome) for mutant, outcome in zip(mutants, outcomes, strict=True) if outcome is not None]
    for mutant, outcome in run:
        rooms.setdefault(mutant.room, Counter())[outcome.status] += 1
    left = [(mutant, outcome) for mutant, outcome in run if outcome.status != NOTICED]
    if left:
        print("\nNot noticed:")
        for mutant, outcome in left:
            change = f"`{mutant.find.strip()}` -> `{mutant.put.strip()}`"
            print(f"  {outcome.status}: {mutant.file}{_line(mutant)}: {mutant.breaks}: {change} {outcome.by}")
    print(f"\n{'room':14} {'mutants':>8} {'noticed':>8}")
    for room, counts in rooms.items():
        others = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()) if status != NOTICED)
        print(f"{room:14} {counts.total():8} {counts[NOTICED]:8}  {others}".rstrip())
    noticed = len(run) - len(left)
    print(f"{'all':14} {len(run):8} {noticed:8}  {100 * noticed / max(len(run), 1):.1f} %")
    if len(run) < len(mutants):
        print(f"{len(mutants) - len(run)} were not run yet.")
    return 0 if noticed >= SHARE * len(mutants) else 1


def _line(mutant: Mutant) -> str:
    return f":{mutant.line}" if mutant.line else ""


if __name__ == "__main__":
    raise SystemExit(main())
