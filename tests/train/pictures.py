"""Small synthetic photographs for the tests of training."""

from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from leader.train.data import Photographs, open_photographs


def write_pictures(folder: Path, count: int = 4, size: tuple[int, int] = (160, 200), seed: int = 0) -> Path:
    """Coloured shapes on soft gradients: edges and flat parts; width x height = `size`."""
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    width, height = size
    y, x = np.mgrid[0:height, 0:width]
    for index in range(count):
        picture = np.zeros((height, width, 3))
        for channel in range(3):
            picture[..., channel] = 0.5 + 0.3 * np.sin(x / rng.uniform(20, 60) + y / rng.uniform(20, 60))
        for _ in range(25):
            cx, cy, r = rng.uniform(0, width), rng.uniform(0, height), rng.uniform(4, 30)
            picture[(x - cx) ** 2 + (y - cy) ** 2 < r**2] = rng.uniform(0, 1, 3)
        Image.fromarray((picture.clip(0, 1) * 255).astype(np.uint8)).save(folder / f"{index}.png")
    return folder


def open_pictures(folder: Path, **options: Any) -> dict[str, Photographs]:
    """Such photographs, opened as training does."""
    return open_photographs(write_pictures(folder / "p", **options), folder / "cache")
