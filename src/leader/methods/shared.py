"""What several methods share: the spectral noise split, clamps, the misfit that guidance differentiates."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from leader.methods.base import Context, per_image
from leader.operators.base import SpectralOperator
from leader.priors.base import Prediction
from leader.problem import Problem


@dataclass(frozen=True)
class SpectralSplit:
    """Per spectral component: how much of the misfit is corrected, and the weights of fresh and predicted
    noise.
    """

    correction: Tensor
    fresh: Tensor
    predicted: Tensor

    def corrected(self, context: Context, operator: SpectralOperator, x0: Tensor) -> Tensor:
        """x0 moved towards the data, component by component."""
        return x0 - operator.back(self.correction * (operator.to(x0) - seen(context, operator)))

    def noise(self, operator: SpectralOperator, fresh: Tensor, predicted: Tensor) -> Tensor:
        """The noise to add, [B, C, H, W], from a fresh draw and the predicted noise in pixel space."""
        total = self.fresh * operator.to(fresh)
        total += self.predicted * operator.to(predicted)
        return operator.back(total)


def seen(context: Context, operator: SpectralOperator) -> Tensor:
    """y / s in the basis of the image, zero where nothing is measured; built once a run."""
    y = context.problem.y
    return context.always("seen", lambda: operator.filter(lambda s: 1 / s, y) * operator.data(y))


def spectral_split(
    context: Context, operator: SpectralOperator, u: Tensor, eta: float, eta_b: float = 1.0, *, whole: bool = False
) -> SpectralSplit:
    """The table of DDRM, which with eta_b = 1 is that of DDNM+, for the step to times u; built once a step.

    Where y is cleaner than the target level the share eta_b of the misfit is corrected; where it is noisier,
    as much as keeps signal and noise together at the variance 1 - abar_u of the forward process. Components
    cut off count as unmeasured, unless `whole`, which takes all of the spectrum. At u = -1 nothing is corrected: the answer is
    the estimate itself.
    """
    key = ("spectral split", tuple(u.tolist()), eta, eta_b, whole)
    return context.once(key, lambda: _split(context, operator.spectrum if whole else operator.s, u, eta, eta_b))


STRIP = 1 << 20
"""Components whose table is made at a time: it is made in float64, and an operator may have one for every pixel."""


def _split(context: Context, values: Tensor, u: Tensor, eta: float, eta_b: float) -> SpectralSplit:
    """The table, a few rows at a time; every component is made by itself."""
    rows = max(1, STRIP * values.shape[2] // max(1, values.numel())) if values.ndim == 4 else values.shape[-1]
    if values.ndim != 4 or rows >= values.shape[2]:
        return SpectralSplit(*_table(context, values, u, eta, eta_b))
    batch = max(len(values), len(u))
    made = [context.problem.y.new_empty(batch, *values.shape[1:]) for _ in range(3)]
    for first in range(0, values.shape[2], rows):
        there = (..., slice(first, first + rows), slice(None))
        for whole, part in zip(made, _table(context, values[there], u, eta, eta_b), strict=True):
            whole[there] = part
    return SpectralSplit(*made)


def _table(context: Context, values: Tensor, u: Tensor, eta: float, eta_b: float) -> tuple[Tensor, Tensor, Tensor]:
    y = context.problem.y
    s = values.cpu().double()
    abar = per_image(context.level(u).abar, s)
    sigma = per_image(context.problem.sigma, s)
    noise = (1 - abar).sqrt()
    measured = s > 0
    carried = abar.sqrt() * sigma / torch.where(measured, s, torch.ones_like(s))  # noise that y brings along
    cleaner = measured & (noise >= carried) & (noise > 0)
    noisier = measured & ~cleaner
    kept = (1 - eta**2) ** 0.5
    partial = kept * noise / carried.clamp_min(1e-300)
    correction = torch.where(noisier, partial, torch.full_like(partial, eta_b)) * measured
    fresh = torch.where(cleaner, (noise**2 - (eta_b * carried) ** 2).clamp_min(0).sqrt(), eta * noise)
    predicted = torch.where(measured, torch.zeros_like(carried), kept * noise.expand_as(carried))
    return correction.to(y), fresh.to(y), predicted.to(y)


def clamp_x0(prediction: Prediction) -> Prediction:
    """The prediction with x0 held in [-1, 1]; eps stays what the network said."""
    return replace(prediction, x0=prediction.x0.clamp(-1, 1))


def detached(prediction: Prediction) -> Prediction:
    """The prediction without its graph."""
    variance = None if prediction.variance is None else prediction.variance.detach()
    return Prediction(prediction.x0.detach(), prediction.eps.detach(), variance)


def misfit(context: Context, v: Tensor, t: Tensor, clamp: bool) -> tuple[Prediction, Tensor]:
    """The prediction at v and |A x0(v) - y| per image [B], differentiable with respect to v where gradients
    are on.

    With `clamp` x0 is held in [-1, 1] inside the graph, so that saturated pixels pass no gradient.
    """
    prediction = context.ask(v, t)
    if clamp:
        prediction = clamp_x0(prediction)
    return prediction, context.problem.residual(prediction.x0).flatten(1).norm(dim=1)


def measured_entries(problem: Problem) -> Tensor:
    """How many entries of each measurement A can reach, float64 [B]: masked entries do not count."""
    reached = problem.operator.reached(problem.y).expand(problem.y.shape)
    return reached.flatten(1).sum(1).to("cpu", torch.float64)


def is_last(u: Tensor, like: Tensor) -> Tensor:
    """Which images go to the clean image next (u = -1), broadcastable over `like`."""
    return per_image(u.to(like.device) < 0, like)
