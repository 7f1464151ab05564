"""Whether a kernel that somebody gives is as wide as the blur of the picture: the evidence for it against rescaled ones.

A kernel that is too wide ends in waves, one that is too narrow leaves some of the blur. The evidence of `evidence` knows the
width of a blur to a few per cent where the shape is right, so it is asked; a kernel that is refuted is made narrower. Wider
than it was given a kernel never becomes: that is said, and left to whoever gave it. Where even half of the width is too much
the picture is sharp, or was blurred by something else, and nothing is undone. `width_of` asks the same of the kernel that is
used, for the verdict, and whether there is any blur at all: undoing one that is not there makes waves out of noise and doubles
edges.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from leader.forensics.blur.candidates import peak
from leader.forensics.blur.periodogram import Array, Plane, windowed
from leader.forensics.blur.search import SMALLEST_ERROR
from leader.forensics.blur.views import COARSE, FINE, view
from leader.forensics.noise.estimate import NoiseEstimate

STEP = 0.06
FACTORS = np.exp(STEP * np.arange(-12, 9))
"""Times the width that was given: 0.49 to 1.62."""
REFUTED = 3.0
"""Log-evidence by which another width must be ahead: 20 times as likely. No right kernel of 13 development photographs, three
blurs from PNG, JPEG 92 and JPEG 75, reached 2.2 (`benchmarks/kernel_width.py`).
"""
LESS = (0.0, 0.25, 0.37)
"""Times its width at which hardly anything is left of a kernel; 0 is no blur at all."""
AS_LIKELY = 4.0
"""Log-evidence by which the least of FACTORS may be ahead of all of LESS in a sharp picture: with Gaussians and lines given for
44 sharp parts of development photographs the least of FACTORS was the best in 39, and with Gaussians on 51 it was ahead by up
to 3.8; in 132 blurred ones, with kernels of 0.75 to 1.6 times the true width, it was the best in one, in 25 behind JPEG whose
steps were found in none, but in 8 of 19 whose steps were not.
"""
NARROWER = (0.0, 0.4, 0.5, 0.6, 0.7)
"""Times its width at which a kernel was much too wide; 0 is no blur at all."""
NEARLY = (0.85, 0.92, 1.0, 1.08, 1.18)
"""Those at which it was right: whoever measures a blur is wrong by some per cent."""


@dataclass(frozen=True)
class Refuted:
    """The width that explains a picture better than the one that was given.

    factor  that width over the given one; error: the standard deviation of its logarithm
    sharp   whether it is the least that was tried, and hardly any blur explains the picture as well
    """

    factor: float
    error: float
    sharp: bool = False


def refuted(luma: Array, kernel: Tensor, noise: NoiseEstimate) -> Refuted | None:
    """A clearly better width of kernel [kh, kw] for luma [H, W] in [0, 1]; None where there is none, or too little to see."""
    found = evidence_by_width(luma, kernel, noise, np.concatenate([LESS, FACTORS]))
    if found is None or float(found[len(LESS) :].max()) < REFUTED:
        return None
    less, ahead = found[: len(LESS)], found[len(LESS) :]
    place, error, _ = peak(np.log(FACTORS), ahead)
    sharp = int(ahead.argmax()) == 0 and float(less.max()) > float(ahead[0]) - AS_LIKELY
    return Refuted(math.exp(place), max(error, SMALLEST_ERROR), sharp)


def evidence_by_width(luma: Array, kernel: Tensor, noise: NoiseEstimate, factors: Array = FACTORS) -> Array | None:
    """The log-evidence for kernel at each of so many times its width, over that at its own, which is one of them."""
    side = min(luma.shape)
    seen = view(luma, FINE if side >= FINE else COARSE, noise) if side >= COARSE else None
    if seen is None or not float(luma.var()) > 0:
        return None
    taps = kernel.detach().cpu().double().numpy()
    evidence = seen.fits(np.stack([_transfer(taps, float(factor), seen.at) for factor in factors])).evidence
    ahead: Array = evidence - evidence[np.argmin(np.abs(factors - 1))]
    return ahead


def narrowed(kernel: Tensor, factor: float) -> Tensor:
    """Taps [n, n] of kernel [kh, kw] with all distances from its centre of mass times factor <= 1, sum 1, none negative.

    They are those of its Fourier transform at scaled frequencies; what that leaves negative beside sharp edges is cut.
    """
    taps = kernel.detach().cpu().double().numpy()
    side = max(taps.shape) | 1
    found = np.fft.ifft2(_scaled(taps, factor, side)).real
    centred = np.roll(found, (side // 2, side // 2), axis=(0, 1)).clip(0)
    return torch.from_numpy(centred / centred.sum()).to(kernel.dtype)


@dataclass(frozen=True)
class Width:
    """What a picture says of the width of its blur's kernel.

    odds   log of the evidence that the kernel is much too wide, over that for about its width; None of a compressed picture:
           what JPEG leaves of a spectrum suits many a kernel
    due    root mean square, for [0, 1] images, of what undoing the likeliest of the narrower blurs, and the noise, would change
    sharp  log of the evidence that there is no blur at all, over that for about its width
    """

    odds: float | None
    due: float
    sharp: float


def width_of(luma: Array, kernel: Tensor, noise: NoiseEstimate) -> Width | None:
    """The evidence in luma [H, W] in [0, 1] on a kernel [kh, kw] of sum 1.

    None where there is too little to see.
    """
    if min(luma.shape) < COARSE or float(luma.var()) == 0:
        return None
    seen = view(luma, COARSE, noise)
    if seen is None:
        return None
    taps = kernel.detach().cpu().double().numpy()
    shares = (*NARROWER, *NEARLY)
    fits = seen.fits(np.stack([_transfer(taps, share, seen.at) for share in shares]))
    best = int(fits.evidence[: len(NARROWER)].argmax())
    left: Array = np.abs(1 - _scaled(taps, shares[best], COARSE)) ** 2 * fits.scene(best).power(COARSE, COARSE)
    right = float(fits.evidence[len(NARROWER) :].max())
    return Width(
        None if noise.history is not None else float(fits.evidence[best]) - right,
        math.hypot(math.sqrt(float(left.reshape(-1)[1:].mean())), noise.white),
        float(fits.evidence[NARROWER.index(0.0)]) - right,
    )


def _transfer(taps: Array, factor: float, at: Plane) -> Array:
    """|K|^2 [n] of taps at factor times their width, at the frequencies of a plane, as tiles see it."""
    return windowed(np.abs(_scaled(taps, factor, at.side)) ** 2)[:, : at.side // 2 + 1][at.use]


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
