"""`python -m tools.fuzz`: makes and runs the cases, prints a table by reader and the distinct findings, if any (exit 1).

Every case follows from the seed and its number: `--replay N` makes it again and shows what happens.
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
import shlex
import signal
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from multiprocessing.connection import Connection
from pathlib import Path

from tools.fuzz.cases import SHARES, make_case, reader_of
from tools.fuzz.seeds import make_seeds
from tools.fuzz.worker import FINDING, READY, REFUSED, SECONDS, SERVED, Outcome, prepare, serve

ROOT = Path(__file__).resolve().parents[2]
GRACE = 20
"""Seconds after the alarm until a worker that does not answer is ended."""


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    asked = _parser().parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="fuzz-") as name:
        seeds, work = Path(name) / "seeds", Path(name) / "work"
        make_seeds(seeds)
        if asked.replay is not None:
            return _replay(asked.seed, asked.replay, seeds, work)
        every = range(asked.first, asked.first + asked.cases)
        numbers = [n for n in every if asked.only is None or reader_of(asked.seed, n) == asked.only]
        began = time.monotonic()
        asked.out.parent.mkdir(parents=True, exist_ok=True)
        with asked.out.open("w", encoding="utf-8") as file:

            def keep(item: Outcome) -> None:
                file.write(json.dumps({"seed": asked.seed, **asdict(item)}) + "\n")
                file.flush()

            outcomes = run_cases(numbers, asked.seed, seeds, work, asked.jobs, keep, asked.seconds)
        seconds = time.monotonic() - began
    findings = [outcome for outcome in outcomes if outcome.status == FINDING]
    _report(outcomes, findings, seconds, asked.out)
    return 1 if findings else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000, help="how many (10000)")
    parser.add_argument("--first", type=int, default=0, help="number of the first case, for a long run in parts (0)")
    parser.add_argument("--seed", type=int, default=0, help="another seed, other cases")
    parser.add_argument("--only", choices=list(SHARES), help="the cases of one reader")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no case after so many seconds")
    parser.add_argument("--jobs", type=int, default=2, help="worker processes (2)")
    parser.add_argument("--replay", type=int, metavar="N", help="run case N in this process and show what happens")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "fuzz.jsonl", help="the file of findings")
    return parser


def run_cases(
    numbers: Sequence[int],
    seed: int,
    seeds: Path,
    work: Path,
    jobs: int = 2,
    keep: Callable[[Outcome], None] | None = None,
    seconds: float = float("inf"),
) -> list[Outcome]:
    """The outcomes of these cases, in their order; a worker that dies or hangs is a finding and is replaced.

    `keep` gets every finding as soon as it is made. After `seconds` no case is begun.
    """
    end = time.monotonic() + seconds
    outcomes: dict[int, Outcome] = {}
    waiting, lock = iter(numbers), threading.Lock()

    def take() -> int | None:
        with lock:
            return next(waiting, None) if time.monotonic() < end else None

    def tend(place: Path) -> None:
        with _Workers(seed, seeds, place) as started:
            while (number := take()) is not None:
                outcomes[number] = started.run(number, reader_of(seed, number))
                if outcomes[number].status == FINDING and keep is not None:
                    keep(outcomes[number])

    threads = [threading.Thread(target=tend, args=(work / str(job),)) for job in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [outcomes[number] for number in numbers if number in outcomes]


class _Workers:
    """One worker at a time, started when needed."""

    def __init__(self, seed: int, seeds: Path, place: Path) -> None:
        self.seed, self.seeds, self.place = seed, seeds, place
        self.count = itertools.count()
        self.process: multiprocessing.process.BaseProcess | None = None
        self.connection: Connection | None = None

    def __enter__(self) -> _Workers:
        return self

    def __exit__(self, *_: object) -> None:
        if self.connection is not None and self.process is not None:
            self.connection.send(None)
            self.process.join(10)
            self._end()

    def run(self, number: int, reader: str) -> Outcome:
        if self.connection is None:
            self._start()
        assert self.connection is not None
        try:
            self.connection.send(number)
            if self.connection.poll(3 * SECONDS + GRACE):
                outcome: Outcome = self.connection.recv()
                return outcome
            self._end()
            return Outcome(number, reader, FINDING, f"deaf to the alarm after {SECONDS} s")
        except (EOFError, OSError):
            code = self._end()
            return Outcome(number, reader, FINDING, f"the process died ({_cause(code)})")

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        place = self.place / str(next(self.count))
        self.process = context.Process(target=serve, args=(theirs, self.seed, self.seeds, place), daemon=True)
        self.process.start()
        theirs.close()
        if self.connection.recv() != READY:
            raise RuntimeError("A worker did not start.")

    def _end(self) -> int | None:
        assert self.process is not None and self.connection is not None
        self.process.join(1)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        self.connection.close()
        self.connection = None
        return self.process.exitcode


def _cause(code: int | None) -> str:
    return signal.Signals(-code).name if code is not None and code < 0 else f"exit code {code}"


def _replay(seed: int, number: int, seeds: Path, work: Path) -> int:
    """One case here, with its files named and its traceback shown."""
    import traceback

    folder = Path(tempfile.mkdtemp(prefix=f"fuzz-{number}-"))
    prepare()
    case = make_case(seed, number, seeds, folder)
    print(f"leader {shlex.join(case.arguments)}\nits files stay in {folder}")
    from typer.testing import CliRunner

    from leader.cli import app

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
