"""How often the errors of JPEG restorations lie within the trust map's nine-of-ten interval, by quality.

    python benchmarks/jpeg_trust.py run --images photos/test --part test     # resumes; records/jpeg-trust.jsonl
    python benchmarks/jpeg_trust.py table [--part val]

Central crops of 160 px of halved photographs, every second of the folder, 4:2:0. The looks take turns over qualities and
photographs. Nothing but the task is told.
"""

from __future__ import annotations

from statistics import mean
from typing import Annotated

import numpy as np
import torch
import typer
from common import Record, append_records, compress, locate_records, read_crop, read_records

import leader
from leader.bench.images import list_images
from leader.pictures import from_pil
from leader.presets.paths import LOOKS
from leader.trust.maps import NINE_OF_TEN

RECORDS = locate_records("jpeg-trust")
SIDE, EVERY = 160, 2
QUALITIES = (10, 20, 40, 60, 75, 90)
app = typer.Typer(add_completion=False, help=__doc__)


@app.command()
def run(
    images: Annotated[str, typer.Option(help="A folder of photographs.")],
    part: Annotated[str, typer.Option(help="The name of the folder in the table.")],
) -> None:
    """Run what has no record yet."""
    torch.set_num_threads(1)
    prior = leader.load_prior("embedded")
    done = {(one["part"], one["photograph"], one["quality"]) for one in read_records(RECORDS)}
    for number, photograph in enumerate(list_images(images)[::EVERY]):
        truth = read_crop(photograph, SIDE)
        wanted = np.asarray(truth, np.float32) / 255
        for place, quality in enumerate(QUALITIES):
            if (part, photograph.stem, quality) in done:
                continue
            look, given = LOOKS[(number + place) % len(LOOKS)], from_pil(compress(truth, quality))
            found = leader.restore(given, "jpeg", prior=prior, look=look, seed=number, check=False)
            assert found.uncertainty is not None
            inside = np.abs(found.array - wanted) <= NINE_OF_TEN * found.uncertainty[..., None]
            about = {"part": part, "photograph": photograph.stem, "quality": quality, "look": look}
            append_records(RECORDS, {**about, "coverage": round(float(inside.mean()), 4)})


@app.command()
def table(part: Annotated[str, typer.Option(help="The name of a folder that was run.")] = "test") -> None:
    """Print the coverage by quality: mean, least and largest of single pictures."""
    records = [one for one in read_records(RECORDS) if one["part"] == part]
    typer.echo(f"| quality | {part}: mean | single pictures |\n| ---: | ---: | --- |")
    for quality in (*QUALITIES, "all"):
        typer.echo(f"| {quality} | {_join([one for one in records if quality in (one['quality'], 'all')])} |")


def _join(rows: list[Record]) -> str:
    covered = [100 * one["coverage"] for one in rows]
    inside = sum(75 <= value <= 98 for value in covered)
    return f"{mean(covered):.1f} % | {min(covered):.0f} to {max(covered):.0f} %; {inside} of {len(covered)} in 75 to 98"


if __name__ == "__main__":
    app()
