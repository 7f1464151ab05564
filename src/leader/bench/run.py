"""Running an experiment: what is missing, in waves, each record stored as soon as it is there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from leader.bench.cell import Cell, Place
from leader.bench.experiment import Experiment
from leader.bench.keys import Identity, identify
from leader.bench.progress import Meter
from leader.bench.records import Record, Store
from leader.bench.running import run_cell
from leader.bench.setup import BACKWARD_PASSES, Bill, cost_of
from leader.engines import Engine
from leader.errors import LeaderError


@dataclass(frozen=True)
class Outcome:
    """What a run did: cells run now, found stored, and ended in an error; the first of the errors."""

    ran: int
    found: int
    failed: int
    reason: str | None = None


def run_experiment(
    experiment: Experiment, store: Store, engine: Engine, *, prune: bool = False, quiet: bool = False
) -> Outcome:
    """Runs the cells whose records or kept pictures are missing, then writes the records in the experiment's order."""
    cells = experiment.cells()
    places: dict[Place, Record] = {}
    ran = found = 0
    costs = {cell.place: cost_of(cell, experiment.form.steps).passes for cell in cells}
    meter = Meter(experiment.name, len(cells), sum(costs.values()), quiet=quiet)
    with store.writing(), meter:
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
            groups = list(missing.values())
            for position, answer in engine.map(run_cell, [group[0] for group in groups]):
                store.append(answer.record, answer.pictures)
                for cell in groups[position]:
                    places[cell.place] = answer.record
                    ran += 1
                    meter.done(costs[cell.place])
        store.finish(list(dict.fromkeys(places[cell.place]["key"] for cell in cells)), prune=prune)
    errors = [str(record["error"]) for record in places.values() if "error" in record]
    return Outcome(ran, found, len(errors), errors[0] if errors else None)


def _complete(store: Store, key: str) -> Record | None:
    """The record of a key, None where it or one of its pictures is missing."""
    record = store.find(key)
    return record if record is not None and store.has_pictures(record) else None


def waves(cells: Sequence[Cell]) -> list[list[Cell]]:
    """Cells that can run at once, then those that take their steps from the calls of earlier ones."""
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
    """A cell whose steps are the calls of another row's record gets them."""
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
    """The records of an experiment; partial: leave out what is missing instead of refusing."""
    places: dict[Place, Record] = {}
    earlier: dict[str, int] = {}
    total = missing = 0
    for cell, who in resolved_cells(experiment, places):
        total += 1
        record = None if who is None else store.find(who.key)
        if record is None and who is not None and (record := store.find_earlier(who.asked)) is not None:
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


def resolved_cells(experiment: Experiment, places: dict[Place, Record]) -> Iterator[tuple[Cell, Identity | None]]:
    """Every cell with its identity; None where it waits for the calls of a record that is not in `places`.

    The caller fills `places` as it goes.
    """
    for wave in waves(experiment.cells()):
        for cell in wave:
            if cell.calls_of is not None and "calls" not in places.get((cell.calls_of, *cell.place[1:]), {}):
                yield cell, None
            else:
                known = resolved(cell, places)
                yield known, identify(known)


def dry_run(experiment: Experiment, store: Store, write: Callable[[str], None]) -> Bill:
    """Writes a line per cell, with its cost and whether its record exists; returns the total of what is missing."""
    total = Bill()
    cells = experiment.cells(dry=True)
    write("row\ttask\timage\tseed\tcalls\tbackwards\tpasses\tstored")
    for cell in cells:
        cost = cost_of(cell, experiment.form.steps)
        stored = cell.calls_of is None and _complete(store, identify(cell).key) is not None
        name = cell.image.stem if cell.image else f"#{cell.index}"
        numbers = f"{cost.calls}\t{cost.backwards}\t{cost.passes:.1f}\t{'yes' if stored else 'no'}"
        write(f"{cell.row}\t{cell.title}\t{name}\t{cell.recipe.seed}\t{numbers}")
        if not stored:
            total += cost
    todo = f"{total.calls} calls, {total.backwards} backward passes, {total.passes:.0f} passes"
    pace = seconds_per_pass(store, experiment)
    clock = "" if pace is None else f"; about {pace * total.passes / 60:.0f} min of one core, judging by stored runs"
    write(f"{len(cells)} cells; to do: {todo}{clock}")
    return total


def seconds_per_pass(store: Store, experiment: Experiment) -> float | None:
    """Time of a full-resolution pass in the stored runs of this prior and size; None if there are none."""
    seconds = passes = 0.0
    for record in store.all():
        asked = record["asked"]
        same = asked.get("prior", {}).get("name") == experiment.form.prior and asked.get("size") == experiment.form.size
        if same and record.get("seconds") and record.get("calls") and record.get("work"):
            seconds += record["seconds"]
            passes += record["work"] * (1 + BACKWARD_PASSES * (record.get("backwards") or 0) / record["calls"])
    return seconds / passes if passes else None
