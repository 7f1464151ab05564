"""What clipping at black and white leaves of noise, and where it moves a brightness to.

The moments of a normal variable that was clipped at one limit, by how many standard deviations its mean lies above the limit.
Each limit acts as if there were no other: up to noise of 0.4 that changes the variance by less than a hundredth.
"""

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_CENTRES = np.linspace(-5, 9, 2801)
_INSIDE = np.array([math.erfc(-centre / math.sqrt(2)) / 2 for centre in _CENTRES])
_DENSITY = np.exp(-(_CENTRES**2) / 2) / math.sqrt(2 * math.pi)
_MEANS = _CENTRES * _INSIDE + _DENSITY
_VARIANCES = (_CENTRES**2 + 1) * _INSIDE + _CENTRES * _DENSITY - _MEANS**2
STRONGEST, LEVELS = 3.0, 200
"""How many times what is left of it noise can have been, and how many levels are tried."""


def share_left(mean: Array, std: Array | float) -> Array:
    """Share of the variance of noise that is left where these are the means after it was clipped to [0, 1]."""
    left: Array = np.interp(mean / std, _MEANS, _VARIANCES) * np.interp((1 - mean) / std, _MEANS, _VARIANCES)
    return left


def unclip_mean(mean: Array, std: Array) -> Array:
    """The means before noise was clipped."""
    below, above = (np.interp(distance / std, _MEANS, _CENTRES - _MEANS) for distance in (mean, 1 - mean))
    return np.asarray(mean + std * (below - above))


def before_clipping(level: float, brightness: Array, shares: Array | None = None) -> float:
    """The noise level that, clipped to [0, 1] at these mean brightnesses, leaves `level`; `shares` weigh them."""
    counts, edges = np.histogram(brightness, bins=50, range=(0, 1), weights=shares)
    if level == 0 or not counts.any():
        return level  # nothing in range that could have been clipped
    tried = level * np.geomspace(1, STRONGEST, LEVELS)
    left = share_left((edges[1:] + edges[:-1]) / 2, tried[:, None]) @ (counts / counts.sum())
    return float(np.interp(level, tried * np.sqrt(left), tried))
