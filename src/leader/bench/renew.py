"""Carrying records to the present code: re-run a few cells of every code path, restamp the path where all numbers agree.

A code path is a method with its plug-ins on a task, with its noise, prior and estimator. Its variants differ in what
else can lead elsewhere in the code: the size, what is kept, words among the settings, and which of them are zero. Of every
variant with a stored record the cheapest cells are run again. If every stored number but times and memory, and every kept
picture, comes out the same, all records of the path get the present stamp; otherwise all its cells are run again.

Renewed records are appended to their files as they come, so that an interrupted renewal goes on where it was.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from leader.bench.cell import Cell, Place
from leader.bench.experiment import Experiment, all_experiments, find_experiment, forms_of, load_experiment
from leader.bench.identity import identified, score_versions
from leader.bench.progress import Meter
from leader.bench.records import PICTURES, Record, Store, canonical
from leader.bench.run import resolved_cells
from leader.bench.running import Answer, picture_name, run_cell
from leader.engines import Engine
from leader.errors import LeaderError

NOT_COMPARED = frozenset({"key", "cell", "code", "what", "scored", "pictures", "seconds", "trust_seconds", "peak_mb", "run_mb"})
"""Identities, and what differs between two runs of the same code."""
LAST_DIGIT = 1.5e-6
"""Differences of numbers, which are stored with six decimals, up to which they agree."""
_FIELDS = frozenset({"image", "index", "fit", "size", "task", "options", "sigma", "method", "device", "memory", "keep"})
"""What an identity has at least."""
_LEAST_SECONDS = 0.3
"""Reading and scoring alone take about so long."""


@dataclass
class Stale:
    """A record that another version of the code made.

    cell    what to run to make it again; None where its pictures are not on this machine
    who     its identity today
    scored  the present versions of its scores
    """

    store: Store
    record: Record
    cell: Cell | None
    who: Record
    scored: dict[str, str]

    @property
    def seconds(self) -> float:
        return max(_LEAST_SECONDS, float(self.record.get("seconds") or 0))


@dataclass(frozen=True)
class Request:
    """An experiment whose records to renew, where they are, and which rows and tasks (None: all)."""

    experiment: Experiment
    store: Store
    rows: frozenset[str] | None = None
    tasks: frozenset[str] | None = None

    def wants(self, cell: Cell) -> bool:
        return (self.rows is None or cell.row in self.rows) and (self.tasks is None or cell.title in self.tasks)


@dataclass
class CodePath:
    """The stale records of one code path."""

    name: str
    records: list[Stale] = field(default_factory=list)

    def chosen(self, cells: int) -> list[Stale]:
        """The cheapest `cells` of every variant, each record once."""
        variants: dict[str, dict[str, Stale]] = {}
        for item in self.records:
            if item.cell is not None:
                variants.setdefault(_variant(item.who["what"]), {}).setdefault(item.record["key"], item)
        cheapest = [sorted(found.values(), key=lambda item: (item.seconds, item.record["key"])) for found in variants.values()]
        return [item for found in cheapest for item in found[:cells]]


@dataclass
class Report:
    """What a renewal did, in records.

    current, unasked, elsewhere, missing   not old; old and asked for by no experiment; of a path that no picture here
                                           can check; cells without any record
    """

    current: int = 0
    unasked: int = 0
    elsewhere: int = 0
    missing: int = 0
    checked: int = 0
    restamped: int = 0
    rerun: int = 0
    agreeing: list[str] = field(default_factory=list)
    differing: dict[str, str] = field(default_factory=dict)


def find_stale(requests: Sequence[Request]) -> tuple[dict[str, CodePath], Report]:
    """The code paths with old records, by their identity, and a report of what is not old."""
    paths: dict[str, CodePath] = {}
    report = Report()
    for request in requests:
        for item in _stale(request, report):
            what = item.who["what"]
            paths.setdefault(canonical(_path(what)), CodePath(_title(what))).records.append(item)
    for path in paths.values():
        if all(item.cell is None for item in path.records):
            report.elsewhere += len(path.records)
    return paths, report


def renew(
    requests: Sequence[Request],
    engine: Engine,
    *,
    fresh: Engine | None = None,
    cells: int = 1,
    only_agreeing: bool = False,
    write: Callable[[str], None] = print,
    quiet: bool = False,
) -> Report:
    """Renews the records of the experiments; `fresh` runs the cells whose memory is measured."""
    paths, report = find_stale(requests)
    with ExitStack() as stack:
        for request in requests:
            stack.enter_context(request.store.writing())
        chosen = {name: path.chosen(cells) for name, path in paths.items()}
        _check(paths, chosen, engine, report, write, quiet=quiet)
        if not only_agreeing:
            _run_again([paths[name] for name in report.differing], engine, fresh or engine, report, quiet=quiet)
        for request in requests:
            _finish(request.experiment, request.store)
        for request in requests[:1]:
            request.store.drop_stray_pictures()
    report.differing = {paths[name].name: text for name, text in report.differing.items()}
    return report


def _check(
    paths: dict[str, CodePath],
    chosen: dict[str, list[Stale]],
    engine: Engine,
    report: Report,
    write: Callable[[str], None],
    *,
    quiet: bool,
) -> None:
    """Runs the chosen cells, path by path; restamps a path as soon as all of its own agree."""
    jobs = [(name, item) for name, items in chosen.items() for item in items]
    waiting = {name: len(items) for name, items in chosen.items()}
    total = sum(item.seconds for _, item in jobs)
    with Meter("renewal", len(jobs), total, quiet=quiet) as meter:
        for position, answer in engine.map(run_cell, [item.cell for _, item in jobs if item.cell is not None]):
            name, item = jobs[position]
            report.checked += 1
            meter.done(item.seconds)
            found = difference(item.record, answer, item.store)
            if found is not None and name not in report.differing:
                report.differing[name] = found
                write(f"differs: {paths[name].name}: {found}")
            waiting[name] -= 1
            if not waiting[name] and name not in report.differing:
                for stale in paths[name].records:
                    stale.store.append(*restamped(stale))
                report.restamped += len(paths[name].records)
                report.agreeing.append(paths[name].name)


def _run_again(paths: Iterable[CodePath], engine: Engine, fresh: Engine, report: Report, *, quiet: bool) -> None:
    """Runs every cell of the paths; a record that several experiments share is run once."""
    groups: dict[str, list[Stale]] = {}
    for path in paths:
        for item in path.records:
            if item.cell is None:
                report.elsewhere += 1
            else:
                groups.setdefault(item.who["key"], []).append(item)
    total = sum(items[0].seconds for items in groups.values())
    with Meter("running again", len(groups), total, quiet=quiet) as meter:
        for measured, runner in ((False, engine), (True, fresh)):
            jobs = [items for items in groups.values() if items[0].who["what"]["memory"] is measured]
            for position, answer in runner.map(run_cell, [items[0].cell for items in jobs if items[0].cell is not None]):
                for item in jobs[position]:
                    item.store.append(answer.record, answer.pictures)
                    report.rerun += 1
                meter.done(jobs[position][0].seconds)


def _finish(experiment: Experiment, store: Store) -> None:
    """Writes a file of records anew, in the experiment's order, without what was replaced."""
    places: dict[Place, Record] = {}
    replaced: set[str] = set()
    for cell, who in resolved_cells(experiment, places):
        record = None if who is None else store.find(who["key"]) or _older(store, who)
        if who is None or record is None:
            continue
        places[cell.place] = record
        if record["key"] == who["key"]:
            replaced |= {old["key"] for old in _contained_in(store, who["what"]) if old["key"] != record["key"]}
    found = [places[cell.place]["key"] for cell in experiment.cells() if cell.place in places]
    store.finish([key for key in dict.fromkeys(found) if key in store.own], replaced=replaced)


def _stale(request: Request, report: Report) -> Iterator[Stale]:
    """The old records of an experiment's own file that are wanted, each with what made it."""
    store = request.store
    places: dict[Place, Record] = {}
    asked: dict[str, tuple[str, dict[str, str], bool]] = {}
    settled: set[str] = set()
    for cell, who in resolved_cells(request.experiment, places):
        if who is None:
            report.missing += 1
            continue
        versions, wanted = score_versions(cell), request.wants(cell)
        asked[canonical(_recipe(who["what"]))] = (who["code"], versions, wanted)
        record = store.find(who["key"])
        if record is None:
            record = _older(store, who)
        if record is None:
            report.missing += 1
            continue
        places[cell.place] = record
        if record["key"] in settled or record["key"] not in store.own:
            continue
        settled.add(record["key"])
        if _is_current(record, who, versions):
            report.current += 1
        elif wanted:
            yield Stale(store, record, cell, who, versions)
    last = {record["cell"]: record for record in store.own.values()}  # an interrupted renewal leaves the replaced ones too
    seen = {store.own[key]["cell"] for key in settled}
    for record in [record for cell, record in last.items() if cell not in seen]:
        if not record["what"].keys() >= _FIELDS:
            report.unasked += 1
            continue
        code, versions, wanted = asked.get(canonical(_recipe(record["what"])), ("", {}, False))
        who = identified(record["what"], code)
        if not code:
            report.unasked += 1
        elif _is_current(record, who, versions):
            report.current += 1
        elif wanted:  # an experiment's cell on other pictures
            yield Stale(store, record, None, who, versions)


def _is_current(record: Record, who: Record, versions: Mapping[str, str]) -> bool:
    """Whether this code made it, all its scores included; scores it never had are for `bench run`."""
    stamps = record.get("scored", {})
    return record["key"] == who["key"] and all(stamps.get(name) == versions[name] for name in versions if name in record)


def _older(store: Store, who: Record) -> Record | None:
    """The stored record of the same cell, or of one that differs only in settings which did not exist then."""
    found = store.find_older(who["cell"])
    if found is not None:
        return found
    return next(iter(_contained_in(store, who["what"])), None)


def _contained_in(store: Store, what: Record) -> list[Record]:
    """Stored records of the same cell, made when it may have had fewer settings."""
    return [record for record in store.like(what) if _contained(record["what"], what)]


def _contained(old: Any, new: Any) -> bool:
    """Whether `new` says all that `old` says, and perhaps more."""
    if isinstance(old, dict) and isinstance(new, dict):
        return all(key in new and _contained(value, new[key]) for key, value in old.items())
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(map(_contained, old, new))
    return bool(old == new)


def restamped(stale: Stale) -> tuple[Record, dict[str, bytes]]:
    """The record with its present identity, and its pictures under their new names; its times stay."""
    record = {**stale.record, **stale.who}
    kept = {name: version for name, version in stale.scored.items() if name in record}
    record.pop("scored", None)
    if kept:
        record["scored"] = kept
    pictures: dict[str, bytes] = {}
    if "pictures" in record:
        names = {kind: picture_name(record["key"], kind) for kind in record["pictures"]}
        pictures = {name: stale.store.picture(stale.record, kind).read_bytes() for kind, name in names.items()}
        record["pictures"] = names
    return record, pictures


def difference(record: Record, answer: Answer, store: Store) -> str | None:
    """What a run gave differently from what is stored, in a few words; None if nothing."""
    new = json.loads(canonical(answer.record))
    if "error" in new and "error" not in record:
        return f"it fails now: {new['error']}"
    for name in sorted(record.keys() - NOT_COMPARED):
        if name not in new or not _alike(new[name], record[name]):
            return f"{name} was {_short(record[name])} and is {_short(new.get(name))} ({record.get('image', '')})"
    for kind, name in sorted(record.get("pictures", {}).items()):
        path = store.folder / PICTURES / name
        data = answer.pictures.get(picture_name(answer.record["key"], kind))
        if not path.is_file() or data is None or path.read_bytes() != data:
            return f"the picture '{kind}' is another one ({record.get('image', '')})"
    return None


def _alike(new: Any, old: Any) -> bool:
    """Whether two stored values are the same; of decimal numbers the sixth decimal may be off by one.

    Sums of a network's answers are rounded differently by processors with other instructions: the LPIPS of one and the same
    picture differs there between machines.
    """
    if isinstance(new, float) and isinstance(old, float):
        return abs(new - old) <= LAST_DIGIT * max(1.0, abs(old))
    return bool(new == old)


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 30 else f"{text[:27]}..."


def _path(what: Record) -> Record:
    """What a code path is, out of an identity."""
    return {
        "task": what["task"],
        "options": _options(what),
        "sigma": what["sigma"],
        "method": what["method"]["name"],
        "plugins": [item["name"] for item in what.get("plugins", [])],
        "estimator": what.get("estimator"),
        "prior": what.get("prior"),
        "device": what["device"],
    }


def _variant(what: Record) -> str:
    """What else may lead elsewhere in the code: size, outputs, words among the settings, and which of them are zero."""
    settings = [what["method"], *what.get("plugins", [])]
    kinds = [{name: value if isinstance(value, str) else bool(value) for name, value in item.items()} for item in settings]
    return canonical([what["size"], what["fit"], what["memory"], what["keep"], kinds])


def _recipe(what: Record) -> Record:
    """An identity without what belongs to the picture. A grid may follow from an image's calls."""
    rest = {key: value for key, value in what.items() if key not in ("image", "index", "fit", "grid")}
    return {**rest, "options": _options(what)}


def _options(what: Record) -> Record:
    """The task's options but for a seed that follows the image."""
    return {key: value for key, value in what["options"].items() if not (key == "seed" and value == what["index"])}


def _title(what: Record) -> str:
    name = " + ".join([what["method"]["name"], *(item["name"] for item in what.get("plugins", []))])
    sigma = f", sigma {what['sigma']:g}"
    estimator = f", {what['estimator']}" if what.get("estimator") else ""
    return f"{name} on {what['task']}{sigma}{estimator}"


def requests_for(
    names: Sequence[str],
    records: Path,
    form: str | None = None,
    rows: str | None = None,
    tasks: str | None = None,
    **changes: Any,
) -> list[Request]:
    """The experiments named, or all of the folder experiments/, in every form (or that one) of which there are records."""
    files = [find_experiment(name) for name in names] or all_experiments()
    found: list[Request] = []
    for file in files:
        for each in forms_of(file):
            if form not in (None, each) or not (records / f"{file.stem}-{each}.jsonl").is_file():
                continue
            experiment = load_experiment(file, each, **changes)
            if rows is None and tasks is None:
                found.append(Request(experiment, Store(records, experiment.name)))
                continue
            part = experiment.restricted(rows, tasks)
            labels = frozenset(row.label for row in part.rows), frozenset(task.label for task in part.tasks)
            found.append(Request(experiment, Store(records, experiment.name), *labels))
    if not found:
        raise LeaderError(f"There are no records of these experiments in '{records}'; run `leader bench run` first.")
    return found


def renew_text(report: Report) -> str:
    """What a renewal did, or found, in one line per thing."""
    lines = [
        (report.checked, "cells run again to compare"),
        (len(report.agreeing), f"code paths agree: {report.restamped} records restamped"),
        (len(report.differing), f"code paths differ: {report.rerun} records run again"),
        (report.current, "records are of the present code"),
        (report.unasked, "records left alone: no experiment asks for them any more"),
        (report.elsewhere, "records left alone: no picture on this machine can check or repeat them"),
        (report.missing, "cells have no record: `leader bench run` makes them"),
    ]
    return "\n".join(f"{number} {text}" for number, text in lines if number)


def forecast(paths: Mapping[str, CodePath], cells: int) -> tuple[int, float]:
    """How many cells a renewal runs if all agree, and the seconds of one core they took when they were stored."""
    chosen = [item for path in paths.values() for item in path.chosen(cells)]
    return len(chosen), sum(item.seconds for item in chosen)
