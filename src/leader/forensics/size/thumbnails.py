"""Which kernel made a thumbnail, judged by the thumbnail alone, and what is assumed where that cannot be told.

A small network weighs what the thumbnail shows of the kernel (`kernel_features`), its factor and whether it is a JPEG;
benchmarks/thumbnails.py fits it (thumbnails.safetensors). It runs in float64, so that its answer is the same on every machine.

With a picture of covariance C and kernels k of probabilities p_k, the best linear estimate is that of a measurement by the mean
operator M = sum p_k A_k with the noise sum p_k (A_k - M) C (A_k - M)^T besides its own. So the mean of the kernels is assumed
(`leader.operators.pillow_resize.MixedSR`), and the doubt is noise: by how much the thumbnail would differ had one of them made
it, for a picture whose spectrum is the power law that fits the thumbnail's coarse detail. A part of it counts, as white noise:
it lies in fine detail, where the picture is weak, and all of it would cost the right kernel more than it saves a wrong one.

Nearest neighbour takes a pixel that may lie half a pixel beside the middle of its cell, and aliases: it is assumed alone only
where it is proved, and is otherwise a part of the mean. So is bilinear interpolation without antialiasing (OpenCV's), which
stays in the middle of the cell. At odd factors the two are the same; at even ones beyond 2 nobody can tell them apart, and one
operator, in the middle, serves both: it costs nearest neighbour less than the other one would cost the others.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file

from leader.forensics.constants import read_constants
from leader.forensics.size.kernel_features import BANDS, ROUNDING, band_powers, find_features, find_plane
from leader.messages import Note, Remedy
from leader.operators.pillow_resize import PILLOW_DOWNSAMPLING, pillow_matrix, read_mixture

Array = NDArray[np.float64]

KERNELS = {
    "nearest": "soft-nearest",
    "box": "box",
    "bilinear": "bilinear",
    "bicubic": "pillow-bicubic",
    "lanczos": "lanczos",
    "opencv-bilinear": "soft-centred",
}
"""Pillow's kernels and OpenCV's usual one, and the operators that serve their thumbnails, by the names of the option `down`."""
NEAREST, OPENCVS = ALIASING = ("nearest", "opencv-bilinear")
"""Those that leave pixels out: taken literally, they would give a prior too little to start from."""
_CONSTANTS = read_constants("size.thumbnails")
COARSE_BANDS = _CONSTANTS.count("coarse_bands")
RARER, SHIFTED = _CONSTANTS.numbers("rarer", "shifted")
FARTHER = _CONSTANTS.series("farther")
SMALLEST_THUMBNAIL, GRID = _CONSTANTS.counts("smallest_thumbnail", "grid")
SURE_OF_NEAREST, LEAST_SHARE = _CONSTANTS.numbers("sure_of_nearest", "least_share")
COUNTED_DOUBT, COUNTED_ALIASING = _CONSTANTS.numbers("counted_doubt", "counted_aliasing")


@dataclass(frozen=True)
class Recognised:
    """How a thumbnail became small.

    down           the kernel, or the mean of several, as the option of super-resolution names it
    probabilities  of each of KERNELS
    doubt          standard deviation, for [0, 1] pixels, that white noise gains by what is not known of the kernel
    """

    down: str
    probabilities: dict[str, float]
    doubt: float

    @property
    def misread(self) -> float:
        """The probability that a nearest-neighbour thumbnail was taken for another, or another for one."""
        served = sum(self.probabilities[name] for name in self._served())
        return 1 - served if served else self.probabilities[NEAREST]

    def _served(self) -> tuple[str, ...]:
        """Which of ALIASING the operator serves, where it serves nothing else."""
        return {KERNELS[NEAREST]: (NEAREST,), KERNELS[OPENCVS]: ALIASING}.get(self.down, ())

    def words(self) -> str:
        """One sentence."""
        ranked = sorted(self.probabilities, key=lambda name: -self.probabilities[name])
        alone = [name for name, down in KERNELS.items() if down == self.down]
        if self._served():
            alone = [" or ".join(name for name in self._served() if self.probabilities[name] >= LEAST_SHARE)]
        rivals = [name for name in ranked if self.probabilities[name] >= self.probabilities[ranked[0]] / 3]
        likely = alone or (ranked[:2] if rivals == ["nearest"] else rivals)
        if len(likely) == 1:
            chance = f"{100 * sum(self.probabilities[name] for name in likely[0].split(' or ')):.0f} % likely"
            if self.doubt == 0:
                return f"It is taken to have been made smaller by {likely[0]} ({chance})."
            return f"It was made smaller by {likely[0]} ({chance}); the doubt left counts as noise of {self.doubt:.2g}."
        return Note(
            "kernel guessed",
            f"It was made smaller by {' or '.join(likely)} (it cannot be told which): their mean is assumed, and the "
            f"difference counts as noise of {self.doubt:.2g}.",
            Remedy("say how it was made smaller", {"down": None}),
        )


def recognise_kernel(pixels: NDArray[np.floating], factor: float, compressed: bool) -> Recognised:
    """How a thumbnail, pixels [H, W, C] in [0, 1], became small, where it is to be enlarged by `factor`."""
    chances = kernel_chances(pixels, factor, compressed)
    return Recognised(KERNELS["bicubic"], chances, 0.0) if factor == 1 else mix_kernels(pixels, factor, chances)


def kernel_chances(pixels: NDArray[np.floating], factor: float, compressed: bool) -> dict[str, float]:
    """The probability of each of KERNELS, even where the thumbnail is too small to tell; they sum to 1."""
    if min(pixels.shape[:2]) < SMALLEST_THUMBNAIL:
        return {name: 1 / len(KERNELS) for name in KERNELS}
    return probabilities(find_features(pixels, factor), factor, compressed)


def mix_kernels(pixels: NDArray[np.floating], factor: float, chances: dict[str, float]) -> Recognised:
    """A kernel that leaves pixels out where it is proved, else the mean of the kernels by their probabilities."""
    served = operators_at(factor)
    for down in (KERNELS[name] for name in ALIASING):
        alone = {name: chance for name, chance in chances.items() if served[name] == down}
        if (total := sum(alone.values())) >= SURE_OF_NEAREST:
            shares = {name: chance / total for name, chance in alone.items()}
            return Recognised(down, chances, find_doubt(pixels, factor, down, shares))
    meant = leave_out_nearest(chances) if factor == 2 else chances
    down = name_mixture(meant, served)
    return Recognised(down, chances, find_doubt(pixels, factor, down, meant))


def leave_out_nearest(chances: dict[str, float]) -> dict[str, float]:
    """The probabilities of the others where nearest neighbour is not likely enough.

    At factor 2 all its pixels lie half a pixel aside in the same direction. A mean with it is shifted in part, which costs all
    kernels much: restored validation thumbnails lost about half as much without it.
    """
    nearest = chances[NEAREST]
    if nearest >= SHIFTED:
        return chances
    return {name: 0.0 if name == NEAREST else chance / (1 - nearest) for name, chance in chances.items()}


def operators_at(factor: float) -> dict[str, str]:
    """KERNELS, but at even factors beyond 2 one operator for all that leave pixels out."""
    return {**KERNELS, NEAREST: KERNELS[OPENCVS]} if factor > 2 and factor % 2 == 0 else KERNELS


def find_doubt(pixels: NDArray[np.floating], factor: float, down: str, chances: dict[str, float]) -> float:
    """The standard deviation that counts of what kernels of these probabilities differ by from the operator `down`."""
    variance = float(np.array([chances.get(name, 0.0) for name in KERNELS]) @ kernel_spread(pixels, factor, down))
    aliasing = down in [KERNELS[name] for name in ALIASING]
    return (COUNTED_ALIASING if aliasing else COUNTED_DOUBT) * math.sqrt(variance)


def name_mixture(chances: dict[str, float], served: dict[str, str] = KERNELS) -> str:
    """The mean of kernels as the option `down` names it: shares in per cent, without those below LEAST_SHARE."""
    sums = {down: sum(chances[name] for name in served if served[name] == down) for down in served.values()}
    kept = {down: chance for down, chance in sums.items() if chance >= LEAST_SHARE}
    exact = {down: 100 * chance / sum(kept.values()) for down, chance in kept.items()}
    shares = {down: int(share) for down, share in exact.items()}
    for down in sorted(exact, key=lambda down: shares[down] - exact[down])[: 100 - sum(shares.values())]:
        shares[down] += 1
    return "+".join(f"{down}:{share}" for down, share in shares.items()) if len(shares) > 1 else next(iter(shares))


def take_given_kernel(pixels: NDArray[np.floating], factor: float, down: str) -> Recognised:
    """The same where it is given: one of ALIASING, or a mixture of kernels."""
    shares = read_mixture(down) or {KERNELS[down]: 1.0}
    chances = {name: shares.get(operator, 0.0) for name, operator in KERNELS.items()}
    assumed = KERNELS.get(down, down)
    return Recognised(assumed, chances, find_doubt(pixels, factor, assumed, chances))


def probabilities(found: Array, factor: float, compressed: bool) -> dict[str, float]:
    """Of each of KERNELS, from the features of a thumbnail."""
    mean, spread, layers = _network()
    values = np.clip((add_facts(found, factor, compressed) - mean) / spread, -FARTHEST, FARTHEST)
    for number, (weights, constants) in enumerate(layers):
        values = weights @ (np.maximum(values, 0) if number else values) + constants
    values[list(KERNELS).index(OPENCVS)] += -math.inf if factor == 2 or factor % 2 == 1 else math.log(RARER)
    chances = np.exp(values - values.max())
    return dict(zip(KERNELS, (chances / chances.sum()).tolist()))


FARTHEST = 4.0
"""Standard deviations by which a feature may differ from the mean of the training photographs before it is taken for less."""


def add_facts(found: Array, factor: float, compressed: bool) -> Array:
    """[N + 5]: features, and what is known of the thumbnail without looking at it."""
    return np.append(found, [factor >= 3, factor == 2, math.log(factor), compressed, factor != int(factor)])


@cache
def _network() -> tuple[Array, Array, list[tuple[Array, Array]]]:
    """(mean, spread) of its inputs, and its layers: (weights, constants)."""
    with resources.as_file(resources.files("leader.forensics.size") / "thumbnails.safetensors") as file:
        table = {name: values.astype(np.float64) for name, values in load_file(file).items()}
    layers = [(table[f"weights{number}"], table[f"constants{number}"]) for number in range((len(table) - 2) // 2)]
    return table["mean"], table["spread"], layers


def kernel_spread(pixels: NDArray[np.floating], factor: float, down: str) -> Array:
    """[6], by KERNELS: the variance of a kernel's thumbnail less what the operator `down` makes of the same picture.

    The picture is one with the power law of the thumbnail's coarse detail.
    """
    level, slope = power_law(find_plane(pixels)[0])
    side = round(GRID * factor)
    places = np.fft.fftfreq(side) * side / GRID  # cycles per pixel of the thumbnail
    radius = np.hypot(places[:, None], places[None]).clip(1 / GRID)
    spectrum = np.exp(level - slope * np.log(radius)) / GRID**2
    assumed = _responses(factor, down)
    made = (_responses(factor, name if name in ALIASING else operator) for name, operator in KERNELS.items())
    return np.array([float((np.abs(one - assumed) ** 2 * spectrum).sum((-2, -1)).mean()) for one in made])


@lru_cache(maxsize=64)
def _responses(factor: float, down: str) -> NDArray[np.complex128]:
    """[2, 2, side, side]: the frequency responses of neighbouring pixels of a thumbnail on a large grid."""
    kernel = PILLOW_DOWNSAMPLING[down].kernel if down in PILLOW_DOWNSAMPLING else down
    rows = pillow_matrix(round(GRID * factor), GRID, kernel).numpy()[GRID // 2 : GRID // 2 + 2]
    response = np.fft.fft(rows)
    product: NDArray[np.complex128] = response[:, None, :, None] * response[None, :, None, :]
    return product


def power_law(plane: Array) -> tuple[float, float]:
    """(level, slope): log power = level - slope log f, by least squares over the coarse bands."""
    if min(plane.shape) < SMALLEST_THUMBNAIL:
        return math.log(float(plane.var()) / 10 + ROUNDING), 2.5
    middles = np.repeat([math.log((low + high) / 2) for low, high in pairwise(BANDS)], 2)[:COARSE_BANDS]
    centres = middles + np.tile(FARTHER, COARSE_BANDS // 2)
    slope, level = np.polyfit(centres, np.log(band_powers(plane)[:COARSE_BANDS] + ROUNDING), 1)
    return float(level), float(np.clip(-slope, 1.5, 4.0))
