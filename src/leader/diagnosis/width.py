"""Is the kernel that somebody gave much wider than the blur in the picture? The evidence for narrower ones, beside its own.

Undoing a kernel that is too wide makes waves out of noise and doubles edges: nothing ruins a picture more often. A blur leaves
its width in the spectrum, so that K(s f) for s well below 1 explains a picture better that was blurred less than was said.
"""

from __future__ import annotations

import numpy as np
from torch import Tensor

from leader.diagnosis.periodogram import Array, Plane, windowed
from leader.diagnosis.views import COARSE, view
from leader.pictures.real_noise import NoiseEstimate

NARROWER = (0.0, 0.4, 0.5, 0.6, 0.7)
"""Shares of its width at which a kernel was much too wide; 0 is no blur at all."""
NEARLY = (0.85, 0.92, 1.0, 1.08, 1.18)
"""Those at which it was right: whoever measures a blur is wrong by some per cent."""


def too_wide(luma: Array, kernel: Tensor, noise: NoiseEstimate) -> float | None:
    """Log of the evidence that a kernel is much too wide, over that for about its width; luma [H, W] in [0, 1].

    kernel  [kh, kw], sum 1
    None where the picture is too small or compression left too little to see.
    """
    seen = view(luma, COARSE, noise) if min(luma.shape) >= COARSE and float(luma.var()) > 0 else None
    if seen is None:
        return None
    taps = kernel.detach().cpu().double().numpy()
    evidence = seen.fits(np.stack([_narrowed(taps, share, seen.at) for share in (*NARROWER, *NEARLY)])).evidence
    return float(evidence[: len(NARROWER)].max() - evidence[len(NARROWER) :].max())


def _narrowed(taps: Array, share: float, at: Plane) -> Array:
    """|K(share f)|^2 [n] at the frequencies of a plane, as tiles see it: the kernel at that share of its width."""
    frequencies = share * np.fft.fftfreq(at.side)
    rows, columns = (np.exp(-2j * np.pi * np.outer(frequencies, np.arange(size) - (size - 1) // 2)) for size in taps.shape)
    return windowed(np.abs(rows @ taps @ columns.T) ** 2)[:, : at.side // 2 + 1][at.use]
