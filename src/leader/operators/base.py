"""The interface of a degradation: y = A x + noise, with A linear.

`A` is the physical operator. `pinv` cuts singular values below `rcond` times the largest; `truncated()` is
the operator whose exact pseudo-inverse `pinv` is. Where an SVD A = U S V^T is known the operator is a
`SpectralOperator` and methods may work in V-coordinates: c = to(x) = V^T x, x = back(c), w = data(y) = U^T
y laid out in the shape of c, s >= 0.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import ClassVar

import torch
from torch import Tensor

from leader.errors import LeaderError
from leader.operators.caches import per_image, real_dtype
from leader.operators.cg import damped_least_squares
from leader.operators.components import Components

Eta = float | Tensor
"""A regulariser: one number, or one per image [B]."""


class LinearOperator:
    """A, A^T and the inverses; A^T by autograd and inverses by conjugate gradients unless a subclass overrides them.

    `operator(x)` is A x, `outer @ inner` one after the other, `first + second` the measurements of both.

    image_shape  (C, H, W) of x
    task         its name in presets and on the command line
    rcond        singular values below rcond * largest are not inverted
    residual     relative residual of the last conjugate-gradient solve (0 for closed forms)
    revision     raised by one whenever the numbers of the operator change; part of the keys of benchmark records

    >>> Denoising((3, 8, 8)) + Colourisation((3, 8, 8))
    Stacked('stacked', [3, 8, 8])
    """

    task: str = "linear"
    rcond: float = 1e-3
    revision: ClassVar[int] = 1

    def __init__(self, image_shape: tuple[int, int, int]) -> None:
        if len(image_shape) != 3 or not all(isinstance(n, int) and n > 0 for n in image_shape):
            raise LeaderError(f"An image shape is (channels, height, width), each positive; found {image_shape}.")
        channels, height, width = image_shape
        self.image_shape = (channels, height, width)
        self.residual = 0.0
        self._norm: float | None = None

    def A(self, x: Tensor) -> Tensor:
        """The measurement of images x [B, C, H, W], without noise."""
        raise NotImplementedError(f"{type(self).__name__} must implement A")

    def AT(self, y: Tensor) -> Tensor:
        """The adjoint: <A x, y> = <x, A^T y>. By autograd, as the derivative of A, unless a subclass overrides it."""
        with torch.enable_grad():
            x = torch.zeros(y.shape[0], *self.image_shape, dtype=y.dtype, device=y.device, requires_grad=True)
            (image,) = torch.autograd.grad(self.A(x), x, y, create_graph=y.requires_grad)
        return image

    def gram(self, x: Tensor) -> Tensor:
        """A^T A x; a subclass overrides it where that costs less than both."""
        return self.AT(self.A(x))

    def __call__(self, x: Tensor) -> Tensor:
        """A x for images x [B, C, H, W] in [0, 1] or [-1, 1]: the noise-free measurement."""
        self.check_image(x)
        return self.A(x)

    def __matmul__(self, inner: LinearOperator) -> LinearOperator:
        """This operator after `inner`."""
        from leader.operators.generic import Composition

        return Composition(self, inner) if isinstance(inner, LinearOperator) else NotImplemented

    def __add__(self, other: LinearOperator) -> LinearOperator:
        """Both measurements of one image, in one vector."""
        from leader.operators.generic import Stacked

        return Stacked(self, other) if isinstance(other, LinearOperator) else NotImplemented

    def __repr__(self) -> str:
        return f"{type(self).__name__}('{self.task}', {list(self.image_shape)})"

    def pinv(self, y: Tensor) -> Tensor:
        """A^+ y by iterated Tikhonov: at singular value s, 1 - (1 + (s / cut)^2)^-3 is recovered.

        With cut = rcond * largest: exact to 1e-6 above 10 cuts, at most 3 % below a tenth of the cut.
        """
        eta = (self.rcond * self.norm_like(y)) ** 2
        x = self.regularised_pinv(y, eta)
        reached = self.residual
        for _ in range(2):
            x = x + self.regularised_pinv(y - self.A(x), eta)
        self.residual = reached
        return x

    def regularised_pinv(self, r: Tensor, eta: Eta) -> Tensor:
        """A^T (A A^T + eta)^{-1} r; eta = 0 is allowed and inverts everything that is measured."""
        solution, self.residual = damped_least_squares(self.A, self.AT, r, _column(eta, self.AT(r)))
        return solution

    def null(self, x: Tensor) -> Tensor:
        """(I - A^+ A) x: the part of x that the measurement does not see."""
        return x - self.pinv(self.A(x))

    def truncated(self) -> LinearOperator:
        """The operator whose exact pseudo-inverse `pinv` is."""
        return self

    def select(self, keep: Tensor) -> LinearOperator:
        """The operator for the images `keep` (LongTensor) of a batch; the same object unless it differs by image."""
        return self

    @property
    def norm(self) -> float:
        """The largest singular value (of any image of the batch), by power iteration from a fixed start."""
        return self.norm_like(torch.empty(0))

    def norm_like(self, like: Tensor) -> float:
        """`norm`, computed on the device of `like` if it is not known yet."""
        if self._norm is None:
            generator = torch.Generator().manual_seed(0)
            v = torch.randn(1, *self.image_shape, generator=generator).to(like.device, like.dtype)
            for _ in range(20):
                v = self.AT(self.A(v / v.norm().clamp_min(torch.finfo(v.dtype).tiny)))
            self._norm = float(v.norm().sqrt())
        return self._norm

    def unit_range(self) -> tuple[Tensor, Tensor] | None:
        """Bounds of every entry of A x over images x in [0, 1]: the sums of its negative and of its positive weights.

        Two float64 tensors on the CPU that broadcast over measurements, both 0 where A reaches nothing; None if only A itself
        is known.
        """
        return None

    def reached(self, y: Tensor) -> Tensor:
        """Which entries of measurements like y [B, ...] depend on the image: bool, broadcastable to y, on its device."""
        known = self.unit_range()
        if known is None:
            return self._reached_by_trial(y)
        return ((known[0] != 0) | (known[1] != 0)).to(y.device)

    def _reached_by_trial(self, y: Tensor) -> Tensor:
        """An entry that is exactly zero for two generic images is never reached."""
        generator = torch.Generator().manual_seed(0)
        found = torch.zeros(y.shape, dtype=torch.bool, device=y.device)
        with torch.no_grad():
            for _ in range(2):
                probe = torch.rand(1, *self.image_shape, generator=generator) + 0.5
                found = found | (self.A(probe.to(y).expand(y.shape[0], -1, -1, -1)) != 0)
        return found

    def parts(self) -> tuple[LinearOperator, ...]:
        """The operators it is composed of: only itself, unless it is a composition."""
        return (self,)

    @cached_property
    def measurement_shape(self) -> tuple[int, ...]:
        """The shape of one measurement, without the batch axis."""
        return tuple(self.A(torch.zeros(1, *self.image_shape)).shape[1:])

    def check_image(self, x: Tensor) -> None:
        """Rejects images of another shape."""
        if tuple(x.shape[1:]) != self.image_shape:
            raise LeaderError(
                f"The operator '{self.task}' was built for images {list(self.image_shape)}; found {list(x.shape[1:])}."
            )

    def check_measurement(self, y: Tensor) -> None:
        """Rejects measurements of another shape."""
        if tuple(y.shape) == self.measurement_shape:
            raise LeaderError(f"The measurement {list(y.shape)} lacks the leading batch axis; use y[None].")
        if tuple(y.shape[1:]) != self.measurement_shape:
            raise LeaderError(
                f"The operator '{self.task}' yields measurements {list(self.measurement_shape)}; found {list(y.shape[1:])}."
            )


class SpectralOperator(LinearOperator):
    """An operator with a known SVD. Subclasses give `to`, `back`, `data`, `measure` and `spectrum`.

    spectrum  all singular values, float64, broadcastable to c; zero where nothing is measured
    s         the spectrum with values below the cut set to zero: what methods regard as measured; the default cut is rcond
              times the largest value

    >>> Colourisation((3, 8, 8)).spectrum.flatten()
    tensor([0.5774, 0.0000, 0.0000], dtype=torch.float64)
    """

    def __init__(
        self, image_shape: tuple[int, int, int], spectrum: Tensor, rcond: float | None = None, s: Tensor | None = None
    ) -> None:
        super().__init__(image_shape)
        if rcond is not None:
            self.rcond = rcond
        self.spectrum = spectrum
        self._norm = float(spectrum.max())
        self.s = torch.where(spectrum > self.rcond * self._norm, spectrum, 0.0) if s is None else s

    @property
    def measured(self) -> Components:
        """The measured components; all components if leaving out the others would save nothing."""
        return self

    def to(self, x: Tensor) -> Tensor:
        """V^T x, unitary; the shape of c may be any with leading B."""
        raise NotImplementedError(f"{type(self).__name__} must implement to")

    def back(self, c: Tensor) -> Tensor:
        """V c, the inverse of `to`."""
        raise NotImplementedError(f"{type(self).__name__} must implement back")

    def data(self, y: Tensor) -> Tensor:
        """U^T y in the shape of c; zero where nothing is measured."""
        raise NotImplementedError(f"{type(self).__name__} must implement data")

    def measure(self, w: Tensor) -> Tensor:
        """U w, the inverse of `data` on measured coordinates."""
        raise NotImplementedError(f"{type(self).__name__} must implement measure")

    def A(self, x: Tensor) -> Tensor:
        return self.measure(self.cast(self.spectrum, x) * self.to(x))

    def AT(self, y: Tensor) -> Tensor:
        return self.back(self.cast(self.spectrum, y) * self.data(y))

    def pinv(self, y: Tensor) -> Tensor:
        return self.back(self.filter(lambda s: 1 / s, y) * self.data(y))

    def regularised_pinv(self, r: Tensor, eta: Eta) -> Tensor:
        w = self.data(r)
        return self.back(self.tikhonov(eta, w) * w)

    def tikhonov(self, eta: Eta, like: Tensor) -> Tensor:
        """s / (s^2 + eta) on the whole spectrum, in the precision of `like` [B, ...]; pinv's for eta = 0."""
        spectrum = self.cast(self.spectrum, like)
        shift = _column(eta, like)
        usable = (shift > 0) | (self.cast(self.s, like) > 0)
        return torch.where(usable, spectrum / torch.where(usable, spectrum * spectrum + shift, 1.0), 0.0)

    def filter(self, gain: Callable[[Tensor], Tensor], like: Tensor) -> Tensor:
        """gain(s) on measured coordinates and 0 elsewhere, in float64, then in the dtype of `like`."""
        return self.cast(where_measured(gain, self.s), like)

    def truncated(self) -> SpectralOperator:
        return self if torch.equal(self.s, self.spectrum) else TruncatedOperator(self)

    @staticmethod
    def cast(values: Tensor, like: Tensor) -> Tensor:
        """Real values in the real dtype and on the device of `like`."""
        return values.to(like.device, real_dtype(like))


def where_measured(gain: Callable[[Tensor], Tensor], s: Tensor) -> Tensor:
    """gain(s) where something is measured, 0 elsewhere."""
    measured = s > 0
    safe = torch.where(measured, s, torch.ones_like(s))
    return torch.where(measured, gain(safe), torch.zeros_like(safe))


class TruncatedOperator(SpectralOperator):
    """A spectral operator whose small singular values are exactly zero."""

    def __init__(self, whole: SpectralOperator) -> None:
        super().__init__(whole.image_shape, whole.s, rcond=whole.rcond, s=whole.s)
        self.task = whole.task
        self._whole = whole

    @property
    def measured(self) -> Components:
        return self._whole.measured

    def to(self, x: Tensor) -> Tensor:
        return self._whole.to(x)

    def back(self, c: Tensor) -> Tensor:
        return self._whole.back(c)

    def data(self, y: Tensor) -> Tensor:
        return self._whole.data(y)

    def measure(self, w: Tensor) -> Tensor:
        return self._whole.measure(w)

    def truncated(self) -> SpectralOperator:
        return self

    def select(self, keep: Tensor) -> SpectralOperator:
        chosen = self._whole.select(keep)
        if chosen is self._whole:
            return self
        assert isinstance(chosen, SpectralOperator)
        return TruncatedOperator(chosen)


def _column(eta: Eta, like: Tensor) -> Tensor:
    """eta as a tensor that broadcasts over `like` [B, ...]."""
    value = torch.as_tensor(eta, dtype=real_dtype(like), device=like.device)
    return per_image(value, like) if value.ndim else value
