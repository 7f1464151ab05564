"""Tests whether A^T is the adjoint of A with random images and measurements, for user-defined operators."""

from __future__ import annotations

import torch
from torch import Tensor

from leader.errors import LeaderError
from leader.operators.base import LinearOperator

OURS = __name__.rpartition(".")[0]
TRIED = "_adjoint_tried"


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
        image = operator.A(x)
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
