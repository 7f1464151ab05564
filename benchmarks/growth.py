"""Seconds and memory of a restoration against the size of the picture, from 128 pixels to 12 megapixels.

    python benchmarks/growth.py                          # denoising, standard quality; one process a size
    python benchmarks/growth.py --task sr --sizes 128,256,512,1024

Processor seconds on one thread, with reading, examination, map and verdict, without imports. The exponent is that of seconds
over pixels from one line to the next: 1 is proportional. Memory is the process's largest above what it had after the imports.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
from typing import Any

import typer

SIZES = "128,256,512,1024,2048,3464"
"""Sides of square pictures; the last has 12 megapixels."""


def main(task: str = "denoise", sizes: str = SIZES) -> None:
    """Print the table."""
    typer.echo(
        "| side | megapixels | seconds | exponent | MB | MB per megapixel |\n| ---: | ---: | ---: | ---: | ---: | ---: |"
    )
    before: tuple[int, float] | None = None
    for side in (int(part) for part in sizes.split(",")):
        found = json.loads(subprocess.run([sys.executable, __file__, task, str(side)], check=True, capture_output=True).stdout)
        seconds, memory = found["seconds"], found["memory"]
        exponent = "" if before is None else f"{math.log(seconds / before[1]) / (2 * math.log(side / before[0])):.2f}"
        million = side * side / 1e6
        typer.echo(f"| {side} | {million:.2f} | {seconds:.1f} | {exponent} | {memory:.0f} | {memory / million:.0f} |")
        before = side, seconds


def measure(task: str, side: int) -> dict[str, float]:
    """Restores a picture whose result has `side` pixels along each side, once."""
    import resource
    import time

    import torch

    import leader
    from leader.bench.images import list_images, load_image

    torch.set_num_threads(1)
    crop = load_image(list_images("test")[3], "crop", 128)[0]
    picture = crop.repeat(1, -(-side // 128), -(-side // 128))[:, :side, :side]
    if task == "sr":
        picture = torch.nn.functional.avg_pool2d(picture, 4)
    noisy = (picture + 0.08 * torch.randn(picture.shape, generator=torch.Generator().manual_seed(1))).clamp(0, 1)
    options: Any = {"mask": "random:0.5"} if task == "inpaint" else {}
    leader.restore(noisy[:, :64, :64], task, sigma=0.08, check=False, **options)  # the network is loaded
    first = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.process_time()
    leader.restore(noisy, task, **options)
    seconds = time.process_time() - began
    return {"seconds": seconds, "memory": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - first) / 1024}


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[2].isdecimal():
        print(json.dumps(measure(sys.argv[1], int(sys.argv[2]))))
    else:
        typer.run(main)
