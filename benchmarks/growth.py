"""Seconds and memory of a restoration against the size of the picture, from 128 pixels to 12 megapixels.

    python benchmarks/growth.py                          # denoising, standard quality; one process a size
    python benchmarks/growth.py --task sr --sizes 128,256,512,1024

Processor seconds on one thread, with reading, examination, map and verdict, without imports. The exponent is that of seconds
over pixels from one line to the next: 1 is proportional. Memory is the process's largest above what it had after the imports.
"""

import math
import time
from contextlib import closing
from functools import partial
from typing import Any

import torch
import typer
from common import print_rows

import leader
from leader.bench.images import list_images, load_image
from leader.bench.measures import measure_memory
from leader.engines import make_engine

SIZES = "128,256,512,1024,2048,3464"
"""Sides of square pictures; the last has 12 megapixels."""


def main(task: str = "denoise", sizes: str = SIZES) -> None:
    typer.echo(
        "| side | megapixels | seconds | exponent | MB | MB per megapixel |\n| ---: | ---: | ---: | ---: | ---: | ---: |"
    )
    before: tuple[int, float] | None = None
    sides = [int(part) for part in sizes.split(",")]
    with closing(make_engine(fresh=True)) as engine:
        for position, (seconds, memory) in engine.map(partial(measure, task), sides):
            side = sides[position]
            exponent = "" if before is None else f"{math.log(seconds / before[1]) / (2 * math.log(side / before[0])):.2f}"
            million = side * side / 1e6
            print_rows([[side, f"{million:.2f}", f"{seconds:.1f}", exponent, f"{memory:.0f}", f"{memory / million:.0f}"]])
            before = side, seconds


def measure(task: str, side: int) -> tuple[float, float]:
    """Seconds and megabytes of a restoration whose result has `side` pixels along each side."""
    crop = load_image(list_images("test")[3], "crop", 128)[0]
    picture = crop.repeat(1, -(-side // 128), -(-side // 128))[:, :side, :side]
    if task == "sr":
        picture = torch.nn.functional.avg_pool2d(picture, 4)
    noisy = (picture + 0.08 * torch.randn(picture.shape, generator=torch.Generator().manual_seed(1))).clamp(0, 1)
    options: Any = {"mask": "random:0.5"} if task == "inpaint" else {}
    leader.restore(noisy[:, :64, :64], task, sigma=0.08, check=False, **options)  # the network is loaded
    first = measure_memory(peak=True)
    began = time.process_time()
    leader.restore(noisy, task, **options)
    return time.process_time() - began, measure_memory(peak=True) - first


if __name__ == "__main__":
    typer.run(main)
