"""Pictures whose past is known: the inputs of benchmarks/constants.py, made by Pillow, NumPy and SciPy from photographs.

Every kind is a photograph, halved so that its own compression vanishes, through one chain of harms. `Truth` says what may be
found in it; a picture of 144 x 112 pixels, not square, where its kind asks for nothing else.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from common import compress, halve, to_image
from mild_kinds import age, draw, seed_of
from numpy.typing import NDArray
from PIL import Image, ImageDraw
from real_rows import gaussian, line
from scipy import ndimage
from torn import draw_tear, tear

from leader.operators.kernels import disk_kernel

Rng = np.random.Generator
Pixels = NDArray[np.float64]
Harm = Callable[[Image.Image, Rng], Image.Image]
WIDTH, HEIGHT, MARGIN = 144, 112, 32
LARGER = (176, 144)
"""Where a blur is looked for."""
RESAMPLING = {name.lower(): getattr(Image.Resampling, name) for name in ("NEAREST", "BOX", "BILINEAR", "BICUBIC", "LANCZOS")}
SIGMAS = {"gaussian": "gaussian", "disk": "disk", "motion": "line"}


@dataclass(frozen=True)
class Truth:
    """What is known of a picture.

    calls   what it may be said to show, as benchmarks/no_harm.py names it; level: of its noise, for [0, 1] pixels
    blur    family and width; kernel: of a thumbnail, with its factor
    looked  whether a blur is looked for, which takes longer than all else
    """

    calls: frozenset[str] = frozenset()
    level: float | None = None
    blur: tuple[str, float] | None = None
    kernel: tuple[str, float] | None = None
    looked: bool = False


def cut(image: Image.Image, width: int = WIDTH, height: int = HEIGHT) -> Image.Image:
    """The middle of a picture."""
    left, top = (image.width - width) // 2, (image.height - height) // 2
    return image.crop((left, top, left + width, top + height))


def add_noise(image: Image.Image, rng: Rng, level: float, smooth: float = 0.0, alike: bool = False) -> Image.Image:
    """White noise of 0..255, averaged by a Gaussian where it is to be blotchy, the same in all channels where `alike`."""
    pixels = np.asarray(image.convert("RGB"), np.float64)
    noise = rng.standard_normal((*pixels.shape[:2], 1 if alike or image.mode == "L" else 3))
    noise = ndimage.gaussian_filter(noise, (smooth, smooth, 0)) if smooth else noise
    return to_image(pixels + level * noise / noise.std()).convert(image.mode)


def count_photons(image: Image.Image, rng: Rng, peak: float, smooth: float = 0.0) -> Image.Image:
    """Poisson noise; averaged, as phones do, where `smooth` is not 0."""
    clean = np.asarray(image, np.float64) / 255
    noise = rng.poisson(clean * peak) / peak - clean
    return to_image(255 * (clean + (ndimage.gaussian_filter(noise, (smooth, smooth, 0)) if smooth else noise)))


def blur(image: Image.Image, _: Rng, family: str, width: float) -> Image.Image:
    table = gaussian(width) if family == "gaussian" else line(width) if family == "motion" else disk_kernel(width).numpy()
    pixels = np.asarray(cut(image, LARGER[0] + 2 * MARGIN, LARGER[1] + 2 * MARGIN), np.float64)
    return cut(to_image(np.stack([ndimage.convolve(pixels[..., channel], table) for channel in range(3)], -1)), *LARGER)


def sow(image: Image.Image, rng: Rng, share: float) -> Image.Image:
    """Salt and pepper."""
    pixels, chance = np.array(image), rng.random(image.size[::-1])
    pixels[chance < share / 2], pixels[chance > 1 - share / 2] = 0, 255
    return Image.fromarray(pixels)


def scratch(image: Image.Image, rng: Rng, shade: int, width: int = 2) -> Image.Image:
    done = image.copy()
    for ends in (rng.random((8, 4)) * (*image.size, *image.size)).astype(int).tolist():
        ImageDraw.Draw(done).line(ends, fill=(shade,) * len(image.getbands()) if image.mode == "RGB" else shade, width=width)
    return done


def rip(image: Image.Image, rng: Rng, kind: str, beneath: int) -> Image.Image:
    return tear(image, draw_tear(kind, image.size, rng), beneath, None, rng)


def shrink(image: Image.Image, _: Rng, kernel: str, factor: float, side: tuple[int, int] = (288, 216)) -> Image.Image:
    part = cut(image, *side)
    return part.resize((round(part.width / factor), round(part.height / factor)), RESAMPLING[kernel])


def grow(image: Image.Image, _: Rng, kernel: str, factor: float) -> Image.Image:
    small = cut(image, round(180 / factor), round(135 / factor))
    return small.resize((180, 135), RESAMPLING[kernel])


def show_screen(image: Image.Image, rng: Rng) -> Image.Image:
    """A window with lines of text, beside a part of the photograph."""
    screen = Image.new("RGB", (WIDTH, HEIGHT), (238, 238, 242))
    screen.paste(cut(image, 60, 60), (80, 48))
    for row in range(12, HEIGHT - 10, 11):
        ImageDraw.Draw(screen).text((8, row), "".join(map(chr, rng.integers(97, 123, 14))), fill=(20, 20, 40))
    ImageDraw.Draw(screen).rectangle((2, 2, WIDTH - 3, 9), fill=(60, 110, 200))
    return screen


def save(image: Image.Image, _: Rng, quality: int, subsampling: int = -1) -> Image.Image:
    return compress(image, quality, subsampling)


def decode(image: Image.Image, _: Rng, shift: tuple[int, int] = (0, 0)) -> Image.Image:
    """As pixels, whose blocks need not begin at the first."""
    return (
        image.crop((*shift, *image.size)).copy() if image.format is None else image.convert("RGB").crop((*shift, *image.size))
    )


def brighten(image: Image.Image, _: Rng, by: float) -> Image.Image:
    return to_image(np.asarray(image, np.float64) * by)


def coarsen(image: Image.Image, _: Rng, bits: int) -> Image.Image:
    return Image.fromarray(np.asarray(image) >> 8 - bits << 8 - bits)


def list_kinds() -> Iterator[tuple[str, tuple[Harm, ...], Truth]]:
    """(name, harms in order, truth): a crop comes first where no harm makes its own."""
    take: Harm = lambda image, _: cut(image)  # noqa: E731
    grey: Harm = lambda image, _: cut(image).convert("L")  # noqa: E731
    files: dict[str, tuple[Harm, ...]] = {"png": (), **{f"jpeg {q}": (partial(save, quality=q),) for q in (30, 50, 75, 85, 92)}}
    files["jpeg 75 444"] = (partial(save, quality=75, subsampling=0),)
    files["jpeg 75 as png"] = (*files["jpeg 75"], decode)
    files["jpeg 60 shifted"] = (partial(save, quality=60), partial(decode, shift=(3, 5)))

    kept: tuple[str, ...]

    def kinds(
        name: str, harms: tuple[Harm, ...], calls: str, *kept: str, **known: object
    ) -> Iterator[tuple[str, tuple[Harm, ...], Truth]]:
        for file in kept:
            said = {*filter(None, calls.split(", ")), *(["JPEG"] if "jpeg" in file else [])}
            yield f"{name}, {file}", (*harms, *files[file]), Truth(frozenset(said), **known)  # type: ignore[arg-type]

    yield from kinds(
        "clean", (take,), "", "png", "jpeg 30", "jpeg 75", "jpeg 92", "jpeg 75 444", "jpeg 75 as png", "jpeg 60 shifted"
    )
    yield from kinds("sharp", (lambda image, _: cut(image, *LARGER),), "", "png", looked=True)
    yield from kinds("grey", (grey,), "", "jpeg 85")
    for level, kept in ((5, ("png",)), (10, ("png",)), (25, ("png", "jpeg 75")), (50, ("jpeg 50",))):
        calls = "noisy" if level > 5 else ""
        yield from kinds(f"noise {level}", (take, partial(add_noise, level=level)), calls, *kept, level=level / 255)
    for peak, file in ((60, "jpeg 75"), (160, "jpeg 92")):
        yield from kinds(f"photons {peak}", (take, partial(count_photons, peak=peak)), "noisy", "png", file, level=-peak)
    yield from kinds("phone", (take, partial(count_photons, peak=40, smooth=0.7)), "noisy", "jpeg 92")
    yield from kinds("blotches", (take, partial(add_noise, level=15, smooth=1.5)), "noisy", "png", "jpeg 92", level=15 / 255)
    yield from kinds("fine blotches", (take, partial(add_noise, level=10, smooth=0.7)), "noisy", "png", level=10 / 255)
    yield from kinds("grey noise", (take, partial(add_noise, level=15, alike=True)), "noisy", "png", "jpeg 92")
    yield from kinds("grey, noise 15", (grey, partial(add_noise, level=15)), "noisy", "png", "jpeg 75", level=15 / 255)
    yield from kinds(
        "dark, noise 15", (take, partial(brighten, by=0.15), partial(add_noise, level=15)), "noisy", "png", level=15 / 255
    )
    yield from kinds(
        "bright, noise 25", (take, partial(brighten, by=1.8), partial(add_noise, level=25)), "noisy", "png", level=25 / 255
    )
    yield from kinds("bright", (take, partial(brighten, by=1.8)), "", "png")
    for share, kept in ((0.05, ("png", "jpeg 75", "jpeg 30")), (0.01, ("png",))):
        yield from kinds(f"salt {share}", (take, partial(sow, share=share)), "salt and pepper", *kept)
    yield from kinds(
        "salt 0.01, noise 25", (take, partial(add_noise, level=25), partial(sow, share=0.01)), "salt and pepper, noisy", "png"
    )
    yield from kinds("dead pixels", (take, partial(sow, share=0.0005)), "dead pixels", "png")
    yield from kinds("white scratches", (take, partial(scratch, shade=235)), "scratches", "png", "jpeg 75")
    yield from kinds("dark scratches", (take, partial(scratch, shade=30)), "scratches", "jpeg 92")
    yield from kinds("thin black scratches", (take, partial(scratch, shade=0, width=1)), "scratches", "png")
    yield from kinds("grey, scratches", (grey, partial(scratch, shade=220, width=1)), "scratches", "png", "jpeg 85")
    for number, (where, file) in enumerate({"corner": "png", "edge": "jpeg 85", "hole": "png"}.items()):
        yield from kinds(f"torn {where}", (take, partial(rip, kind=where, beneath=number)), "torn areas", file)
    for family, width, file in (
        *(("gaussian", 1.5, "png"), ("gaussian", 2.5, "jpeg 75"), ("disk", 3.0, "jpeg 92")),
        ("motion", 9.0, "png"),
    ):
        harm, found = partial(blur, family=family, width=width), (SIGMAS[family], width)
        yield from kinds(f"{family} {width}", (harm,), "blurred", file, blur=found, looked=True)
    for kernel, factor, file in (
        *(("nearest", 2, "png"), ("nearest", 4, "jpeg 92"), ("nearest", 1.5, "png"), ("box", 4, "png")),
        *(("bilinear", 3, "png"), ("bicubic", 2, "jpeg 85"), ("lanczos", 3, "png")),
    ):
        harm = partial(shrink, kernel=kernel, factor=factor)
        yield from kinds(f"{kernel} thumbnail {factor}", (harm,), "", file, kernel=(kernel, factor))
    for kernel, by, kept in (
        *(("bicubic", 2, ("jpeg 85",)), ("bilinear", 1.5, ("png",)), ("lanczos", 3, ("jpeg 75",))),
        *(("nearest", 2, ("png",)), ("bilinear", 2.5, ("png",))),
    ):
        yield from kinds(f"{kernel} enlarged {by}", (partial(grow, kernel=kernel, factor=by),), f"enlarged {by:.2g}", *kept)
    yield from kinds("drawn", (take, draw), "drawn", "png")
    yield from kinds("screen", (show_screen,), "drawn", "png", "jpeg 85")
    yield from kinds("palette", (take, lambda image, _: image.quantize(64).convert("RGB")), "", "png")
    yield from kinds("5 bits", (take, partial(coarsen, bits=5)), "", "png")
    yield from kinds("old", (take, age), "noisy", "png")


def make_input(path: Path, kind: str, harms: tuple[Harm, ...], truth: Truth) -> tuple[Image.Image, Truth]:
    """The picture of a kind, and what is known of it, with the level of Poisson noise in this photograph."""
    rng, image = seed_of(path, kind), halve(path)
    level = truth.level
    if level is not None and level < 0:  # photons for white
        level = float(np.sqrt((np.asarray(cut(image)) / 255).mean() / -level))
    for harm in harms:
        image = harm(image, rng)
    return image, replace(truth, level=level)
