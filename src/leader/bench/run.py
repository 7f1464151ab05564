"""Running an experiment: computes missing records in waves, and stores each record at once."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from leader.bench.cell import Cell, Place, Recipe
from leader.bench.experiment import Experiment
from leader.bench.keys import identify
from leader.bench.priors import check_present
from leader.bench.records import Record, Store
from leader.bench.running import run_cells
from leader.bench.setup import Bill, cost_of, work_of
from leader.engines import Engine
from leader.errors import LeaderError
from leader.progress import ProgressDisplay, TimeLeft, format_clock

MOST_FAILURES = 10
"""This many cells may fail before the first one succeeds."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a run: cells run, found in the store, and failed; the first error."""

    ran: int
    found: int
    failed: int
    reason: str | None = None


def run_experiment(
    experiment: Experiment,
    store: Store,
    engine: Engine,
    *,
    alone: Engine | None = None,
    prune: bool = False,
    quiet: bool = False,
) -> Outcome:
    """Runs the cells whose records or pictures are missing, then writes the records in the experiment's order.

    alone  an engine with one worker for the timed cells, if the form times only some
    """
    check_present(experiment.form.prior)
    cells = experiment.cells()
    places: dict[Place, Record] = {}
    ran = found = 0
    costs = {cell.place: cost_of(cell, experiment.form.steps).passes for cell in cells}
    meter = Meter(experiment.name, len(cells), sum(costs.values()), quiet=quiet)
    with store.writing(), meter.display:
        for wave in waves(cells):
            missing: dict[str, list[Cell]] = {}
            for cell in (resolved(item, places) for item in wave):
                key = identify(cell).key
                record = _complete(store, key)
                if record is None:
                    missing.setdefault(key, []).append(cell)  # rows may agree: each key runs once
                    continue
                places[cell.place] = record
                found += 1
                meter.skip(costs[cell.place])
            for workers, jobs in _jobs(experiment, [group[0] for group in missing.values()], engine, alone):
                for position, answers in workers.map(run_cells, jobs):
                    for job, answer in zip(jobs[position], answers, strict=True):
                        store.append(answer.record, answer.pictures)
                        for cell in missing[identify(job).key]:
                            places[cell.place] = answer.record
                            ran += 1
                            meter.done(costs[cell.place])
                    _check_hope(places)
        store.finish(list(dict.fromkeys(places[cell.place]["key"] for cell in cells)), prune=prune)
    errors = [str(record["error"]) for record in places.values() if "error" in record]
    return Outcome(ran, found, len(errors), errors[0] if errors else None)


def _jobs(
    experiment: Experiment, cells: Sequence[Cell], engine: Engine, alone: Engine | None
) -> list[tuple[Engine, list[tuple[Cell, ...]]]]:
    """Which engine runs which cells together: timed cells run one by one, in an engine of their own if there is one."""
    timed: list[tuple[Cell, ...]] = [(cell,) for cell in cells if cell.recipe.timing]
    batches: dict[Recipe, list[Cell]] = {}
    for cell in cells:
        if not cell.recipe.timing:
            batches.setdefault(cell.recipe, []).append(cell)
    size = 1 if experiment.form.memory or "path" in experiment.form.keep else experiment.form.batch
    others = [tuple(group[at : at + size]) for group in batches.values() for at in range(0, len(group), size)]
    return [(alone or engine, timed), (engine, others)] if alone is not None else [(engine, [*timed, *others])]


def _check_hope(places: Mapping[Place, Record]) -> None:
    """Ends a run in which every cell fails, before it has stored an error for each."""
    if len(places) >= MOST_FAILURES and all("error" in record for record in places.values()):
        first = next(iter(places.values()))
        raise LeaderError(f"All of the first {len(places)} cells failed, such as: {first['error']}")


def _complete(store: Store, key: str) -> Record | None:
    """The record of a key, None if it or one of its pictures is missing."""
    record = store.find(key)
    return record if record is not None and store.has_pictures(record) else None


def waves(cells: Sequence[Cell]) -> list[list[Cell]]:
    """Cells that can run immediately, then those whose steps are the calls of earlier ones."""
    out: list[list[Cell]] = []
    waiting = list(cells)
    settled: set[str] = set()
    while waiting:
        now = [cell for cell in waiting if cell.calls_of is None or cell.calls_of in settled]
        if not now:
            raise LeaderError("Some rows take their calls from each other in a circle; give one of them 'steps' of its own.")
        out.append(now)
        waiting = [cell for cell in waiting if not (cell.calls_of is None or cell.calls_of in settled)]
        settled |= {cell.row for cell in now}
    return out


def resolved(cell: Cell, places: dict[Place, Record]) -> Cell:
    """Fills in the steps of a cell that takes them from the calls of another row's record."""
    if cell.calls_of is None:
        return cell
    source = places[(cell.calls_of, *cell.place[1:])]
    if "calls" not in source:
        raise LeaderError(f"'{cell.row}' takes its steps from '{cell.calls_of}', which failed: {source.get('error')}")
    return cell.with_steps(int(source["calls"]))


@dataclass(frozen=True)
class Gathered:
    """The records of an experiment by place.

    earlier  how many of them were made by other revisions, by the name of the part whose revision differs
    missing  how many cells have no record
    """

    places: dict[Place, Record]
    earlier: dict[str, int]
    missing: int


def gather(experiment: Experiment, store: Store, *, partial: bool = False) -> Gathered:
    """The records of an experiment; partial: skip missing ones instead of failing."""
    places: dict[Place, Record] = {}
    earlier: dict[str, int] = {}
    total = missing = 0
    for cell in (cell for wave in waves(experiment.cells()) for cell in wave):
        total += 1
        record, source = None, places.get((cell.calls_of or "", *cell.place[1:]), {})
        if cell.calls_of is None or "calls" in source:
            who = identify(resolved(cell, places))
            record = store.find(who.key)
            if record is None and (record := store.find_earlier(who.asked)) is not None:
                for name in sorted(dict(who.revisions.items() ^ record["revisions"].items())):
                    earlier[name] = earlier.get(name, 0) + 1
        if record is None:
            missing += 1
        else:
            places[cell.place] = record
    if (missing and not partial) or not places:
        raise LeaderError(
            f"{missing} of {total} records of '{experiment.name}' are missing; run `leader bench run` first, or ask for a "
            "partial table."
        )
    return Gathered(places, earlier, missing)


def dry_run(experiment: Experiment, store: Store, write: Callable[[str], None]) -> Bill:
    """Writes a line per row and task with the cost of the missing records; returns the total."""
    total, todo = Bill(), 0
    by_line: dict[tuple[str, str], list[Bill]] = {}
    for cell in experiment.cells(dry=True):
        stored = cell.calls_of is None and cell.image is not None and _complete(store, identify(cell).key) is not None
        by_line.setdefault((cell.row, cell.title), []).append(Bill() if stored else cost_of(cell, experiment.form.steps))
    write("row\ttask\timages\tto do\tcalls\tJVPs\tbackwards\tpasses")
    for (row, task), bills in by_line.items():
        cost, missing = sum(bills, Bill()), sum(bill != Bill() for bill in bills)
        numbers = f"{cost.calls}\t{cost.jvps}\t{cost.backwards}\t{cost.passes:.0f}"
        write(f"{row}\t{task}\t{len(bills)}\t{missing}\t{numbers}")
        total, todo = total + cost, todo + missing
    counted = f"{total.calls} calls, {total.jvps} JVPs, {total.backwards} backward passes, {total.passes:.0f} passes in all"
    write(f"{len({row for row, _ in by_line})} rows; {todo} cells to do: {counted}{_say_time(experiment, store, total.passes)}")
    return total


def _say_time(experiment: Experiment, store: Store, passes: float) -> str:
    """The expected time of the passes: from stored runs of this prior, else from the form's pace."""
    stored = seconds_per_pass(store, experiment)
    if stored is not None:
        return f"; about {stored * passes / 60:.0f} min of one worker, estimated from stored runs"
    pace = experiment.form.pace
    return "" if pace is None else f"; about {pace * passes / 3600:.0f} hours of one GPU at {pace:g} s a pass"


def seconds_per_pass(store: Store, experiment: Experiment) -> float | None:
    """Seconds per full-resolution pass in stored runs of this prior and size on this device; None if there are none."""
    seconds = passes = 0.0
    form = experiment.form
    for record in store.all():
        asked = record["asked"]
        mine = (asked.get("prior", {}).get("name"), asked.get("size"), asked.get("device"))
        if mine == (form.prior, form.size, form.device) and record.get("seconds") and (work := work_of(record)):
            seconds += record["seconds"]
            passes += work
    return seconds / passes if passes else None


LOG_EVERY = 30.0
"""Seconds between two lines of a log."""


class Meter:
    """Counts cells and their passes.

    cells, passes  all that will be reported by `done`
    """

    def __init__(self, name: str, cells: int, passes: float, *, quiet: bool = False) -> None:
        self.name, self.cells, self.finished = name, cells, 0
        self._left = TimeLeft(cells, passes)
        self.display = ProgressDisplay(_print_line, None if quiet else LOG_EVERY)

    def skip(self, passes: float) -> None:
        """A cell that needs no run."""
        self.cells -= 1
        self._left.drop(passes)

    def done(self, passes: float) -> None:
        self.finished += 1
        self._left.finish(passes)
        self.display.show(self._left.share, str(self))

    def __str__(self) -> str:
        seconds = self._left.seconds_left
        clock = "" if seconds is None else f", {format_clock(seconds)} left"
        return f"{self.name}: {self.finished}/{self.cells} cells{clock}"


def _print_line(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
