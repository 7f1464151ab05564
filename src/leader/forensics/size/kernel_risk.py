"""What it costs to assume one kernel where a thumbnail was made by another.

For a picture that is a Gaussian field with the power law of the thumbnail everything has a closed form: the best linear
estimate of its pixels from the thumbnail's under the operator that is assumed, and the error of that estimate under the kernel
that made it. A kernel assumed too soft amplifies detail that is there already and may ruin the picture, one assumed too sharp
only leaves it a little soft; how much depends on the factor, on the noise, and on how much detail the picture has.
"""

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from leader.operators.pillow_resize import PILLOW_DOWNSAMPLING, pillow_matrix

Array = NDArray[np.float64]
Complexes = NDArray[np.complex128]

SEEN = 6
"""Pixels of the thumbnail, along each side, from which those in their middle are estimated."""
PERIOD = 12
"""Pixels of the thumbnail after which the field repeats itself."""


def squared_errors(law: tuple[float, float], factor: float, noise: float, made: Sequence[str], assumed: Sequence[str]) -> Array:
    """[made, assumed]: mean squared errors of the pixels of a picture, estimated from its thumbnail by one kernel as if it were
    by another; mixtures of kernels too.

    law    (level, slope) of the thumbnail's power, for frequencies in cycles per pixel of it: log power = level - slope log f
    noise  standard deviation of the thumbnail's noise, of [0, 1] pixels
    """
    factor = _counted(factor)
    power = _power(law, factor)
    sought = _waves_of_pixels(factor)
    coloured = sought.conj() * power
    variance = float((coloured * sought).real.sum())

    def covariances(kernel: str) -> tuple[Array, Array]:
        """[pixels, SEEN^2] of the picture with its thumbnail, and [SEEN^2, SEEN^2] of the thumbnail."""
        seen = _waves_seen(factor, kernel)
        return (coloured @ seen.T).real, ((seen * power) @ seen.conj().T).real + noise**2 * np.eye(len(seen))

    estimates = [np.linalg.solve(spread, shared.T).T for shared, spread in map(covariances, assumed)]
    errors = [
        [variance - 2 * (one * shared).sum() + ((one @ spread) * one).sum() for one in estimates]
        for shared, spread in map(covariances, made)
    ]
    return np.array(errors) / len(sought)


def squared_differences(law: tuple[float, float], factor: float, made: Sequence[str], assumed: str) -> Array:
    """[made]: mean squared differences of the thumbnails that a kernel and the one that is assumed make of such a field."""
    power = _power(law, _counted(factor))
    expected = _waves_seen(_counted(factor), assumed)
    return np.array([(np.abs(_waves_seen(_counted(factor), kernel) - expected) ** 2 @ power).mean() for kernel in made])


def _counted(factor: float) -> float:
    """The factor itself, or one like it beyond which nothing changes."""
    return min(factor, 5 if factor % 2 == 1 else 6)


def _power(law: tuple[float, float], factor: float) -> Array:
    """[side^2]: the share of every frequency in the variance of the field's pixels."""
    side = _side(factor)
    places = np.fft.fftfreq(side) * side / PERIOD  # in cycles per pixel of the thumbnail
    distances = np.hypot(places[:, None], places[None]).clip(1 / PERIOD).reshape(-1)
    level, slope = law
    found: Array = np.exp(level - slope * np.log(distances)) / PERIOD**2
    return found


def _side(factor: float) -> int:
    """Pixels of the field along each side."""
    return round(PERIOD * factor)


@lru_cache(maxsize=8)
def _waves_of_pixels(factor: float) -> Complexes:
    """[pixels, side^2]: what every frequency of the field adds to the pixels of two by two cells in its middle."""
    first = round(PERIOD // 2 * factor)
    return _outer(np.fft.fft(np.eye(_side(factor))[first : first + math.ceil(2 * factor)]))


@lru_cache(maxsize=32)
def _waves_seen(factor: float, down: str) -> Complexes:
    """[SEEN^2, side^2]: the same for pixels of the thumbnail by this kernel."""
    kernel = PILLOW_DOWNSAMPLING[down].kernel if down in PILLOW_DOWNSAMPLING else down
    first = PERIOD // 2 + 1 - SEEN // 2
    return _outer(np.fft.fft(pillow_matrix(_side(factor), PERIOD, kernel).numpy()[first : first + SEEN]))


def _outer(along: Complexes) -> Complexes:
    found: Complexes = (along[:, None, :, None] * along[None, :, None, :]).reshape(len(along) ** 2, -1)
    return found
