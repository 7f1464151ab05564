"""Thumbnails of five kinds, salt and pepper, dead pixels and scratches, made by Pillow, with nothing told but the task.

    python benchmarks/real_pictures.py PHOTOGRAPHS RECORDS [--count 8] [--only thumbnails|defects]

PHOTOGRAPHS is a folder; each photograph is halved (which hides what its own compression did) and its middle 192 x 192
pixels are degraded by Pillow and NumPy, not by our operators, as PNG and behind JPEG 75. Thumbnails are four times smaller
and compared with Pillow's bicubic enlargement; defects with doing nothing and with the better of two median filters, 3 x 3
and 5 x 5. Default path, embedded prior, one seed. Every result is appended to RECORDS (JSON lines), and those that are
there are not made again; the means are printed as a table.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter

import leader
from leader.errors import LeaderError
from leader.metrics import lpips
from leader.pictures import list_pictures

SIDE, FACTOR = 192, 4
KINDS = ("nearest", "box", "bilinear", "bicubic", "lanczos")
SHADES = ((0, 0, 0), (255, 255, 255), (128, 128, 128))


def crop(path: Path) -> Image.Image:
    """The middle of the photograph at half its size."""
    image = Image.open(path).convert("RGB")
    half = image.resize((image.width // 2, image.height // 2), Image.Resampling.LANCZOS)
    left, top = (half.width - SIDE) // 2, (half.height - SIDE) // 2
    return half.crop((left, top, left + SIDE, top + SIDE))


def thumbnail(kind: str) -> Callable[[Image.Image, int], Image.Image]:
    return lambda image, seed: image.resize((SIDE // FACTOR, SIDE // FACTOR), Image.Resampling[kind.upper()])


def peppered(share: float) -> Callable[[Image.Image, int], Image.Image]:
    def degrade(image: Image.Image, seed: int) -> Image.Image:
        rng = np.random.default_rng(seed)
        pixels = np.array(image)
        hit, white = rng.random((SIDE, SIDE)) < share, rng.random((SIDE, SIDE)) < 0.5
        pixels[hit & white], pixels[hit & ~white] = 255, 0
        return Image.fromarray(pixels)

    return degrade


def scratched(image: Image.Image, seed: int) -> Image.Image:
    """Three scratches of 1 to 3 pixels, straight and curved: black, white, grey."""
    rng = np.random.default_rng(seed)
    out = image.copy()
    draw = ImageDraw.Draw(out)
    for number, shade in enumerate(SHADES):
        start, bend, end = rng.random((3, 2)) * SIDE
        place = np.linspace(0, 1, 30)[:, None]
        curve = (1 - place) ** 2 * start + 2 * place * (1 - place) * bend + place**2 * end
        points = [tuple(point) for point in (curve if number % 2 else np.stack([start, end]))]
        draw.line(points, fill=shade, width=int(rng.integers(1, 4)))
    return out


ROWS: dict[str, tuple[str, Callable[[Image.Image, int], Image.Image], dict[str, Any]]] = {
    **{f"thumbnail, {kind}": ("thumbnails", thumbnail(kind), {"task": "sr"}) for kind in KINDS},
    **{
        f"salt and pepper {share:.0%}": ("defects", peppered(share), {"task": "inpaint", "mask": "auto"})
        for share in (0.02, 0.05, 0.1)
    },
    "dead pixels": ("defects", peppered(0.0005), {"task": "inpaint", "mask": "auto"}),
    "scratches": ("defects", scratched, {"task": "inpaint", "mask": "auto"}),
}


def as_files(image: Image.Image) -> Iterator[tuple[str, Image.Image]]:
    """The image as people have it: PNG, and behind Pillow's JPEG."""
    yield "PNG", image
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=75)
    yield "JPEG 75", Image.open(buffer)


def unit(image: Image.Image) -> NDArray[np.float32]:
    pixels: NDArray[np.float32] = np.asarray(image.convert("RGB"), dtype=np.float32) / np.float32(255)
    return pixels


def score(found: NDArray[np.float32], truth: NDArray[np.float32]) -> dict[str, float]:
    pair = [torch.from_numpy(np.ascontiguousarray(x.transpose(2, 0, 1)))[None].clamp(0, 1) for x in (found, truth)]
    return {"psnr": -10 * float((pair[0] - pair[1]).square().mean().log10()), "lpips": float(lpips(pair[0], pair[1]))}


def simple(given: Image.Image, truth: NDArray[np.float32]) -> dict[str, dict[str, float]]:
    """What needs no model: enlarging, or nothing and the better median filter."""
    if given.size != (SIDE, SIDE):
        return {"nothing": score(unit(given.convert("RGB").resize((SIDE, SIDE), Image.Resampling.BICUBIC)), truth)}
    medians = [score(unit(given.convert("RGB").filter(ImageFilter.MedianFilter(size))), truth) for size in (3, 5)]
    return {"nothing": score(unit(given), truth), "median": max(medians, key=lambda item: item["psnr"])}


def measured(given: Image.Image, truth: NDArray[np.float32], arguments: dict[str, Any]) -> dict[str, Any]:
    """The scores of a restoration with what it said; nothing's where it finds nothing to do."""
    try:
        restored = leader.restore(given, threads=1, **arguments)
    except LeaderError as error:
        return {**score(unit(given), truth), "notes": [str(error)]}
    verdict = None if restored.verdict is None else restored.verdict.level
    told = {name: value for name, value in restored.posed.options.items() if isinstance(value, (str, int))}
    return {**score(restored.array, truth), "sigma": restored.sigma, "verdict": verdict, "options": told}


def print_table(records: list[dict[str, Any]]) -> None:
    names = ("degradation", "file", "pictures", "nothing", "median", "PSNR", "LPIPS, nothing", "LPIPS")
    typer.echo(f"| {' | '.join(names)} |\n" + "|---" * len(names) + "|")
    for row in dict.fromkeys((record["row"], record["file"]) for record in records):
        some = [record for record in records if (record["row"], record["file"]) == row]

        def mean(*names: str, some: list[dict[str, Any]] = some, digits: int = 2) -> str:
            values = [record[names[0]][names[1]] for record in some if names[0] in record]
            return f"{np.mean(values):.{digits}f}" if values else ""

        typer.echo(
            f"| {row[0]} | {row[1]} | {len(some)} | {mean('nothing', 'psnr')} | {mean('median', 'psnr')} | "
            f"{mean('leader', 'psnr')} | {mean('nothing', 'lpips', digits=3)} | {mean('leader', 'lpips', digits=3)} |"
        )


def main(
    folder: Path, records: Path, count: Annotated[int, typer.Option(help="How many photographs.")] = 8, only: str = ""
) -> None:
    """Print the means of every row as a table."""
    stored = [json.loads(line) for line in records.read_text().splitlines()] if records.exists() else []
    known = {record["key"] for record in stored}
    paths = list_pictures(folder)
    for number, path in enumerate(paths[:: max(1, len(paths) // count)][:count]):
        clean = crop(path)
        truth = unit(clean)
        for name, (group, degrade, arguments) in ROWS.items():
            if only not in ("", group):
                continue
            for file, given in as_files(degrade(clean, number)):
                key = f"{path.name} {name} {file}"
                if key in known:
                    continue
                record = {"key": key, "row": name, "file": file, **simple(given, truth)}
                record["leader"] = measured(given, truth, arguments)
                stored.append(record)
                with records.open("a") as out:
                    out.write(json.dumps(record) + "\n")
    print_table(stored)


if __name__ == "__main__":
    typer.run(main)
