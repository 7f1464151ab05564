"""The interface of a prior: predict(x, t) -> Prediction, with every call counted by the run that makes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.autograd.forward_ad import unpack_dual

from leader.errors import LeaderError
from leader.priors.ledger import Counts, record
from leader.priors.spectrum import Spectrum
from leader.schedule import Schedule


@dataclass(frozen=True)
class Prediction:
    """A prior's prediction for x_t.

    x0        E[x_0 | x_t], [B, C, H, W] in [-1, 1] units, not clamped
    eps       the noise that goes with it: x_t = sqrt(abar) x0 + sqrt(1 - abar) eps
    variance  diag Cov[x_0 | x_t] if the prior has its own estimate, else None

    >>> leader.Prediction(x0=torch.zeros(1, 3, 8, 8), eps=torch.ones(1, 3, 8, 8)).variance is None
    True
    """

    x0: Tensor
    eps: Tensor
    variance: Tensor | None = None

    def map(self, function: Callable[[Tensor], Tensor]) -> Prediction:
        """The prediction with a function applied to all of it; only linear ones keep x0 and eps consistent."""
        variance = self.variance
        return Prediction(function(self.x0), function(self.eps), None if variance is None else function(variance))


class LatePrediction(Prediction):
    """A prediction whose variance is computed when it is first read: a head costs a tenth of a call, and few steps ask for it.

    Until then it holds what the variance is computed from.
    """

    _parts: list[Any]

    def __init__(self, x0: Tensor, eps: Tensor, variance: Callable[[], Tensor | None] | Tensor | None = None) -> None:
        for name, value in (("x0", x0), ("eps", eps), ("_parts", [variance])):
            object.__setattr__(self, name, value)

    @property
    def variance(self) -> Tensor | None:
        if callable(self._parts[0]):
            self._parts[0] = self._parts[0]()
        found: Tensor | None = self._parts[0]
        return found


class Prior(nn.Module):
    """A prior over clean images. Subclasses implement `_predict`; callers use `predict`.

    schedule   the noise schedule the times t refer to
    channels   channels of its images, or None for any
    multiple   sides must be multiples of this, or 1 for any size
    size       the only size (H, W) that the network accepts, or None
    one_by_one evaluate the images of a batch one by one, so that an image gives the same bits alone and in any batch; the
    default on the CPU
    spectrum   the correlation of its errors between pixels and channels, if fitted
    source     where the variance of its predictions comes from: "head", "learned", "exact" or None
    precision  of its network: "float32", "float16", "bfloat16", or a mixture such as "mixed"
    rounded_from  with mixed precision: the lowest time of each precision beside float32, the coarsest first
    home       the file or folder of its weights, beside which fitted files are stored; None for a prior built in Python
    revision   raised by one whenever its predictions change for the same weights; part of the keys of benchmark records

    >>> leader.load_prior("embedded").predict(torch.randn(1, 3, 16, 16), torch.tensor([500])).x0.shape
    torch.Size([1, 3, 16, 16])
    """

    name: str = "prior"
    channels: int | None = None
    multiple: int = 1
    size: tuple[int, int] | None = None
    source: str | None = None
    spectrum: Spectrum | None = None
    home: Path | None = None
    precision: str = "float32"
    rounded_from: Mapping[str, int] = MappingProxyType({})
    revision: ClassVar[int] = 1

    def __init__(self, schedule: Schedule) -> None:
        super().__init__()
        self.schedule = schedule
        self.one_by_one: bool | None = None

    def __repr__(self) -> str:
        size = "any size" if self.size is None else f"{self.size[1]} x {self.size[0]} pixels"
        return f"<{type(self).__name__} '{self.name}': {size}, {len(self.schedule)} times>"

    def _predict(self, x: Tensor, t: Tensor) -> Prediction:
        """The prediction for x [B, C, H, W] at times t [B], without counting or checking."""
        raise NotImplementedError(f"{type(self).__name__} must implement _predict")

    def work(self, t: int, height: int, width: int) -> float:
        """The pixels processed by one call at time t, in pixels of the full-resolution network."""
        return float(height * width)

    def predict(self, x: Tensor, t: Tensor) -> Prediction:
        """x [B, C, H, W] at times t (LongTensor [B]) -> Prediction. Differentiable with respect to x.

        Counted in the open ledger (`leader.priors.ledger.recording`), if there is one.
        """
        self._check(x, t)
        height, width = int(x.shape[-2]), int(x.shape[-1])
        each = [Counts(calls=1, pixels=self.work(int(time), height, width)) for time in t.tolist()]
        record(each)
        if len(each) == 1 or not self.takes_one_by_one(x.device):
            return self._predict(x, t)
        parts = [self._predict(x[i : i + 1], t[i : i + 1]) for i in range(len(each))]
        variances = [part.variance for part in parts if part.variance is not None]
        return Prediction(
            torch.cat([part.x0 for part in parts]),
            torch.cat([part.eps for part in parts]),
            torch.cat(variances) if len(variances) == len(parts) else None,
        )

    def takes_one_by_one(self, device: torch.device) -> bool:
        """Whether images on `device` are evaluated one by one: the only place where that is decided."""
        return device.type == "cpu" if self.one_by_one is None else self.one_by_one

    def weights_device(self) -> torch.device | None:
        """The device of its weights; None for a prior without tensors, which works on any device."""
        first = next(chain(self.parameters(), self.buffers()), None)
        return None if first is None else first.device

    def state_dtype(self, given: torch.dtype) -> torch.dtype:
        """The dtype of states for a measurement in `given`: that of the network, float32 for half-precision ones, and
        `given` itself for a prior without weights.
        """
        kinds = {item.dtype for item in self.parameters() if item.is_floating_point()}
        if not kinds:
            return given
        return torch.float64 if torch.float64 in kinds else torch.float32

    def _check(self, x: Tensor, t: Tensor) -> None:
        if x.ndim != 4 or t.shape != x.shape[:1] or t.is_floating_point():
            raise LeaderError(
                f"A prior takes images [B, C, H, W] and integer times [B]; found {list(x.shape)} and {t.dtype} {list(t.shape)}."
            )
        if self.channels is not None and x.shape[1] not in (self.channels, 1):
            raise LeaderError(f"The prior '{self.name}' takes images with {self.channels} channels; found {x.shape[1]}.")
        if bool((t < 0).any()) or bool((t >= len(self.schedule)).any()):
            raise LeaderError(f"Times must lie in 0..{len(self.schedule) - 1}; found {t.tolist()}.")


def is_differentiated(x: Tensor) -> bool:
    """Whether derivatives pass through x, backwards or forwards."""
    forwards = unpack_dual(x).tangent is not None  # type: ignore[no-untyped-call]
    return forwards or (torch.is_grad_enabled() and x.requires_grad)


def check_derivative(answer: Tensor, x: Tensor, name: str) -> None:
    """Rejects an answer without a derivative where that by x is taken."""
    if is_differentiated(x) and not is_differentiated(answer):
        raise LeaderError(
            f"The answer of the prior '{name}' has no derivative, which this method or its Sigma takes: leave out detach(), "
            "torch.no_grad() and NumPy in its network, or use a method such as ddnm without plug-ins."
        )


def from_x0(
    x: Tensor, t: Tensor, x0: Tensor, schedule: Schedule, variance: Tensor | Callable[[], Tensor] | None = None
) -> Prediction:
    """The Prediction that follows from an estimate of the clean image; a variance given as a function is called when read."""
    level = schedule.level(t, x)
    eps = (x - level.signal * x0) / level.noise
    return LatePrediction(x0, eps, variance) if callable(variance) else Prediction(x0, eps, variance)


def from_eps(x: Tensor, t: Tensor, eps: Tensor, schedule: Schedule, variance: Tensor | None = None) -> Prediction:
    """The Prediction that follows from an estimate of the noise."""
    level = schedule.level(t, x)
    return Prediction((x - level.noise * eps) / level.signal, eps, variance)


LARGEST_SIDE = 1024
"""Largest fixed side of a network in pixels: images are padded to it, so it determines the memory of a run."""


def check_size(x: Tensor, name: str, size: tuple[int, int] | None, multiple: int = 1) -> None:
    """Rejects images [B, C, H, W] that the bare prior `name` does not accept."""
    height, width = x.shape[-2:]
    if size is not None and (height, width) != size:
        raise LeaderError(
            f"The prior '{name}' takes only {size[0]} x {size[1]} pixels; found {height} x {width}: give images of that "
            "size, or open it with load_prior, which tiles others."
        )
    if height % multiple or width % multiple:
        raise LeaderError(
            f"The prior '{name}' takes sides in multiples of {multiple} pixels; found {height} x {width}: give such images, "
            "or open it with load_prior, which pads others."
        )
