"""A circular blur with a whitened measurement: coloured noise, for methods with a single noise level.

Noise whose power depends on frequency and on colour is diagonal in Fourier and along three opponent axes, and so is the
blur: with W = reference / (standard deviation of the noise there), the whitened measurement y_w = W y has the operator
A = W blur and white noise of standard deviation `reference`. Its SVD is known: singular values |K(f)| w_k(f), V the
orthonormal FFT of the opponent colours, the phase of K in U.

Only ratios of noise to singular values enter the steps of the methods, so any reference gives the same run; it only determines
presets and paths, which are looked up by noise level. It is therefore the level that a person would quote: the geometric mean
of the standard deviation over the frequencies that the blur passes, weighted by |K|^2. For white noise that is sigma itself; it
moves by no more than the share of noisier or cleaner frequencies (a mean of W^2 = 1 would follow the few cleanest frequencies
down to clean presets, W <= 1 all the way), and ignores what the blur has removed anyway.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from leader import transforms
from leader.errors import LeaderError
from leader.operators.base import LinearOperator
from leader.operators.blur import Blur
from leader.operators.caches import CastCache
from leader.operators.pointwise import Denoising, WeightedPixels

OPPONENT = torch.tensor(transforms.OPPONENT)
"""[3, 3] orthonormal: rows are grey, red against blue, and magenta against green."""


class WhitenedBlur(Blur):
    """W after a circular blur; y [B, C, H, W] is a measurement of that blur to which `whiten` was applied.

    kernel     [kh, kw], made to sum to 1; the delta [[1]] for denoising
    power      [K, H, W] float64 > 0, the same at f and -f: the noise power of the blurred image at each frequency of its
               orthonormal FFT, for [0, 1] images (white noise of sigma has sigma^2 everywhere); K = 1 for channels alike, 3
               along the rows of OPPONENT
    task       its name in presets: "deblur" and its variants, or "denoise"
    rcond      frequencies at which the blur's gain is below rcond * largest are not inverted, however clean; all others are,
               however noisy
    reference  the noise level of whitened measurements, for [0, 1] images; None: chosen as above

    >>> WhitenedBlur((1, 4, 4), torch.ones(1, 1), torch.full((1, 4, 4), 0.25)).whiten(torch.ones(1, 1, 4, 4)).max()
    tensor(1.)
    """

    def __init__(
        self,
        image_shape: tuple[int, int, int],
        kernel: Tensor,
        power: Tensor,
        task: str = "deblur",
        rcond: float = 1e-3,
        reference: float | None = None,
    ) -> None:
        if torch.as_tensor(kernel).ndim != 2:
            raise LeaderError(f"A whitened blur takes one kernel [kh, kw]; found {list(torch.as_tensor(kernel).shape)}.")
        super().__init__(image_shape, kernel, rcond)
        self._range: tuple[Tensor, Tensor] | None = None
        self.task = task
        checked = check_power(power, self.image_shape)
        self.reference = _reference(self.spectrum, checked) if reference is None else reference
        if not (math.isfinite(self.reference) and self.reference > 0):
            raise LeaderError(f"The reference of a whitened blur must be a noise level above 0; found {self.reference}.")
        gain = self.reference / checked[..., : self.spectrum.shape[-1]].sqrt()[None]
        if self.halved:
            gain = gain.float()
        self.spectrum, self.s = self.spectrum * gain, self.s * gain
        self._norm = float(self.spectrum.max())
        self._rotation = CastCache(OPPONENT) if len(checked) == 3 else None
        self._whitening = CastCache(gain[..., : self._half].clone())  # a view would keep the whole alive
        self._keep_gains()

    @property
    def power(self) -> Tensor:
        """[K, H, W / 2 + 1], the noise power at half of the frequencies; the other half mirrors it."""
        return (self.reference / self._whitening.constant[0]).square()

    def whiten(self, y: Tensor) -> Tensor:
        """W y for an ordinary measurement y [B, C, H, W] of the blur."""
        self.check_image(y)
        return self._filtered(y, self._whitening.like(y))

    def to(self, x: Tensor) -> Tensor:
        return super().to(self._rotate_channels(x))

    def back(self, c: Tensor) -> Tensor:
        return self._rotate_back(super().back(c))

    def data(self, y: Tensor) -> Tensor:
        return super().data(self._rotate_channels(y))

    def unit_range(self) -> tuple[Tensor, Tensor]:
        """The sums of the negative and of the positive weights of every channel, from the answers to single pixels."""
        if self._range is None:
            self._range = self._compute_range()
        return self._range

    def _compute_range(self) -> tuple[Tensor, Tensor]:
        channels, height, width = self.image_shape
        low, high = torch.zeros(2, 1, channels, 1, 1, dtype=torch.float64)
        for channel in range(channels):  # one by one, to save memory on a large frame
            point = torch.zeros(1, channels, height, width, dtype=torch.float32 if self.halved else torch.float64)
            point[0, channel, 0, 0] = 1
            answer = self.A(point)
            low += answer.clamp_max(0).sum((2, 3), keepdim=True, dtype=torch.float64)
            high += answer.clamp_min(0).sum((2, 3), keepdim=True, dtype=torch.float64)
        return low, high

    def select(self, keep: Tensor) -> WhitenedBlur:
        return self

    def _filtered(self, x: Tensor, gain: Tensor) -> Tensor:
        return self._rotate_back(super()._filtered(self._rotate_channels(x), gain))

    def _rotate_channels(self, x: Tensor) -> Tensor:
        """x [B, C, H, W] along the axes of the power."""
        return x if self._rotation is None else torch.einsum("dc,bchw->bdhw", self._rotation.like(x), x)

    def _rotate_back(self, x: Tensor) -> Tensor:
        return x if self._rotation is None else torch.einsum("dc,bdhw->bchw", self._rotation.like(x), x)


def check_power(power: Tensor, image_shape: tuple[int, int, int]) -> Tensor:
    """power [1 or 3, H, W] on the CPU in float64; rejected if it is not that of real noise on such images."""
    values = torch.as_tensor(power).detach().to("cpu", torch.float64)
    channels, height, width = image_shape
    if tuple(values.shape) not in {(1, height, width), (channels if channels == 3 else 1, height, width)}:
        raise LeaderError(
            f"The noise power of images {list(image_shape)} must have shape [1, {height}, {width}], or 3 axes for colours; "
            f"found {list(values.shape)}."
        )
    if not bool(torch.isfinite(values).all()) or not float(values.min()) > 0:
        raise LeaderError("The noise power must be finite and above 0 at every frequency.")
    mirrored = values.flip((1, 2)).roll((1, 1), (1, 2))
    if not torch.allclose(values, mirrored, rtol=1e-6, atol=0):
        raise LeaderError("The noise power must be the same at opposite frequencies, as that of real noise is.")
    return values


def _reference(passed: Tensor, power: Tensor) -> float:
    """The geometric mean of the noise's standard deviation [K, H, W], weighted by the square of `passed` [1, 1, H, W]."""
    weights, width = passed[0].double().square(), power.shape[-1]
    if weights.shape[-1] < power.shape[-1]:  # half of the frequencies: all but the first and the last column count twice
        power = power[..., : weights.shape[-1]]
        weights[..., 1 : (width + 1) // 2] *= 2
    return float(torch.exp((weights * power.log()).sum() / (len(power) * weights.sum()) / 2))


def find_physical(operator: LinearOperator) -> LinearOperator:
    """The blur behind an operator with whitened measurements; any other operator itself."""
    if isinstance(operator, WhitenedBlur):
        return Blur(operator.image_shape, operator.kernel, operator.rcond)
    return Denoising(operator.image_shape) if isinstance(operator, WeightedPixels) else operator
