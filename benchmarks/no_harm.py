"""Does `leader.restore` without a task do harm? 300 undamaged or mildly damaged photographs: their names, their losses.

    python benchmarks/no_harm.py photos/val [--table]     runs what is not recorded; benchmarks/records/no-harm.jsonl

The twelve kinds of benchmarks/mild_kinds.py of every photograph. `leader.diagnose` says what it finds; where it advises a
repair, `leader.restore` makes it. A picture is called something that it is not where it is said to show defects or a blur that
are not there, to be noisy without grain, enlarged by another factor or without having been, drawn, or compressed before it was
saved as pixels. A sentence with "may" is no call. A picture that is left as it is gains and loses nothing.
"""

from collections import Counter
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from common import Record, add_missing, locate_records, measure_psnr, print_rows, read_crop, read_records
from mild_kinds import KINDS, SIDE, factor_of, seed_of
from PIL import Image

import leader
from leader.forensics.findings import Findings
from leader.pictures import from_pil
from leader.restoration.diagnose import NothingToRepairError, perhaps_content

RECORDS = locate_records("no-harm")
MOST_LOST = 0.5
"""dB; a larger loss is harm."""


def list_calls(found: Findings) -> list[str]:
    """What a picture is said to be."""
    calls = [] if perhaps_content(found) else list(found.defects)
    calls += ["noisy"] if found.noisy else []
    calls += ["blurred"] if found.blur.blur is not None else []
    calls += ["drawn"] if found.drawing else []
    calls += [] if found.enlarged is None else [f"enlarged {found.enlarged:.2g}"]
    return calls + (["JPEG"] if found.history is not None else [])


def list_truths(kind: str, factor: float) -> set[str]:
    """What a picture of a kind may be called."""
    truths = {"JPEG"} if "JPEG" in kind else set()
    truths |= {f"enlarged {factor:.2g}"} if kind.startswith("enlarged") else set()
    return truths | {"old": {"noisy"}, "drawn": {"drawn"}}.get(kind, set())


def measure_picture(path: Path, kind: str) -> Record:
    truth = read_crop(path, SIDE)
    given = KINDS[kind](truth, seed_of(path, kind))
    if kind in ("old", "drawn", "grey"):  # what is lost of these is lost of themselves
        truth = given
    picture = from_pil(given)
    diagnosis = leader.diagnose(picture)
    calls = list_calls(diagnosis.findings)
    truths = list_truths(kind, factor_of(seed_of(path, kind)))
    blur = diagnosis.findings.blur.blur
    return {
        "calls": calls,
        "wrong": [call for call in calls if call not in truths],
        "confidence": None if blur is None else round(blur.confidence, 3),
        "task": diagnosis.task,
        "gain": 0.0 if diagnosis.task is None else measure_gain(picture, given, truth),
    }


def measure_gain(picture: Any, given: Image.Image, truth: Image.Image) -> float:
    """dB that a restoration without a task gains; 0 where it leaves the picture as it is after all."""
    try:
        done = leader.restore(picture)
    except NothingToRepairError:
        return 0.0
    reference, seen = (np.asarray(image.convert("RGB"), np.float64) / 255 for image in (truth, given))
    return round(measure_psnr(done.picture.pixels, reference) - min(measure_psnr(seen, reference), 60.0), 2)


def print_table(rows: list[Record]) -> None:
    print("| kind | pictures | called | wrong | tasks | mean gain, dB | worst, dB |\n|---|---:|---|---:|---|---:|---:|")
    for kind in KINDS:
        chosen = [row for row in rows if row["kind"] == kind]
        if not chosen:
            continue
        called, tasks = (
            ", ".join(f"{name} {count}" for name, count in counts.most_common())
            for counts in (
                Counter(call for row in chosen for call in row["calls"]),
                Counter(row["task"] or "left" for row in chosen),
            )
        )
        wrong = sum(bool(row["wrong"]) for row in chosen)
        gains = [row["gain"] for row in chosen if row["task"] is not None] or [0.0]
        print_rows([[kind, len(chosen), called, wrong, tasks, f"{np.mean(gains):+.2f}", f"{min(gains):+.2f}"]])
    wrong, worse = sum(bool(row["wrong"]) for row in rows), sum(row["gain"] < -MOST_LOST for row in rows)
    print(f"\n{len(rows)} pictures; called something that they are not: {wrong} ({100 * wrong / max(len(rows), 1):.1f} %)")
    print(f"worse by more than {MOST_LOST} dB: {worse}; worst {min([row['gain'] for row in rows] or [0.0]):+.2f} dB")


def main(
    photographs: Path, only_table: Annotated[bool, typer.Option("--table", help="Run nothing: what is recorded.")] = False
) -> None:
    paths = sorted(photographs.iterdir())
    if not only_table:
        jobs = (
            ({"photograph": path.name, "kind": kind}, partial(measure_picture, path, kind)) for path in paths for kind in KINDS
        )
        add_missing(RECORDS, jobs)
    asked = {path.name for path in paths}
    print_table([row for row in read_records(RECORDS) if row["photograph"] in asked])


if __name__ == "__main__":
    typer.run(main)
