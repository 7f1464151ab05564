"""Pictures whose power spectrum is known exactly: Gaussian random fields, blurred circularly, with white noise."""

import numpy as np
import torch
from numpy.typing import NDArray

from leader.forensics.blur.evidence import PRIOR_MEAN, Scene
from leader.forensics.noise.estimate import NoiseEstimate
from leader.operators.blur import centre_kernel
from leader.pictures.picture import Picture

SCENE = Scene(PRIOR_MEAN)
NOISE = 0.002


def field(kernel: torch.Tensor | None = None, seed: int = 0, side: int = 256, noise: float = NOISE) -> NDArray[np.float64]:
    """[side, side] around 0.5: the scene of SCENE behind a kernel [kh, kw], with white noise."""
    generator = np.random.default_rng(seed)
    spectrum = np.fft.fft2(generator.standard_normal((side, side))) * np.sqrt(SCENE.power(side, side))
    spectrum[0, 0] = 0
    if kernel is not None:
        spectrum *= np.fft.fft2(centre_kernel(kernel[None, None], side, side)[0, 0].numpy())
    values: NDArray[np.float64] = 0.5 + np.fft.ifft2(spectrum).real + noise * generator.standard_normal((side, side))
    return values


def estimate(noise: float = NOISE) -> NoiseEstimate:
    """The noise of a grey field, as a picture's would be told: 0.669 of it are left in luma."""
    return NoiseEstimate(noise / 0.669, 0.0, 1e-6)


def picture(values: NDArray[np.float64]) -> Picture:
    """A field as a picture of 16 bits."""
    return Picture(values[..., None].astype(np.float32), None, 16)
