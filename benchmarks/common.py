"""What benchmarks share: crops of photographs, pictures as files give them back, scores, records as JSON lines, tables."""

import io
import json
import math
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from PIL import Image

Record = dict[str, Any]
Images = Annotated[str, typer.Option(help="A folder of photographs, or test: the shipped crops.")]


def locate_records(name: str) -> Path:
    """The committed records of a benchmark."""
    return Path(__file__).parent / "records" / f"{name}.jsonl"


def read_records(file: Path) -> list[Record]:
    """The records of a file in order, none if there is no file; a last line that was cut short is left out."""
    return [json.loads(line) for line in file.read_text(encoding="utf-8").split("\n")[:-1]] if file.exists() else []


def append_records(file: Path, *records: Record) -> None:
    """Adds records as soon as they exist, so that an interrupted benchmark continues."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a", encoding="utf-8") as opened:
        opened.writelines(json.dumps(record, default=float) + "\n" for record in records)


def add_missing(file: Path, jobs: Iterable[tuple[Record, Callable[[], Record]]], budget: float = math.inf) -> None:
    """Makes the records that are not there, until `budget` seconds are over.

    jobs  what identifies a record, and what measures the rest of it
    """
    end, kept = time.monotonic() + budget, read_records(file)
    for what, measure in jobs:
        if time.monotonic() > end:
            return
        if not any(what.items() <= record.items() for record in kept):
            append_records(file, {**what, **measure()})


def spread_out(paths: list[Path], count: int) -> list[Path]:
    """So many of the paths, evenly spaced."""
    return paths[:: max(1, len(paths) // count)][:count]


def halve(path: Path) -> Image.Image:
    """A photograph at half its size, RGB, which hides what its own compression did."""
    with Image.open(path) as opened:
        image = opened.convert("RGB")
    return image.resize((image.width // 2, image.height // 2), Image.Resampling.LANCZOS)


def read_crop(path: Path, side: int, halved: bool = True) -> Image.Image:
    """The middle of a photograph, RGB, at half its size."""
    image = halve(path) if halved else Image.open(path).convert("RGB")
    left, top = (image.width - side) // 2, (image.height - side) // 2
    return image.crop((left, top, left + side, top + side))


def to_image(values: NDArray[Any]) -> Image.Image:
    """Values [H, W, 3] of 0..255, rounded to 8 bits."""
    return Image.fromarray(values.round().clip(0, 255).astype(np.uint8))


def compress(image: Image.Image, quality: int, subsampling: int = -1) -> Image.Image:
    """The picture as Pillow's JPEG of a quality, with its tables; subsampling 0 is 4:4:4, Pillow's own choice 4:2:0."""
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=quality, subsampling=subsampling)
    return Image.open(buffer)


def measure_psnr(found: Any, truth: Any, least: float = 1e-10) -> float:
    """PSNR in dB of values in [0, 1], clipped; `least` is the smallest mean squared error that counts."""
    return -10 * math.log10(max(float(np.mean((np.clip(found, 0, 1) - truth) ** 2)), least))


def print_rows(rows: Iterable[Iterable[object]]) -> None:
    """The lines of a Markdown table, each as soon as it is known."""
    for cells in rows:
        print(f"| {' | '.join(map(str, cells))} |", flush=True)
