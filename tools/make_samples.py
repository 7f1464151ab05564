"""Makes the bundled test crops from the CC0 test photographs: half size (Lanczos), central 256 x 256, PNG.

Usage: python tools/make_samples.py FOLDER_OF_TEST_PHOTOGRAPHS src/leader/samples/test
"""

from __future__ import annotations

import sys
from pathlib import Path

from PIL import Image

SIDE = 256


def crop(path: Path) -> Image.Image:
    """The central SIDE x SIDE crop of the half-size photograph."""
    photo = Image.open(path).convert("RGB")
    half = photo.resize((photo.width // 2, photo.height // 2), Image.Resampling.LANCZOS)
    left, top = (half.width - SIDE) // 2, (half.height - SIDE) // 2
    return half.crop((left, top, left + SIDE, top + SIDE))


def main(source: Path, target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for path in sorted(source.glob("*.jpg")):
        crop(path).save(target / f"{path.stem}.png", optimize=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
