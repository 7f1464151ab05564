"""Operators defined only by their action: your own functions, compositions, and stacks of two operators.

Their inverses are found by conjugate gradients. Whether A^T is the adjoint of A is tested with random images and measurements.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from leader.errors import LeaderError
from leader.operators.base import LinearOperator

OURS = __name__.rpartition(".")[0]
TRIED = "_adjoint_tried"


class FromFunctions(LinearOperator):
    """A degradation given by its functions.

    A, AT   images [B, C, H, W] to measurements [B, ...] and back; whether AT is the adjoint is tested once. None: by autograd
    rcond   singular values below rcond * largest are damped by `pinv`
    device  where the functions can be called

    >>> FromFunctions((3, 8, 8), lambda x: 2 * x).AT(torch.ones(1, 3, 8, 8)).max()
    tensor(2.)
    """

    def __init__(
        self,
        image_shape: tuple[int, int, int],
        A: Callable[[Tensor], Tensor],
        AT: Callable[[Tensor], Tensor] | None = None,
        task: str = "custom",
        rcond: float = 1e-3,
        device: str | torch.device = "cpu",
    ) -> None:
        super().__init__(image_shape)
        self.task = task
        self.rcond = rcond
        self._forward = A
        self._adjoint = AT
        measured = check_adjoint(self, torch.empty(1, device=torch.device(device)))
        self.measurement_shape = tuple(measured.shape[1:])  # computed on the functions' device, which may not be the CPU

    def A(self, x: Tensor) -> Tensor:
        self.check_image(x)
        return self._forward(x)

    def AT(self, y: Tensor) -> Tensor:
        return super().AT(y) if self._adjoint is None else self._adjoint(y)


class Composition(LinearOperator):
    """A = outer A after inner A, e.g. downsampling of a blurred image; `inner` must yield what `outer` takes.

    The pseudo-inverse of a product is not the product of the pseudo-inverses: conjugate gradients.

    >>> AveragePoolSR((3, 8, 8), 2) @ Blur((3, 8, 8), gaussian_kernel(0.5))
    Composition('composition', [3, 8, 8])
    """

    def __init__(self, outer: LinearOperator, inner: LinearOperator, task: str = "composition") -> None:
        super().__init__(inner.image_shape)
        if inner.measurement_shape != outer.image_shape:
            raise LeaderError(
                f"The inner operator yields {list(inner.measurement_shape)}; the outer one takes {list(outer.image_shape)}."
            )
        self.outer = outer
        self.inner = inner
        self.task = task

    def A(self, x: Tensor) -> Tensor:
        return self.outer.A(self.inner.A(x))

    def AT(self, y: Tensor) -> Tensor:
        return self.inner.AT(self.outer.AT(y))

    def unit_range(self) -> tuple[Tensor, Tensor] | None:
        inner, outer = self.inner.unit_range(), self.outer.unit_range()
        if inner is None or outer is None:
            return None
        least, most = float(inner[0].min()), float(inner[1].max())
        shift = least * (outer[0] + outer[1])  # of the constant image `least`, a lower bound of all others
        return shift + (most - least) * outer[0], shift + (most - least) * outer[1]

    def reached(self, y: Tensor) -> Tensor:
        return self._reached_by_trial(y)  # entries that the inner operator never reaches are lost for the outer one

    def parts(self) -> tuple[LinearOperator, ...]:
        return *self.inner.parts(), *self.outer.parts()

    def select(self, keep: Tensor) -> Composition:
        outer, inner = self.outer.select(keep), self.inner.select(keep)
        if outer is self.outer and inner is self.inner:
            return self
        return Composition(outer, inner, self.task)


class Stacked(LinearOperator):
    """Two measurements of one image, A x = (first A x, second A x) in one vector [B, n]; inverses by conjugate gradients.

    >>> (Denoising((3, 8, 8)) + AveragePoolSR((3, 8, 8), 2))(torch.rand(1, 3, 8, 8)).shape
    torch.Size([1, 240])
    """

    def __init__(self, first: LinearOperator, second: LinearOperator, task: str = "stacked") -> None:
        super().__init__(first.image_shape)
        if first.image_shape != second.image_shape:
            raise LeaderError(
                f"Operators to add must share an image shape; found {list(first.image_shape)} and {list(second.image_shape)}."
            )
        self.first, self.second, self.task = first, second, task
        self._cut = math.prod(first.measurement_shape)

    def A(self, x: Tensor) -> Tensor:
        return torch.cat([self.first.A(x).flatten(1), self.second.A(x).flatten(1)], 1)

    def split(self, y: Tensor) -> tuple[Tensor, Tensor]:
        """The two measurements in the vectors y [B, n], in their own shapes."""
        first, second = y[:, : self._cut], y[:, self._cut :]
        return first.reshape(-1, *self.first.measurement_shape), second.reshape(-1, *self.second.measurement_shape)

    def AT(self, y: Tensor) -> Tensor:
        first, second = self.split(y)
        return self.first.AT(first) + self.second.AT(second)

    def unit_range(self) -> tuple[Tensor, Tensor] | None:
        known = [
            [bound.expand(1, *operator.measurement_shape).flatten(1) for bound in bounds]
            for operator in (self.first, self.second)
            if (bounds := operator.unit_range()) is not None and all(bound.shape[:-3] in ((), (1,)) for bound in bounds)
        ]
        if len(known) < 2:
            return None
        return torch.cat([known[0][0], known[1][0]], 1), torch.cat([known[0][1], known[1][1]], 1)

    def reached(self, y: Tensor) -> Tensor:
        parts = zip((self.first, self.second), self.split(y))
        return torch.cat([operator.reached(part).expand_as(part).flatten(1) for operator, part in parts], 1)

    def parts(self) -> tuple[LinearOperator, ...]:
        return *self.first.parts(), *self.second.parts()

    def select(self, keep: Tensor) -> Stacked:
        first, second = self.first.select(keep), self.second.select(keep)
        if first is self.first and second is self.second:
            return self
        return Stacked(first, second, self.task)


def try_adjoint(operator: LinearOperator, like: Tensor) -> None:
    """Tests, once each, the parts of an operator whose classes are not from this package.

    like  a measurement [B, ...] that sets the batch, dtype and device of the test
    """
    for part in operator.parts():
        if not type(part).__module__.startswith(f"{OURS}.") and not getattr(part, TRIED, False):
            check_adjoint(part, like)


def check_adjoint(operator: LinearOperator, like: Tensor) -> Tensor:
    """Rejects an operator whose AT is not the adjoint of A; returns a measurement made by A.

    <A x, y> = <x, A^T y> is tested with a random y and with y = A x, which alone would miss little and never a lost factor.
    """
    generator = torch.Generator().manual_seed(0)
    shape = (like.shape[0], *operator.image_shape)
    x = torch.randn(shape, generator=generator).to(like.device, like.dtype)
    with torch.no_grad():
        image: object = operator.A(x)
        if not isinstance(image, Tensor) or image.shape[:1] != x.shape[:1]:
            found = list(image.shape) if isinstance(image, Tensor) else type(image).__name__
            raise LeaderError(f"A returned {found} for images {list(shape)}; expected a tensor with the same batch axis.")
        for y in (torch.randn(image.shape, generator=generator).to(image), image):
            returned = operator.AT(y)
            if tuple(returned.shape) != shape:
                raise LeaderError(f"AT returned shape {list(returned.shape)}; expected that of the image, {list(shape)}.")
            mismatch = float(((image * y).sum() - (x * returned).sum()).abs())
            # Either side is at most about this large; rounding in float32 stays far below 1 % of it.
            random = float(image.norm() + returned.norm())
            if not mismatch <= 1e-2 * (random if y is not image else float(image.norm() ** 2)):
                raise LeaderError(
                    f"AT is not the adjoint of A in the operator '{operator.task}': <A x, y> and <x, AT y> differ; check both."
                )
    setattr(operator, TRIED, True)
    return image
