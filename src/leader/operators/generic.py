"""Operators known by what they do alone: your own functions, and one operator after another.

Their inverses are found by conjugate gradients.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from leader.errors import LeaderError
from leader.operators.base import LinearOperator


class FromFunctions(LinearOperator):
    """A degradation given by its two functions.

    A, AT   images [B, C, H, W] to measurements [B, ...] and back; that AT is the adjoint is tried once
    rcond   singular values below rcond * largest are damped by `pinv`
    device  where the functions can be called
    """

    def __init__(
        self,
        image_shape: tuple[int, int, int],
        A: Callable[[Tensor], Tensor],
        AT: Callable[[Tensor], Tensor],
        task: str = "custom",
        rcond: float = 1e-3,
        device: str | torch.device = "cpu",
    ) -> None:
        super().__init__(image_shape)
        self.task = task
        self.rcond = rcond
        self._forward = A
        self._adjoint = AT
        self._check_adjoint(torch.device(device))

    def A(self, x: Tensor) -> Tensor:
        self.check_image(x)
        return self._forward(x)

    def AT(self, y: Tensor) -> Tensor:
        return self._adjoint(y)

    def _check_adjoint(self, device: torch.device) -> None:
        generator = torch.Generator().manual_seed(0)
        x = torch.randn(1, *self.image_shape, generator=generator).to(device)
        with torch.no_grad():
            image = self._forward(x)
            y = torch.randn(image.shape, generator=generator).to(device)
            returned = self._adjoint(y)
        if tuple(returned.shape) != tuple(x.shape):
            raise LeaderError(f"AT returned shape {list(returned.shape)}; expected that of the image, {list(x.shape)}.")
        mismatch = float(((image * y).sum() - (x * returned).sum()).abs())
        # Either side is a random number of about this size; rounding in float32 stays far below 1 % of it.
        if not mismatch <= 1e-2 * float(image.norm() + returned.norm()):
            raise LeaderError("AT is not the adjoint of A: <A x, y> and <x, AT y> differ; check both functions.")


class Composition(LinearOperator):
    """A = outer A after inner A, e.g. downsampling of a blurred image; `inner` must yield what `outer` takes.

    The pseudo-inverse of a product is not the product of the pseudo-inverses: conjugate gradients.
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

    def select(self, keep: Tensor) -> Composition:
        outer, inner = self.outer.select(keep), self.inner.select(keep)
        if outer is self.outer and inner is self.inner:
            return self
        return Composition(outer, inner, self.task)
