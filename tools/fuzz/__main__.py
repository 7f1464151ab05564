"""`python -m tools.fuzz`: makes and runs the cases, prints a table by reader and the distinct findings, if any (exit 1).

Every case follows from the seed and its number: `--replay N` makes it again and shows what happens.
"""

import argparse
import json
import shlex
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

from leader.engines import Lost, make_engine
from tools.fuzz.cases import SHARES, make_case, reader_of
from tools.fuzz.seeds import make_seeds
from tools.fuzz.worker import FINDING, REFUSED, SERVED, Outcome, prepare, serve

ROOT = Path(__file__).resolve().parents[2]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000, help="how many (10000)")
    parser.add_argument("--first", type=int, default=0, help="number of the first case, for a long run in parts (0)")
    parser.add_argument("--seed", type=int, default=0, help="another seed, other cases")
    parser.add_argument("--only", choices=list(SHARES), help="the cases of one reader")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no case after so many seconds")
    parser.add_argument("--jobs", type=int, default=2, help="worker processes (2)")
    parser.add_argument("--replay", type=int, metavar="N", help="run case N in this process and show what happens")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "fuzz.jsonl", help="the file of findings")
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="fuzz-") as name:
        seeds, work, began = Path(name) / "seeds", Path(name) / "work", time.monotonic()
        make_seeds(seeds)
        if asked.replay is not None:
            return _replay(asked.seed, asked.replay, seeds)
        every = range(asked.first, asked.first + asked.cases)
        numbers = [n for n in every if asked.only is None or reader_of(asked.seed, n) == asked.only]
        outcomes = run_cases(numbers, asked.seed, seeds, work, asked.jobs, began + asked.seconds)
    findings = [outcome for outcome in outcomes if outcome.status == FINDING]
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    asked.out.write_text(
        "".join(json.dumps({"seed": asked.seed, **asdict(item)}) + "\n" for item in findings), encoding="utf-8"
    )
    _report(outcomes, findings, time.monotonic() - began, asked.out)
    return 1 if findings else 0


def run_cases(numbers: Sequence[int], seed: int, seeds: Path, work: Path, jobs: int, end: float) -> list[Outcome]:
    """The outcomes of these cases by number, none begun after the time `end`. One that costs its process is a finding."""
    work.mkdir(parents=True)
    given = ((seed, number, seeds, work) for number in numbers if time.monotonic() < end)
    found: list[Outcome] = []
    with closing(make_engine(jobs)) as engine:
        for position, answer in engine.each(serve, given):
            if isinstance(answer, Lost):
                number = numbers[position]
                answer = Outcome(number, reader_of(seed, number), FINDING, answer.reason)
            found.append(answer)
    return sorted(found, key=lambda outcome: outcome.number)


def _replay(seed: int, number: int, seeds: Path) -> int:
    """One case here, with its files named and its traceback shown."""
    from typer.testing import CliRunner

    from leader.cli import app

    folder = Path(tempfile.mkdtemp(prefix=f"fuzz-{number}-"))
    prepare()
    case = make_case(seed, number, seeds, folder)
    print(f"leader {shlex.join(case.arguments)}\nits files stay in {folder}")
    result = CliRunner().invoke(app, case.arguments)
    print(result.output)
    if result.exc_info is not None and not isinstance(result.exception, SystemExit):
        traceback.print_exception(*result.exc_info)
    return result.exit_code


def distinct(findings: Sequence[Outcome]) -> Iterator[tuple[Outcome, int]]:
    """The first finding of each kind and place, and how often it came, the most frequent first."""
    counts = Counter((item.reader, item.kind, item.place) for item in findings)
    for key, count in counts.most_common():
        yield next(item for item in findings if (item.reader, item.kind, item.place) == key), count


def _report(outcomes: Sequence[Outcome], findings: Sequence[Outcome], seconds: float, out: Path) -> None:
    print(f"{'reader':14} {'cases':>7} {'served':>7} {'refused':>8} {'findings':>9}")
    for reader in (*SHARES, "all"):
        counts = Counter(item.status for item in outcomes if reader in ("all", item.reader))
        if counts:
            print(f"{reader:14} {counts.total():7} {counts[SERVED]:7} {counts[REFUSED]:8} {counts[FINDING]:9}")
    print(f"{seconds:.0f} s")
    if findings:
        print(f"\nDistinct findings (all in {out}; --replay N shows one):")
        for item, count in distinct(findings):
            print(f"{count:5} x {item.reader}: {item.kind} at {item.place}: {item.words} [--replay {item.number}]")


if __name__ == "__main__":
    raise SystemExit(main())
