"""DAPS. Zhang et al., "Improving diffusion inverse problem solving with decoupled noise annealing", CVPR 2025.

Needs A and A^T. From x_t the probability flow is followed to a clean image x0, Langevin steps then draw from

    exp(-|A x - y|^2 / (2 tau^2) - |x - x0|^2 / (2 s_t^2)),   s_t^2 = (1 - abar_t) / abar_t

starting at x0, and their result is noised to the next time. The steps are few and small: where y carries no information they do
not reach a distance of s_t, which is intended. tau is smaller than the noise of the data, so y is taken at face value; its
noise is removed afterwards: from s_t = 2 sigma on (`end`) the flow is followed to the clean image.

Differs from the authors' code: their data term has no half, so that their tau is sqrt(2) times ours; their first release ends
with the flow from a noise level of 0.1 for any sigma, which is 2 sigma for their data, the present one with Langevin steps
there; ours follows the flow from 2 sigma on, and uses the data down to the last time if they are clean. No Langevin step
exceeds the stable length, 1 / (|A|^2 / tau^2 + 1 / s_t^2), and the length falls with time, not with the step count, so runs
that skip steps take the same ones. The flow's times are equally spaced and end at the clean image (theirs by the 7th root of
the noise, to a noise level of 0.01); the run uses a uniform grid, theirs one of the 7th root from 100 to 0.1. In the metric of
a plug-in the chain starts at E[x0 | x_t, y], which it may not reach by itself; the target distribution stays the same. Their
Hamiltonian steps, an option of the present release, are left out.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from torch import Tensor

from leader.methods.base import Context, Cost, Estimate, Method, State
from leader.methods.shared import follow_flow, is_last, largest_squared
from leader.noise import inner_name


@dataclass(frozen=True)
class DAPS(Method):
    """Flow to a clean image, Langevin steps towards the data, noise again.

    >>> DAPS().cost
    Cost(forward=5, backward=0, start=0)
    """

    name: ClassVar[str] = "daps"
    paper: ClassVar[str] = "Zhang et al.: Decoupled annealing posterior sampling (CVPR 2025)"
    summary: ClassVar[str] = "follows the flow to a clean image, takes Langevin steps on the data and noises it again"
    needs: ClassVar[str] = "A and A^T"
    calls_per_step: ClassVar[str] = "`flow`"

    flow: Annotated[int, "[1, 1000]"] = 5
    """Network calls per time, steps of the probability flow; the paper has 5 to 10."""
    inner: Annotated[int, "[1, 1000]"] = 100
    """Langevin steps per time; the paper has 100."""
    rate: Annotated[float, "(0, inf)"] = 1e-4
    """Their length at the highest noise, in [-1, 1] units squared."""
    fall: Annotated[float, "(0, 1]"] = 0.01
    """Fraction of the length that remains at the end."""
    tau: Annotated[float, "(0, inf)"] = 0.01
    """Assumed standard deviation of the data, in [-1, 1] units."""
    end: Annotated[float, "[0, inf)"] = 2.0
    """Noisy data are used while s_t is at least this multiple of their noise; then the flow is followed to the end."""

    @property
    def cost(self) -> Cost:
        return Cost(forward=self.flow)

    def estimate(self, context: Context, state: State, t: Tensor) -> Estimate:
        return Estimate(state.x, follow_flow(context, state.x, t, self.flow))

    def correct(self, context: Context, state: State, estimate: Estimate, x0: Tensor, t: Tensor, u: Tensor) -> Tensor:
        taken = self._takes_data(context, t, x0) & ~is_last(u, x0)
        return torch.where(taken, self.sample(context, x0, t), x0) if bool(taken.any()) else x0

    def advance(self, context: Context, state: State, estimate: Estimate, x0_hat: Tensor, t: Tensor, u: Tensor) -> State:
        after = context.level(u)
        noise = torch.where(self._takes_data(context, t, x0_hat), context.noise("step"), estimate.prediction.eps)
        return State(after.signal * x0_hat + after.noise * noise)

    def sample(self, context: Context, x0: Tensor, t: Tensor) -> Tensor:
        """The end of the Langevin chain around x0 [B, C, H, W] at times t."""
        problem, now = context.problem, context.level(t)
        precision, anchor = 1 / self.tau**2, now.abar / (1 - now.abar)
        share = (t.double() / (len(context.schedule) - 1)).reshape(-1, 1, 1, 1)
        step = self.rate * (self.fall + (1 - self.fall) * share)
        step = torch.minimum(step, 1 / (largest_squared(problem) * precision + anchor))
        to_data, to_x0, spread = now.cast(step * precision), now.cast(step * anchor), now.cast((2 * step).sqrt())
        x = context.expected(x0)
        for k in range(self.inner):
            pull = to_data * problem.operator.AT(problem.residual(x)) + to_x0 * (x - x0)
            x = x - pull + spread * context.noise(inner_name(k))
        return x

    def _takes_data(self, context: Context, t: Tensor, like: Tensor) -> Tensor:
        """Images whose noise at times t is high enough to use the data, bool [B, 1, 1, 1] on the device of `like`."""
        abar = context.level(t).abar
        limit = self.end * context.problem.sigma_column(abar)
        return ((1 - abar) / abar >= limit**2).to(like.device)
