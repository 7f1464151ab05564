"""Torn prints: are their missing areas found, and are undamaged photographs left alone?

    python benchmarks/torn.py --images photos/val

Undamaged: every photograph at half size, and its four quarters. Torn: every second photograph at half size with a lost corner,
a lost edge or a hole, beneath which lies white paper, off-white paper, a dark or a grey lid, all with the noise of a scanner,
plain and as a JPEG of quality 85. A tear counts as found where four fifths of its pixels are.
"""

from itertools import product
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from common import compress, halve, to_image
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter

from leader.forensics.defects.areas import find_areas
from leader.pictures import from_pil, list_pictures

BENEATH = ((0.97, 0.96, 0.93), (1.0, 1.0, 1.0), (0.02, 0.02, 0.02), (0.6, 0.58, 0.55))
SCANNER = 0.006
FOUND = 0.8


def cut_quarters(path: Path) -> list[Image.Image]:
    photograph = Image.open(path).convert("RGB")
    width, height = photograph.width // 2, photograph.height // 2
    corners = product((0, width), (0, height))
    return [photograph.crop((left, top, left + width, top + height)) for left, top in corners]


def draw_tear(kind: str, size: tuple[int, int], rng: np.random.Generator) -> Image.Image:
    """A mask in grey, 255 where the print is missing."""
    mask, short = Image.new("L", size), min(size)
    share = np.linspace(0, 1, 50)
    ragged = np.cumsum(rng.normal(0, 1, 50)) * 0.008 * short
    if kind == "corner":
        ragged -= np.linspace(ragged[0], ragged[-1], 50)
        reach = rng.uniform(0.25, 0.5, 2) * short
        points = [(0.0, 0.0), *zip(reach[0] * (1 - share) + ragged, reach[1] * share + ragged)]
    elif kind == "edge":
        across = rng.uniform(0.08, 0.2) * size[0] + ragged
        points = [(0.0, 0.0), *zip(across, size[1] * share), (0.0, float(size[1]))]
    else:
        centre = rng.uniform(0.3, 0.7, 2) * size
        radius = rng.uniform(0.08, 0.15) * short * (1 + 0.2 * rng.normal(size=50))
        points = list(zip(centre[0] + radius * np.cos(2 * np.pi * share), centre[1] + radius * np.sin(2 * np.pi * share)))
    ImageDraw.Draw(mask).polygon([(float(x), float(y)) for x, y in points], fill=255)
    return mask.filter(ImageFilter.GaussianBlur(0.6))


def tear(view: Image.Image, mask: Image.Image, number: int, quality: int | None, rng: np.random.Generator) -> Image.Image:
    """A view with what lies beneath it where the mask says so, kept as a JPEG of a quality."""
    share, pixels = np.asarray(mask)[..., None] / 255, np.asarray(view) / 255
    beneath = np.array(BENEATH[number % len(BENEATH)]) + rng.normal(0, SCANNER, pixels.shape)
    torn = to_image(255 * (pixels + share * (beneath - pixels)))
    return torn if quality is None else compress(torn, quality).convert("RGB")


def find(view: Image.Image) -> NDArray[np.bool_]:
    return find_areas(from_pil(view).pixels)


def main(images: Annotated[Path, typer.Option(help="A folder of photographs.")]) -> None:
    files = list_pictures(images)
    halves = [halve(file) for file in files]
    whole = [bool(find(view).any()) for file, half in zip(files, halves) for view in (half, *cut_quarters(file))]
    print(f"undamaged: something found in {sum(whole)} of {len(whole)} views")
    rng = np.random.default_rng(5)
    for kind, quality in product(("corner", "edge", "hole"), (None, 85)):
        shares = []
        for number, view in enumerate(halves[::2]):
            mask = draw_tear(kind, view.size, rng)
            missing = np.asarray(mask) > 127
            shares.append(float(find(tear(view, mask, number, quality, rng))[missing].mean()))
        said = "plain" if quality is None else f"JPEG {quality}"
        print(f"{kind}, {said}: found in {sum(share >= FOUND for share in shares)} of {len(shares)}")


if __name__ == "__main__":
    typer.run(main)
