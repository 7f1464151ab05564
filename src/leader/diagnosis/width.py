"""Is the kernel that somebody gave much wider than the blur in the picture? The evidence for narrower ones, beside its own.

Undoing a kernel that is too wide makes waves out of noise and doubles edges: nothing ruins a picture more often. A blur leaves
its width in the spectrum, so that K(s f) for s well below 1 explains a picture better that was blurred less than was said.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from leader.diagnosis.periodogram import Array, Plane, windowed
from leader.diagnosis.views import COARSE, view
from leader.pictures.real_noise import NoiseEstimate

NARROWER = (0.0, 0.4, 0.5, 0.6, 0.7)
"""Shares of its width at which a kernel was much too wide; 0 is no blur at all."""
NEARLY = (0.85, 0.92, 1.0, 1.08, 1.18)
"""Those at which it was right: whoever measures a blur is wrong by some per cent."""


@dataclass(frozen=True)
class Width:
    """What a picture says of the width of its blur's kernel.

    odds  log of the evidence that the kernel is much too wide, over that for about its width
    due   root mean square, for [0, 1] images, of what undoing the likeliest of the narrower blurs, and the noise, would change
    """

    odds: float
    due: float


def width_of(luma: Array, kernel: Tensor, noise: NoiseEstimate) -> Width | None:
    """The evidence in luma [H, W] in [0, 1] on a kernel [kh, kw] of sum 1.

    None where there is too little to see, and of compressed pictures: what JPEG leaves of a spectrum suits many a kernel.
    """
    if noise.history is not None or min(luma.shape) < COARSE or float(luma.var()) == 0:
        return None
    seen = view(luma, COARSE, noise)
    if seen is None:
        return None
    taps = kernel.detach().cpu().double().numpy()
    shares = (*NARROWER, *NEARLY)
    fits = seen.fits(np.stack([_power(_narrowed(taps, share, COARSE), seen.at) for share in shares]))
    best = int(fits.evidence[: len(NARROWER)].argmax())
    left: Array = np.abs(1 - _narrowed(taps, shares[best], COARSE)) ** 2 * fits.scene(best).power(COARSE, COARSE)
    return Width(
        float(fits.evidence[best] - fits.evidence[len(NARROWER) :].max()),
        math.hypot(math.sqrt(float(left.reshape(-1)[1:].mean())), noise.white),
    )


def _narrowed(taps: Array, share: float, side: int) -> NDArray[np.complex128]:
    """K(share f) [T, T] at the frequencies of tiles: the transform of a kernel at that share of its width."""
    frequencies = share * np.fft.fftfreq(side)
    rows, columns = (np.exp(-2j * np.pi * np.outer(frequencies, np.arange(size) - (size - 1) // 2)) for size in taps.shape)
    transform: NDArray[np.complex128] = (rows @ taps @ columns.T).astype(np.complex128)
    return transform


def _power(transform: NDArray[np.complex128], at: Plane) -> Array:
    """|K|^2 [n] at the frequencies of a plane, as tiles see it."""
    return windowed(np.abs(transform) ** 2)[:, : at.side // 2 + 1][at.use]
