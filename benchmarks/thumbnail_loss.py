"""What it costs not to know how a thumbnail became small: restored with the kernel found, and with the kernel known.

    python benchmarks/thumbnail_loss.py run photos/val --way known      resumes; records in benchmarks/records/thumbnails.jsonl
    python benchmarks/thumbnail_loss.py run photos/val --way auto
    python benchmarks/thumbnail_loss.py table                           the loss in dB, and how often nearest was claimed
    python benchmarks/thumbnail_loss.py opencv photos/val               thumbnails of OpenCV against a bicubic enlargement
    python benchmarks/thumbnail_loss.py aside photos/val                what looks alike at factor 2

Each photograph, halved, gives one part of 144 x 132 pixels for every factor (4, 3, 2 and 1.5), which Pillow's five kernels make
small; every other one is kept as JPEG 75. With 25 photographs these are 500 thumbnails. Quality draft, default look, seed 0,
without the self-check, so that both ways take the same path.
"""

from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import islice, product
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer
from common import Record, add_missing, compress, halve, locate_records, measure_psnr, read_records
from PIL import Image
from thumbnails import PILLOWS, without_antialiasing

import leader
from leader.forensics.size.thumbnails import MUCH, SOFT
from leader.pictures import list_pictures
from leader.trust.limits import MISREAD

RECORDS = locate_records("thumbnails")
SIZE = (144, 132)
FACTORS = (4, 3, 2, 1.5)
OPENCVS = ("INTER_AREA", "INTER_LINEAR", "INTER_CUBIC")
FORMATS = {"PNG": None, "JPEG 75": 75}
GIVEN = {name: "pillow-bicubic" if name == "bicubic" else name for name in PILLOWS}
"""The option `down` of somebody who knows."""

app = typer.Typer(add_completion=False, help=__doc__)


def thumbnails(folder: Path) -> Iterator[tuple[Record, Image.Image, Image.Image]]:
    """(what it is, thumbnail, the part of the photograph it was made of)."""
    for number, path in enumerate(list_pictures(folder)):
        photograph = halve(path)
        for place, factor in enumerate(FACTORS):
            rng = np.random.default_rng((number, place))
            left, top = (int((length - side) * share) for length, side, share in zip(photograph.size, SIZE, rng.random(2)))
            part = photograph.crop((left, top, left + SIZE[0], top + SIZE[1]))
            for index, kernel in enumerate(PILLOWS):
                kind = list(FORMATS)[(number + place + index) % 2]
                small = part.resize((round(SIZE[0] / factor), round(SIZE[1] / factor)), Image.Resampling[kernel.upper()])
                quality = FORMATS[kind]
                seen = small if quality is None else compress(small, quality)
                yield {"photograph": path.name, "factor": factor, "kernel": kernel, "format": kind}, seen, part


def identity(record: Record) -> tuple[Any, ...]:
    return tuple(record[key] for key in ("photograph", "factor", "kernel", "format"))


def restore(small: Image.Image, part: Image.Image, down: str) -> Record:
    made = leader.restore(small, "sr", size=SIZE, down=down, quality="draft", check=False)
    found = {"psnr": round(psnr(made.array, part), 3), "sigma": round(made.sigma, 5)}
    return {**found, "down": made.posed.options["down"], "misread": round(made.posed.misread, 3)}


def psnr(found: Any, truth: Image.Image) -> float:
    """In dB, in 8 bits."""
    return measure_psnr(np.round(255 * np.asarray(found)) / 255, np.asarray(truth) / 255)


@app.command()
def run(
    folder: Path,
    way: Annotated[str, typer.Option(help="known or auto.")] = "auto",
    step: Annotated[int, typer.Option(help="Every how manieth thumbnail is restored.")] = 1,
    records: Path = RECORDS,
) -> None:
    torch.set_num_threads(1)
    jobs = (
        ({**what, "way": way}, partial(restore, small, part, GIVEN[what["kernel"]] if way == "known" else "auto"))
        for what, small, part in islice(thumbnails(folder), 0, None, step)
    )
    add_missing(records, jobs)


@app.command()
def table(records: Path = RECORDS) -> None:
    """Prints the loss of not knowing, in dB, by kernel, factor and format."""
    known = {identity(record): record for record in read_records(records) if record["way"] == "known"}
    both = [(record, known[identity(record)]) for record in read_records(records) if record["way"] == "auto"]
    typer.echo("| thumbnails | number | known, dB | loss: mean | median | largest | above 0.3 dB | nearest claimed |")
    typer.echo("|---" * 8 + "|")
    print_row("all", both)
    for key in ("kernel", "factor", "format"):
        for value in dict.fromkeys(record[key] for record, _ in both):
            print_row(f"{key} {value}", [pair for pair in both if pair[0][key] == value])
    print_row("all but nearest", [pair for pair in both if pair[0]["kernel"] != "nearest"])
    missed = [pair for pair in both if pair[0]["kernel"] == "nearest" and not claims_nearest(pair[0])]
    print_row("nearest, not claimed", missed)
    print_row("all but nearest at 2", [pair for pair in both if (pair[0]["kernel"], pair[0]["factor"]) != ("nearest", 2)])
    far = [pair for pair in both if pair[1]["psnr"] - pair[0]["psnr"] > MUCH]
    said, all_said = (sum(auto.get("misread", 0) > MISREAD.doubtful for auto, _ in some) for some in (far, both))
    typer.echo(f"\ndoubtful: {said} of the {len(far)} that lose more than {MUCH} dB, {all_said} in all")


@app.command()
def opencv(folder: Path, photographs: int = 6) -> None:
    """Prints, for thumbnails as OpenCV makes them, how much better the result is than Pillow's bicubic enlargement."""
    torch.set_num_threads(1)
    typer.echo("| made by | factor | format | bicubic, dB | restored, dB | gain: mean | least | taken for |")
    typer.echo("|---" * 8 + "|")
    for way, factor, kind in product(OPENCVS, (2, 3, 4), FORMATS):
        bicubic: list[float] = []
        restored: list[float] = []
        taken = Counter[str]()
        for what, _, part in thumbnails(folder):
            if len(bicubic) == photographs:
                break
            if (what["factor"], what["kernel"]) != (factor, PILLOWS[0]):
                continue
            seen = shrink_like_opencv(part, way, factor)
            quality = FORMATS[kind]
            seen = seen if quality is None else compress(seen, quality)
            made = leader.restore(seen, "sr", size=SIZE, quality="draft", check=False)
            bicubic.append(psnr(np.asarray(seen.resize(SIZE, Image.Resampling.BICUBIC)) / 255, part))
            restored.append(psnr(made.array, part))
            taken[made.posed.options["down"] if "+" not in made.posed.options["down"] else "a mean"] += 1
        gains = np.array(restored) - bicubic
        said = ", ".join(f"{name} {count}" for name, count in taken.items())
        typer.echo(
            f"| {way} | {factor} | {kind} | {np.mean(bicubic):.2f} | {np.mean(restored):.2f} | {gains.mean():.2f} | "
            f"{gains.min():.2f} | {said} |"
        )


@app.command()
def aside(folder: Path, step: int = 4) -> None:
    """Prints what it costs at factor 2 to take one for another: Pillow's nearest neighbour, that of others, INTER_CUBIC."""
    torch.set_num_threads(1)
    ways = ("nearest", "nearest:50+opencv-bicubic:50", "opencv-bicubic")
    typer.echo("| made by | bicubic, dB | " + " | ".join(f"as {way}" for way in ways) + " |")
    typer.echo("|---" * (2 + len(ways)) + "|")
    parts = [part for what, _, part in thumbnails(folder) if (what["factor"], what["kernel"]) == (2, PILLOWS[0])][::step]
    for made in ("nearest, the second pixel", "nearest, the first pixel", "INTER_CUBIC"):
        found: list[list[float]] = []
        for part in parts:
            first = int("second" in made)
            pixels = np.ascontiguousarray(np.asarray(part)[first::2, first::2])
            seen = shrink_like_opencv(part, made, 2) if made == "INTER_CUBIC" else Image.fromarray(pixels)
            plain = np.asarray(seen.resize(SIZE, Image.Resampling.BICUBIC)) / 255
            restored = [leader.restore(seen, "sr", size=SIZE, down=way, quality="draft", check=False).array for way in ways]
            found.append([psnr(one, part) for one in (plain, *restored)])
        typer.echo(f"| {made} | " + " | ".join(f"{value:.2f}" for value in np.mean(found, axis=0)) + " |")


def shrink_like_opencv(part: Image.Image, way: str, factor: int) -> Image.Image:
    """As cv2.resize does, up to the rounding; INTER_AREA is box where sides are multiples of the factor."""
    size = (part.width // factor, part.height // factor)
    if way == "INTER_AREA":
        return part.resize(size, Image.Resampling.BOX)
    return without_antialiasing(np.asarray(part), size, "opencv-bicubic" if way == "INTER_CUBIC" else "opencv-bilinear")


def claims_nearest(record: Record) -> bool:
    """Whether an operator was assumed that serves nothing but kernels which leave pixels out."""
    return record["down"] in SOFT


def print_row(words: str, pairs: list[tuple[Record, Record]]) -> None:
    """Of (restored with the kernel found, with the kernel known)."""
    losses = np.array([known["psnr"] - auto["psnr"] for auto, known in pairs])
    claimed = 100 * np.mean([claims_nearest(auto) for auto, _ in pairs])
    typer.echo(
        f"| {words} | {len(pairs)} | {np.mean([known['psnr'] for _, known in pairs]):.2f} | {losses.mean():.3f} | "
        f"{np.median(losses):.3f} | {losses.max():.2f} | {100 * (losses > 0.3).mean():.0f} % | {claimed:.1f} % |"
    )


if __name__ == "__main__":
    app()
