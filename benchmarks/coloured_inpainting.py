"""Holes in photographs with blotchy colour noise: its spectrum in the inverse, against white noise of the same level.

    python benchmarks/coloured_inpainting.py PHOTOGRAPHS --count 8

Crops as in benchmarks/real.py, with its blotches; a hole of 50 x 50 pixels and two scratches are missing, the mask is given.
"as found" is what `leader.restore` does by itself, "white" the same with --sigma at the level that it found. PSNR over LPIPS,
over the whole crop.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from real import crop, perceptual, psnr
from real_rows import SIDE, blotches, centre, eight_bits

import leader
from leader.pictures import list_pictures


def holes() -> np.ndarray:
    """[SIDE, SIDE], 1 where the picture is known."""
    mask = np.ones((SIDE, SIDE), np.float32)
    mask[60:110, 70:120] = mask[20:24, 10:180] = mask[150:153] = 0
    return mask


def main(folder: Path, count: Annotated[int, typer.Option(help="How many photographs.")] = 8) -> None:
    """Print both, picture by picture, and their means."""
    paths, mask = list_pictures(folder), holes()
    total = []
    for number, path in enumerate(paths[:: max(1, len(paths) // count)][:count]):
        pixels = crop(path)
        truth = eight_bits(centre(pixels)) / 255.0
        spoiled = eight_bits(blotches(pixels, np.random.default_rng(number))) / 255.0
        given = np.where(mask[..., None] > 0, spoiled, 235 / 255).astype(np.float32)
        found = leader.restore(given, "inpaint", mask=mask, threads=1)
        white = leader.restore(given, "inpaint", mask=mask, threads=1, sigma=found.sigma)
        answers = [one.array.astype(np.float64) for one in (found, white)]
        scores = [[psnr(answer, truth), perceptual(answer, truth)] for answer in answers]
        total.append(scores)
        kind = found.posed.problem.operator.task
        as_found, as_white = (f"{one[0]:.2f} / {one[1]:.3f}" for one in scores)
        typer.echo(f"{path.stem[:24]:24s} {kind:18s} sigma {found.sigma:.3f}: as found {as_found}, white {as_white}")
    means = np.mean(total, 0)
    typer.echo(
        f"mean of {len(total)}: as found {means[0][0]:.2f} / {means[0][1]:.3f}, white {means[1][0]:.2f} / {means[1][1]:.3f}"
    )


if __name__ == "__main__":
    typer.run(main)
