"""Four-fold super-resolution of the bundled 256 x 256 test crops against bicubic interpolation.

    python benchmarks/super_resolution.py [--count 16] [--plugins leader]

DDNM, T = 100, noise-free, embedded prior. Bicubic interpolation is Pillow's, on the low-resolution picture in 8 bits. PSNR on
[0, 1], LPIPS with AlexNet; mean over the crops.
"""

from __future__ import annotations

import platform
from importlib import resources
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import typer
from PIL import Image
from torch import Tensor

from leader import Problem, Sampler, __version__, load_prior, operators
from leader.metrics import lpips, psnr

FACTOR = 4


def load(path: Path) -> Tensor:
    """A picture as [1, 3, H, W] in [0, 1]."""
    return torch.from_numpy(np.asarray(Image.open(path).convert("RGB")).copy()).permute(2, 0, 1)[None].float() / 255


def bicubic(low: Tensor) -> Tensor:
    """Pillow's bicubic enlargement of [1, 3, h, w]."""
    pixels = (low[0] * 255).round().clamp(0, 255).byte().permute(1, 2, 0).numpy()
    size = (pixels.shape[1] * FACTOR, pixels.shape[0] * FACTOR)
    large = np.asarray(Image.fromarray(pixels).resize(size, Image.Resampling.BICUBIC)).copy()
    return torch.from_numpy(large).permute(2, 0, 1)[None].float() / 255


def main(
    count: Annotated[int, typer.Option(help="How many of the 16 crops.")] = 16,
    plugins: Annotated[str, typer.Option(help="Comma-separated plug-ins; none by default.")] = "",
    seed: int = 0,
) -> None:
    """Print one line per crop and the means."""
    chosen = tuple(plugins.split(",")) if plugins else ()
    prior = load_prior("embedded")
    threads = torch.get_num_threads()
    typer.echo(f"leader {__version__}, torch {torch.__version__}, {threads} threads, {platform.machine()}, seed {seed}")
    rows = []
    with resources.as_file(resources.files("leader") / "samples" / "test") as folder:
        for path in sorted(folder.glob("*.png"))[:count]:
            clean = load(path)
            operator = operators.BicubicSR((3, *clean.shape[-2:]), FACTOR)
            low = operator.A(clean)
            result = Sampler(prior, "ddnm", chosen).run(Problem(low, operator, 0.0), seed=seed)
            restored = ((result.images + 1) / 2).clamp(0, 1)
            row = [float(metric(image, clean)) for image in (bicubic(low), restored) for metric in (psnr, lpips)]
            rows.append(row)
            typer.echo(f"{path.stem:32} bicubic {row[0]:.2f} dB {row[1]:.3f}   restored {row[2]:.2f} dB {row[3]:.3f}")
    mean = np.mean(rows, axis=0)
    typer.echo(
        f"mean: bicubic {mean[0]:.2f} dB, LPIPS {mean[1]:.3f}; restored {mean[2]:.2f} dB, LPIPS {mean[3]:.3f}; "
        f"gain {mean[2] - mean[0]:+.2f} dB, LPIPS ratio {mean[3] / mean[1]:.2f}"
    )


if __name__ == "__main__":
    typer.run(main)
