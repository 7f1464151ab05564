"""Noise that is not white: its power by frequency and by opponent colour, as a small table."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leader.errors import LeaderError

Array = NDArray[np.float64]

MOST_NODES = 64
_FINE = 64
COLOURLESS = 10
"""How many times the power of the colour axes that of grey has in noise that is called colourless."""


@dataclass(frozen=True, eq=False)
class NoiseSpectrum:
    """Noise power of [0, 1] pixels, per pixel: white noise of sigma has sigma^2 everywhere.

    table  [K, n, n] > 0: rows by vertical, columns by horizontal frequency, n nodes from 0 to half a cycle a pixel (n = 1: the
           same everywhere); K = 1 for all channels alike, 3 along the rows of `leader.operators.OPPONENT`
    """

    table: Array

    def __post_init__(self) -> None:
        table = np.asarray(self.table, dtype=np.float64)
        if table.ndim != 3 or table.shape[0] not in (1, 3) or table.shape[1] != table.shape[2] or table.shape[1] > MOST_NODES:
            raise LeaderError(f"A noise spectrum is a table [1 or 3, n, n], n at most {MOST_NODES}; found {list(table.shape)}.")
        if not (np.isfinite(table).all() and table.min(initial=1) > 0 and table.size):
            raise LeaderError("The powers of a noise spectrum must be finite and above 0.")
        object.__setattr__(self, "table", table)

    @classmethod
    def white(cls, sigma: float) -> NoiseSpectrum:
        """White noise of standard deviation sigma > 0."""
        return cls(np.full((1, 1, 1), sigma**2))

    def on(self, height: int, width: int) -> Array:
        """The power [K, H, W] at the frequencies of an FFT of height x width; logarithms are interpolated."""
        rows, columns = (self._weights(np.abs(np.fft.fftfreq(side))) for side in (height, width))
        power: Array = np.exp(np.einsum("hn,knm,wm->khw", rows, np.log(self.table), columns, optimize=True))
        return power

    @property
    def level(self) -> float:
        """The standard deviation of a pixel, channels and frequencies together."""
        return math.sqrt(float(self.on(_FINE, _FINE).mean()))

    @property
    def without_colour(self) -> bool:
        """Whether nearly all of it is the same in every channel."""
        return len(self.table) == 3 and float(self.table[0].mean()) > COLOURLESS * float(self.table[1:].mean())

    def raised(self, sigma: float) -> NoiseSpectrum:
        """With white noise of standard deviation sigma added."""
        return self if sigma == 0 else NoiseSpectrum(self.table + sigma**2)

    def words(self) -> str:
        """What is found, without a full stop."""
        low, high = (math.sqrt(float(bound)) for bound in (self.table.min(), self.table.max()))
        return f"The noise is not white: from {low:.2g} to {high:.2g}, by frequency and colour"

    def _weights(self, frequency: Array) -> Array:
        """[N, n] that interpolate between nodes at these frequencies, cycles a pixel."""
        nodes = self.table.shape[1]
        place = frequency * 2 * (nodes - 1)
        weights: Array = np.maximum(0.0, 1 - np.abs(place[:, None] - np.arange(nodes)))
        return weights
