"""Calibrates SATP's eta for a prior: the calls at T = 100 that the paper's Table 3 implies, for B = 0.001 ... 0.1.

    python experiments/calibrate_satp.py --images FOLDER_OF_DEVELOPMENT_PHOTOGRAPHS --count 4

Runs DDNM without pruning, keeps U_t along each path, and lets SATP walk over the recorded curves for many eta. Prints the calls
for each eta and the eta nearest to the middle of the ranges. Pruning changes the path a little, so the printed calls are a
prediction; the tables hold the measured ones.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import torch
import typer

from leader import Problem, Sampler, load_prior, operators
from leader.bench.images import list_images
from leader.plugins import SATP
from leader.schedule import Grid, uniform_grid
from leader.train.calibrate import central_crops

RANGES = {0.001: (99, 100), 0.005: (96, 100), 0.01: (92, 98), 0.05: (45, 65), 0.1: (25, 45)}


def curves(folder: Path, count: int, size: int) -> list[dict[int, float]]:
    """U_t by time along the host's full path, for noise-free and noisy super-resolution and deblurring."""
    prior = load_prior("embedded")
    shape = (3, size, size)
    clean = central_crops(folder, size)[:count]
    tasks = [
        (operators.BicubicSR(shape, 4), 0.0),
        (operators.BicubicSR(shape, 4), 0.05),
        (operators.SeparableBlur(shape, operators.paper_gaussian_taps()), 0.05),
    ]
    found = []
    for operator, sigma in tasks:
        y = operator.A(clean)
        y = y + sigma * torch.randn(y.shape, generator=torch.Generator().manual_seed(0))
        result = Sampler(prior, "ddnm", ()).run(Problem(y, operator, sigma))
        found += [{visit.t: float(visit.U or 0) for visit in visits} for visits in result.trace.values()]
    return found


def calls(curve: dict[int, float], grid: Grid, satp: SATP) -> int:
    """How many times SATP visits if U_t follows the recorded curve."""
    position, visited = 0, 0
    while grid.times[position] >= 0:
        visited += 1
        position = satp.pace(grid, position, curve[grid.times[position]])
    return visited


def main(
    images: Annotated[Path, typer.Option(help="A folder of development photographs.")],
    count: int = 4,
    size: int = 128,
) -> None:
    """Print the calls by eta and budget."""
    if not list_images(str(images)):
        raise typer.BadParameter(f"{images} holds no pictures.")
    recorded, grid = curves(images, count, size), uniform_grid(100)
    best, gap = 0.0, float("inf")
    for step in range(5, 81):
        eta = step / 10
        means = [
            sum(calls(curve, grid, SATP(budget=budget, eta=eta)) for curve in recorded) / len(recorded) for budget in RANGES
        ]
        miss = sum(max(low - mean, mean - high, 0.0) for mean, (low, high) in zip(means, RANGES.values(), strict=True))
        centre = sum(abs(mean - (low + high) / 2) for mean, (low, high) in zip(means, RANGES.values(), strict=True))
        if miss * 100 + centre < gap:
            best, gap = eta, miss * 100 + centre
        typer.echo(f"eta {eta:4.1f}  " + "  ".join(f"B {b:g}: {m:5.1f}" for b, m in zip(RANGES, means, strict=True)))
    typer.echo(f"best eta {best:g}")


if __name__ == "__main__":
    typer.run(main)
