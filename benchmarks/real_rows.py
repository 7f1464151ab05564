"""The rows of benchmarks/real.py: what happens to a photograph, in which file it ends up, and what the user says of it.

Everything here is made by Pillow, SciPy and NumPy, none of it by our operators.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from common import compress, to_image
from numpy.typing import NDArray
from PIL import Image, ImageDraw
from scipy import ndimage

Pixels = NDArray[np.float64]
"""[H, W, 3] in 0..255."""
Spoil = Callable[[Pixels, np.random.Generator], Pixels]
SIDE, MARGIN = 192, 32
FACTOR = 4
FILES = ("png", "jpeg 40", "jpeg 75", "jpeg 92", "jpeg 75 as png")
ANGLE = 30.0
"""Degrees of straight motion, counter-clockwise from the right."""


@dataclass(frozen=True)
class Row:
    """A row of the table.

    harm    what happened to the photograph; file: where it ended up; said: what the user knows
    task    and `options` of `leader.restore`; a kernel is a table, handed over in a file
    kernel  the true kernel of a blur, which "auto" is compared with
    level   standard deviation of the white noise that was added, of 0..255
    """

    harm: str
    file: str
    said: str
    spoil: Spoil
    task: str
    options: dict[str, Any] = field(default_factory=dict)
    kernel: Pixels | None = None
    level: float | None = None

    @property
    def name(self) -> str:
        return ", ".join(part for part in (self.harm, self.file, self.said) if part)


def centre(pixels: Pixels) -> Pixels:
    """Without the margin that a blur reaches into."""
    return pixels[MARGIN:-MARGIN, MARGIN:-MARGIN]


def gaussian(std: float) -> Pixels:
    """A Gaussian kernel up to four standard deviations, as a table."""
    impulse = np.zeros((2 * int(np.ceil(4 * std)) + 1,) * 2)
    impulse[impulse.shape[0] // 2, impulse.shape[1] // 2] = 1
    table: Pixels = ndimage.gaussian_filter(impulse, std)
    table /= table.sum()
    return table


def line(length: float) -> Pixels:
    """Straight motion over `length` pixels: a dense row of points, each shared among its four neighbours."""
    reach = int(np.ceil(length / 2)) + 1
    table = np.zeros((2 * reach + 1,) * 2)
    for step in np.linspace(-length / 2, length / 2, 2001):
        down, right = reach - step * np.sin(np.deg2rad(ANGLE)), reach + step * np.cos(np.deg2rad(ANGLE))
        top, left = int(np.floor(down)), int(np.floor(right))
        for i, j in np.ndindex(2, 2):
            table[top + i, left + j] += (1 - abs(down - top - i)) * (1 - abs(right - left - j))
    table /= table.sum()
    return table


def blurred(kernel: Pixels) -> Spoil:
    return lambda pixels, _: centre(np.stack([ndimage.convolve(pixels[..., c], kernel) for c in range(3)], -1))


def white(level: float) -> Spoil:
    return lambda pixels, rng: centre(pixels) + level * rng.standard_normal((SIDE, SIDE, 3))


def photons(pixels: Pixels, rng: np.random.Generator) -> Pixels:
    """60 photons for white."""
    counted: Pixels = rng.poisson(centre(pixels) / 255 * 60) / 60 * 255.0
    return counted


def blotches(pixels: Pixels, rng: np.random.Generator) -> Pixels:
    """Noise of standard deviation 15 in every channel, smoothed over 1.5 pixels: what phones make of high sensitivity."""
    noise = ndimage.gaussian_filter(rng.standard_normal((SIDE, SIDE, 3)), (1.5, 1.5, 0))
    spoilt: Pixels = centre(pixels) + 15 * noise / noise.std()
    return spoilt


def salt_and_pepper(pixels: Pixels, rng: np.random.Generator) -> Pixels:
    """One pixel of twenty is black or white."""
    draw = rng.random((SIDE, SIDE))[..., None]
    return np.where(draw < 0.025, 0.0, np.where(draw > 0.975, 255.0, centre(pixels)))


def scratch_mask(rng: np.random.Generator) -> Image.Image:
    """Eight scratches, two pixels wide: white where there are none."""
    mask = Image.new("L", (SIDE, SIDE), 255)
    for ends in rng.integers(0, SIDE, (8, 4)).tolist():
        ImageDraw.Draw(mask).line(ends, fill=0, width=2)
    return mask


def scratched(pixels: Pixels, rng: np.random.Generator) -> Pixels:
    known = np.asarray(scratch_mask(rng))[..., None] > 0
    return np.where(known, centre(pixels), 235.0)


def small(how: Image.Resampling) -> Spoil:
    def spoil(pixels: Pixels, _: np.random.Generator) -> Pixels:
        return np.asarray(to_image(centre(pixels)).resize((SIDE // FACTOR,) * 2, how), np.float64)

    return spoil


def nothing(pixels: Pixels, _: np.random.Generator) -> Pixels:
    return centre(pixels)


def write(pixels: Pixels, file: str, folder: Path) -> Path:
    """The degraded picture on disk, as `file` says."""
    image, words = to_image(pixels), file.split()
    if words[0] == "jpeg":
        if words[-1] != "png":
            image.save(folder / "in.jpg", quality=int(words[1]))  # Pillow's default: 4:2:0
            return folder / "in.jpg"
        image = compress(image, int(words[1]))
    image.save(folder / "in.png")
    return folder / "in.png"


def _blurs() -> Iterator[Row]:
    kinds: list[tuple[str, Callable[[float], Pixels], float]] = [
        ("gaussian 1.5", gaussian, 1.5),
        ("gaussian 2.5", gaussian, 2.5),
        ("motion 9", line, 9.0),
        ("motion 15", line, 15.0),
    ]
    for name, make, width in kinds:
        kernel = make(width)
        for file in FILES:
            yield Row(name, file, "kernel given", blurred(kernel), "deblur", {"kernel": kernel}, kernel)
            yield Row(name, file, "kernel auto", blurred(kernel), "deblur", {"kernel": "auto"}, kernel)
        for file in ("png", "jpeg 75"):
            for share in (25, 50):
                wide = make(width * (1 + share / 100))
                yield Row(name, file, f"kernel {share} % too wide", blurred(kernel), "deblur", {"kernel": wide}, kernel)


def rows() -> list[Row]:
    found = list(_blurs())
    for level in (10, 25, 50):
        found += [Row(f"noise {level}", file, "", white(level), "denoise", level=level) for file in FILES]
    found.append(Row("noise 20", "jpeg 75", "", white(20), "denoise", level=20))
    for name, spoil in (("poisson", photons), ("blotchy colour noise", blotches)):
        found += [Row(name, file, "", spoil, "denoise") for file in FILES]
    for name, spoil in (("salt and pepper", salt_and_pepper), ("scratches", scratched)):
        found += [Row(name, file, "mask auto", spoil, "inpaint", {"mask": "auto"}) for file in FILES]
    found += [Row("scratches", file, "mask given", scratched, "inpaint", {"mask": "given"}) for file in ("png", "jpeg 75")]
    for how in ("NEAREST", "BOX", "BILINEAR", "BICUBIC", "LANCZOS"):
        found += [Row(f"small, {how.lower()}", file, "", small(Image.Resampling[how]), "sr") for file in FILES]
    found += [Row("", f"jpeg {quality}", "", nothing, "jpeg") for quality in (10, 20, 40, 60, 75, 90)]
    return found
