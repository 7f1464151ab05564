"""DPS. Chung, Kim, McCann, Klasky, Ye, "Diffusion posterior sampling for general noisy inverse problems", ICLR 2023.

Needs only A and its gradient; differentiates the misfit |A x0(x_t) - y| (the norm, not its square) through the network. The
step is DDPM's ancestral step between any two grid times, minus `scale` times that gradient, including the last step.

Differs from the authors' code: one norm per image, so images of a batch are independent; entries of y that A cannot reach are
zero on both sides and do not dilute the norm; y has the stated noise. The variance is the network's own if it was trained to
predict one, else the posterior variance beta_tilde (fixed small), which the authors never ran. On a shortened grid the
network's own variance is that of the step between its two times, beta_tilde + c^2 Var[x0 | x_t]; theirs interpolates within the
shortened schedule (`variance = "respaced"`). Their blurs correlate with the image reflected at its borders (the option boundary
= "reflected" of our tasks), ours are circular convolutions. The image prior of a plug-in enters only the posterior mean: the
gradient is that of the raw estimate. `guidance = "annealed"` is ours: the misfit as a likelihood, which needs no scale per
task.
"""

from dataclasses import dataclass
from functools import cache
from typing import Annotated, ClassVar, Literal

import torch
from torch import Tensor

from leader import presets
from leader.errors import LeaderError
from leader.methods.base import Context, Cost, Estimate, Method, State
from leader.methods.shared import ancestral_step, detached, misfit
from leader.schedule import Grid, Schedule, grid_on, respaced_grid


@dataclass(frozen=True)
class DPS(Method):
    """x_u = c0 x0 + c1 x_t + std z - scale grad |A x0(x_t) - y|.

    >>> DPS().cost
    Cost(forward=1, backward=1, start=0)
    """

    name: ClassVar[str] = "dps"
    paper: ClassVar[str] = "Chung, Kim, McCann, Klasky, Ye: Diffusion posterior sampling (ICLR 2023)"
    summary: ClassVar[str] = "guides each step by the gradient of the misfit through the network"
    needs: ClassVar[str] = "A, differentiable"
    calls_per_step: ClassVar[str] = "1, and 1 backward pass"
    takes_origin: ClassVar[bool] = False  # its scale is tuned for whole paths

    scale: Annotated[float | None, "[0, inf)"] = None
    """Strength of the guidance; None: the published one of the task (presets/published.toml), 1 for a likelihood."""
    guidance: Literal["norm", "annealed"] = "norm"
    """"norm", as published; "annealed": the gradient of |A x0(x_t) - y|^2 / 2 (sigma^2 + s_t^2), s_t the noise of
    x_t / sqrt(abar_t), joins the score: with scale 1 the likelihood of y where A x0 is known up to s_t.
    """
    clamp: bool = True
    """Hold x0 in [-1, 1], inside the graph."""
    variance: Literal["auto", "small", "predicted", "respaced"] = "auto"
    """"small": the posterior variance; "predicted": plus what the prior's own variance adds; "auto":
    predicted where the network was trained to predict it; "respaced", as published: the share v that such a network
    predicts, between the logarithms of beta_tilde and beta of the shortened schedule.
    """

    @property
    def cost(self) -> Cost:
        return Cost(backward=1)

    def default_grid(self, schedule: Schedule, steps: int) -> Grid:
        return grid_on(schedule, steps, respaced_grid)

    def start(self, context: Context, t: Tensor) -> State:
        if self.variance == "predicted" and context.ask.prior.source is None:
            raise LeaderError(f"The prior '{context.ask.prior.name}' predicts no variance; use variance 'small'.")
        if self.variance == "respaced" and context.ask.prior.source != "learned":
            raise LeaderError(f"The prior '{context.ask.prior.name}' learned no range of variances; use variance 'small'.")
        return super().start(context, t)

    def estimate(self, context: Context, state: State, t: Tensor) -> Estimate:
        with torch.enable_grad():
            v = state.x.detach().requires_grad_()
            prediction, loss = misfit(context, v, t, self.clamp)
            if self.guidance == "annealed":
                spread = context.problem.sigma**2 + context.level(t).sigma.flatten() ** 2
                loss = loss**2 / (2 * spread.to(loss))
            gradient = context.ask.gradient(loss, v)
        return Estimate(v.detach(), detached(prediction), gradient)

    def advance(self, context: Context, state: State, estimate: Estimate, x0_hat: Tensor, t: Tensor, u: Tensor) -> State:
        assert estimate.guidance is not None
        moved = ancestral_step(context, estimate, x0_hat, t, u, self.variance)
        if self.guidance == "norm":
            scale = _published_scale(context.problem.operator.task) if self.scale is None else self.scale
            return State(moved - scale * estimate.guidance)
        # The score moves x0 by (1 - abar_t) / sqrt(abar_t), of which the step takes beta sqrt(abar_u) / (1 - abar_t).
        kept = context.level(t).abar / context.level(u).abar
        gain = context.level(t).cast((1 - kept) / kept.sqrt())
        return State(moved - (1.0 if self.scale is None else self.scale) * gain * estimate.guidance)


@cache
def _published_scale(task: str) -> float:
    return float(presets.find("any", DPS.name, task, 0.0)["scale"])
