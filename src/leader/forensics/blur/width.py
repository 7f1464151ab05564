"""Whether a given kernel is as wide as the blur of the picture: the evidence for it against rescaled ones.

A kernel that is too wide produces waves, one that is too narrow leaves some of the blur. If the shape is right, `evidence`
determines the width of a blur to a few per cent; a kernel that it refutes is made narrower. A kernel is never made wider: the
user is told that it is too narrow, and decides. If even half of the width is too much, the picture is sharp or was blurred by
something else, and nothing is undone. For the verdict, `judge_width` tests the kernel that was used likewise, and whether there
is any blur at all: undoing one that is not there turns noise into waves and doubles edges.

A wider kernel is known only up to a part of the frequencies, so widths are compared at those that all of them reach. Narrower
ones alone are compared at all frequencies, which says more, but not whether a wider one is better still: where a motion has
dark bands, a shorter one that has few explains more than one that has them at the wrong places.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from leader.forensics.blur.candidates import peak
from leader.forensics.blur.periodogram import Array, Plane, mix_neighbours
from leader.forensics.blur.search import SMALLEST_ERROR
from leader.forensics.blur.views import COARSE_TILE, FINE_TILE, View, view
from leader.forensics.constants import read_constants
from leader.forensics.noise.estimate import NoiseEstimate

_CONSTANTS = read_constants("blur.width")
LOG_WIDTH_STEP, REFUTED, KNOWN = _CONSTANTS.numbers("log_width_step", "refuted", "known")
LITTLE_LEFT = _CONSTANTS.series("little_left")
AS_LIKELY = _CONSTANTS.number("as_likely")
NARROWER = _CONSTANTS.series("narrower")
ABOUT_RIGHT = _CONSTANTS.series("about_right")
FACTORS = np.exp(LOG_WIDTH_STEP * np.arange(-12, 13))
"""Times the width that was given: 0.49 to 2.05."""
AT_MOST_GIVEN = FACTORS[FACTORS <= 1]


@dataclass(frozen=True)
class Refuted:
    """The width that explains a picture better than the given one.

    factor  that width over the given one; error: the standard deviation of its logarithm
    sharp   whether it is the smallest that was tried and almost no blur explains the picture as well
    """

    factor: float
    error: float
    sharp: bool = False


def find_better_width(luma: Array, kernel: Tensor, noise: NoiseEstimate) -> Refuted | None:
    """A clearly better width of kernel [kh, kw] for luma [H, W] in [0, 1]; None if there is none, or too little to see."""
    widths = evidence_by_width(luma, kernel, noise)
    found = evidence_by_width(luma, kernel, noise, np.concatenate([LITTLE_LEFT, AT_MOST_GIVEN]))
    if widths is None or found is None:
        return None
    best = int(widths.argmax())
    if FACTORS[best] > 1 and widths[best] >= REFUTED:
        place, error, _ = peak(np.log(FACTORS), widths)
        return Refuted(math.exp(place), max(error, SMALLEST_ERROR))
    less, ahead = found[: len(LITTLE_LEFT)], found[len(LITTLE_LEFT) :]
    best = int(ahead.argmax())
    if ahead[best] < REFUTED or widths[best] <= 0:  # one that is worse where all widths are known only hides a wider one
        return None
    place, error, _ = peak(np.log(AT_MOST_GIVEN), ahead)
    return Refuted(math.exp(place), max(error, SMALLEST_ERROR), best == 0 and float(less.max()) > float(ahead[0]) - AS_LIKELY)


def evidence_by_width(luma: Array, kernel: Tensor, noise: NoiseEstimate, factors: Array = FACTORS) -> Array | None:
    """The log-evidence for the kernel at each multiple of its width (1 is one of them), minus that at its own width, at the
    frequencies up to which all of them are known.
    """
    side = min(luma.shape)
    seen = view(luma, FINE_TILE if side >= FINE_TILE else COARSE_TILE, noise) if side >= COARSE_TILE else None
    if seen is None or not float(luma.var()) > 0:
        return None
    taps = kernel.detach().cpu().double().numpy()
    evidence = _evidence(seen, taps, factors)
    ahead: Array = evidence - evidence[np.argmin(np.abs(factors - 1))]
    return ahead


def narrow_kernel(kernel: Tensor, factor: float) -> Tensor:
    """Taps [n, n] of kernel [kh, kw] with all distances from its centre of mass times factor <= 1, sum 1, none negative.

    They follow from its Fourier transform at scaled frequencies; negative values beside sharp edges are cut off.
    """
    taps = kernel.detach().cpu().double().numpy()
    side = max(taps.shape) | 1
    found = np.fft.ifft2(_scaled(taps, factor, side)).real
    centred = np.roll(found, (side // 2, side // 2), axis=(0, 1)).clip(0)
    return torch.from_numpy(centred / centred.sum()).to(kernel.dtype)


@dataclass(frozen=True)
class Width:
    """The evidence of a picture on the width of its blur's kernel.

    odds   log of the evidence that the kernel is much too wide, over that for about its width; None for a compressed picture:
           what JPEG leaves of a spectrum fits many kernels
    sharp  log of the evidence that there is no blur at all, over that for about its width
    """

    odds: float | None
    sharp: float


def judge_width(luma: Array, kernel: Tensor, noise: NoiseEstimate) -> Width | None:
    """The evidence in luma [H, W] in [0, 1] on a kernel [kh, kw] of sum 1.

    None if there is too little to see.
    """
    if min(luma.shape) < COARSE_TILE or float(luma.var()) == 0:
        return None
    seen = view(luma, COARSE_TILE, noise)
    if seen is None:
        return None
    taps = kernel.detach().cpu().double().numpy()
    shares = np.array((*NARROWER, *ABOUT_RIGHT))
    evidence = seen.fits(_transfers(taps, shares, seen.at)).evidence
    shares = np.append(shares, FACTORS[len(AT_MOST_GIVEN) :])
    widths = _evidence(seen, taps, shares)
    if widths[shares > 1].max() >= widths[shares <= 1].max() + REFUTED:
        evidence = widths  # a kernel that is too narrow is not too wide as well
    right = float(evidence[len(NARROWER) :].max())
    return Width(
        None if noise.history is not None else float(evidence[: len(NARROWER)].max()) - right,
        float(evidence[NARROWER.index(0.0)]) - right,
    )


def _evidence(seen: View, taps: Array, factors: Array) -> Array:
    """The log-evidence [M] for taps at factors [M] of their width, at the frequencies up to which all of them are known."""
    across = seen.at.f * np.maximum(np.abs(np.sin(seen.at.theta)), np.abs(np.cos(seen.at.theta)))
    known = (factors.max() <= 1) | (across * factors.max() <= KNOWN)
    return replace(seen, weight=seen.weight * known).fits(_transfers(taps, factors, seen.at)).evidence


def _transfers(taps: Array, factors: Array, at: Plane) -> Array:
    """|K|^2 [M, n] of taps at factors [M] of their width, at the frequencies of a plane."""
    return np.stack([_transfer(taps, float(factor), at) for factor in factors])


def _transfer(taps: Array, factor: float, at: Plane) -> Array:
    """|K|^2 [n] of taps at factor times their width, at the frequencies of a plane, as tiles see it."""
    return mix_neighbours(np.abs(_scaled(taps, factor, at.side)[:, : at.side // 2 + 1]) ** 2)[at.use]


def _scaled(taps: Array, factor: float, side: int) -> NDArray[np.complex128]:
    """The transform of taps [kh, kw] drawn out by `factor` around their centre of mass, on a frame [side, side].

    A wider one is known up to the highest frequency of the given one, and has nothing beyond.
    """
    rows, columns = (np.arange(size) - (size - 1) // 2 for size in taps.shape)
    middle = [float((taps.sum(axis) * place).sum() / taps.sum()) for axis, place in ((1, rows), (0, columns))]
    frequency = np.fft.fftfreq(side)
    first = np.exp(-2j * np.pi * np.outer(frequency, middle[0] + factor * (rows - middle[0])))
    second = np.exp(-2j * np.pi * np.outer(frequency, middle[1] + factor * (columns - middle[1])))
    beyond = np.maximum(np.abs(frequency)[:, None], np.abs(frequency)[None]) * factor > 0.5
    values: NDArray[np.complex128] = np.where(beyond, 0, first @ (taps / taps.sum()) @ second.T)
    return values
