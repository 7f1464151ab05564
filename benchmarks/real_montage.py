"""Before, after and the truth of ten rows of benchmarks/real.py beside each other, for docs/real.md.

python benchmarks/real.py --part test --count 4 --keep PICTURES
python benchmarks/real_montage.py PICTURES docs/images/real.jpg
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from PIL import Image, ImageDraw, ImageFont
from real_rows import SIDE

ROWS = (
    "gaussian 1.5, jpeg 75, kernel given",
    "gaussian 2.5, png, kernel auto",
    "motion 15, jpeg 92, kernel given",
    "noise 25, jpeg 75",
    "blotchy colour noise, png",
    "salt and pepper, png, mask auto",
    "scratches, jpeg 75, mask auto",
    "small, bicubic, png",
    "small, nearest, png",
    "jpeg 20",
)
"""Chosen for what they are, before anything was restored."""
GAP, TITLE, COLUMNS = 4, 16, 2
VIEWS = ("given", "restored", "truth")


def tile(folder: Path, row: str, crop: str) -> Image.Image:
    """The three views of a row under its name."""
    image = Image.new("RGB", (3 * SIDE + 2 * GAP, SIDE + TITLE), "white")
    ImageDraw.Draw(image).text((2, 1), row, fill="black", font=ImageFont.load_default(12))
    for place, view in enumerate(VIEWS):
        file, corner = folder / f"{crop} {row} {view}.png", (place * (SIDE + GAP), TITLE)
        if file.exists():
            with Image.open(file) as part:
                image.paste(part, corner)
        else:  # refused, which is a result too
            ImageDraw.Draw(image).text(
                (corner[0] + 60, corner[1] + 90), "refused", fill="black", font=ImageFont.load_default(14)
            )
    return image


def main(
    folder: Path, out: Path, shown: Annotated[int, typer.Option(help="The number of the first crop of the folder.")] = 0
) -> None:
    """Row n shows the crop n of the folder, in turn."""
    tiles = []
    for number, row in enumerate(ROWS):
        crops = sorted(file.name.removesuffix(f" {row} given.png") for file in folder.glob(f"* {row} given.png"))
        if crops:
            tiles.append(tile(folder, row, crops[(number + shown) % len(crops)]))
    lines = -(-len(tiles) // COLUMNS)
    width, height = tiles[0].size
    sheet = Image.new("RGB", (COLUMNS * width + (COLUMNS - 1) * 3 * GAP, lines * (height + 2 * GAP)), "white")
    for number, one in enumerate(tiles):
        sheet.paste(one, (number % COLUMNS * (width + 3 * GAP), number // COLUMNS * (height + 2 * GAP)))
    sheet.save(out, quality=90)
    typer.echo(f"{out}: {len(tiles)} rows, {out.stat().st_size // 1000} kB")


if __name__ == "__main__":
    typer.run(main)
