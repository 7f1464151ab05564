"""Code shared by several methods: the spectral noise split, steps between times, clamps, the misfit for guidance, Adam."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from leader.methods.base import Context, Estimate, per_image
from leader.operators.base import SpectralOperator, where_measured
from leader.operators.components import Components
from leader.priors.adapters import learned_share
from leader.priors.base import LatePrediction, Prediction, from_x0
from leader.problem import Problem
from leader.schedule import Grid, Schedule, grid_on, travel_grid


@dataclass(frozen=True)
class SpectralSplit:
    """Per component: how much of the misfit is corrected, and the weights of fresh and predicted noise.

    elsewhere  the two weights where nothing is measured, one number per image, [B, 1, 1, 1]
    """

    correction: Tensor
    fresh: Tensor
    predicted: Tensor
    elsewhere: tuple[Tensor, Tensor]

    def corrected(self, context: Context, part: Components, x0: Tensor) -> Tensor:
        """x0 moved towards the data, component by component."""
        return x0 - part.back(self.correction * (part.to(x0) - scale_data(context, part)))

    def noise(self, part: Components, fresh: Tensor, predicted: Tensor) -> Tensor:
        """The noise to add, [B, C, H, W], from a fresh draw and the predicted noise in pixel space."""
        total = self.elsewhere[0] * fresh
        total += self.elsewhere[1] * predicted
        change = (self.fresh - per_image(self.elsewhere[0], self.fresh)) * part.to(fresh)
        change += (self.predicted - per_image(self.elsewhere[1], self.predicted)) * part.to(predicted)
        total += part.back(change)
        return total


def scale_data(context: Context, part: Components) -> Tensor:
    """y / s in the coordinates of the components, zero where nothing is measured; built once per measurement."""
    y = context.problem.y

    def make() -> Tensor:
        return SpectralOperator.cast(where_measured(torch.reciprocal, part.s), y) * part.data(y)

    return context.per_measurement("seen", make)


def spectral_split(
    context: Context, operator: SpectralOperator, u: Tensor, eta: float, eta_b: float = 1.0, *, whole: bool = False
) -> SpectralSplit:
    """The table of DDRM, which with eta_b = 1 is that of DDNM+, for the step to times u; built once per step.

    Where y is cleaner than the target level the share eta_b of the misfit is corrected; where it is noisier,
    as much as keeps signal and noise together at the variance 1 - abar_u of the forward process. The table covers the measured
    components, and those cut off count as unmeasured; with `whole` it covers all components and their whole spectrum. At u = -1
    nothing is corrected: the answer is the estimate itself.
    """
    key = ("spectral split", tuple(u.tolist()), eta, eta_b, whole)
    return context.once(key, lambda: _split(context, operator.spectrum if whole else operator.measured.s, u, eta, eta_b))


STRIP = 1 << 20
"""Components processed at a time: the table is computed in float64, and an operator may have a component per pixel."""


def _split(context: Context, values: Tensor, u: Tensor, eta: float, eta_b: float) -> SpectralSplit:
    """The table, computed a few rows at a time; components are independent."""
    level = context.level(u)
    elsewhere = (eta * level.noise, (1 - eta**2) ** 0.5 * level.noise)
    rows = max(1, STRIP * values.shape[2] // max(1, values.numel())) if values.ndim == 4 else values.shape[-1]
    if values.ndim != 4 or rows >= values.shape[2]:
        return SpectralSplit(*_table(context, values, u, eta, eta_b), elsewhere)
    batch = max(len(values), len(u))
    made = tuple(context.problem.y.new_empty(batch, *values.shape[1:]) for _ in range(3))
    for first in range(0, values.shape[2], rows):
        there = (..., slice(first, first + rows), slice(None))
        for whole, part in zip(made, _table(context, values[there], u, eta, eta_b), strict=True):
            whole[there] = part
    return SpectralSplit(made[0], made[1], made[2], elsewhere)


def _table(context: Context, values: Tensor, u: Tensor, eta: float, eta_b: float) -> tuple[Tensor, Tensor, Tensor]:
    """Correction, fresh and predicted, each component from its singular value."""
    y = context.problem.y
    s = values.cpu().double()
    abar = per_image(context.level(u).abar, s)
    noise = (1 - abar).sqrt()
    measured = s > 0
    carried = abar.sqrt() * per_image(context.problem.sigma, s) / torch.where(measured, s, 1.0)  # the noise of y itself
    cleaner = measured & (noise >= carried) & (noise > 0)
    kept = (1 - eta**2) ** 0.5
    correction = torch.where(cleaner, eta_b, kept * noise / carried.clamp_min(1e-300)) * measured
    fresh = torch.where(cleaner, (noise**2 - (eta_b * carried) ** 2).clamp_min(0).sqrt(), eta * noise)
    predicted = torch.where(measured, 0.0, kept * noise)
    return correction.to(y), fresh.to(y), predicted.to(y)


def clamp_x0(prediction: Prediction) -> Prediction:
    """The prediction with x0 clamped to [-1, 1]; eps is unchanged."""
    return LatePrediction(prediction.x0.clamp(-1, 1), prediction.eps, lambda: prediction.variance)


def detached(prediction: Prediction, late: bool = True) -> Prediction:
    """The prediction without its graph. A `late` variance is computed when it is read and holds the graph until then; where no
    backward pass has emptied that, it is large.
    """

    def variance() -> Tensor | None:
        return None if prediction.variance is None else prediction.variance.detach()

    x0, eps = prediction.x0.detach(), prediction.eps.detach()
    return LatePrediction(x0, eps, variance) if late else Prediction(x0, eps, variance())


def misfit(context: Context, v: Tensor, t: Tensor, clamp: bool) -> tuple[Prediction, Tensor]:
    """The prediction at v and |A x0(v) - y| per image [B], differentiable with respect to v where gradients
    are on.

    With `clamp`, x0 is clamped to [-1, 1] inside the graph, so saturated pixels pass no gradient.
    """
    prediction = context.ask(v, t)
    if clamp:
        prediction = clamp_x0(prediction)
    return prediction, context.problem.residual(prediction.x0).flatten(1).norm(dim=1)


def measured_entries(problem: Problem) -> Tensor:
    """How many entries of each measurement A can reach, float64 [B]: masked entries do not count."""
    reached = problem.operator.reached(problem.y).expand(problem.y.shape)
    return reached.flatten(1).sum(1).to("cpu", torch.float64)


def largest_squared(problem: Problem) -> Tensor:
    """|A|^2 of every image, float64 [B or 1, 1, 1, 1]; for operators without an SVD that of the whole batch."""
    operator = problem.operator
    if isinstance(operator, SpectralOperator):
        return operator.spectrum.cpu().double().flatten(1).amax(1).reshape(-1, 1, 1, 1) ** 2
    return torch.full((1, 1, 1, 1), operator.norm_like(problem.y) ** 2, dtype=torch.float64)


def is_last(u: Tensor, like: Tensor) -> Tensor:
    """Which images go to the clean image next (u = -1), broadcastable over `like`."""
    return per_image(u.to(like.device) < 0, like)


def ancestral_step(
    context: Context, estimate: Estimate, x0_hat: Tensor, t: Tensor, u: Tensor, variance: str = "auto"
) -> Tensor:
    """DDPM's step between any two times, around the clean image x0_hat, with the draw "step"; the last adds no noise.

    variance  "small": beta_tilde; "predicted": plus what the prior's own variance adds; "auto": predicted where the network was
              trained to predict it; "respaced": within the range of the shortened schedule that such a network was trained for
    """
    now, after = context.level(t), context.level(u)
    beta = 1 - now.abar / after.abar
    to_x0 = beta * after.abar.sqrt() / (1 - now.abar)
    to_x = (1 - after.abar) * (1 - beta).sqrt() / (1 - now.abar)
    mean = now.cast(to_x0) * x0_hat + now.cast(to_x) * estimate.x
    spread = now.cast(beta * (1 - after.abar) / (1 - now.abar))
    trained = context.ask.prior.source == "learned"
    asked = variance in ("predicted", "respaced") or (variance == "auto" and trained)
    predicted = estimate.prediction.variance if asked else None  # a head works only when it is read
    if predicted is not None and variance != "respaced":
        # Var[x_u | x_t] = beta_tilde + c0^2 Var[x0 | x_t]; the last step adds no noise.
        spread = spread + now.cast(to_x0**2 * (after.abar < 1)) * predicted
    if predicted is not None and variance == "respaced":
        share = learned_share(predicted, t, context.schedule)
        ends = [now.cast(value.clamp_min(1e-300).log()) for value in (beta * (1 - after.abar) / (1 - now.abar), beta)]
        spread = ((1 - share) * ends[0] + share * ends[1]).exp() * now.cast((after.abar < 1).double())
    return mean + spread.clamp_min(0).sqrt() * context.noise("step")


def travelling_grid(schedule: Schedule, steps: int, length: int, repeats: int) -> Grid:
    """The uniform grid of `steps` steps; from every length-th one it goes back up by as many, repeats - 1 times."""
    return grid_on(schedule, steps, lambda count, total: travel_grid(count, length, repeats, total))


def noise_up(context: Context, x: Tensor, t: Tensor, u: Tensor) -> Tensor:
    """x_t [B, C, H, W] at times u > t, by the forward process: sqrt(abar_u / abar_t) x_t + sqrt(1 - abar_u / abar_t) z."""
    now, up = context.level(t), context.level(u)
    kept = up.abar / now.abar
    return up.cast(kept.sqrt()) * x + up.cast((1 - kept).sqrt()) * context.noise("travel")


def replace_measured(context: Context, x: Tensor, t: Tensor, u: Tensor, damping: float) -> Tensor:
    """x at times u with the measured part taken from y, brought to the noise of u by the draw "observation".

    Clean data, or damping = 0: A x is that of y. Noisy data: weighted by damping sigma^2 against the variance 1 - abar_t of x0
    given x_t, so y enters fully at high noise and not at all at the end. Never in a plug-in's metric: what is replaced is
    mostly noise, which is white, and the correlations of x0 would carry it into pixels that have theirs already.
    """
    problem, now, after = context.problem, context.level(t), context.level(u)
    operator, y = problem.operator, problem.y
    known = per_image(after.signal, y) * y + per_image(after.noise, y) * operator.A(context.noise("observation"))
    missing = known - operator.A(x)
    if problem.noise_free or damping == 0:
        return x + operator.pinv(missing)
    return x + operator.regularised_pinv(missing, damping * problem.sigma**2 / (1 - now.abar.flatten()))


def follow_flow(context: Context, x: Tensor, t: Tensor, steps: int) -> Prediction:
    """The clean image at the end of the probability flow from x at times t, by `steps` DDIM steps of equal length in time.

    The variance is that at times t. One step is the network's own estimate; every step calls the network, even if few times are
    left.
    """
    here, variance = x, None
    for k in range(steps, 0, -1):
        prediction = context.ask(here, t * k // steps)
        variance = prediction.variance if k == steps else variance
        after = context.level(t * (k - 1) // steps)
        here = after.signal * prediction.x0 + after.noise * prediction.eps
    return from_x0(x, t, prediction.x0, context.schedule, variance)


@dataclass(frozen=True)
class Adam:
    """The state of Adam for a tensor, without weight decay; elementwise, so the images of a batch do not couple.

    count   updates so far, one number, or one per image [B, 1, 1, 1]
    second_decay  that of the mean square; that of the mean is 0.9
    """

    first: Tensor
    second: Tensor
    count: int | Tensor = 0
    second_decay: float = 0.999

    def step(self, v: Tensor, gradient: Tensor, rate: float) -> tuple[Adam, Tensor]:
        """The next state, and v after one update."""
        count, decay = self.count + 1, self.second_decay
        first = 0.9 * self.first + 0.1 * gradient
        second = decay * self.second + (1 - decay) * gradient**2
        scale = (second / (1 - decay**count)).sqrt() + 1e-8
        return Adam(first, second, count, decay), v - rate / (1 - 0.9**count) * first / scale
