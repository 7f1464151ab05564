"""Problem: a measurement, the operator that made it and its noise. The only place where ranges are converted.

It is also the only place where a measurement is validated. Rejected, each with a one-sentence error:

- anything but a float32 or float64 tensor with finite values
- a shape other than that of A x with a leading batch axis, or a batch that the operator's kernels or masks do not fit
- noise levels that are negative, not finite, neither one nor one per image, or partly 0
- user-defined operators whose A^T is not the adjoint of A (one random trial per operator)
- [0, 1] measurements more than 6 sigma plus rounding outside the range of A on [0, 1] images: bytes, [-1, 1] images

Entries that A cannot reach (masked pixels) carry no information about the image: they are set to zero here, so no misfit sees
them. Entries that were clipped at black or white are limits, not values (`leader.censoring`): the loop replaces them at every
step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from leader.censoring import Censored
from leader.errors import LeaderError
from leader.noise import SeededNoise, check_ids
from leader.operators.base import LinearOperator
from leader.operators.caches import per_image
from leader.operators.generic import try_adjoint

UNIT, INTERNAL = "[0, 1]", "[-1, 1]"
ROUNDING = 1 / 255
"""How far rounding may carry a value out of range, for entries of size 1: that of a measurement kept in 8 bits."""
LOUDEST = 5.0
"""Noise levels above this multiple of the largest value of a measurement must be in other units."""


@dataclass(frozen=True, eq=False)
class Problem:
    """y = A x + sigma z for images x in [-1, 1].

    `Problem(y, operator, sigma)` takes the measurement of a [0, 1] image and the noise level quoted for [0, 1], as papers do;
    `Problem.internal` takes both in [-1, 1] units; `Problem.simulate` makes y. In all cases the fields are in [-1, 1] units,
    and so are the values passed to `dataclasses.replace`:

    y         [B, ...]: 2 y - A(1), not 2 y - 1; zero where A reaches nothing
    sigma     noise standard deviation per image, float64 [B] on the CPU: doubled
    operator  A
    units     of the arguments; "[-1, 1]" once the problem is made
    censored  entries of y that were clipped, for which y is only a bound; None: all are measured

    in_range = False accepts values that no image can produce, for example in a photograph extended beyond its frame.

    >>> leader.Problem(torch.rand(1, 3, 8, 8), leader.operators.AveragePoolSR((3, 16, 16), 2), sigma=0.05)
    Problem('sr-average', y [1, 3, 8, 8], sigma 0.1 in [-1, 1] units)
    """

    y: Tensor
    operator: LinearOperator
    sigma: Tensor
    units: str
    censored: Censored | None

    def __init__(
        self,
        y: Tensor,
        operator: LinearOperator,
        sigma: float | Tensor = 0.0,
        units: str = UNIT,
        censored: Censored | None = None,
        *,
        in_range: bool = True,
    ) -> None:
        if units not in (UNIT, INTERNAL):
            raise LeaderError(f"The units of a problem are '{UNIT}' or '{INTERNAL}'; found {units!r}.")
        _check_kinds(y, operator)
        operator.check_measurement(y)
        spread = _check_sigma(sigma, y.shape[0])
        white = operator.A(torch.ones(1, *operator.image_shape, dtype=y.dtype, device=y.device))
        if white.shape[0] not in (1, y.shape[0]):
            raise LeaderError(f"The operator is for {white.shape[0]} images; the measurement holds {y.shape[0]}.")
        try_adjoint(operator, y)
        reached = operator.reached(y)
        if units == UNIT:
            if in_range:
                _check_range(torch.where(reached, y, 0), operator, spread, white)
            y, spread = 2 * y - white, 2 * spread
        if not bool(reached.all()):
            y = torch.where(reached, y, 0)
        self._fill(y, operator, spread, _check_censored(censored, y, reached))

    @classmethod
    def internal(cls, y: Tensor, operator: LinearOperator, sigma: float | Tensor = 0.0) -> Problem:
        """A problem whose measurement and noise are already in [-1, 1] units; its range is not checked."""
        return cls(y, operator, sigma, INTERNAL)

    @classmethod
    def simulate(
        cls,
        x: Tensor,
        operator: LinearOperator,
        sigma: float | Tensor = 0.0,
        seed: int = 0,
        ids: Sequence[int] | None = None,
        clip: bool = False,
    ) -> Problem:
        """The problem of restoring images x [B, C, H, W] in [0, 1] from A x + sigma z.

        sigma  quoted for [0, 1], one number or one per image
        clip   whether y is clipped to [0, 1], as in a file; entries at 0 and 1 are then censored
        ids    names of the images, which together with `seed` determine their noise; 0, 1, ... by default: an image gets the
               same noise alone and in any batch
        """
        _check_kinds(x, operator, "image")
        if x.ndim != 4:
            raise LeaderError(f"Images to measure have the shape [batch, channels, height, width]; found {list(x.shape)}.")
        operator.check_image(x)
        low, high = float(x.min()), float(x.max())
        if low < -1e-6 or high > 1 + 1e-6:
            hint = _hint(low, high, 1.0, "use (x + 1) / 2")
            raise LeaderError(f"The images hold values from {low:.4g} to {high:.4g}; expected [0, 1]: {hint}.")
        spread = _check_sigma(sigma, x.shape[0])
        clean = operator.A(x)
        noise = SeededNoise(seed)(check_ids(ids, x.shape[0]), [0] * x.shape[0], "measurement", clean.shape[1:]).to(clean)
        y = clean + per_image(spread.to(clean), clean) * noise
        return cls(y.clamp(0, 1), operator, sigma, censored=Censored.at_limits(y)) if clip else cls(y, operator, sigma)

    def _fill(self, y: Tensor, operator: LinearOperator, sigma: Tensor, censored: Censored | None) -> None:
        fields = (("y", y), ("operator", operator), ("sigma", sigma), ("units", INTERNAL), ("censored", censored))
        for name, value in fields:
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        sigma = ", ".join(f"{value:.4g}" for value in sorted(set(self.sigma.tolist())))
        clipped = "" if self.censored is None else f", {self.censored.count} entries censored"
        return f"Problem('{self.operator.task}', y {list(self.y.shape)}, sigma {sigma} in [-1, 1] units{clipped})"

    @property
    def batch(self) -> int:
        return int(self.y.shape[0])

    @property
    def noise_free(self) -> bool:
        return bool((self.sigma == 0).all())

    @property
    def noise_level(self) -> float:
        """The largest noise level of the batch, for [0, 1] images."""
        return float(self.sigma.max()) / 2

    @property
    def image_shape(self) -> tuple[int, int, int]:
        return self.operator.image_shape

    def sigma_column(self, like: Tensor) -> Tensor:
        """sigma as float64 [B, 1, ...] with as many axes as `like`, on its device."""
        return per_image(self.sigma.to(like.device), like)

    def residual(self, x: Tensor) -> Tensor:
        """A x - y."""
        return self.operator.A(x) - self.y

    def find_known_pixels(self) -> Tensor | None:
        """The known pixels, bool [B, H, W], of a measurement with holes that has the image's size; None for others."""
        if tuple(self.y.shape[1:]) != tuple(self.image_shape):
            return None
        reached = self.operator.reached(self.y)
        return None if bool(reached.all()) else reached.expand_as(self.y).all(1)

    def select(self, keep: Tensor) -> Problem:
        """The problem of the images `keep` (LongTensor) of the batch; the same object if these are all of them, in order."""
        if torch.equal(keep.cpu(), torch.arange(self.batch)):
            return self  # large pictures have no room for copies
        censored = None if self.censored is None else self.censored.select(keep)
        return self._with(self.y[keep], self.operator.select(keep), self.sigma[keep], censored)

    def to_dtype(self, dtype: torch.dtype) -> Problem:
        """The problem with its measurement in another precision."""
        return self if self.y.dtype == dtype else self._with(self.y.to(dtype), self.operator, self.sigma, self.censored)

    def impute(self, x: Tensor | None = None) -> Problem:
        """The problem with an ordinary measurement: censored entries get the mean of what was cut off, assuming the image is x.

        x  [B, C, H, W] in [-1, 1]: the prior's estimate, not one already made to agree with y, which would count y twice; None
           if nothing is known yet: the image is then assumed to lie at the limits
        """
        if self.censored is None:
            return self
        mean = self.y if x is None else self.operator.A(x.to(self.y))
        y = self.censored.impute(self.y, mean, self.sigma_column(self.y))
        return self._with(y, self.operator, self.sigma, None)

    def draw_censored(self, x: Tensor, seed: int = 0) -> Problem:
        """The same with draws, so that y - A x looks like noise where x [B, C, H, W] is right: for evaluating x."""
        if self.censored is None:
            return self
        draw = torch.Generator().manual_seed(seed)
        uniform = 1 - torch.rand(self.y.shape, generator=draw, dtype=torch.float64).to(self.y.device)
        y = self.censored.draw(self.y, self.operator.A(x.to(self.y)), self.sigma_column(self.y), uniform)
        return self._with(y, self.operator, self.sigma, None)

    def _with(self, y: Tensor, operator: LinearOperator, sigma: Tensor, censored: Censored | None) -> Problem:
        """A problem made of parts of this one: what was validated is not validated again."""
        problem = object.__new__(type(self))
        problem._fill(y, operator, sigma, censored)
        return problem


def _check_kinds(values: Tensor, operator: LinearOperator, what: str = "measurement") -> None:
    if not isinstance(operator, LinearOperator):
        raise LeaderError(f"A problem needs an operator of leader.operators or a subclass; found {type(operator).__name__}.")
    if not isinstance(values, Tensor):
        raise LeaderError(f"The {what} must be a torch tensor; found {type(values).__name__}: use torch.as_tensor.")
    if values.dtype not in (torch.float32, torch.float64):
        hint = ": divide bytes by 255" if values.dtype == torch.uint8 else ": convert it first"
        raise LeaderError(f"The {what} must be float32 or float64; found {str(values.dtype).removeprefix('torch.')}{hint}.")
    if values.is_meta:
        raise LeaderError(f"The {what} is on the device 'meta' and has no values; give a tensor with values.")
    if values.layout != torch.strided:
        raise LeaderError(f"The {what} is a sparse tensor; give a dense one: to_dense() makes it.")
    if values.numel() == 0:
        raise LeaderError(f"The {what} is empty: its shape is {list(values.shape)}.")
    if not bool(torch.isfinite(values).all()):
        raise LeaderError(f"The {what} contains NaN or infinite values; remove them first.")


def _check_sigma(sigma: float | Tensor, batch: int) -> Tensor:
    """The noise level per image, float64 [B] on the CPU."""
    try:
        given = torch.as_tensor(sigma, dtype=torch.float64).detach().cpu()
    except (TypeError, ValueError, RuntimeError) as error:
        raise LeaderError(f"The noise level must be a number, or one per image; found {sigma!r}.") from error
    if (
        given.ndim > 1
        or given.numel() not in (1, batch)
        or not all(math.isfinite(v) and v >= 0 for v in given.reshape(-1).tolist())
    ):
        raise LeaderError(f"The noise level must be finite and >= 0, one number or one per image; found {given.tolist()}.")
    spread = given.expand(batch).clone()
    if bool((spread > 0).any()) and bool((spread == 0).any()):
        raise LeaderError("Noisy and noise-free images cannot share a batch; run them separately.")
    return spread


def _check_censored(censored: Censored | None, y: Tensor, reached: Tensor) -> Censored | None:
    """The censored entries that A can reach, on the device of y."""
    if censored is None:
        return None
    if censored.low.shape != y.shape:
        raise LeaderError(
            f"Censored entries need the shape of the measurement, {list(y.shape)}; found {list(censored.low.shape)}."
        )
    return censored.to(y.device).where(reached)


def _check_range(y: Tensor, operator: LinearOperator, sigma: Tensor, white: Tensor) -> None:
    """Rejects y that A and noise of `sigma` cannot produce from [0, 1] images; white = A(1)."""
    known = operator.unit_range()
    bounds = (white, torch.tensor(operator.norm_like(y))) if known is None else known
    scale = max(float(bound.abs().max()) for bound in bounds)
    loudest = float(sigma.max())
    if scale > 0 and loudest > LOUDEST * scale:
        raise LeaderError(
            f"A noise level of {loudest:g} hides any image in [0, 1]; divide by 255 if it is quoted for values from 0 to 255."
        )
    if known is None:
        outside = _beyond_norm(y, sigma, white, operator.norm_like(y), math.prod(operator.image_shape))
    else:
        outside = _beyond_entries(y, sigma, *known)
    if outside:
        low, high = float(y.min()), float(y.max())
        limits = "smaller ones" if known is None else f"{float(known[0].min()):.4g} to {float(known[1].max()):.4g}"
        raise LeaderError(
            f"The measurement holds values from {low:.4g} to {high:.4g}; the operator '{operator.task}' gives {limits} "
            f"for images in [0, 1], and noise of {loudest:g} does not explain the rest: {_hint(low, high, scale)}."
        )


def _beyond_entries(y: Tensor, sigma: Tensor, low: Tensor, high: Tensor) -> bool:
    """Whether an entry of y lies out of its own range by more than noise and rounding."""
    values = y.to("cpu", torch.float64)
    # Six standard deviations, and a little more for many millions of entries, among which chance alone goes further.
    reach = max(6.0, math.sqrt(2 * math.log(values[0].numel())) + 1)
    slack = ROUNDING * torch.maximum(low.abs(), high.abs()).clamp_min(1.0)
    allowed = reach * per_image(sigma, y) + slack
    return bool(((low - values > allowed) | (values - high > allowed)).any())


def _beyond_norm(y: Tensor, sigma: Tensor, white: Tensor, norm: float, pixels: int) -> bool:
    """The same for operators with only the largest singular value known: |A x - A(1/2)| <= norm |x - 1/2|.

    The norm comes from a power iteration, which may stop a little low: a quarter is added as tolerance.
    """
    entries = math.sqrt(y[0].numel())
    distance = (y - white / 2).flatten(1).to("cpu", torch.float64).norm(dim=1)
    allowed = 1.25 * norm * math.sqrt(pixels) / 2 + (entries + 6) * sigma + ROUNDING * entries
    return bool((distance > allowed).any())


def _hint(low: float, high: float, scale: float, internal: str = "use Problem.internal or (y + 1) / 2") -> str:
    """Guesses the units of values that should not exceed `scale`."""
    ratio = max(high, -low) / scale if scale > 0 else 0.0
    if 2 < ratio <= 256:
        return "it looks like 0 to 255, so divide by 255"
    if 256 < ratio <= 65536:
        return "it looks like 0 to 65535, so divide by 65535"
    if low < 0 < ratio:
        return f"it looks like [-1, 1], so {internal}"
    return "give the measurement of an image in [0, 1]"
