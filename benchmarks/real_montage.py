"""Before, after and the truth of ten rows of benchmarks/real.py beside each other, for docs/real.md.

    python benchmarks/real_montage.py PHOTOGRAPHS docs/images/real.jpg

Row n, from 0, is made of number 3 n + 1, from 0 and in turn, of the first sixteen photographs of the folder; PSNR and LPIPS of
what was given, of what was restored and of the best simple tool are printed.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import typer
from PIL import Image, ImageDraw, ImageFont
from real import measure
from real_rows import SIDE, rows

from leader.pictures import list_pictures

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


def main(photographs: Path, out: Path) -> None:
    """Restore, show and tell."""
    paths, by_name, tiles = list_pictures(photographs)[:16], {row.name: row for row in rows()}, []
    with tempfile.TemporaryDirectory() as name:
        for number, row in enumerate(ROWS):
            path = paths[(3 * number + 1) % len(paths)]
            made = measure(path, by_name[row], None, Path(name))
            tool, simple = max(made["simple"].items(), key=lambda item: float(item[1]))
            ours = made.get("restored") or made["refused"]
            typer.echo(f"{row}: {made['nothing']} -> {ours}, {made.get('verdict')}; {tool} {simple:.1f}", err=True)
            tiles.append(tile(Path(name), row, path.stem))
    lines = -(-len(tiles) // COLUMNS)
    width, height = tiles[0].size
    sheet = Image.new("RGB", (COLUMNS * width + (COLUMNS - 1) * 3 * GAP, lines * (height + 2 * GAP)), "white")
    for number, one in enumerate(tiles):
        sheet.paste(one, (number % COLUMNS * (width + 3 * GAP), number // COLUMNS * (height + 2 * GAP)))
    sheet.save(out, quality=72)
    typer.echo(f"{out}: {len(tiles)} rows, {out.stat().st_size // 1000} kB")


if __name__ == "__main__":
    typer.run(main)
