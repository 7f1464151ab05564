"""The noise of real files: restoring with what is estimated, and how far the estimate itself is right.

    python benchmarks/real_noise.py PHOTOGRAPHS [--count 4] [--steps 50]
    python benchmarks/real_noise.py PHOTOGRAPHS --bars [--count 16]
    python benchmarks/real_noise.py PHOTOGRAPHS --weak [--count 25]
    python benchmarks/real_noise.py PHOTOGRAPHS --shapes [--count 8]

PHOTOGRAPHS is a folder of JPEG or PNG photographs. Each is halved (which hides what its own compression did), and the middle
128 x 128 pixels are degraded by Pillow and NumPy, not by our operators. "pixels alone" is the noise level of a picture that
is known only by its pixels, taken as white; "default" is what `leader restore` uses. DDNM with the default plug-in,
embedded prior, PSNR in dB over the whole crop.

--bars restores nothing: the middle 192 x 192 pixels with white noise of 10, 25 and 50 grey levels behind JPEG 75 to 98, 4:4:4
and 4:2:0, estimated over true; and each photograph at a quarter of its size, clean and with noise of 0.02, in colour and grey.

--weak restores nothing either: noise of 0.02 on the middle 128 and 192 pixels of halved photographs, estimated over true, in
colour and grey.

--shapes compares, with the default method of `leader restore`, noise that is not white as it is estimated with one white
number: the estimate of patches of pixels ("one number") and, for coloured noise, its standard deviation ("same power").
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
from scipy import ndimage

import leader
from leader.forensics.noise.estimate import measure_noise
from leader.forensics.noise.level import estimate_noise
from leader.operators import OPPONENT
from leader.pictures import from_pil, list_pictures

SIDE = 128
BAR_SIDE = 192
SMALLEST_THUMBNAIL = 128
LEVELS, QUALITIES, SAMPLINGS = (10, 25, 50), (75, 85, 92, 98), (0, 2)


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


def rounded(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """[0, 1] pixels kept in 8 bits."""
    return np.asarray((255 * values).round().clip(0, 255) / 255)


def behind_jpeg(path: Path, number: int) -> list[float]:
    """Estimated over true noise of the middle of a photograph, by level, quality and sampling."""
    image = Image.open(path).convert("RGB")
    left, top = max(0, (image.width - BAR_SIDE) // 2), max(0, (image.height - BAR_SIDE) // 2)
    clean = np.asarray(image.crop((left, top, left + BAR_SIDE, top + BAR_SIDE)), dtype=np.float64) / 255
    ratios = []
    for level in LEVELS:
        noisy = rounded(clean + level / 255 * np.random.default_rng(number).standard_normal(clean.shape))
        for quality in QUALITIES:
            for subsampling in SAMPLINGS:
                buffer = io.BytesIO()
                Image.fromarray((255 * noisy).round().astype(np.uint8)).save(
                    buffer, "JPEG", quality=quality, subsampling=subsampling
                )
                picture = from_pil(Image.open(buffer))
                found = measure_noise(picture.pixels, None, picture.bits, picture.history).sigma
                ratios.append(255 * found / level)
    return ratios


def of_thumbnails(path: Path, number: int) -> list[float]:
    """Of a photograph at a quarter of its size: the estimate when clean, and over true with noise of 0.02, colour and grey."""
    image = Image.open(path).convert("RGB")
    small = image.resize((image.width // 4, image.height // 4), Image.Resampling.BICUBIC)
    found = []
    for mode in ("RGB", "L"):
        pixels = np.asarray(small.convert(mode), dtype=np.float64).reshape(small.height, small.width, -1) / 255
        noisy = rounded(pixels + 0.02 * np.random.default_rng(number).standard_normal(pixels.shape))
        found += [measure_noise(pixels).white, measure_noise(noisy).white / 0.02]
    return found


def with_weak_noise(path: Path, number: int, side: int) -> list[float]:
    """Estimated over true noise of 0.02 on the middle of a photograph, in colour and grey."""
    image = Image.open(path).convert("RGB")
    image = image.resize((image.width // 2, image.height // 2), Image.Resampling.LANCZOS)
    left, top = max(0, (image.width - side) // 2), max(0, (image.height - side) // 2)
    middle = np.asarray(image, dtype=np.float64)[top : top + side, left : left + side] / 255
    found = []
    for pixels in (middle, middle.mean(2, keepdims=True)):
        noisy = rounded(pixels + 0.02 * np.random.default_rng(number).standard_normal(pixels.shape))
        found.append(measure_noise(noisy).sigma / 0.02)
    return found


def weak(paths: list[Path]) -> None:
    """Print how far the estimate of weak noise is right, by size and colour."""
    for side in (SIDE, BAR_SIDE):
        ratios = np.array([with_weak_noise(path, number, side) for number, path in enumerate(paths)])
        for name, found in zip(("colour", "grey"), ratios.T, strict=True):
            beyond = ", ".join(
                f"{path.stem} {ratio:.2f}" for path, ratio in zip(paths, found, strict=True) if abs(ratio - 1) > 0.1
            )
            near = int((np.abs(found - 1) <= 0.1).sum())
            typer.echo(
                f"{side} px, {name}: {near} of {len(found)} within 10 %, {found.min():.2f} to {found.max():.2f}; {beyond}"
            )


def bars(paths: list[Path]) -> None:
    """Print how far the estimates are right: one line per photograph, and the bars."""
    jpegs, thumbnails = [], []
    for number, path in enumerate(paths):
        jpegs.append(behind_jpeg(path, number))
        line = f"{path.stem:28s} behind JPEG {min(jpegs[-1]):.2f} to {max(jpegs[-1]):.2f}"
        if min(Image.open(path).size) >= 4 * SMALLEST_THUMBNAIL:
            thumbnails.append(of_thumbnails(path, number))
            line += "; thumbnail " + " ".join(f"{value:.4f}" for value in thumbnails[-1])
        typer.echo(line)
    far = np.abs(np.array(jpegs) - 1)
    typer.echo(
        f"\nbehind JPEG: {100 * (far <= 0.15).mean():.1f} % of {far.size} estimates within 15 %, {(far.max(1) <= 0.15).sum()} "
        f"of {len(far)} photographs in all cases, median error {100 * np.median(far):.1f} %, worst {far.max():.2f}"
    )
    if thumbnails:
        colour, noisy, grey, noisy_grey = np.array(thumbnails).T
        typer.echo(f"clean thumbnails: at most {colour.max():.4f} in colour, {grey.max():.4f} in grey")
        typer.echo(
            f"with noise 0.02: off by at most {100 * np.abs(noisy - 1).max():.0f} % in colour, "
            f"{100 * np.abs(noisy_grey - 1).max():.0f} % in grey"
        )


def blotchy(clean: NDArray[np.float64], draw: np.random.Generator) -> NDArray[np.float64]:
    """Grey noise of 3 grey levels, colour noise of 13 along each axis that is blurred by 2 pixels."""
    planes = [ndimage.gaussian_filter(draw.standard_normal(clean.shape[:2]), 2 if axis else 0) for axis in range(3)]
    noise = np.stack([plane / plane.std() for plane in planes], -1) * np.array([0.0208, 0.05, 0.05])
    return rounded(clean + noise @ OPPONENT.numpy())


def smoothed(clean: NDArray[np.float64], draw: np.random.Generator, sigma: float = 0.05) -> NDArray[np.float64]:
    """Noise of all channels alike, blurred by 1 pixel, as resizing does."""
    noise = ndimage.gaussian_filter(draw.standard_normal(clean.shape), (1, 1, 0))
    return rounded(clean + sigma * noise / noise.std())


def counted(clean: NDArray[np.float64], draw: np.random.Generator, peak: int) -> NDArray[np.float64]:
    return rounded(draw.poisson(peak * clean) / peak)


SHAPES: dict[str, tuple[Callable[[NDArray[np.float64], np.random.Generator], NDArray[np.float64]], dict[str, Any]]] = {
    "blotchy colour noise": (blotchy, {"task": "denoise"}),
    "noise blurred by 1": (smoothed, {"task": "denoise"}),
    "Poisson, 30 at white": (lambda clean, draw: counted(clean, draw, 30), {"task": "denoise"}),
    "Poisson, 100 at white": (lambda clean, draw: counted(clean, draw, 100), {"task": "denoise"}),
    "blur 1.5, noise 0.03 blurred by 1": (
        lambda clean, draw: smoothed(ndimage.gaussian_filter(clean, (1.5, 1.5, 0), mode="reflect"), draw, 0.03),
        {"task": "deblur", "kernel": "gaussian:1.5", "kernel_doubt": 0.0},
    ),
    "blur 1.5, JPEG 75": (
        lambda clean, _: ndimage.gaussian_filter(clean, (1.5, 1.5, 0), mode="reflect"),
        {"task": "deblur", "kernel": "gaussian:1.5", "kernel_doubt": 0.0},
    ),
}


def shapes(chosen: list[Path]) -> None:
    """Print PSNR with the noise as it is estimated, with one number, and with one of the same power."""
    prior = leader.load_prior("embedded")
    rows: dict[str, list[list[float]]] = {name: [] for name in SHAPES}
    for number, path in enumerate(chosen):
        truth = unit(crop(path))
        for name, (degrade, arguments) in SHAPES.items():
            made = Image.fromarray((255 * degrade(truth, np.random.default_rng(number))).round().astype(np.uint8))
            given = compressed(made, 75) if "JPEG" in name else made
            picture = from_pil(given)
            noise = measure_noise(picture.pixels, None, 8, picture.history, "blur 1.5" in name)
            row = [psnr(picture.pixels, truth)]
            for sigma in (None, max(noise.white, noise.rounding), noise.sigma):
                found = leader.restore(given, sigma=sigma, prior=prior, threads=1, check=False, **arguments)
                row.append(psnr(found.array, truth))
            kind = "counted" if noise.shot else "coloured" if noise.spectrum else "white"
            typer.echo(f"{name:34s} {path.stem:28s} {kind:8s} " + " ".join(f"{value:6.2f}" for value in row))
            rows[name].append(row)
    typer.echo("\n| noise | nothing | as estimated | one number | same power |\n|---|---|---|---|---|")
    for name, found_rows in rows.items():
        typer.echo(f"| {name} | " + " | ".join(f"{value:.2f}" for value in np.mean(found_rows, axis=0)) + " |")


def main(
    folder: Path,
    count: Annotated[int, typer.Option(help="How many photographs.")] = 4,
    steps: int = 50,
    only_bars: Annotated[bool, typer.Option("--bars", help="How far the estimates are right.")] = False,
    only_weak: Annotated[bool, typer.Option("--weak", help="The same of noise of 0.02.")] = False,
    only_shapes: Annotated[bool, typer.Option("--shapes", help="Noise that is not white.")] = False,
) -> None:
    """Print one line per photograph and case, and the means as a table."""
    paths = list_pictures(folder)
    chosen = paths[:: max(1, len(paths) // count)][:count]
    if only_bars:
        bars(chosen)
        return
    if only_weak or only_shapes:
        (weak if only_weak else shapes)(chosen)
        return
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
