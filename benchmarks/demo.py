"""What `leader demo` restores, by its own path and by the papers': seconds, PSNR and LPIPS in one run of this program.

    python benchmarks/demo.py                 # 256 px, super-resolution x 4 with noise 0.02, two rounds in turn
    python benchmarks/demo.py --rounds 5

The papers' path is DDNM with LEADer, 100 uniform steps. Both restore the same degraded file with the same seed; the network is
loaded before. Medians over the rounds, so that other load on the machine weighs less.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from statistics import median
from typing import Any

import torch
import typer

from leader.metrics import lpips, psnr
from leader.pictures import read_picture
from leader.restoration.degrade import degrade_file
from leader.restoration.restore import prepare
from leader.samples import demo_photograph

PATHS: dict[str, dict[str, Any]] = {"standard": {}, "papers": {"method": "ddnm"}}


def main(rounds: int = 2, seed: int = 0) -> None:
    """Print both paths and their ratio."""
    seconds: dict[str, list[float]] = {name: [] for name in PATHS}
    scores: dict[str, str] = {}
    with demo_photograph() as original, tempfile.TemporaryDirectory() as folder:
        truth, degraded = read_picture(original), Path(folder) / "degraded.png"
        degrade_file(original, degraded, "sr", sigma=0.02, seed=seed)
        prepare(degraded, "sr", steps=1, seed=seed).run()  # the first use of anything costs more
        for _ in range(rounds):
            for name, chosen in PATHS.items():
                restored = prepare(degraded, "sr", seed=seed, **chosen).run()
                seconds[name].append(restored.seconds)
                found, wanted = (torch.from_numpy(pixels).permute(2, 0, 1)[None] for pixels in (restored.array, truth.pixels))
                total = restored.result.ledger.total
                passes = total.pixels / (truth.pixels.shape[0] * truth.pixels.shape[1])
                scores[name] = f"{float(psnr(found, wanted)):.2f} | {float(lpips(found, wanted)):.3f} | {passes:.1f}"
    typer.echo("| path | seconds | PSNR | LPIPS | passes |\n| --- | ---: | ---: | ---: | ---: |")
    for name in PATHS:
        typer.echo(f"| {name} | {median(seconds[name]):.1f} | {scores[name]} |")
    typer.echo(
        f"\nTime of standard over that of the papers' path: {median(seconds['standard']) / median(seconds['papers']):.2f}"
    )


if __name__ == "__main__":
    typer.run(main)
