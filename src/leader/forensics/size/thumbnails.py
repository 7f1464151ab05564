"""Which kernel made a thumbnail, judged by the thumbnail alone, and what is assumed where that cannot be told.

A small network weighs what the thumbnail shows of the kernel (`kernel_features`), its factor and whether it is a JPEG;
benchmarks/thumbnails.py fits it (thumbnails.safetensors). It runs in float64, so that its answer is the same on every machine.
At factors such as 1.5 the alternation of lines is weighed too (`alternation`), which the compression of a JPEG takes away.

Kernels often cannot be told apart, and mistakes are not alike: a kernel taken for a softer one is ruined. So what is assumed is
not the likeliest kernel but the operator with the smallest expected loss in decibels (`kernel_risk`), one kernel's or a mean of
several (`leader.operators.pillow_resize.MixedSR`). The doubt is noise: by how much the thumbnail would differ had one of the
others made it, for a picture whose spectrum is the power law that fits the thumbnail's coarse detail. A part of it counts, as
white noise: it lies in fine detail, where the picture is weak, and all of it would cost the right kernel more than it saves a
wrong one.

Nearest neighbour takes a pixel that may lie beside the middle of its cell, and aliases; OpenCV's bilinear and bicubic
interpolation without antialiasing stay in the middle. At odd factors all three are the same.
"""

import math
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file

from leader.forensics.constants import read_constants
from leader.forensics.size.alternation import compare_alternations
from leader.forensics.size.kernel_features import BANDS, ROUNDING, band_powers, find_features, find_plane
from leader.forensics.size.kernel_risk import squared_differences, squared_errors
from leader.messages import Note, Remedy
from leader.operators.pillow_resize import read_mixture

Array = NDArray[np.float64]

KERNELS = {
    "nearest": "soft-nearest",
    "box": "box",
    "bilinear": "bilinear",
    "bicubic": "pillow-bicubic",
    "lanczos": "lanczos",
    "opencv-bilinear": "soft-centred",
    "opencv-bicubic": "soft-centred",
}
"""Pillow's kernels and OpenCV's without antialiasing, and the operators that serve their thumbnails, by the names of the option
`down`."""
NEAREST, OPENCVS = "nearest", ("opencv-bilinear", "opencv-bicubic")
ALIASING = (NEAREST, *OPENCVS)
"""Those that leave pixels out: taken literally, they would give a prior too little to start from."""
SOFT = tuple(KERNELS[name] for name in ALIASING)
"""What serves only those."""
LITERAL = 2
"""The largest factor at which OpenCV's bicubic kernel is taken literally: half of the pixels along an axis are enough."""
_CONSTANTS = read_constants("size.thumbnails")
COARSE_BANDS = _CONSTANTS.count("coarse_bands")
RARER, MUCH, COUNTED_NOISE = _CONSTANTS.numbers("rarer", "much", "counted_noise")
FARTHER = _CONSTANTS.series("farther")
SMALLEST_THUMBNAIL = _CONSTANTS.count("smallest_thumbnail")
SURE_OF_ALIASING, LEAST_SHARE = _CONSTANTS.numbers("sure_of_aliasing", "least_share")
COUNTED_PIXELS, OTHER_FACTOR = _CONSTANTS.numbers("counted_pixels", "other_factor")
COUNTED_DOUBT, COUNTED_ALIASING = _CONSTANTS.numbers("counted_doubt", "counted_aliasing")


@dataclass(frozen=True)
class Recognised:
    """How a thumbnail became small.

    down           the kernel, or the mean of several, as the option of super-resolution names it
    probabilities  of each of KERNELS
    doubt          standard deviation, for [0, 1] pixels, that white noise gains by what is not known of the kernel
    misread        the probability that it was made by a kernel with which this one costs much
    """

    down: str
    probabilities: dict[str, float]
    doubt: float
    misread: float = 0.0

    def words(self) -> str:
        """One sentence."""
        ranked = sorted(self.probabilities, key=lambda name: -self.probabilities[name])
        meant = [name for name in ranked if self.down in (name, KERNELS[name]) and self.probabilities[name] >= LEAST_SHARE]
        rivals = [name for name in ranked if self.probabilities[name] >= self.probabilities[ranked[0]] / 3]
        likely = ranked[:2] if rivals == [NEAREST] and not meant else rivals
        if set(likely) <= set(meant) or len(likely) == 1:
            named = meant or likely
            said = f"{' or '.join(named)} ({100 * sum(self.probabilities[name] for name in named):.0f} % likely)"
            if self.doubt == 0:
                return f"It is taken to have been made smaller by {said}."
            return f"It was made smaller by {said}; the doubt left counts as noise of {self.doubt:.2g}."
        served = next((name for name, down in KERNELS.items() if down == self.down), self.down)
        assumed = "their mean is assumed" if read_mixture(self.down) else f"{served} is assumed, which loses least"
        return Note(
            "kernel guessed",
            f"It was made smaller by {' or '.join(likely)} (it cannot be told which): {assumed}, and the difference counts as "
            f"noise of {self.doubt:.2g}.",
            Remedy("say how it was made smaller", {"down": None}),
        )


def recognise_kernel(pixels: NDArray[np.floating], factor: float, compressed: bool, noise: float | None = None) -> Recognised:
    """How a thumbnail, pixels [H, W, C] in [0, 1], became small, where it is to be enlarged by `factor`.

    noise  its standard deviation, None: not known
    """
    chances = kernel_chances(pixels, factor, compressed)
    return Recognised(KERNELS["bicubic"], chances, 0.0) if factor == 1 else assume_kernel(pixels, factor, chances, noise)


def kernel_chances(pixels: NDArray[np.floating], factor: float, compressed: bool) -> dict[str, float]:
    """The probability of each of KERNELS, even where the thumbnail is too small to tell; they sum to 1."""
    if min(pixels.shape[:2]) < SMALLEST_THUMBNAIL:
        possible = [name for name in KERNELS if name not in list_equal(factor)]
        return {name: (name in possible) / len(possible) for name in KERNELS}
    chances = probabilities(find_features(pixels, factor), factor, compressed)
    return chances if compressed or factor == int(factor) else weigh_alternation(chances, pixels, factor)


def list_equal(factor: float) -> tuple[str, ...]:
    """Those of OpenCV's kernels that are another of KERNELS at this factor: nearest neighbour, or box."""
    if factor % 2 == 1:
        return OPENCVS
    return OPENCVS[:1] if factor == 2 else ()


def weigh_alternation(
    chances: dict[str, float], pixels: NDArray[np.floating], factor: float, counted: float = COUNTED_PIXELS
) -> dict[str, float]:
    """The probabilities together with what the alternation of the thumbnail's lines tells."""
    plane, starts = find_plane(pixels)
    told = compare_alternations(plane, factor, (pixels.shape[0], pixels.shape[1]), starts, tuple(KERNELS))
    likely = np.logaddexp(counted * told + math.log(1 - OTHER_FACTOR), math.log(OTHER_FACTOR))
    joint = np.exp(likely - likely.max()) * list(chances.values())
    return dict(zip(KERNELS, (joint / joint.sum()).tolist()))


def assume_kernel(
    pixels: NDArray[np.floating], factor: float, chances: dict[str, float], noise: float | None = None
) -> Recognised:
    """The operator that costs least by these probabilities: one that serves a kernel, or a mean of them."""
    law = power_law(find_plane(pixels)[0])
    made = [name for name, chance in chances.items() if chance > 0]
    assumed = list_candidates(chances, factor)
    level = COUNTED_NOISE * max(noise or 0.0, math.sqrt(ROUNDING))
    errors = squared_errors(law, factor, level, made, list(dict.fromkeys([*assumed, *(KERNELS[name] for name in made)])))
    costs = np.array([chances[name] for name in made]) @ np.log(errors[:, : len(assumed)])
    chosen = int(costs.argmin())
    lost = 10 * np.log10(errors[:, chosen] / errors.min(1))
    misread = sum(chances[name] for name, loss in zip(made, lost) if loss > MUCH)
    return Recognised(assumed[chosen], chances, find_doubt(pixels, factor, assumed[chosen], chances), misread)


def list_candidates(chances: dict[str, float], factor: float) -> list[str]:
    """The operators that may be assumed: those of kernels that leave pixels out where that is proved, else those of the others,
    and the mean of all with and without the former.
    """
    served = operators_at(factor)
    possible = {name: chance for name, chance in chances.items() if chance > 0}
    smooth = {name: 0.0 if name in ALIASING else chance for name, chance in chances.items()}
    if sum(chances[name] for name in ALIASING) >= SURE_OF_ALIASING:
        return list(dict.fromkeys(served[name] for name in possible if name in ALIASING))
    means = [name_mixture(one, served) for one in (chances, smooth) if any(one.values())]
    return list(dict.fromkeys([*(served[name] for name in possible if served[name] not in SOFT), *means]))


def operators_at(factor: float) -> dict[str, str]:
    """KERNELS, and the operators that serve them at this factor.

    At even factors nearest neighbour lies beside the middle of its cell, on which side depends on the program, and cannot be
    told from OpenCV's kernels in the middle. Theirs serves it too: at factor 2 it is then about as good as a plain enlargement,
    while the other way round 5 dB are lost.
    """
    literal = {**KERNELS, "opencv-bicubic": "opencv-bicubic"} if factor <= LITERAL else KERNELS
    return {**literal, NEAREST: literal["opencv-bicubic"]} if factor % 2 == 0 else literal


def find_doubt(pixels: NDArray[np.floating], factor: float, down: str, chances: dict[str, float]) -> float:
    """The standard deviation that counts of what kernels of these probabilities differ by from the operator `down`.

    The picture is one with the power law of the thumbnail's coarse detail.
    """
    differences = squared_differences(power_law(find_plane(pixels)[0]), factor, list(chances), down)
    variance = float(np.array(list(chances.values())) @ differences)
    return (COUNTED_ALIASING if down in SOFT else COUNTED_DOUBT) * math.sqrt(variance)


def name_mixture(chances: dict[str, float], served: dict[str, str] = KERNELS) -> str:
    """The mean of kernels as the option `down` names it: shares in per cent, without those below LEAST_SHARE of all."""
    total = sum(chances.values())
    sums = {down: sum(chances[name] for name in served if served[name] == down) / total for down in served.values()}
    kept = {down: chance for down, chance in sums.items() if chance >= LEAST_SHARE}
    exact = {down: 100 * chance / sum(kept.values()) for down, chance in kept.items()}
    shares = {down: int(share) for down, share in exact.items()}
    for down in sorted(exact, key=lambda down: shares[down] - exact[down])[: 100 - sum(shares.values())]:
        shares[down] += 1
    return "+".join(f"{down}:{share}" for down, share in shares.items()) if len(shares) > 1 else next(iter(shares))


def take_given_kernel(pixels: NDArray[np.floating], factor: float, down: str) -> Recognised:
    """The same where it is given: one of ALIASING, or a mixture of kernels."""
    named = {operator: name for name, operator in reversed(KERNELS.items())}
    chances = dict.fromkeys(KERNELS, 0.0)
    for one, share in (read_mixture(down) or {down: 1.0}).items():
        chances[named.get(one, one)] += share
    literal = down == "opencv-bicubic" and factor <= LITERAL
    assumed = down if literal else KERNELS.get(down, down)
    return Recognised(assumed, chances, find_doubt(pixels, factor, assumed, chances))


def probabilities(found: NDArray[np.floating], factor: float, compressed: bool) -> dict[str, float]:
    """Of each of KERNELS, from the features of a thumbnail."""
    mean, spread, layers = _network()
    values = np.clip((add_facts(found, factor, compressed) - mean) / spread, -FARTHEST, FARTHEST)
    for number, (weights, constants) in enumerate(layers):
        values = weights @ (np.maximum(values, 0) if number else values) + constants
    for name in OPENCVS:
        values[list(KERNELS).index(name)] += -math.inf if name in list_equal(factor) else math.log(RARER)
    chances = np.exp(values - values.max())
    return dict(zip(KERNELS, (chances / chances.sum()).tolist()))


FARTHEST = 4.0
"""Standard deviations by which a feature may differ from the mean of the training photographs before it is taken for less."""


def add_facts(found: NDArray[np.floating], factor: float, compressed: bool) -> Array:
    """[N + 5]: features, and what is known of the thumbnail without looking at it."""
    return np.append(found, [factor >= 3, factor == 2, math.log(factor), compressed, factor != int(factor)])


@cache
def _network() -> tuple[Array, Array, list[tuple[Array, Array]]]:
    """(mean, spread) of its inputs, and its layers: (weights, constants)."""
    with resources.as_file(resources.files("leader.forensics.size") / "thumbnails.safetensors") as file:
        table = {name: values.astype(np.float64) for name, values in load_file(file).items()}
    layers = [(table[f"weights{number}"], table[f"constants{number}"]) for number in range((len(table) - 2) // 2)]
    return table["mean"], table["spread"], layers


def power_law(plane: Array) -> tuple[float, float]:
    """(level, slope): log power = level - slope log f, by least squares over the coarse bands."""
    if min(plane.shape) < SMALLEST_THUMBNAIL:
        return math.log(float(plane.var()) / 10 + ROUNDING), 2.5
    middles = np.repeat([math.log((low + high) / 2) for low, high in pairwise(BANDS)], 2)[:COARSE_BANDS]
    centres = middles + np.tile(FARTHER, COARSE_BANDS // 2)
    slope, level = np.polyfit(centres, np.log(band_powers(plane)[:COARSE_BANDS] + ROUNDING), 1)
    return float(level), float(np.clip(-slope, 1.5, 4.0))
