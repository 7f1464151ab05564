"""How often the blur of a picture is found: photographs blurred by SciPy and Pillow, as PNG and behind JPEG.

    python benchmarks/kernel_auto.py PHOTOGRAPHS [--count 16] [--records FILE] [--table]

The middle 192 x 192 pixels of each photograph: as they are, behind a Gaussian of 1.5 and 2.5 pixels (SciPy) and of 2 pixels
(Pillow, which rounds on the way), and behind a motion of 9 and 15 pixels, a row of ones turned by SciPy, each photograph at
another angle. Right: the family that was used, its width within 20 %, a motion within 15 degrees. Sharp pictures are right
where no blur is named. Finished crops are kept in the records, so that an interrupted measurement goes on.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from PIL import Image
from scipy import ndimage

from leader.forensics import examine
from leader.forensics.blur.search import BlurSearch
from leader.pictures import from_pil, list_pictures

SIDE, MARGIN = 192, 40
CASES = (("sharp", 0.0), ("gaussian", 1.5), ("gaussian", 2.5), ("line", 9.0), ("line", 15.0))
FILES: dict[str, int | None] = {"PNG": None, "JPEG 92": 92, "JPEG 75": 75}
TURN = 37
"""Degrees by which the motion of a photograph differs from that of the one before."""


def motion(length: int, angle: float) -> NDArray[np.float64]:
    """A row of ones, turned."""
    taps = np.zeros((2 * length + 1, 2 * length + 1))
    taps[length, length - length // 2 : length + length // 2 + 1] = 1
    turned = np.maximum(ndimage.rotate(taps, angle, reshape=False, order=1), 0)
    return np.asarray(turned / turned.sum())


def blurred(path: Path, family: str, width: float, angle: float, quality: int | None) -> Image.Image:
    """The middle of a photograph behind a blur, as a file gives it back."""
    image = Image.open(path).convert("RGB")
    left, top = ((length - SIDE) // 2 - MARGIN for length in image.size)
    values = np.asarray(image.crop((left, top, left + SIDE + 2 * MARGIN, top + SIDE + 2 * MARGIN)), dtype=np.float64)
    if family == "gaussian":
        values = ndimage.gaussian_filter(values, (width, width, 0))
    elif family == "line":
        taps = motion(int(width), angle)
        values = np.stack([ndimage.convolve(values[..., channel], taps) for channel in range(3)], axis=2)
    file = Image.fromarray(values[MARGIN:-MARGIN, MARGIN:-MARGIN].round().clip(0, 255).astype(np.uint8))
    if quality is None:
        return file
    buffer = io.BytesIO()
    file.save(buffer, "JPEG", quality=quality)
    return Image.open(buffer)


def outcome(search: BlurSearch, family: str, width: float, angle: float) -> str:
    """Right, refused or wrong."""
    blur = search.blur
    if blur is None:
        return "right" if family == "sharp" else "refused"
    turned = abs((blur.shape.angle - angle + 90) % 180 - 90) if family == "line" else 0.0
    good = blur.shape.family == family and abs(blur.shape.width / width - 1) <= 0.2 and turned <= 15
    return "right" if good else "wrong"


def work(paths: list[Path], done: dict[tuple[str, ...], dict[str, Any]]) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """The crops that have no record yet, with what was found."""
    for number, path in enumerate(paths):
        for family, width in CASES:
            for file, quality in FILES.items():
                key = (path.name, f"{family} {width:g}", file)
                if key in done:
                    continue
                angle = float(TURN * number % 180)
                search = examine(from_pil(blurred(path, family, width, angle, quality))).visible.blur
                confidence = None if search.blur is None else search.blur.confidence
                yield key, {"outcome": outcome(search, family, width, angle), "confidence": confidence, "seen": search.seen}


def main(
    folder: Path,
    count: Annotated[int, typer.Option(help="How many photographs.")] = 16,
    records: Annotated[Path, typer.Option(help="Finished crops, one JSON line each.")] = Path("kernel_auto.jsonl"),
    table: Annotated[bool, typer.Option("--table", help="Only print the table of what is there.")] = False,
) -> None:
    """Look at what has no record yet, and print how often the blur was found."""
    lines = records.read_text(encoding="utf-8").splitlines() if records.exists() else []
    done = {tuple(key): found for key, found in map(json.loads, lines)}
    if not table:
        with records.open("a", encoding="utf-8") as stream:
            for key, found in work(list_pictures(folder)[:count], done):
                done[key] = found
                stream.write(json.dumps([key, found]) + "\n")
                stream.flush()
    print("| blur | " + " | ".join(f"{file}: right, refused, wrong" for file in FILES) + " |")
    print("|---" * (1 + len(FILES)) + "|")
    for family, width in CASES:
        case = f"{family} {width:g}"
        cells = []
        for file in FILES:
            told = [str(one["outcome"]) for key, one in done.items() if key[1:] == (case, file)]
            cells.append(", ".join(str(told.count(kind)) for kind in ("right", "refused", "wrong")) + f" of {len(told)}")
        print(f"| {case} | " + " | ".join(cells) + " |")
    print("\n| confidence | named | right |\n|---|---|---|")
    named = [(one["confidence"], one["outcome"] == "right") for one in done.values() if one["confidence"] is not None]
    for low, high in ((0.7, 0.8), (0.8, 0.9), (0.9, 0.95), (0.95, 1.0)):
        inside = [right for confidence, right in named if low <= confidence < high]
        print(f"| {low:.2f} to {high:.2f} | {len(inside)} | {np.mean(inside) if inside else float('nan'):.2f} |")


if __name__ == "__main__":
    typer.run(main)
