"""Censored: entries of a measurement that are bounds, not values.

Pixel values in a file end at black and at white, and noise beyond these limits is cut off: an entry at the limit c only tells
us that y <= c (or y >= c). Given the clean value m of the entry and noise of standard deviation sigma, what was cut off has the
mean

    E[y | y <= c] = c - sigma g(a),    a = (c - m) / sigma,    g(a) = a + phi(a) / Phi(a) > 0

and the mirror image of this at white. With that mean in its place, the measurement is an ordinary one. Repeated with m from the
answer, this is expectation-maximisation: under a Gaussian prior it converges to the most likely image given the limits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from leader.errors import LeaderError

FAR = -1e4
"""Below this a, g(a) is 1 / |a| to all digits; the two terms of its sum would cancel."""
TAIL = -8.0
"""Below this a, draws beyond the limit are exponential to within 2 %, and Phi(a) is too small to be inverted."""

NARROW = 1e-5
"""Limits nearer to each other than this have their middle for a mean."""

_Beyond = Callable[[Tensor, Tensor], Tensor]
"""(a, mask of the entries) -> how far beyond the limit, in standard deviations."""


@dataclass(frozen=True, eq=False)
class Censored:
    """Which entries of a measurement y [B, ...] were clipped; their limit is the value that y has there.

    low, high  bool, the shape of y: the true value is at most (low) or at least (high) the value of y; no entry is both
    """

    low: Tensor
    high: Tensor

    def __post_init__(self) -> None:
        for mask in (self.low, self.high):
            if not isinstance(mask, Tensor) or mask.dtype != torch.bool or mask.shape != self.low.shape:
                raise LeaderError("Censored entries must be marked by two bool tensors with the shape of the measurement.")
        if bool((self.low & self.high).any()):
            raise LeaderError("An entry is marked as clipped at both ends; mark each at one.")

    @staticmethod
    def at_limits(y: Tensor) -> Censored | None:
        """The entries of y that are at black or at white; None if there are none."""
        found = Censored(y <= 0, y >= 1)
        return found if found.count else None

    @property
    def any(self) -> Tensor:
        """Entries that were clipped at either end."""
        return self.low | self.high

    @property
    def count(self) -> int:
        return int(self.any.sum())

    def where(self, reached: Tensor) -> Censored | None:
        """Only the entries marked by `reached`; None if none are left."""
        kept = Censored(self.low & reached, self.high & reached)
        return kept if kept.count else None

    def select(self, keep: Tensor) -> Censored:
        return Censored(self.low[keep], self.high[keep])

    def to(self, device: torch.device) -> Censored:
        return Censored(self.low.to(device), self.high.to(device))

    @staticmethod
    def join(parts: Sequence[Censored | None], measurements: Sequence[Tensor]) -> Censored | None:
        """Concatenates the censored entries of several measurements, some of which may have none."""
        if all(part is None for part in parts):
            return None
        none = [torch.zeros_like(y, dtype=torch.bool) for y in measurements]
        return Censored(
            torch.cat([empty if part is None else part.low for part, empty in zip(parts, none, strict=True)]),
            torch.cat([empty if part is None else part.high for part, empty in zip(parts, none, strict=True)]),
        )

    def impute(self, y: Tensor, mean: Tensor, sigma: Tensor) -> Tensor:
        """y with the mean of what was cut off in place of its limits.

        mean   A x of the assumed clean image x, the shape of y
        sigma  standard deviation of the noise, float64 and broadcastable over y; without noise, y is mean, or the limit where
               mean does not reach it
        """
        return self._replace(y, mean, sigma, lambda a, index: mean_beyond(a))

    def draw(self, y: Tensor, mean: Tensor, sigma: Tensor, uniform: Tensor) -> Tensor:
        """y with draws of what was cut off in place of its limits; `uniform` in (0, 1], the shape of y, determines them.

        If mean is right, y - mean is then Gaussian noise again.
        """
        return self._replace(y, mean, sigma, lambda a, index: draw_beyond(a, uniform[index].double()))

    def _replace(self, y: Tensor, mean: Tensor, sigma: Tensor, beyond: _Beyond) -> Tensor:
        out, spread = y.clone(), sigma.to(y.device).expand(y.shape)
        for mask, sign in ((self.low, 1.0), (self.high, -1.0)):
            limit, noise = y[mask].double(), spread[mask]
            below = sign * (limit - mean[mask].double())
            a = below / noise.clamp_min(1e-300)
            amount = torch.where(noise > 0, noise * beyond(a, mask), below.clamp_min(0))
            out[mask] = (limit - sign * amount).to(y)
        return out


def mean_beyond(a: Tensor) -> Tensor:
    """g(a) = a + phi(a) / Phi(a), float64: how far below a a standard normal variable lies on average, given that it does."""
    mills = math.sqrt(2 / math.pi) / torch.special.erfcx(-a / math.sqrt(2))  # 0 where erfcx is infinite: Phi(a) is 1
    return torch.where(a < FAR, -1 / a.clamp_max(FAR), a + mills)


def mean_between(low: Tensor, high: Tensor) -> Tensor:
    """The mean of a standard normal variable that lies between two limits, low < high, float64.

    sqrt(2 / pi) (1 - d) / (erfcx(a / sqrt 2) - d erfcx(b / sqrt 2)) with d = exp((a^2 - b^2) / 2), taken on the side where b is
    the farther limit: nothing overflows, and only limits that are nearly one cancel, whose middle is as good.
    """
    mirrored = low + high < 0
    near, far = torch.where(mirrored, -high, low), torch.where(mirrored, -low, high)
    ratio = (near - far) * (near + far) / 2
    share = torch.special.erfcx(near / math.sqrt(2)) - ratio.exp() * torch.special.erfcx(far / math.sqrt(2))
    mean = math.sqrt(2 / math.pi) * -torch.expm1(ratio) / share
    mean = torch.where(high - low < NARROW, (near + far) / 2, mean)
    return torch.where(mirrored, -mean, mean)


def draw_beyond(a: Tensor, uniform: Tensor) -> Tensor:
    """A draw of the same distance, float64, which grows as `uniform` in (0, 1] falls."""
    inner = a.clamp_min(TAIL)
    drawn = inner - torch.special.ndtri(uniform * torch.special.ndtr(inner))
    return torch.where(a < TAIL, uniform.log() / a.clamp_max(TAIL), drawn).clamp_min(0)
