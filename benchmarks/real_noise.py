"""Restoring photographs behind JPEG with the noise level that is estimated: with and without the file's history.

    python benchmarks/real_noise.py PHOTOGRAPHS [--count 4] [--steps 50]

PHOTOGRAPHS is a folder of JPEG or PNG photographs. Each is halved (which hides what its own compression did), and the middle
128 x 128 pixels are degraded by Pillow and NumPy, not by our operators. "pixels alone" is the noise level of a picture that
is known only by its pixels, taken as white; "default" is what `leader restore` uses. DDNM with the default plug-in,
embedded prior, PSNR in dB over the whole crop.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from PIL import Image, ImageFilter

import leader
from leader.pictures import list_pictures
from leader.pictures.noise_level import estimate_noise

SIDE = 128


def crop(path: Path) -> Image.Image:
    """The middle of the photograph at half its size."""
    image = Image.open(path).convert("RGB")
    half = image.resize((image.width // 2, image.height // 2), Image.Resampling.LANCZOS)
    left, top = (half.width - SIDE) // 2, (half.height - SIDE) // 2
    return half.crop((left, top, left + SIDE, top + SIDE))


def compressed(image: Image.Image, quality: int) -> Image.Image:
    """The image behind Pillow's JPEG with its default 4:2:0, opened as a file is."""
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=quality)
    return Image.open(buffer)


def blurred(image: Image.Image, quality: int) -> Image.Image:
    return compressed(image.filter(ImageFilter.GaussianBlur(2)), quality)


def noisy(image: Image.Image, level: float, quality: int) -> Image.Image:
    values = np.asarray(image) + level * np.random.default_rng(0).standard_normal((SIDE, SIDE, 3))
    return compressed(Image.fromarray(values.round().clip(0, 255).astype(np.uint8)), quality)


CASES: dict[str, tuple[Callable[[Image.Image], Image.Image], dict[str, Any]]] = {
    "blur 2, JPEG 75": (lambda image: blurred(image, 75), {"task": "deblur", "kernel": "gaussian:2"}),
    "blur 2, JPEG 95": (lambda image: blurred(image, 95), {"task": "deblur", "kernel": "gaussian:2"}),
    "noise 20, JPEG 75": (lambda image: noisy(image, 20, 75), {"task": "denoise"}),
}


def unit(image: Image.Image) -> NDArray[np.float64]:
    return np.asarray(image.convert("RGB"), dtype=np.float64) / 255


def psnr(found: NDArray[Any], truth: NDArray[np.float64]) -> float:
    return float(-10 * np.log10(np.mean((found - truth) ** 2)))


def main(folder: Path, count: Annotated[int, typer.Option(help="How many photographs.")] = 4, steps: int = 50) -> None:
    """Print one line per photograph and case, and the means as a table."""
    paths = list_pictures(folder)
    chosen = paths[:: max(1, len(paths) // count)][:count]
    rows: dict[str, list[list[float]]] = {name: [] for name in CASES}
    for path in chosen:
        for name, (degrade, arguments) in CASES.items():
            clean = crop(path)
            given = degrade(clean)
            truth, pixels = unit(clean), unit(given)
            alone = max(estimate_noise(pixels), 1 / 255 / 12**0.5)
            before = leader.restore(given, sigma=alone, steps=steps, threads=1, **arguments)
            after = leader.restore(given, steps=steps, threads=1, **arguments)
            row = [psnr(pixels, truth), alone, psnr(before.array, truth), after.sigma, psnr(after.array, truth)]
            typer.echo(f"{name:18s} {path.stem:28s} " + " ".join(f"{value:8.4f}" for value in row))
            rows[name].append(row)
    typer.echo("\n| degradation | nothing | sigma, pixels alone | PSNR | sigma, default | PSNR |\n|---|---|---|---|---|---|")
    for name, found in rows.items():
        mean = np.mean(found, axis=0)
        typer.echo(f"| {name} | {mean[0]:.1f} | {mean[1]:.4f} | {mean[2]:.1f} | {mean[3]:.4f} | {mean[4]:.1f} |")


if __name__ == "__main__":
    typer.run(main)
