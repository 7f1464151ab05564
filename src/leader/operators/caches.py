"""Numbers in the shape, the dtypes and on the devices in use."""

import torch
from torch import Tensor


def real_dtype(like: Tensor) -> torch.dtype:
    """The real dtype of the precision of `like`."""
    return like.dtype.to_real() if like.dtype.is_complex else like.dtype


def per_image(values: Tensor, like: Tensor) -> Tensor:
    """One value per image ([B] or [B, 1, 1, 1]) as a column that broadcasts over `like`, in its own precision."""
    return values.reshape(-1, *[1] * (like.ndim - 1))


class CastCache:
    """One constant, built in float64 or complex128, cached in every precision and on every device in use."""

    def __init__(self, constant: Tensor) -> None:
        self.constant = constant
        self._copies: dict[tuple[torch.dtype, torch.device], Tensor] = {}

    def like(self, other: Tensor) -> Tensor:
        """The constant in the precision and on the device of `other`; it stays real or complex as built."""
        dtype = real_dtype(other)
        if self.constant.dtype.is_complex:
            dtype = dtype.to_complex()
        key = (dtype, other.device)
        if key not in self._copies:
            # A copy made under inference_mode could never take part in autograd later (DPS needs that).
            with torch.inference_mode(False):
                self._copies[key] = self.constant.to(other.device, dtype, copy=self.constant.is_inference())
        return self._copies[key]
