"""What the looks of denoising and of the task jpeg are worth on files, and whether a diagnosis chooses that task by itself.

    python benchmarks/looks.py run --images photos/val --count 8        # resumes; records/looks.jsonl
    python benchmarks/looks.py table
    python benchmarks/looks.py cover --images photos/test --part test   # resumes; records/jpeg-trust.jsonl
    python benchmarks/looks.py coverage [--part val]

Central crops of 192 px of halved photographs, every third of the folder. Noise of 15, 25 and 50 of 255 in files of 8 bits,
clipped; JPEG of quality 10, 20, 40, 60 and 80 (4:2:0). Nothing but the task is told. Coverage is the share of errors within the
trust map's nine-of-ten interval; that of JPEG is measured on 160 px of every second photograph, where the looks take turns over
qualities and photographs. "No task" counts the files that `leader restore` without a task would free of JPEG's artefacts: it
then makes the same run.
"""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Annotated, Any

import numpy as np
import torch
import typer
from common import Images, Record, add_missing, compress, locate_records, print_rows, read_crop, read_records, to_image
from numpy.typing import NDArray
from PIL import Image

import leader
from leader.bench.images import list_images
from leader.metrics import lpips, psnr
from leader.pictures import from_pil
from leader.presets.paths import LOOKS
from leader.priors.base import Prior
from leader.trust.maps import NINE_OF_TEN

RECORDS, COVERED = locate_records("looks"), locate_records("jpeg-trust")
SIDE, COVERED_SIDE = 192, 160
HARMS = ("noise 15", "noise 25", "noise 50", "jpeg 10", "jpeg 20", "jpeg 40", "jpeg 60", "jpeg 80")
WORDS = ("nothing", "natural", "faithful")
QUALITIES = (10, 20, 40, 60, 75, 90)
Jobs = Iterator[tuple[Record, Callable[[], Record]]]
app = typer.Typer(add_completion=False, help=__doc__)


def spoil(truth: Image.Image, harm: str, seed: int) -> Image.Image:
    kind, level = harm.split()
    if kind == "jpeg":
        return compress(truth, int(level))
    noise = int(level) * np.random.default_rng([seed, int(level)]).standard_normal((SIDE, SIDE, 3))
    return to_image(np.asarray(truth) + noise)


def measure_coverage(done: Any, wanted: NDArray[Any]) -> float:
    return round(float((np.abs(done.array - wanted) <= NINE_OF_TEN * done.uncertainty[..., None]).mean()), 4)


def measure(prior: Prior, photograph: Path, harm: str, word: str, seed: int) -> Record:
    truth = read_crop(photograph, SIDE)
    given, wanted = from_pil(spoil(truth, harm, seed)), np.asarray(truth, np.float32) / 255
    record: Record = {}
    pixels = given.pixels
    if word == "nothing" and harm.startswith("jpeg"):
        record["advised"] = leader.diagnose(given).task
    if word != "nothing":
        task = "jpeg" if harm.startswith("jpeg") else "denoise"
        done = leader.restore(given, task, prior=prior, look=word, check=False)
        record["calls"] = done.result.ledger.total.calls
        if task == "denoise":
            record["coverage"] = measure_coverage(done, wanted)
        pixels = np.round(255 * done.array) / np.float32(255)
    shown, true = (torch.from_numpy(np.ascontiguousarray(one)).permute(2, 0, 1)[None] for one in (pixels, wanted))
    return {**record, "psnr": round(float(psnr(shown, true)), 3), "lpips": round(float(lpips(shown, true)), 4)}


def cover_jpeg(prior: Prior, photograph: Path, quality: int, look: str, seed: int) -> Record:
    truth = read_crop(photograph, COVERED_SIDE)
    done = leader.restore(from_pil(compress(truth, quality)), "jpeg", prior=prior, look=look, seed=seed, check=False)
    return {"look": look, "coverage": measure_coverage(done, np.asarray(truth, np.float32) / 255)}


@app.command()
def run(images: Images, count: Annotated[int, typer.Option(help="How many photographs.")] = 8) -> None:
    torch.set_num_threads(1)
    prior = leader.load_prior("embedded")

    def list_jobs() -> Jobs:
        for number, photograph in enumerate(list_images(images)[::3][:count]):
            for harm in HARMS:
                for word in WORDS:
                    what = {"photograph": photograph.stem, "harm": harm, "word": word}
                    yield what, partial(measure, prior, photograph, harm, word, number)

    add_missing(RECORDS, list_jobs())


@app.command()
def cover(images: Images, part: Annotated[str, typer.Option(help="The name of the folder in the table.")]) -> None:
    torch.set_num_threads(1)
    prior = leader.load_prior("embedded")

    def list_jobs() -> Jobs:
        for number, photograph in enumerate(list_images(images)[::2]):
            for place, quality in enumerate(QUALITIES):
                what = {"part": part, "photograph": photograph.stem, "quality": quality}
                yield what, partial(cover_jpeg, prior, photograph, quality, LOOKS[(number + place) % len(LOOKS)], number)

    add_missing(COVERED, list_jobs())


@app.command()
def table() -> None:
    records = read_records(RECORDS)
    print("| file | look | PSNR | LPIPS | calls | coverage: least, mean | no task |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: |")
    for harm in HARMS:
        for word in WORDS:
            rows = [one for one in records if (one["harm"], one["word"]) == (harm, word)]
            if rows:
                print_rows([[harm, word, *list_cells(rows)]])


def list_cells(rows: list[Record]) -> tuple[str, ...]:
    covered = [one["coverage"] for one in rows if "coverage" in one]
    advised = [one["advised"] == "jpeg" for one in rows if "advised" in one]
    return (
        f"{mean(one['psnr'] for one in rows):.2f}",
        f"{mean(one['lpips'] for one in rows):.3f}",
        f"{mean(one['calls'] for one in rows):.0f}" if "calls" in rows[0] else "",
        f"{100 * min(covered):.0f} %, {100 * mean(covered):.0f} %" if covered else "",
        f"{sum(advised)} of {len(advised)}" if advised else "",
    )


@app.command()
def coverage(part: Annotated[str, typer.Option(help="The name of a folder that was run.")] = "test") -> None:
    """Print the coverage by quality: mean, least and largest of single pictures."""
    records = [one for one in read_records(COVERED) if one["part"] == part]
    print(f"| quality | {part}: mean | single pictures |\n| ---: | ---: | --- |")
    for quality in (*QUALITIES, "all"):
        covered = [100 * one["coverage"] for one in records if quality in (one["quality"], "all")]
        inside = sum(75 <= value <= 98 for value in covered)
        single = f"{min(covered):.0f} to {max(covered):.0f} %; {inside} of {len(covered)} in 75 to 98"
        print_rows([[quality, f"{mean(covered):.1f} %", single]])


if __name__ == "__main__":
    app()
