"""The evidence for kernels: how well each explains a picture's power spectrum, with the scene's own spectrum left free.

The power of a blurred photograph is S = |K|^2 C + N: C the scene's, whose logarithm is a combination of a few smooth
functions (level, slope, curvature, direction) with a prior fitted to photographs, N that of noise. A periodogram P has
the log-likelihood -(log S + P / S) at each frequency; it is tempered, since neighbouring frequencies and the phases of
edges are not independent. C and N are fitted to each kernel by Fisher scoring, all kernels at once, and integrated out
by Laplace's approximation.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leader.forensics.blur.periodogram import Array, basis_of
from leader.forensics.constants import read_constants

_CONSTANTS = read_constants("blur.evidence")
PRIOR_MEAN = np.array(_CONSTANTS.series("prior_mean"))
PRIOR_STD = np.array(_CONSTANTS.series("prior_std"))
NOISE_STD, TEMPER, LARGEST_MOVE = _CONSTANTS.numbers("noise_std", "temper", "largest_move")
SCORING_ROUNDS = _CONSTANTS.count("scoring_rounds")
ROWS = 64
"""Of a frame, taken together."""


@dataclass(frozen=True)
class Scene:
    """The power spectrum of a scene, for pixels in [0, 1]: exp(basis . weights)."""

    weights: Array

    def power(self, height: int, width: int) -> Array:
        """C [H, W] at all frequencies of a frame; that of the mean is taken from its neighbours."""
        fy, fx = np.fft.fftfreq(height)[:, None], np.fft.fftfreq(width)[None]
        power = np.empty((height, width))
        for first in range(0, height, ROWS):  # the basis of a whole frame may not fit into the memory
            rows = slice(first, first + ROWS)
            f = np.maximum(np.hypot(fy[rows], fx), 1 / max(height, width))
            power[rows] = np.exp(basis_of(f, np.arctan2(fy[rows], fx)) @ self.weights)
        return power


@dataclass(frozen=True)
class Fits:
    """Of M kernels: the log-evidence [M], and the weights [M, BASIS] of the scene that explains the picture best."""

    evidence: Array
    weights: Array

    def scene(self, index: int) -> Scene:
        return Scene(self.weights[index])


def fit(
    power: Array,
    transfers: NDArray[np.floating],
    basis: Array,
    noise: float,
    weight: Array,
    floor: Array,
    rounds: int,
) -> Fits:
    """Fits scene and noise behind each of M kernels.

    power      [n] the picture's, at the frequencies of a plane
    transfers  [M, n] |K|^2 of the kernels there, windowed
    basis      [n, BASIS]
    noise      power of white noise that is likely, a guess
    weight     [n] how far each frequency counts, 0 to 1
    floor      [n] power of the noise that is known to be there
    """
    seen = weight > 0
    count, size = len(transfers), basis.shape[1]
    P, phi, w, known = (values[seen].astype(np.float32) for values in (power, basis, TEMPER * weight, floor))
    K = np.ascontiguousarray(transfers[:, seen], dtype=np.float32)
    upper = np.triu_indices(size)
    pairs = phi[:, upper[0]] * phi[:, upper[1]]
    precision = np.concatenate([PRIOR_STD**-2.0, [NOISE_STD**-2.0]])
    mean = np.concatenate([PRIOR_MEAN, [math.log(noise)]])
    state = np.tile(mean, (count, 1))
    state[:, 0] += _level(P, K, phi)
    fisher = np.empty((count, size + 1, size + 1))
    for _ in range(rounds):
        scene, white = _parts(state, K, phi)
        S = scene + white + known
        pull = w * (1 - P / S) / S
        bend = w / S**2
        gradient = np.concatenate([(pull * scene) @ phi, (pull * white).sum(1, keepdims=True)], axis=1).astype(np.float64)
        both = bend * scene
        half = ((both * scene) @ pairs).astype(np.float64)
        fisher[:, upper[0], upper[1]] = half
        fisher[:, upper[1], upper[0]] = half
        fisher[:, :size, size] = fisher[:, size, :size] = (both * white) @ phi
        fisher[:, size, size] = (bend * white * white).sum(1)
        fisher[:, range(size + 1), range(size + 1)] += precision
        gradient += precision * (state - mean)
        move = -np.linalg.solve(fisher, gradient[..., None])[..., 0]
        state += move * np.minimum(1, LARGEST_MOVE / np.abs(move).max(1, keepdims=True))
    scene, white = _parts(state, K, phi)
    S = scene + white + known
    likelihood = -(w * (np.log(S) + P / S)).sum(1, dtype=np.float64)
    prior = -0.5 * (precision * (state - mean) ** 2).sum(1) + 0.5 * np.log(precision).sum()
    evidence = likelihood + prior - 0.5 * np.linalg.slogdet(fisher)[1]
    return Fits(evidence, state[:, :size])


def _level(P: NDArray[np.float32], K: NDArray[np.float32], phi: NDArray[np.float32]) -> Array:
    """By how much the level of C must differ from its prior mean so that the low frequencies agree."""
    low = phi[:, 1] > min(0.3, float(np.quantile(phi[:, 1], 0.8)))
    expected = K[:, low] @ np.exp(phi[low] @ PRIOR_MEAN)
    return np.log(max(float(P[low].sum()), 1e-12) / np.maximum(expected, 1e-12)).astype(np.float64)  # type: ignore[no-any-return]


def _parts(state: Array, K: NDArray[np.float32], phi: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """|K|^2 C [M, n] and N [M, 1]."""
    size = phi.shape[1]
    log = np.clip(state[:, :size].astype(np.float32) @ phi.T, -40, 20)
    return K * np.exp(log), np.exp(np.clip(state[:, size:], -40, 20)).astype(np.float32)
