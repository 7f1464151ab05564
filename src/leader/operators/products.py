"""Products of planes with small matrices, where torch's usual way takes longer.

torch hands products of float32 to MKL, which leaves half of the speed of other makers' processors unused; oneDNN, which torch
has for convolutions, does not. It has no derivatives, so it serves where none are asked for.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.nn import functional as F


def _find_onednn() -> Callable[..., Tensor] | None:
    """oneDNN's product, where this build of torch has it."""
    operations: Any = torch.ops.mkldnn
    if not (torch.backends.mkldnn.is_available() and hasattr(operations, "_linear_pointwise")):  # type: ignore[no-untyped-call]
        return None
    found: Callable[..., Tensor] = operations._linear_pointwise
    return found


_ONEDNN = _find_onednn()


def multiply_last(x: Tensor, matrix: Tensor) -> Tensor:
    """x M^T, M [m, n] on the last axis: [..., n] -> [..., m]."""
    return _multiply(x, matrix)


def multiply_last_to_front(x: Tensor, matrix: Tensor) -> Tensor:
    """The same with that axis moved to the front: [..., n] -> [m, ...]. No pass more: the product writes it there."""
    return _multiply(matrix, x.reshape(-1, x.shape[-1])).view(len(matrix), *x.shape[:-1])


def _multiply(left: Tensor, right: Tensor) -> Tensor:
    """left right^T, [..., k] and [n, k] -> [..., n]."""
    plain = left.dtype == right.dtype == torch.float32 and left.device.type == right.device.type == "cpu"
    if _ONEDNN is None or not plain or _is_differentiated(left) or _is_differentiated(right):
        return F.linear(left, right)
    return _ONEDNN(left.contiguous(), right.contiguous(), None, "none", [], "")


def _is_differentiated(x: Tensor) -> bool:
    """Whether derivatives may be asked of what is made of x."""
    return (torch.is_grad_enabled() and x.requires_grad) or forward_ad._current_level >= 0
