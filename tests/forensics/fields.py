"""Random pictures with the spectrum of photographs, defects planted in them, and what is found of these."""

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from leader.forensics import examine
from leader.forensics.defects.defects import Defects
from leader.pictures import Picture

Floats = NDArray[np.float32]
Flags = NDArray[np.bool_]


def field(side: int, seed: int, slope: float = 2.4, edges: int = 12) -> Floats:
    """[side, side] in [0.1, 0.9]: a Gaussian field whose power falls like f^-slope, cut by the edges of random half-planes."""
    rng = np.random.default_rng(seed)
    places = np.fft.fftfreq(side)
    radius = np.hypot(places[:, None], places[None])
    radius[0, 0] = 1
    amplitude = radius ** (-slope / 2)
    amplitude[0, 0] = 0
    plane = np.fft.ifft2(np.fft.fft2(rng.standard_normal((side, side))) * amplitude).real
    plane /= plane.std()
    rows, columns = np.mgrid[:side, :side] / side - 0.5
    for _ in range(edges):
        angle, place = rng.random() * 2 * np.pi, (rng.random() - 0.5) * 0.8
        plane += 0.6 * rng.standard_normal() * (np.cos(angle) * rows + np.sin(angle) * columns > place)
    plane = (plane - plane.mean()) / plane.std()
    shown: NDArray[np.float32] = (0.5 + 0.13 * plane).clip(0.1, 0.9).astype(np.float32)
    return shown


def colour(side: int, seed: int) -> NDArray[np.uint8]:
    """[side, side, 3] in 8 bits: three fields that have most in common."""
    common = field(side, seed)
    planes = [0.8 * common + 0.2 * field(side, 1000 + 3 * seed + channel) for channel in range(3)]
    return np.round(255 * np.stack(planes, axis=2)).astype(np.uint8)


def peppered(pixels: NDArray[np.uint8], share: float, seed: int) -> tuple[NDArray[np.uint8], Flags]:
    """The pixels with salt and pepper, and where."""
    rng = np.random.default_rng(seed)
    hit, white = rng.random(pixels.shape[:2]) < share, rng.random(pixels.shape[:2]) < 0.5
    spoiled = pixels.copy()
    spoiled[hit & white], spoiled[hit & ~white] = 255, 0
    return spoiled, hit


def scratched(pixels: NDArray[np.uint8], shade: int, width: int, curved: bool) -> tuple[NDArray[np.uint8], Flags]:
    """The pixels with one scratch, and where."""
    side = pixels.shape[0]
    image, mask = Image.fromarray(pixels), Image.new("L", pixels.shape[1::-1])
    place = np.linspace(0, 1, 40)
    bend = 0.25 * np.sin(np.pi * place) if curved else 0.0
    points = [tuple(point) for point in np.stack([(0.1 + 0.8 * place) * side, (0.2 + 0.3 * place + bend) * side], axis=1)]
    ImageDraw.Draw(image).line(points, fill=(shade,) * 3, width=width)
    ImageDraw.Draw(mask).line(points, fill=255, width=width)
    return np.asarray(image), np.asarray(mask) > 0


def find_in(picture: Picture) -> Defects:
    """The defects that are found in a picture without holes."""
    found = examine(picture).defects
    assert isinstance(found, Defects)
    return found
