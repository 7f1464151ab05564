"""Would it pay to average the prior's coarse estimates over shifted grids of blocks?

    python benchmarks/shifted_grids.py --images FOLDER [--half]

A coarse level averages blocks of 2^k pixels; another grid of blocks, shifted by half a block, carries other noise and other
detail. Prints the PSNR of one grid, of two shifted diagonally, and of four, at noise levels where coarse levels answer. Choose
on development photographs; the cost of the coarse steps doubles or quadruples.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import torch
import typer
from torch import Tensor
from torch.nn import functional as F

from leader.metrics import psnr
from leader.priors.pyramid import PyramidPrior
from leader.priors.pyramid_net import plan
from leader.train.calibrate import central_crops

SIGMAS = (200, 255, 350, 500, 700)


def shifted(prior: PyramidPrior, noisy: Tensor, sigma: float, down: int, right: int) -> Tensor:
    """The estimate with the grid of blocks moved up and left; noisy [B, 3, H, W] in [0, 1]."""
    padded = F.pad(noisy, (right, 0, down, 0), mode="reflect") if down or right else noisy
    return prior.denoise(padded, sigma)[0][..., down:, right:]


def main(
    images: Annotated[Path, typer.Option(help="A folder of development photographs.")],
    count: int = 10,
    size: int = 256,
    half: Annotated[bool, typer.Option("--half", help="Halve the pictures first.")] = False,
) -> None:
    """One line a noise level."""
    prior = PyramidPrior.load()
    clean = central_crops(images, size, half)[:count]
    typer.echo(f"{len(clean)} crops of {size} px, torch {torch.__version__}; mean PSNR in dB")
    for value in SIGMAS:
        sigma = value / 255
        step = 2 ** plan(sigma, size, size, prior.net.config).level // 2
        noise = torch.randn(clean.shape, generator=torch.Generator().manual_seed(value))
        grids = [shifted(prior, clean + sigma * noise, sigma, y, x) for y, x in ((0, 0), (step, step), (0, step), (step, 0))]
        means = [torch.stack(grids[:number]).mean(0).clamp(0, 1) for number in (1, 2, 4)]
        one, two, four = (float(psnr(mean, clean).mean()) for mean in means)
        gains = f"two {two:.2f} ({two - one:+.2f}), four {four:.2f} ({four - one:+.2f})"
        typer.echo(f"sigma {value}/255: one grid {one:.2f}, {gains}")


if __name__ == "__main__":
    typer.run(main)
