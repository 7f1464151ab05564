"""Tries pairs of UCPM's strengths (smoothing where Sigma is large, sharpening where it is small) with DDNM.

    python experiments/modulation.py --images FOLDER_OF_DEVELOPMENT_PHOTOGRAPHS --count 4

Prints, for noise-free and noisy super-resolution and for Gaussian deblurring, the mean change of PSNR and LPIPS
against the host with its standard error over the photographs, for SATP alone too. 128 px crops at half size, T = 100.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer

from leader import Problem, Sampler, load_prior, operators
from leader.metrics import lpips, psnr
from leader.train.calibrate import central_crops

SIZE = 128
PAIRS = [(0.2, 0.0), (0.2, 3.0), (0.1, 6.0), (0.5, 6.0)]


def main(
    images: Annotated[Path, typer.Option(help="A folder of development photographs.")],
    count: Annotated[int, typer.Option(help="How many of them, evenly spread.")] = 4,
) -> None:
    """Print the table."""
    crops = central_crops(images, SIZE)
    clean = crops[torch.linspace(0, len(crops) - 1, count).round().long()]
    prior, shape = load_prior("embedded"), (3, SIZE, SIZE)
    resize = operators.BicubicSR(shape, 4)
    blur = operators.SeparableBlur(shape, operators.paper_gaussian_taps())
    for operator, sigma in ((resize, 0.0), (resize, 0.05), (blur, 0.05)):
        y = operator.A(clean)
        problem = Problem(y + sigma * torch.randn(y.shape, generator=torch.Generator().manual_seed(0)), operator, sigma)

        def score(plugins: tuple[str, ...], problem: Problem = problem, **settings: Any) -> np.ndarray[Any, Any]:
            result = Sampler(prior, "ddnm", plugins, **settings).run(problem)
            restored = ((result.images + 1) / 2).clamp(0, 1)
            return np.stack([psnr(restored, clean).numpy(), lpips(restored, clean).numpy()], 1)

        host = score(())
        typer.echo(f"{operator.task}, sigma {sigma}: host {host[:, 0].mean():.2f} dB, LPIPS {host[:, 1].mean():.4f}")
        rows = {"satp": score(("satp",))}
        for lam, sharpen in PAIRS:
            rows[f"tv {lam}, sharpen {sharpen}"] = score(("ucpm",), ucpm={"phi": "tv", "lam": lam, "sharpen": sharpen})
        for name, values in rows.items():
            change, error = (values - host).mean(0), (values - host).std(0, ddof=1) / np.sqrt(count)
            typer.echo(f"  {name:22} {change[0]:+.3f} +- {error[0]:.3f} dB, LPIPS {change[1]:+.4f} +- {error[1]:.4f}")


if __name__ == "__main__":
    typer.run(main)
