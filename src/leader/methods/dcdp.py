"""DCDP. Li et al., "Decoupled data consistency with diffusion purification for image restoration", 2024.

Needs A and A^T. Two phases in turn: a few steps of gradient descent with momentum on |A x - y|^2 from the current image, then
purification, noise of time t and the probability flow back to a clean image. Times fall linearly from `first`; the run starts
from mid-grey with a data phase and ends with a purification.

Differs from the authors' code: the length of a gradient step is in units of 1 / |A|^2, while theirs is that of the mean square
error, tuned for every task (0.01 to 1 in these units); noisy data are fitted with the paper's proximity term, lam sigma^2 /
s_t^2 times |x - x0|^2, which is off by default in their code (`lam = 0`); x0 is not clamped inside the flow, whose last call is
at t / flow, theirs at 0, where a call changes next to nothing; their times are counted from 1, so that their 400 is 399 here;
the last purification is that of the last time. `flow = 1` is their second version, with the network's estimate instead of the
flow. In the metric of a plug-in the data phase is E[x0 | x_t, y], the very minimum that the descent is on its way to with the
covariance s_t^2 / lam.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from torch import Tensor

from leader.methods.base import Context, Cost, Estimate, Method, State
from leader.methods.shared import follow_flow, is_last, largest_squared
from leader.schedule import Grid, Schedule, grid_on, linspace_grid

MOMENTUM = 0.9


@dataclass(frozen=True)
class DCDP(Method):
    """Gradient descent on the data, and purification by the flow, in turn.

    >>> DCDP().cost
    Cost(forward=20, backward=0, start=0)
    """

    name: ClassVar[str] = "dcdp"
    paper: ClassVar[str] = (
        "Li, Kwon, Liang, Alkhouri, Ravishankar, Qu: Decoupled data consistency with diffusion purification (2024)"
    )
    summary: ClassVar[str] = "fits the data by gradient descent, then purifies the image by noise and the flow back"
    needs: ClassVar[str] = "A and A^T"
    calls_per_step: ClassVar[str] = "`flow`"
    revision: ClassVar[int] = 2

    flow: Annotated[int, "[1, 1000]"] = 20
    """Network calls per time, steps of the probability flow; 1: the network's own estimate. The paper has 20."""
    inner: Annotated[int, "[1, 1000]"] = 10
    """Gradient steps per time; released with 10 to 100."""
    rate: Annotated[float, "(0, 3.8)"] = 1.0
    """Their length, in units of 1 / |A|^2; descent diverges from 2 (1 + MOMENTUM) on."""
    lam: Annotated[float, "[0, inf)"] = 4.0
    """Weight of |x - x0|^2 for noisy data, times sigma^2 / s_t^2; 0: as released."""
    first: Annotated[int, "[1, 999]"] = 400
    """The highest time, on the linear schedule of 1000 steps; published: 400, and 700 for inpainting."""

    @property
    def cost(self) -> Cost:
        return Cost(forward=self.flow)

    def default_grid(self, schedule: Schedule, steps: int) -> Grid:
        return grid_on(schedule, steps, lambda count, total: linspace_grid(count, total, round(self.first * total / 1000)))

    def start(self, context: Context, t: Tensor) -> State:
        """A fit to the data alone, from mid-grey, at the noise of t."""
        if context.origin is not None:
            return State(context.beginning(t))
        noise, level = context.noise("start"), context.level(t)
        return State(level.signal * self.fit(context, torch.zeros_like(noise), t) + level.noise * noise)

    def estimate(self, context: Context, state: State, t: Tensor) -> Estimate:
        return Estimate(state.x, follow_flow(context, state.x, t, self.flow))

    def correct(self, context: Context, state: State, estimate: Estimate, x0: Tensor, t: Tensor, u: Tensor) -> Tensor:
        last = is_last(u, x0)
        return x0 if bool(last.all()) else torch.where(last, x0, self.fit(context, x0, t))

    def advance(self, context: Context, state: State, estimate: Estimate, x0_hat: Tensor, t: Tensor, u: Tensor) -> State:
        after = context.level(u)
        return State(after.signal * x0_hat + after.noise * context.noise("step"))

    def fit(self, context: Context, x0: Tensor, t: Tensor) -> Tensor:
        """x0 [B, C, H, W] moved towards the data: by gradient descent, in a plug-in's metric all the way."""
        if context.given_metric is not None:
            return context.expected(x0)
        problem, now = context.problem, context.level(t)
        weight = self.lam * problem.sigma_column(now.abar) ** 2 * now.abar / (1 - now.abar)
        step = self.rate / (largest_squared(problem) + weight)
        to_data, to_x0 = now.cast(step), now.cast(step * weight)
        x, speed = x0, torch.zeros_like(x0)
        for _ in range(self.inner):
            speed = MOMENTUM * speed + to_data * problem.operator.AT(problem.residual(x)) + to_x0 * (x - x0)
            x = x - speed
        return x
