"""Motion blur: the track of a shaking camera, drawn at random from a seed.

A walk of many short steps whose direction rarely flips is drawn on a canvas of twice the size, smoothed and reduced. Pillow
draws the line, and its pixels may change with Pillow's version: the kernels of seeds 0 to 15 are therefore stored.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from leader.errors import LeaderError

STORED_SIZE = 61
STORED_INTENSITY = 0.5


def motion_kernel(seed: int, size: int = STORED_SIZE, intensity: float = STORED_INTENSITY) -> Tensor:
    """A motion kernel [size, size], float64, sum 1.

    seed       0 to 15 with the default size and intensity are read from disk, all others are drawn
    intensity  0 (nearly straight) to 1 (shaken)

    >>> motion_kernel(0).shape
    torch.Size([61, 61])
    """
    if seed < 0:
        raise LeaderError(f"The seed of a motion kernel must be an integer >= 0; found {seed}.")
    if size < 3 or not 0 <= intensity <= 1:
        raise LeaderError(f"A motion kernel needs size >= 3 and intensity in [0, 1]; found {size} and {intensity}.")
    stored = _stored_kernels()
    if seed < len(stored) and (size, intensity) == (STORED_SIZE, STORED_INTENSITY):
        drawing = stored[seed]
    else:
        drawing = draw_motion(seed, size, intensity)
    kernel = drawing.astype(np.float64)
    return torch.from_numpy(kernel / kernel.sum())


def draw_motion(seed: int, size: int, intensity: float) -> NDArray[np.uint8]:
    """The track of a seed as a drawing [size, size], grey levels 0 to 255."""
    generator = np.random.default_rng(seed)
    diagonal = float(np.hypot(2 * size, 2 * size))
    steps = _step_lengths(generator, diagonal, intensity)
    angles = _directions(generator, len(steps), intensity)
    track = np.concatenate([[0], np.cumsum(steps * np.exp(1j * angles))])
    track = (track - track.mean()) * np.exp(1j * generator.uniform(0, np.pi)) + size * (1 + 1j)
    return _draw_track(track, size, diagonal)


def _step_lengths(generator: np.random.Generator, diagonal: float, intensity: float) -> NDArray[np.float64]:
    """Short steps until the track has its random length."""
    length = 0.75 * diagonal * (generator.uniform(0, 1) + generator.uniform(0, intensity**2))
    steps: list[float] = []
    while sum(steps) < length:
        step = generator.beta(1, 30) * (1 - intensity + 0.1) * diagonal
        if step < length:
            steps.append(step)
    return np.array(steps)


def _directions(generator: np.random.Generator, count: int, intensity: float) -> NDArray[np.float64]:
    """The direction of each step (absolute, not a turn): of random size, its sign rarely flipped."""
    largest = generator.uniform(0, intensity * np.pi)
    flip = generator.beta(2, 20)
    angles = [generator.uniform(-largest, largest)]
    for _ in range(count - 1):
        size = generator.triangular(0, intensity * largest, largest + 0.1)
        sign = np.sign(angles[-1]) or 1.0
        angles.append(float(size * (-sign if generator.uniform() < flip else sign)))
    return np.array(angles[:count])


def _draw_track(track: NDArray[np.complex128], size: int, diagonal: float) -> NDArray[np.uint8]:
    """A line through the points, Gaussian smoothing, reduction to size x size."""
    from PIL import Image, ImageDraw, ImageFilter

    canvas = Image.new("L", (2 * size, 2 * size))
    points = [(float(point.real), float(point.imag)) for point in track]
    ImageDraw.Draw(canvas).line(points, fill=255, width=max(1, int(diagonal / 150)))
    canvas = canvas.filter(ImageFilter.GaussianBlur(radius=int(diagonal * 0.01)))
    return np.asarray(canvas.resize((size, size), Image.Resampling.LANCZOS), dtype=np.uint8)


@lru_cache(maxsize=1)
def _stored_kernels() -> NDArray[np.uint8]:
    """The stored drawings [16, 61, 61]."""
    with (files(__package__) / "motion.npz").open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
        kernels: NDArray[np.uint8] = archive["kernels"]
    return kernels
