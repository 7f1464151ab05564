"""What `--mask auto` finds: the share it marks in clean photographs, and how much of planted defects.

    python benchmarks/defects.py PHOTOGRAPHS [--count 25]

Each photograph is halved, its middle 192 x 192 pixels are taken as they are, or spoiled as in benchmarks/real_pictures.py,
as PNG and behind JPEG 75 and 92. Printed by row: the mean and the largest share of pixels marked, how many pictures had any
marked, and the share of the spoiled pixels (those that differ from the clean picture by more than 8 of 255) that is marked.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from PIL import Image
from real_pictures import crop, peppered, scratched

from leader.forensics import examine
from leader.forensics.defects.defects import find_defects
from leader.pictures import from_pil, list_pictures

VISIBLE = 8
ROWS: dict[str, Callable[[Image.Image, int], Image.Image]] = {
    "clean": lambda image, seed: image,
    "salt and pepper 2 %": peppered(0.02),
    "salt and pepper 10 %": peppered(0.1),
    "dead pixels": peppered(0.0005),
    "scratches": scratched,
}


def behind_jpeg(image: Image.Image, quality: int) -> Image.Image:
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=quality)
    return Image.open(buffer)


def main(folder: Path, count: Annotated[int, typer.Option(help="How many photographs.")] = 25) -> None:
    """Print the rows as a table."""
    typer.echo(
        "| picture | file | marked, mean | marked, largest | pictures with any | of the spoiled pixels |\n" + "|---" * 6 + "|"
    )
    paths = list_pictures(folder)
    clean = [crop(path) for path in paths[:: max(1, len(paths) // count)][:count]]
    for name, degrade in ROWS.items():
        spoiled = [degrade(image, number) for number, image in enumerate(clean)]
        truth = [np.abs(np.asarray(a, int) - np.asarray(b, int)).max(2) > VISIBLE for a, b in zip(spoiled, clean)]
        for file, quality in (("PNG", None), ("JPEG 75", 75), ("JPEG 92", 92)):
            files = [image if quality is None else behind_jpeg(image, quality) for image in spoiled]
            found = [
                ~find_defects(given.picture.pixels, given.history).known
                for given in (examine(from_pil(image)) for image in files)
            ]
            marked = [100 * float(flags.mean()) for flags in found]
            hit = [float((flags & true).sum() / true.sum()) for flags, true in zip(found, truth) if true.any()]
            part = f"{100 * np.mean(hit):.0f} %" if hit else ""
            some = sum(share > 0 for share in marked)
            typer.echo(
                f"| {name} | {file} | {np.mean(marked):.2f} % | {max(marked):.2f} % | {some} of {len(marked)} | {part} |"
            )


if __name__ == "__main__":
    typer.run(main)
