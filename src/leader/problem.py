"""Problem: a measurement, the operator that made it and its noise. The single place where ranges are converted."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from leader.errors import LeaderError
from leader.operators.base import LinearOperator


@dataclass(frozen=True)
class Problem:
    """y = A x + sigma z for images x in [-1, 1].

    `Problem(y, operator, sigma)` takes the measurement of a [0, 1] image and the noise level quoted for [0, 1], as papers do;
    `Problem.internal` takes both in [-1, 1] units. Either way the fields hold [-1, 1] units:

    y         [B, ...]: 2 y - A(1), not 2 y - 1
    sigma     noise standard deviation per image, float64 [B]: doubled
    operator  A
    """

    y: Tensor
    operator: LinearOperator
    sigma: Tensor

    def __init__(self, y: Tensor, operator: LinearOperator, sigma: float | Tensor = 0.0) -> None:
        ones = torch.ones(1, *operator.image_shape, dtype=y.dtype, device=y.device)
        self._fill(2 * y - operator.A(ones), operator, 2 * torch.as_tensor(sigma, dtype=torch.float64))

    @classmethod
    def internal(cls, y: Tensor, operator: LinearOperator, sigma: float | Tensor = 0.0) -> Problem:
        """A problem whose measurement and noise are already those of a [-1, 1] image."""
        problem = cls.__new__(cls)
        problem._fill(y, operator, torch.as_tensor(sigma, dtype=torch.float64))
        return problem

    def _fill(self, y: Tensor, operator: LinearOperator, sigma: Tensor) -> None:
        if y.ndim < 2:
            raise LeaderError(f"A measurement needs a leading batch axis; found shape {list(y.shape)}.")
        if not bool(torch.isfinite(y).all()):
            raise LeaderError("The measurement contains NaN or infinite values; remove them first.")
        spread = sigma.cpu().expand(y.shape[0]).clone() if sigma.ndim <= 1 else sigma
        if spread.shape != y.shape[:1] or not all(math.isfinite(v) and v >= 0 for v in spread.tolist()):
            raise LeaderError(f"The noise level must be finite and >= 0, one number or one per image; found {sigma}.")
        if bool((spread > 0).any()) and bool((spread == 0).any()):
            raise LeaderError("Noisy and noise-free images cannot share a batch; run them separately.")
        object.__setattr__(self, "y", y)
        object.__setattr__(self, "operator", operator)
        object.__setattr__(self, "sigma", spread)

    @property
    def batch(self) -> int:
        return int(self.y.shape[0])

    @property
    def noise_free(self) -> bool:
        return bool((self.sigma == 0).all())

    @property
    def image_shape(self) -> tuple[int, int, int]:
        return self.operator.image_shape

    def sigma_column(self, like: Tensor) -> Tensor:
        """sigma as float64 [B, 1, ...] with as many axes as `like`, on its device."""
        return self.sigma.to(like.device).reshape(-1, *[1] * (like.ndim - 1))

    def residual(self, x: Tensor) -> Tensor:
        """A x - y."""
        return self.operator.A(x) - self.y

    def select(self, keep: Tensor) -> Problem:
        """The problem of the images `keep` (LongTensor) of the batch."""
        return Problem.internal(self.y[keep], self.operator.select(keep), self.sigma[keep])
