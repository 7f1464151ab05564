"""How much each constant of the detectors matters: what changes in pictures whose past is known when it is moved or taken out.

    python benchmarks/constants.py run photos      runs what is not recorded, on photos/val and photos/calib
    python benchmarks/constants.py table           prints what the records say
    python benchmarks/constants.py write           writes that into constants.toml where a value was chosen by hand

Every picture of benchmarks/constants_inputs.py is examined, once as it is and once with each constant moved to 0.8 and 1.25
times its value, whole numbers at least to the next ones. Constants that then change nothing are tried at 0 and at 100 times
their value (whole numbers 10), where what they limit never or always happens. An outcome is all that is said of a picture: it
has changed if a word has, or a number by more than a twentieth; it is better or worse by how much of it is true.
"""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from common import Record, append_records, locate_records, print_rows, read_records
from constants_inputs import list_kinds, make_input
from constants_moved import FILE, Detectors, move_value, read_constants
from constants_outcomes import compare_outcomes, describe_outcome

RECORDS = locate_records("constants")
TIMES = {"moved": (0.8, 1.25), "removed": (0, 100)}
SIGNS = {"+": "better", "-": "worse", "=": "other", "!": "impossible"}
PARTS = ("val", "calib")
CLEAN = 4
"""How many photographs are looked at without harm; every other kind is made of one. They are of both parts in turn."""
HAND = "chosen by hand"
GENERATED = re.compile(r"; of \d+ pictures$|^no picture reaches it$")
app = typer.Typer()


def list_inputs(photographs: Path) -> Iterator[tuple[Record, Any]]:
    """What identifies an input, and what makes it: each kind on other photographs."""
    paths = [sorted((photographs / part).iterdir()) for part in PARTS]
    kinds = [one for one in list_kinds() for _ in range(CLEAN if one[0] == "clean, png" else 1)]
    for number, (kind, harms, truth) in enumerate(kinds):
        own = paths[number % len(PARTS)]
        path = own[number // len(PARTS) % len(own)]
        yield {"photograph": f"{path.parent.name}/{path.name}", "kind": kind}, (path, kind, harms, truth)


def read_stage(stage: str) -> tuple[dict[str, Any], list[Record]]:
    """(the values that were moved, a record of every picture)."""
    head, *records = [one for one in read_records(RECORDS) if one["stage"] == stage] or [{"values": {}}]
    return head["values"], records


@app.command()
def run(photographs: Annotated[Path, typer.Argument(help="The folder with the folders val and calib.")]) -> None:
    """Move all constants, then take out those that changed nothing."""
    asked = {name: row["value"] for name, row in read_constants().items()}
    for stage, times in TIMES.items():
        values, records = read_stage(stage)
        if not values:
            append_records(RECORDS, {"stage": stage, "values": asked})
        missing = [
            (what, made) for what, made in list_inputs(photographs) if not any(what.items() <= one.items() for one in records)
        ]
        moves = [(name, by) for name in values or asked for by in times]
        detectors = Detectors(moves if missing else [])
        for what, made in missing:
            append_records(RECORDS, {"stage": stage, **what, **measure_input(detectors, moves, made)})
        signs = count_signs(stage)
        asked = {name: value for name, value in asked.items() if name in signs and not set().union(*signs[name]) - {".", " "}}


def measure_input(detectors: Detectors, moves: list[tuple[str, float]], made: Any) -> Record:
    """One sign for every move: what it changes, a dot for nothing, a blank where the constant is not read."""
    image, truth = make_input(*made)
    detectors.forget()
    usual = detectors.run(None, lambda: describe_outcome(image, truth))
    read = set().union(*detectors.reads)
    signs = ""
    for move in moves:
        try:
            moved = detectors.run(move, lambda: describe_outcome(image, truth)) if move[0] in read else None
        except Exception:  # a value that makes no sense here, such as no tile at all
            moved = None
        signs += compare_outcomes(usual, moved) if move[0] in read else " "
    return {"calls": usual.said["calls"], "score": usual.score, "signs": signs}


def count_signs(stage: str) -> dict[str, list[Counter[str]]]:
    """How often each constant had each sign, by move."""
    values, records = read_stage(stage)
    columns = [Counter(signs) for signs in zip(*(one["signs"] for one in records), strict=True)]
    return {name: columns[2 * at : 2 * at + 2] for at, name in enumerate(values)}


def describe_moves() -> dict[str, tuple[Any, str]]:
    """(value when it was measured, what was found) of every constant that was moved."""
    values, told = read_stage("moved")[0], {}
    signs = {stage: count_signs(stage) for stage in TIMES}
    for name, value in values.items():
        seen, found = 0, []
        for stage, moves in TIMES.items():
            for times, counts in zip(moves, signs[stage].get(name, ()), strict=False):
                seen = max(seen, counts.total() - counts[" "])
                what = f"{move_value(value, times)} instead" if isinstance(value, int) else f"{times} times it"
                changes = ", ".join(f"{counts[sign]} {word}" for sign, word in SIGNS.items() if counts[sign])
                found.append(f"{what}: {changes or 'none'}")
        told[name] = value, f"{'; '.join(found)}; of {seen} pictures" if seen else "no picture reaches it"
    return told


def is_covered(value: Any, measured: Any, found: str) -> bool:
    """Whether what was found holds for a value: the one that was measured, or one between two that change nothing."""
    if value == measured or isinstance(value, list):
        return bool(value == measured)
    return 0.8 * abs(measured) <= abs(value) <= 1.25 * abs(measured) and found.count(": none") >= 2


def list_measured() -> dict[str, str]:
    """What `measured` says of every constant that no other command measured: what the records say, where they hold."""
    moves, told = describe_moves(), {}
    for name, row in read_constants().items():
        if row["measured"] == HAND or GENERATED.search(row["measured"]):
            value, found = moves.get(name, (None, HAND))
            told[name] = found if value is not None and is_covered(row["value"], value, found) else HAND
    return told


@app.command()
def write() -> None:
    """Write what was found into constants.toml."""
    measured, place, lines = list_measured(), "", []
    for line in FILE.read_text(encoding="utf-8").splitlines():
        place = line.strip("[]") if line.startswith("[") else place
        told = measured.get(f"{place}.{line.split(' = ')[0]}")
        lines.append(line if told is None else re.sub(r'measured = "[^"]*"', f'measured = "{told}"', line))
    FILE.write_text("\n".join(lines) + "\n", encoding="utf-8")


@app.command()
def table() -> None:
    """Print what the records say."""
    print("| constant | value | what changes |\n|---|---|---|")
    print_rows([name, value, found] for name, (value, found) in describe_moves().items())


if __name__ == "__main__":
    app()
