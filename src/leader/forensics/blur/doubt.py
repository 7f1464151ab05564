"""The uncertainty of a kernel, expressed as noise: the difference that a slightly different kernel would have made.

A kernel whose coordinates are uncertain by a relative error e is K(s f), log(s) of mean 0 and deviation e, and turned by
angles of e radians. The expected power of the difference, E |K(s f) - K(f)|^2 C(f), is added to the noise at each frequency:
for small e that is |dK/dw|^2 var(w) C(f) for any measure w of the width. One kernel in ten is assumed to be wrong by more,
which costs the others little: a kernel that passes nothing at a frequency has nothing to lose there.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from leader.forensics.blur.evidence import PRIOR_MEAN, Scene
from leader.forensics.blur.periodogram import Array
from leader.forensics.blur.shapes import transfer_of
from leader.forensics.blur.views import COARSE_TILE, FINE_TILE, view
from leader.forensics.constants import read_constants
from leader.forensics.noise.estimate import NoiseEstimate

NODES, SHARES = np.polynomial.hermite_e.hermegauss(5)
SHARES = SHARES / SHARES.sum()
_CONSTANTS = read_constants("blur.doubt")
TAIL, TAIL_SHARE, WIDEST_ERROR = _CONSTANTS.numbers("tail", "tail_share", "widest_error")


def doubt_power(kernel: Tensor, scene: Scene, error: float, frame: tuple[int, int]) -> Tensor:
    """[1, H, W] float64: the noise power of an uncertain kernel on a frame (H, W), for [0, 1] images.

    kernel  [kh, kw], sum 1
    error   usual deviation of the logarithm of its width, and of its angle in radians
    """
    taps = kernel.numpy()
    assumed = _at(taps, frame, 1.0)
    spread = np.zeros(assumed.shape)
    turned = np.abs(_turned(taps, frame)) ** 2
    for weight, deviation in ((1 - TAIL_SHARE, error), (TAIL_SHARE, max(error, min(TAIL * error, WIDEST_ERROR)))):
        for node, share in zip(NODES, SHARES, strict=True):
            spread += weight * share * np.abs(_at(taps, frame, float(np.exp(deviation * node))) - assumed) ** 2
        spread += weight * deviation**2 * turned
    return torch.from_numpy(_even(_whole(spread, frame) * scene.power(*frame)))[None]


def _even(power: Array) -> Array:
    """[H, W] made the same at f and -f: at half a cycle a pixel, its own opposite, a slanted scene has two values."""
    return (power + np.roll(power[::-1, ::-1], 1, axis=(0, 1))) / 2


def _whole(half: Array, frame: tuple[int, int]) -> Array:
    """[H, W] from the half [H, W / 2 + 1] of something that is the same at f and -f."""
    opposite = np.roll(half[::-1], 1, axis=0)
    return np.concatenate([half, opposite[:, 1 : (frame[1] + 1) // 2][:, ::-1]], axis=1)


def _at(taps: Array, frame: tuple[int, int], scale: float) -> NDArray[np.complex128]:
    """The kernel's transform K(scale f) at half of the frequencies of a frame, [H, W / 2 + 1]."""
    rows, columns = _waves(taps, frame, scale)
    values: NDArray[np.complex128] = rows @ taps @ columns.T
    return values


def _turned(taps: Array, frame: tuple[int, int]) -> NDArray[np.complex128]:
    """dK / d angle, in radians, at the same frequencies."""
    rows, columns = _waves(taps, frame, 1.0)
    down, across = (np.arange(size) - (size - 1) // 2 for size in taps.shape)
    fy, fx = np.fft.fftfreq(frame[0])[:, None], np.fft.rfftfreq(frame[1])[None]
    moved = fy * (rows @ (taps * across) @ columns.T) - fx * (rows @ (taps * down[:, None]) @ columns.T)
    derivative: NDArray[np.complex128] = -2j * np.pi * moved
    return derivative


def _waves(taps: Array, frame: tuple[int, int], scale: float) -> tuple[NDArray[np.complex128], NDArray[np.complex128]]:
    """exp(-2 pi i scale f x), rows [H, kh] and columns [W / 2 + 1, kw], at frequencies of a frame and places of taps."""
    down, across = (np.arange(size) - (size - 1) // 2 for size in taps.shape)
    rows = np.exp(-2j * np.pi * scale * np.outer(np.fft.fftfreq(frame[0]), down))
    columns = np.exp(-2j * np.pi * scale * np.outer(np.fft.rfftfreq(frame[1]), across))
    return rows, columns


def scene_behind(luma: Array, kernel: Tensor, noise: NoiseEstimate) -> Scene:
    """The power spectrum of what lies behind a blur of known kernel; luma [H, W] in [0, 1].

    A picture too small for tiles gets the average spectrum of photographs, with its own variance.
    """
    side = min(luma.shape)
    seen = view(luma, FINE_TILE if side >= FINE_TILE else COARSE_TILE, noise) if side >= COARSE_TILE else None
    if seen is not None and float(luma.var()) > 0:
        return seen.fits(transfer_of(kernel, seen.at)[None]).scene(0)
    usual = Scene(PRIOR_MEAN)
    frame = (luma.shape[0], luma.shape[1])
    left = _whole(np.abs(_at(kernel.numpy(), frame, 1.0)) ** 2, frame) * usual.power(*frame)
    level = np.log(max(float(luma.var()), 1e-9) / left.reshape(-1)[1:].mean())
    return Scene(PRIOR_MEAN + level * np.eye(len(PRIOR_MEAN))[0])
