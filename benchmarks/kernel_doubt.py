"""Deblurring with a kernel that is a little wrong: with and without its doubt counted as noise.

    python benchmarks/kernel_doubt.py PHOTOGRAPHS [--count 4]

The middle 128 x 128 pixels of each photograph, halved, are blurred by SciPy (Gaussian 2, as PNG and behind JPEG 75) and
restored with kernels that are right, 25 and 50 % too wide and 25 % too narrow, by the posterior mean of a Gaussian scene.
PSNR in dB over the whole crop; "nothing" is the blurred picture.
"""

from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import typer
from common import compress, measure_psnr, print_rows, read_crop, spread_out, to_image
from numpy.typing import NDArray
from PIL import Image
from scipy import ndimage

from leader.forensics import NotExamined, examine
from leader.forensics.blur.doubt import scene_behind
from leader.forensics.blur.periodogram import luma_plane
from leader.operators.blur import centre_kernel
from leader.pictures import from_pil, list_pictures
from leader.restoration.arguments import as_kernel
from leader.restoration.borders import extend
from leader.restoration.tasks import TASKS

SIDE, STD = 128, 2.0
WIDTHS = {"right": 1.0, "25 % too wide": 1.25, "50 % too wide": 1.5, "25 % too narrow": 0.75}
DOUBTS = (0.0, 0.05, 0.1)
FILES = {"PNG": None, "JPEG 75": 75}


def file_of(values: NDArray[np.float64], quality: int | None) -> Image.Image:
    """The middle as a file gives it back."""
    image = to_image(values[16:-16, 16:-16])
    return image if quality is None else compress(image, quality)


def by_wiener(given: Image.Image, kernel: str, doubt: float) -> NDArray[np.float64]:
    """The picture [H, W, 3] by a Wiener filter that knows scene, noise and doubt."""
    picture = from_pil(given)
    taps = as_kernel(kernel)
    seen = examine(picture)
    noise = seen.amplified_noise
    assert not isinstance(noise, NotExamined)
    measured = TASKS["deblur"].measured(seen, {"kernel": taps, "kernel_doubt": doubt})
    assert measured.window is not None
    frame = measured.operator.image_shape[1:]
    y = extend(torch.from_numpy(picture.pixels.transpose(2, 0, 1).copy())[None], measured.operator, measured.window)
    scene = torch.from_numpy(scene_behind(luma_plane(picture.pixels), taps, noise).power(*frame))
    response = torch.fft.fft2(centre_kernel(taps[None, None], *frame))[0, 0]
    power = noise.sigma**2 + (0 if measured.doubt_power is None else measured.doubt_power[0])
    gain = response.conj() * scene / (response.abs() ** 2 * scene + power)
    found = torch.fft.ifft2(torch.fft.fft2(y.double() - 0.5) * gain).real + 0.5
    return np.asarray(measured.window.crop(found)[0].permute(1, 2, 0).clamp(0, 1))


def main(folder: Path, count: Annotated[int, typer.Option(help="How many photographs.")] = 4) -> None:
    """Print the means as a table."""
    typer.echo("| file | kernel | nothing | " + " | ".join(f"doubt {doubt:g}" for doubt in DOUBTS) + " |")
    typer.echo("|---" * (3 + len(DOUBTS)) + "|")
    crops = [np.asarray(read_crop(path, SIDE + 32), np.float64) for path in spread_out(list_pictures(folder), count)]
    for kind, quality in FILES.items():
        pairs = [
            (file_of(ndimage.gaussian_filter(clean, (STD, STD, 0)), quality), clean[16:-16, 16:-16] / 255) for clean in crops
        ]
        nothing = np.mean([measure_psnr(np.asarray(given.convert("RGB")) / 255, truth) for given, truth in pairs])
        for words, factor in WIDTHS.items():
            kernel = f"gaussian:{STD * factor}"
            found = [[measure_psnr(by_wiener(given, kernel, doubt), truth) for given, truth in pairs] for doubt in DOUBTS]
            print_rows([[kind, words, *(f"{mean:.2f}" for mean in (nothing, *np.mean(found, 1)))]])


if __name__ == "__main__":
    typer.run(main)
