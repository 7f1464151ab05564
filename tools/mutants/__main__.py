"""`python -m tools.mutants`: runs the list, prints who went unnoticed and a summary by room; exit 1 below 95 %."""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tools.mutants.mutant import Mutant, read_list
from tools.mutants.runner import NOTICED, Outcome, Results, run_all, sound

ROOT = Path(__file__).resolve().parents[2]
LIST = Path(__file__).parent / "list"
SHARE = 0.95


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    asked = _parser().parse_args(arguments)
    mutants = [mutant for mutant in read_list(asked.list) if _wanted(mutant, asked.only)]
    if not mutants:
        print(f"No mutant matches {asked.only}; see --list.")
        return 2
    if asked.show:
        for mutant in mutants:
            print(f"{mutant.room}\t{mutant.file}\t{mutant.breaks}\t{' '.join(mutant.tests)}")
        return 0
    with tempfile.TemporaryDirectory(prefix="mutants-") as name:
        folder = Path(name)
        if not asked.trust:
            failing = sound(mutants, asked.root, folder, 20 * asked.timeout)
            if failing is not None:
                print(f"The tests fail without any mutant ({failing}): mend that first.")
                return 2
        outcomes = run_all(
            mutants,
            asked.root,
            folder,
            Results(asked.results),
            jobs=asked.jobs,
            timeout=asked.timeout,
            again=asked.again,
            say=_say,
        )
    return _summary(mutants, outcomes)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__)
    parser.add_argument("--only", action="append", metavar="TEXT", help="a room, or a text in file or words; may be repeated")
    parser.add_argument("--list", dest="show", action="store_true", help="print the mutants and run nothing")
    parser.add_argument("--jobs", type=int, default=2, help="mutants at a time (2)")
    parser.add_argument("--timeout", type=float, default=300, help="seconds for the tests of one mutant (300)")
    parser.add_argument("--again", action="store_true", help="run also what has a stored outcome")
    parser.add_argument("--trust", action="store_true", help="do not run the tests without a mutant first")
    parser.add_argument("--results", type=Path, default=ROOT / "out" / "mutants.jsonl", help="the file of outcomes")
    parser.add_argument("--root", type=Path, default=ROOT, help=argparse.SUPPRESS)
    parser.add_argument("--lists", dest="list", type=Path, default=LIST, help=argparse.SUPPRESS)
    return parser


def _wanted(mutant: Mutant, only: list[str] | None) -> bool:
    return only is None or any(text == mutant.room or text in mutant.file or text in mutant.breaks for text in only)


def _say(mutant: Mutant, outcome: Outcome) -> None:
    by = f" ({outcome.by})" if outcome.by else ""
    print(f"{outcome.status:9} {outcome.seconds:6.1f} s  {mutant.file}: {mutant.breaks}{by}", flush=True)


def _summary(mutants: list[Mutant], outcomes: list[Outcome]) -> int:
    """Prints who went unnoticed and a table by room; the exit code."""
    rooms: dict[str, Counter[str]] = {}
    for mutant, outcome in zip(mutants, outcomes, strict=True):
        rooms.setdefault(mutant.room, Counter())[outcome.status] += 1
    left = [(mutant, outcome) for mutant, outcome in zip(mutants, outcomes, strict=True) if outcome.status != NOTICED]
    if left:
        print("\nNot noticed:")
        for mutant, outcome in left:
            print(f"  {outcome.status}: {mutant.file}: {mutant.breaks}: `{mutant.find}` -> `{mutant.put}` {outcome.by}")
    print(f"\n{'room':14} {'mutants':>8} {'noticed':>8}")
    for room, counts in rooms.items():
        others = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()) if status != NOTICED)
        print(f"{room:14} {counts.total():8} {counts[NOTICED]:8}  {others}".rstrip())
    noticed = len(mutants) - len(left)
    print(f"{'all':14} {len(mutants):8} {noticed:8}  {100 * noticed / len(mutants):.1f} %")
    return 0 if noticed >= SHARE * len(mutants) else 1


if __name__ == "__main__":
    raise SystemExit(main())
