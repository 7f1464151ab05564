"""DiffPIR. Zhu et al., "Denoising diffusion models for plug-and-play image restoration", CVPR 2023 workshops.

Needs the regularised inverse of the operator: the proximal map argmin |A x - y|^2 + rho |x - x0|^2 is x0 +
A^T (A A^T + rho)^{-1} (y - A x0), which holds for every A and stays accurate for tiny rho.

Differs from the authors' code: their algebraically equal closed form divides by rho and cancels in single precision; the last
evaluation is returned (`return_noisy` gives their x, which still has noise of 0.01); the start is y, or A^+ y if y is not an
image, brought to the noise of the first time by its own noise level, not that of the nearest time, and masked pixels start at
mid-grey, not black; the optional DDIM noise uses the beta between the two grid times, not that of one training step; times that
the grid's rounding repeats are visited once. Kept, so that published lambdas keep their meaning: rho is computed with the noise
level quoted for [0, 1] images (`published_units`), a quarter of its consistent value. The regularised inverse uses the whole
spectrum of A, including what A^+ cuts off. Their blurs are circular like ours, with other kernels: a Gaussian of a random width
from 3 to 9 pixels, and blurred 8-bit images that lose their fractions before noise is added; their bicubic downsampling is
inverted as if it were circular.
"""

import math
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import torch
from torch import Tensor

from leader.methods.base import Context, Estimate, Method, State
from leader.methods.shared import clamp_x0, is_last
from leader.schedule import Grid, Schedule, check_steps, grid_on

SMALLEST_SIGMA = 0.002
"""The noise level below which data are not trusted more, in [-1, 1] units."""


def early_coarse_grid(count: int, total: int = 1000) -> Grid:
    """total - 1 - floor(sqrt(linspace(0, total^2, count))): coarse at high noise, fine near 0, both ends
    included.
    """
    check_steps(count, total)
    reach = [min(math.isqrt(k * total * total // max(1, count - 1)), total - 1) for k in range(count)]
    return Grid((*dict.fromkeys(total - 1 - q for q in reach), -1))


@dataclass(frozen=True)
class DiffPIR(Method):
    """A proximal data step on x0, then DDIM's step with part of the noise renewed.

    >>> DiffPIR().cost
    Cost(forward=1, backward=0, start=0)
    """

    name: ClassVar[str] = "diffpir"
    paper: ClassVar[str] = "Zhu et al.: Denoising diffusion models for plug-and-play image restoration (CVPRW 2023)"
    summary: ClassVar[str] = "alternates the network with a proximal step on the data"
    needs: ClassVar[str] = "A and A^T (A A^T + rho)^{-1}"

    lam: Annotated[float, "(0, inf)"] = 7.0
    """Weight lambda of the estimate against the data: rho_t = lam sigma^2 / s_t^2."""
    zeta: Annotated[float, "[0, 1]"] = 0.3
    """Share of the noise that is renewed."""
    eta: Annotated[float, "[0, 1]"] = 0.0
    """DDIM's eta for the rest of the noise."""
    clamp: bool = True
    """Hold x0 in [-1, 1]."""
    published_units: bool = True
    """Compute rho with sigma as quoted for [0, 1] images; False: with sigma of the [-1, 1] images it acts on."""
    return_noisy: bool = False
    """Return the state before the last evaluation, as the authors do."""

    def default_grid(self, schedule: Schedule, steps: int) -> Grid:
        return grid_on(schedule, steps, early_coarse_grid)

    def start(self, context: Context, t: Tensor) -> State:
        """y at the noise level of t; if y is not an image, A^+ y is used as if it were clean."""
        if context.origin is not None:
            return State(context.beginning(t))
        problem, level, noise = context.problem, context.level(t), context.noise("start")
        if tuple(problem.y.shape[1:]) != problem.image_shape:
            return State(level.signal * problem.operator.pinv(problem.y) + level.noise * noise)
        brought = level.abar * problem.sigma_column(level.abar) ** 2  # the noise of y itself
        fresh = (1 - level.abar - brought).clamp_min(0).sqrt()
        return State(level.signal * problem.y + level.cast(fresh) * noise)

    def estimate(self, context: Context, state: State, t: Tensor) -> Estimate:
        estimate = super().estimate(context, state, t)
        return replace(estimate, prediction=clamp_x0(estimate.prediction)) if self.clamp else estimate

    def correct(self, context: Context, state: State, estimate: Estimate, x0: Tensor, t: Tensor, u: Tensor) -> Tensor:
        step = context.metric.regularised_pinv(-context.problem.residual(x0), self.rho(context, t))
        return x0 + torch.where(is_last(u, x0), torch.zeros_like(step), step)

    def advance(self, context: Context, state: State, estimate: Estimate, x0_hat: Tensor, t: Tensor, u: Tensor) -> State:
        now, after = context.level(t), context.level(u)
        eps = (state.x - now.signal * x0_hat) / now.noise
        renewed = self.eta**2 * (1 - after.abar) / (1 - now.abar) * (1 - now.abar / after.abar)
        kept = now.cast((1 - after.abar - renewed).clamp_min(0).sqrt()) * eps
        if self.eta > 0:
            kept = kept + now.cast(renewed.clamp_min(0).sqrt()) * context.noise("extra")
        noise = math.sqrt(1 - self.zeta) * kept + math.sqrt(self.zeta) * after.noise * context.noise("step")
        x = after.signal * x0_hat + noise
        return State(torch.where(is_last(u, x), state.x, x) if self.return_noisy else x)

    def rho(self, context: Context, t: Tensor) -> Tensor:
        """The weight of the proximal map at times t, float64 [B]."""
        abar = context.level(t).abar.flatten()
        sigma = context.problem.sigma.to(abar.device).clamp_min(SMALLEST_SIGMA)
        return self.lam * (sigma / 2 if self.published_units else sigma) ** 2 * abar / (1 - abar)
