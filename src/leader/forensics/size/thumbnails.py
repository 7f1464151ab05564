"""Which kernel made a thumbnail, judged by the thumbnail alone, and what is left of the doubt.

Kernels differ in how the spectrum of a picture falls off towards the corner of what a thumbnail can hold, in what they fold
back from beyond it, and in what they leave of an edge: nearest neighbour lets everything through, box and bilinear soften,
bicubic and Lanczos overshoot on both sides. The logarithm of the power in eighteen bands and the mean profile of edges are,
for photographs, close to normal with one covariance for all kernels; the evidence for a kernel is then linear in them
(thumbnails.json, fitted by benchmarks/thumbnails.py, for files with and without JPEG).

The doubt is a standard deviation: by how much the thumbnail would differ had another kernel made it, averaged over the
kernels by their probabilities, for a picture whose spectrum is the power law that fits the thumbnail's coarse detail. A part of
it counts as noise: white noise as strong as all of it costs the right kernel more than it saves a wrong one.

Nearest neighbour is apart from the others: it takes a pixel half a pixel beside the middle of its cell, so that neither serves
the other, whatever noise is assumed. It is taken where it is clearly more likely; the others stand in for each other.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leader.forensics.constants import read_constants
from leader.forensics.jpeg.blocks import compute_luma
from leader.messages import Note, Remedy
from leader.operators.pillow_resize import pillow_matrix

Array = NDArray[np.float64]

KERNELS = {"nearest": "soft-nearest", "box": "box", "bilinear": "bilinear", "bicubic": "pillow-bicubic", "lanczos": "lanczos"}
"""Pillow's kernels and the operators that serve their thumbnails, by the names of the option `down`."""
BANDS = (0.06, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5001)
"""Borders of the bands, the larger of both frequencies in cycles per pixel; each is split into axes and diagonals."""
_CONSTANTS = read_constants("size.thumbnails")
COARSE_BANDS = _CONSTANTS.count("coarse_bands")
FARTHER = _CONSTANTS.series("farther")
SMALLEST_THUMBNAIL, LONGEST_PART = _CONSTANTS.counts("smallest_thumbnail", "longest_part")
SURE_OF_NEAREST, COUNTED_DOUBT = _CONSTANTS.numbers("sure_of_nearest", "counted_doubt")
GRID = _CONSTANTS.count("grid")
ROUNDING = 1 / 255**2 / 12


@dataclass(frozen=True)
class Recognised:
    """How a thumbnail became small.

    down           the kernel with the least doubt, as the option of super-resolution names it
    probabilities  of each of KERNELS
    doubt          standard deviation, for [0, 1] pixels, of what the thumbnail may differ from that kernel's
    """

    down: str
    probabilities: dict[str, float]
    doubt: float

    @property
    def misread(self) -> float:
        """The probability that a nearest-neighbour thumbnail was taken for another, or another for one."""
        nearest = self.probabilities["nearest"]
        return 1 - nearest if self.down == KERNELS["nearest"] else nearest

    def words(self) -> str:
        """One sentence."""
        ranked = sorted(self.probabilities.items(), key=lambda item: -item[1])
        likely = " or ".join(name for name, chance in ranked[:3] if chance >= ranked[0][1] / 3)
        taken = next(name for name, down in KERNELS.items() if down == self.down)
        chance = f"{100 * self.probabilities[taken]:.0f} %"
        if self.doubt == 0:
            return f"It is taken to have been reduced by {taken} ({chance} likely)."
        if likely == taken:
            return (
                f"It was reduced by {taken} ({chance} likely); what is left of the doubt counts as noise of {self.doubt:.2g}."
            )
        return Note(
            "kernel guessed",
            f"It was reduced by {likely}: {taken} is assumed ({chance} likely), and the doubt counts as noise of "
            f"{self.doubt:.2g}.",
            Remedy("say how it was reduced", {"down": None}),
        )


def kernel_chances(pixels: NDArray[np.floating], compressed: bool) -> dict[str, float]:
    """The probability of each of KERNELS, by pixels [H, W, C] in [0, 1] of a thumbnail; even where it is too small to tell."""
    part = middle(pixels)
    if min(part.shape[:2]) < SMALLEST_THUMBNAIL:
        return {name: 1 / len(KERNELS) for name in KERNELS}
    return probabilities(features(part), compressed)


def recognise_kernel(pixels: NDArray[np.floating], factor: float, chances: dict[str, float]) -> Recognised:
    """The kernel that serves a thumbnail best where it is to be enlarged by `factor`."""
    if factor == 1:
        return Recognised(KERNELS["bicubic"], chances, 0.0)
    return least_doubt(chances, kernel_differences(middle(pixels), factor))


def take_given_kernel(pixels: NDArray[np.floating], factor: float, kernel: str) -> Recognised:
    """The same where the kernel, one of KERNELS, is given."""
    chances = {name: float(name == kernel) for name in KERNELS}
    differences = kernel_differences(middle(pixels), factor)
    chosen = list(KERNELS).index(kernel)
    return Recognised(KERNELS[kernel], chances, COUNTED_DOUBT * math.sqrt(float(differences[chosen, chosen])))


def least_doubt(chances: dict[str, float], differences: Array) -> Recognised:
    """The operator that leaves the least variance, on average over the kernels: nearest neighbour, or one of the others."""
    names = list(KERNELS)
    nearest = chances["nearest"] >= SURE_OF_NEAREST
    alike = [number for number, name in enumerate(names) if (name == "nearest") is nearest]
    weights = np.array([chances[names[number]] for number in alike])
    expected = weights / weights.sum() @ differences[np.ix_(alike, alike)]
    best = int(expected.argmin())
    return Recognised(KERNELS[names[alike[best]]], chances, COUNTED_DOUBT * math.sqrt(float(expected[best])))


def middle(pixels: NDArray[np.floating]) -> NDArray[np.floating]:
    """At most LONGEST_PART rows and columns."""
    top, left = (max(0, (length - LONGEST_PART) // 2) for length in pixels.shape[:2])
    return pixels[top : top + LONGEST_PART, left : left + LONGEST_PART]


def features(pixels: NDArray[np.floating]) -> Array:
    """[24] of pixels [H, W, C] in [0, 1]: the logarithm of the power in bands relative to the coarse ones, edge profiles."""
    plane = compute_luma(pixels.astype(np.float64)) / 255
    bands = np.log(band_powers(plane) + ROUNDING)
    return np.concatenate([bands - bands[:4].mean(), edge_profiles(plane)])


def band_powers(plane: Array) -> Array:
    """[18], the mean periodogram in each band, axes and diagonals in turn; white noise of variance v gives v."""
    height, width = plane.shape
    window = np.outer(np.hanning(height + 2)[1:-1], np.hanning(width + 2)[1:-1])
    centred = plane - (plane * window).sum() / window.sum()
    power = np.abs(np.fft.rfft2(centred * window)) ** 2 / (window**2).sum()
    down, across = np.abs(np.fft.fftfreq(height))[:, None], np.fft.rfftfreq(width)[None]
    large, small = np.maximum(down, across), np.minimum(down, across)
    found = []
    for low, high in pairwise(BANDS):
        ring = (large >= low) & (large < high)
        found += [power[ring & (small < large / 2)].mean(), power[ring & (small >= large / 2)].mean()]
    return np.array(found)


def edge_profiles(plane: Array) -> Array:
    """[6]: how the gradient goes on 1, 2 and 3 pixels beyond, over all pixels and over strong edges (cubed weights)."""
    gradients = (np.diff(plane, axis=0), np.diff(plane, axis=1).T)
    found = []
    for exponent in (1, 3):
        weights = [np.sign(gradient) * np.abs(gradient) ** exponent for gradient in gradients]
        total = sum(float((weight * gradient).mean()) for weight, gradient in zip(weights, gradients))
        for beyond in (1, 2, 3):
            both = sum(
                float((weight[:-beyond] * gradient[beyond:]).mean() + (weight[beyond:] * gradient[:-beyond]).mean()) / 2
                for weight, gradient in zip(weights, gradients)
            )
            found.append(both / (total + 1e-12))
    return np.array(found)


def probabilities(found: Array, compressed: bool) -> dict[str, float]:
    """Of each of KERNELS, from the features of a thumbnail."""
    table = _table()["compressed" if compressed else "plain"]
    evidence = np.array([np.dot(table[name]["weights"], found) + table[name]["constant"] for name in KERNELS])
    chances = np.exp(evidence - evidence.max())
    return dict(zip(KERNELS, (chances / chances.sum()).tolist()))


@cache
def _table() -> dict[str, dict[str, dict[str, Any]]]:
    text = (resources.files("leader.forensics.size") / "thumbnails.json").read_text(encoding="utf-8")
    loaded: dict[str, dict[str, dict[str, Any]]] = json.loads(text)
    return loaded


def kernel_differences(pixels: NDArray[np.floating], factor: float) -> Array:
    """[5, 5], the variance of a kernel's thumbnail less what an operator makes of the same picture, by KERNELS both.

    The picture is one with the power law of the thumbnail's coarse detail.
    """
    plane = compute_luma(pixels.astype(np.float64)) / 255
    level, slope = power_law(plane)
    side = round(GRID * factor)
    places = np.fft.fftfreq(side) * side / GRID  # cycles per pixel of the thumbnail
    radius = np.hypot(places[:, None], places[None]).clip(1 / GRID)
    spectrum = np.exp(level - slope * np.log(radius)) / GRID**2
    made, assumed = _responses(factor, tuple(KERNELS)), _responses(factor, tuple(KERNELS.values()))
    return np.array([[float((np.abs(one - other) ** 2 * spectrum).sum()) for other in assumed] for one in made])


def power_law(plane: Array) -> tuple[float, float]:
    """(level, slope): log power = level - slope log f, by least squares over the coarse bands."""
    if min(plane.shape) < SMALLEST_THUMBNAIL:
        return math.log(float(plane.var()) / 10 + ROUNDING), 2.5
    middles = np.repeat([math.log((low + high) / 2) for low, high in pairwise(BANDS)], 2)[:COARSE_BANDS]
    centres = middles + np.tile(FARTHER, COARSE_BANDS // 2)
    slope, level = np.polyfit(centres, np.log(band_powers(plane)[:COARSE_BANDS] + ROUNDING), 1)
    return float(level), float(np.clip(-slope, 1.5, 4.0))


@lru_cache(maxsize=32)
def _responses(factor: float, names: tuple[str, ...]) -> list[NDArray[np.complex128]]:
    """The frequency response, by kernel, of one pixel of the thumbnail on a large grid."""
    matrices = [pillow_matrix(round(GRID * factor), GRID, name.removeprefix("pillow-")) for name in names]
    rows = [matrix.numpy()[GRID // 2] for matrix in matrices]
    return [np.fft.fft2(np.outer(row, row)) for row in rows]
