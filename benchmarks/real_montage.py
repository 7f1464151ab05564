"""Before, after and the truth of ten rows of benchmarks/real.py beside each other, for docs/real.md.

    python benchmarks/real_montage.py PHOTOGRAPHS docs/images/real.webp

Row n, from 0, is made of number 3 n + 1, from 0 and in turn, of the first sixteen photographs of the folder; PSNR and LPIPS of
what was given, of what was restored and of the best simple tool are printed.
"""

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


WIDTH, HEIGHT = 3 * SIDE + 2 * GAP, SIDE + TITLE


def main(photographs: Path, out: Path) -> None:
    """Restore, show and tell: the three views of every row under its name."""
    paths, by_name, lines = list_pictures(photographs)[:16], {row.name: row for row in rows()}, -(-len(ROWS) // COLUMNS)
    sheet = Image.new("RGB", (COLUMNS * WIDTH + (COLUMNS - 1) * 3 * GAP, lines * (HEIGHT + 2 * GAP)), "white")
    pen = ImageDraw.Draw(sheet)
    with tempfile.TemporaryDirectory() as folder:
        for number, row in enumerate(ROWS):
            path = paths[(3 * number + 1) % len(paths)]
            made = measure(path, by_name[row], None, Path(folder))
            tool, simple = max(made["simple"].items(), key=lambda item: float(item[1]))
            ours = made.get("restored") or made["refused"]
            typer.echo(f"{row}: {made['nothing']} -> {ours}, {made.get('verdict')}; {tool} {simple:.1f}", err=True)
            left, top = number % COLUMNS * (WIDTH + 3 * GAP), number // COLUMNS * (HEIGHT + 2 * GAP)
            pen.text((left + 2, top + 1), row, fill="black", font=ImageFont.load_default(12))
            for place, view in enumerate(VIEWS):
                file, corner = Path(folder) / f"{path.stem} {row} {view}.png", (left + place * (SIDE + GAP), top + TITLE)
                if file.exists():
                    sheet.paste(Image.open(file), corner)
                else:  # refused, which is a result too
                    middle = corner[0] + 60, corner[1] + 90
                    pen.text(middle, "refused", fill="black", font=ImageFont.load_default(14))
    sheet.save(out, quality=72)
    typer.echo(f"{out}: {len(ROWS)} rows, {out.stat().st_size // 1000} kB")


if __name__ == "__main__":
    typer.run(main)
