"""What the looks of denoising and of the task jpeg are worth on files, and whether a diagnosis chooses that task by itself.

    python benchmarks/looks.py run --images photos/val --count 8        # resumes; records/looks.jsonl
    python benchmarks/looks.py table

Central crops of 192 px of halved photographs, every third of the folder. Noise of 15, 25 and 50 of 255 in files of 8 bits,
clipped; JPEG of quality 10, 20, 40, 60 and 80 (4:2:0). Nothing but the task is told. Coverage is the share of errors within the
trust map's nine-of-ten interval; that of JPEG is measured by benchmarks/jpeg_trust.py. "No task" counts the files that `leader
restore` without a task would free of JPEG's artefacts: it then makes the same run.
"""

from __future__ import annotations

from pathlib import Path
from statistics import mean
from typing import Annotated

import numpy as np
import torch
import typer
from common import Record, append_records, compress, locate_records, read_crop, read_records, to_image
from PIL import Image

import leader
from leader.bench.images import list_images
from leader.metrics import lpips, psnr
from leader.pictures import from_pil
from leader.priors.base import Prior
from leader.trust.maps import NINE_OF_TEN

RECORDS = locate_records("looks")
SIDE, EVERY = 192, 3
HARMS = ("noise 15", "noise 25", "noise 50", "jpeg 10", "jpeg 20", "jpeg 40", "jpeg 60", "jpeg 80")
WORDS = ("nothing", "natural", "faithful")
app = typer.Typer(add_completion=False, help=__doc__)


def spoil(truth: Image.Image, harm: str, seed: int) -> Image.Image:
    """The file that is handed in."""
    kind, level = harm.split()
    if kind == "jpeg":
        return compress(truth, int(level))
    noise = int(level) * np.random.default_rng([seed, int(level)]).standard_normal((SIDE, SIDE, 3))
    return to_image(np.asarray(truth) + noise)


def measure(prior: Prior, photograph: Path, harm: str, word: str, seed: int) -> Record:
    """The record of one restoration."""
    truth = read_crop(photograph, SIDE)
    given, wanted = from_pil(spoil(truth, harm, seed)), np.asarray(truth, np.float32) / 255
    record: Record = {"photograph": photograph.stem, "harm": harm, "word": word}
    pixels = given.pixels
    if word == "nothing" and harm.startswith("jpeg"):
        record["advised"] = leader.diagnose(given).task
    if word != "nothing":
        task = "jpeg" if harm.startswith("jpeg") else "denoise"
        done = leader.restore(given, task, prior=prior, look=word, check=False)
        record["calls"] = done.result.ledger.total.calls
        if task == "denoise":
            assert done.uncertainty is not None
            inside = np.abs(done.array - wanted) <= NINE_OF_TEN * done.uncertainty[..., None]
            record["coverage"] = round(float(inside.mean()), 4)
        pixels = np.round(255 * done.array) / np.float32(255)
    shown, true = (torch.from_numpy(np.ascontiguousarray(one)).permute(2, 0, 1)[None] for one in (pixels, wanted))
    return {**record, "psnr": round(float(psnr(shown, true)), 3), "lpips": round(float(lpips(shown, true)), 4)}


@app.command()
def run(
    images: Annotated[str, typer.Option(help="A folder of development photographs.")],
    count: Annotated[int, typer.Option(help="How many of them.")] = 8,
) -> None:
    """Run what has no record yet."""
    torch.set_num_threads(1)
    prior, files = leader.load_prior("embedded"), list_images(images)
    done = {(one["photograph"], one["harm"], one["word"]) for one in read_records(RECORDS)}
    for number, photograph in enumerate(files[::EVERY][:count]):
        for harm in HARMS:
            for word in WORDS:
                if (photograph.stem, harm, word) not in done:
                    append_records(RECORDS, measure(prior, photograph, harm, word, number))


@app.command()
def table() -> None:
    """Print the means over photographs."""
    records = read_records(RECORDS)
    typer.echo("| file | look | PSNR | LPIPS | calls | coverage: least, mean | no task |")
    typer.echo("| --- | --- | ---: | ---: | ---: | ---: | ---: |")
    for harm in HARMS:
        for word in WORDS:
            rows = [one for one in records if (one["harm"], one["word"]) == (harm, word)]
            if rows:
                typer.echo(f"| {harm} | {word} | {_join(rows)} |")


def _join(rows: list[Record]) -> str:
    covered = [one["coverage"] for one in rows if "coverage" in one]
    advised = [one["advised"] == "jpeg" for one in rows if "advised" in one]
    cells = (
        f"{mean(one['psnr'] for one in rows):.2f}",
        f"{mean(one['lpips'] for one in rows):.3f}",
        f"{mean(one['calls'] for one in rows):.0f}" if "calls" in rows[0] else "",
        f"{100 * min(covered):.0f} %, {100 * mean(covered):.0f} %" if covered else "",
        f"{sum(advised)} of {len(advised)}" if advised else "",
    )
    return " | ".join(cells)


if __name__ == "__main__":
    app()
