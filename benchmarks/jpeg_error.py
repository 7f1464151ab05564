"""What JPEG takes from photographs: the measured curve behind `quantised_noise.LOST`, how well the estimate does, and the
level of the task jpeg.

    python benchmarks/jpeg_error.py PHOTOGRAPHS [--every 2]

PHOTOGRAPHS is a folder of photographs; each is halved, which hides what its own compression did, and the middle 256 x 256
pixels are compressed by Pillow. First table: the estimated over the true root mean square error of R, G and B. Second: the
mean squared error at a frequency over step^2 / 12, by the rarity of coefficients that are not zero. Third: the true error over
that of rounding the coefficients that were not rounded to zero.
"""

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from common import compress, read_crop
from numpy.typing import NDArray
from PIL import Image

from leader.forensics.jpeg.blocks import compute_chroma, compute_luma, transform_blocks
from leader.forensics.jpeg.coefficients import read_coefficients
from leader.forensics.jpeg.quantised_noise import LOST, RARITY, compression_error, rarity_of
from leader.pictures import list_pictures
from leader.pictures.jpeg_history import JpegHistory, read_history

SIDE = 256
Array = NDArray[np.float64]


def compressed(image: Image.Image, quality: int, subsampling: int) -> tuple[Array, JpegHistory]:
    """The pixels in [0, 1] behind Pillow's JPEG, and its history."""
    file = compress(image, quality, subsampling)
    history = read_history(file)
    assert history is not None
    return np.asarray(file, dtype=np.float64) / 255, history


def errors(clean: Array, quality: int, image: Image.Image) -> tuple[list[float], list[float]]:
    """(rarity, error over step^2 / 12) at every frequency of luma and chroma with a step of at least 3."""
    pixels, history = compressed(image, quality, 0)
    before = [compute_luma(clean), *compute_chroma(clean, (1, 1), (0, 0))]
    after = [compute_luma(pixels), *compute_chroma(pixels, (1, 1), (0, 0))]
    rarities, losses = [], []
    for old, new, steps in zip(before, after, [history.luma_steps(), *2 * [history.chroma_steps()]], strict=True):
        was, now = (transform_blocks(plane).coefficients.reshape(-1, 8, 8) for plane in (old, new))
        used = steps >= 3
        used[0, 0] = False
        rarities += rarity_of(np.rint(now / steps) != 0, steps)[used].tolist()
        losses += (((was - now) ** 2).mean(0) / (steps**2 / 12))[used].tolist()
    return rarities, losses


def main(folder: Path, every: Annotated[int, typer.Option(help="Take every so many-th photograph.")] = 2) -> None:
    images = [read_crop(path, SIDE) for path in list_pictures(folder)[::every]]
    measured: list[tuple[Any, Any]] = []
    typer.echo("quality  subsampling  estimated / true error: lowest, median, highest")
    for quality in (40, 75, 92, 98):
        for subsampling in (0, 2):
            ratios = []
            for image in images:
                clean = np.asarray(image, dtype=np.float64) / 255
                pixels, history = compressed(image, quality, subsampling)
                true = float(np.sqrt(((pixels - clean) ** 2).mean()))
                ratios.append(compression_error(pixels, history, None) / true)
                if subsampling == 0:
                    measured.append(errors(clean, quality, image))
            low, middle, high = np.quantile(ratios, [0, 0.5, 1])
            typer.echo(f"{quality:7d}  {'4:4:4' if subsampling == 0 else '4:2:0':11s}  {low:.2f} {middle:.2f} {high:.2f}")
    rarities, losses = (np.concatenate([pair[index] for pair in measured]) for index in (0, 1))
    edges = np.concatenate([[0], (RARITY[1:-1] + RARITY[:-2]) / 2, [50]])
    typer.echo("rarity  number  mean error  in use")
    for low, high, rarity, used in zip(edges[:-1], edges[1:], RARITY, LOST, strict=False):
        inside = (rarities >= low) & (rarities < high)
        typer.echo(f"{rarity:6.2f} {int(inside.sum()):7d}  {losses[inside].mean():10.4f}  {used:.4f}")
    typer.echo("side  quality  error / rounding: lowest, median, highest")
    for side, quality in product((64, 192), (10, 20, 40, 60, 75, 95)):
        parts = [image.crop((0, 0, side, side)) for image in images]
        low, middle, high = np.quantile([ratio for part in parts for ratio in over_rounding(part, quality)], [0, 0.5, 1])
        typer.echo(f"{side:4d}  {quality:7d}  {low:.2f} {middle:.2f} {high:.2f}")


def over_rounding(image: Image.Image, quality: int) -> Iterator[float]:
    """The error of the compression over that of rounding what was not rounded to zero, 4:4:4 and 4:2:0."""
    for subsampling in (0, 2):
        pixels, history = compressed(image, quality, subsampling)
        error = float(np.sqrt(((pixels - np.asarray(image) / 255) ** 2).mean()))
        yield error / read_coefficients(pixels, history).rounding_error()


if __name__ == "__main__":
    typer.run(main)
