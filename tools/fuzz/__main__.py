"""`python -m tools.fuzz`: makes and runs the cases, prints a table by reader and the distinct findings, if any (exit 1).

Every case follows from the seed and its number: `--replay N` makes it again and shows what happens.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import shlex
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

from tools.fuzz.cases import SHARES, make_case, reader_of
from tools.fuzz.seeds import make_seeds
from tools.fuzz.worker import FINDING, REFUSED, SECONDS, SERVED, Outcome, prepare, serve

ROOT = Path(__file__).resolve().parents[2]
GRACE = 60
"""Seconds beyond three alarms until a worker that has written nothing is ended; its start belongs to them."""


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
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
        with ThreadPoolExecutor(asked.jobs) as pool:
            shares = [
                pool.submit(run_cases, numbers[job :: asked.jobs], asked.seed, seeds, work / str(job), began + asked.seconds)
                for job in range(asked.jobs)
            ]
            outcomes = [outcome for share in shares for outcome in share.result()]
    findings = [outcome for outcome in outcomes if outcome.status == FINDING]
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    asked.out.write_text(
        "".join(json.dumps({"seed": asked.seed, **asdict(item)}) + "\n" for item in findings), encoding="utf-8"
    )
    _report(outcomes, findings, time.monotonic() - began, asked.out)
    return 1 if findings else 0


def run_cases(numbers: Sequence[int], seed: int, seeds: Path, work: Path, end: float = float("inf")) -> list[Outcome]:
    """The outcomes of these cases, in their order; a worker that dies or hangs is a finding and is replaced."""
    work.mkdir(parents=True)
    log, context, left = work / "outcomes.jsonl", multiprocessing.get_context("spawn"), list(numbers)
    found: list[Outcome] = []
    while left and time.monotonic() < end:
        log.write_text("")
        process = context.Process(target=serve, args=(left, seed, seeds, work, log, end), daemon=True)
        process.start()
        while process.is_alive():
            process.join(1)
            if time.time() - log.stat().st_mtime > 3 * SECONDS + GRACE:
                process.kill()
        done = [Outcome(**json.loads(line)) for line in log.read_text(encoding="utf-8").splitlines()]
        found, left = found + done, left[len(done) :]
        if left and process.exitcode:
            how = f"the process died, or was deaf to the alarm (exit code {process.exitcode})"
            found.append(Outcome(left[0], reader_of(seed, left[0]), FINDING, how))
            left = left[1:]
    return found


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
