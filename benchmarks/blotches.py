"""How often coloured noise is found where there is none, and where there is: parts of photographs, clean and with blotches.

    python benchmarks/blotches.py photos/val photos/train --every 6

Two parts of each size at random places of photographs that were halved first, since the photographs are JPEGs. Blotches are
noise of the given standard deviation averaged over 3 x 3 pixels, wide ones behind a Gaussian of 1.5 pixels. Beside how many are
found stands how uneven the blocks of the found ones are, and of those that would be found if that did not matter
(`leader.forensics.noise.coloured.MOST_UNEVEN`).
"""

from collections import defaultdict
from pathlib import Path

import numpy as np
import typer
from numpy.typing import NDArray
from PIL import Image
from scipy import ndimage

from leader.forensics.jpeg.blocks import Flags
from leader.forensics.noise import coloured as coloured_noise
from leader.forensics.noise.estimate import rounding

SIDES = (128, 192, 256)
KINDS = ("clean", "white 0.02", "blotches 0.03", "blotches 0.05", "wide 0.03", "wide 0.06")
Pixels = NDArray[np.float64]


def spoilt(clean: Pixels, kind: str, rng: np.random.Generator) -> Pixels:
    """A part [H, W, 3] in [0, 1] with noise of a kind, 8 bits."""
    noise = rng.standard_normal(clean.shape)
    if kind.startswith("blotches"):
        noise = ndimage.uniform_filter(noise, (3, 3, 1), mode="wrap")
    if kind.startswith("wide"):
        noise = ndimage.gaussian_filter(noise, (1.5, 1.5, 0), mode="wrap")
    level = 0.0 if kind == "clean" else float(kind.rpartition(" ")[2])
    return np.asarray(np.round(255 * (clean + level * noise / noise.std())).clip(0, 255) / 255)


def uneven(pixels: Pixels) -> float | None:
    """How uneven the blocks are in which coloured noise is found, or would be if they were not; None in others."""
    asked: list[float] = []

    def judged(times: Pixels, strong: Flags, fewest: int) -> float:
        asked.append(unevenness(times, strong, fewest))
        return 0.0

    unevenness, coloured_noise.unevenness = coloured_noise.unevenness, judged
    try:
        found = coloured_noise.noise_spectrum(pixels, None, rounding(8))
    finally:
        coloured_noise.unevenness = unevenness
    return None if found is None else asked[-1]


def main(photographs: list[Path], every: int = 1) -> None:
    """Of folders of photographs (.jpg), one photograph of so many."""
    paths = [path for folder in photographs for path in sorted(folder.glob("*.jpg"))][::every]
    parts: dict[tuple[int, str], int] = defaultdict(int)
    ratios: dict[tuple[int, str], list[float]] = defaultdict(list)
    for number, path in enumerate(paths):
        with Image.open(path) as image:
            half = np.asarray(image.convert("RGB").reduce(2), dtype=np.float64) / 255
        rng = np.random.default_rng(number)
        for side in (side for side in SIDES if min(half.shape[:2]) >= side for _ in range(2)):
            top, left = (int(rng.integers(0, length - side + 1)) for length in half.shape[:2])
            for kind in KINDS:
                ratio = uneven(spoilt(half[top : top + side, left : left + side], kind, rng))
                parts[side, kind] += 1
                ratios[side, kind] += [] if ratio is None else [ratio]
    print("| side | noise | parts | found | unevenness of those: least, median, most | found but for that |")
    print("|---|---|---|---|---|---|")
    for (side, kind), count in parts.items():
        even = [ratio for ratio in ratios[side, kind] if ratio <= coloured_noise.MOST_UNEVEN]
        spread = ", ".join(f"{value:.2f}" for value in np.quantile(even, (0, 0.5, 1))) if even else "none"
        rest = ", ".join(f"{ratio:.1f}" for ratio in sorted(ratios[side, kind]) if ratio > coloured_noise.MOST_UNEVEN) or "none"
        print(f"| {side} | {kind} | {count} | {len(even)} | {spread} | {rest} |", flush=True)


if __name__ == "__main__":
    typer.run(main)
