"""Noise that is not white in a Problem, which has one noise level: the measurement and the operator are whitened.

Blurs and denoising are diagonal in Fourier, where noise of a spectrum is too: `WhitenedBlur`. Noise that grows with brightness
is diagonal in pixels, and so is denoising: `WeightedPixels`. Inpainting has holes: nothing is whitened, the spectrum enters
the regularised inverse (`ColouredInpainting`). For other operators the noise counts as white with the same power: an enlarged
picture is measured at all of its frequencies.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from leader.forensics.noise.shot import ShotNoise
from leader.forensics.noise.spectrum import NoiseSpectrum
from leader.operators import Blur, ColouredInpainting, Denoising, Inpainting, LinearOperator, WeightedPixels, WhitenedBlur
from leader.pictures.picture import Floats

NoiseShape = NoiseSpectrum | ShotNoise


@dataclass(frozen=True)
class Coloured:
    """The noise of a run that was whitened, to be repeated.

    sigma  the noise level of the whitened measurement, for [0, 1] images
    shape  that of the picture, without what is uncertain of the operator by frequency
    """

    sigma: float
    shape: NoiseShape


def can_be_whitened(operator: LinearOperator, shape: NoiseShape | None = None) -> bool:
    """Whether noise of that shape (None: white, with a doubt by frequency) can be brought into the operator."""
    if isinstance(shape, ShotNoise):
        return isinstance(operator, Denoising)
    if type(operator) is Inpainting:
        return shape is not None and operator.mask.shape[0] == 1 and len(shape.table) in (1, operator.image_shape[0])
    colours = 1 if shape is None else len(shape.table)
    if colours not in (1, operator.image_shape[0]):
        return False
    return isinstance(operator, Denoising) or (type(operator) is Blur and operator.kernel.shape[0] == 1)


def whiten_operator(
    operator: LinearOperator, shape: NoiseShape, doubt_power: Tensor | None, pixels: Floats
) -> WhitenedBlur | WeightedPixels | ColouredInpainting:
    """The operator of whitened measurements.

    operator     one that `can_be_whitened`
    doubt_power  [1 or 3, H, W] >= 0 at the frequencies of the operator's frame, added to that of a spectrum
    pixels       [H, W, C] of the picture, whose brightness shot noise follows
    """
    if isinstance(shape, ShotNoise):
        noise = torch.from_numpy(shape.map(pixels).transpose(2, 0, 1).copy())
        return WeightedPixels(operator.image_shape, noise, operator.task)
    if isinstance(operator, Inpainting):
        return ColouredInpainting(operator.image_shape, operator.mask, torch.from_numpy(shape.on(*operator.image_shape[1:])))
    kernel = operator.kernel[0, 0] if isinstance(operator, Blur) else torch.ones(1, 1, dtype=torch.float64)
    power = torch.from_numpy(shape.on(*operator.image_shape[1:]))
    if doubt_power is not None:
        power = power + doubt_power.detach().to("cpu", torch.float64)
    return WhitenedBlur(operator.image_shape, kernel, power, operator.task, operator.rcond)
