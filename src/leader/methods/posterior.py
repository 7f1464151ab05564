"""The exact sampler of a Gaussian posterior: E[x0 | x_t, y], and the noise that belongs to it. This project: docs/metric.md.

    x_hat = E[x0 | x_t, y],   eps = (x_t - sqrt(abar) x_hat) / sqrt(1 - abar),   x_u = DDIM's step with both

(sqrt(abar) x_hat - x_t) / (1 - abar) is the score of p(x_t | y), so that the steps follow the posterior's own reverse process:
where x0 | x_t is Gaussian with the metric's Sigma the law of the answer goes to p(x0 | y) as the steps become many. It needs a
metric that knows how uncertain x0 is (the plug-in `ucdc`); for networks, whose covariance is a model, it is a reference rather
than the best host: with few steps it commits early where much is measured with noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from leader.errors import LeaderError
from leader.methods.base import Context, Estimate, Method, State


@dataclass(frozen=True)
class Posterior(Method):
    """Follows the reverse process of p(x_t | y) with E[x0 | x_t, y] of the metric."""

    name: ClassVar[str] = "posterior"
    paper: ClassVar[str] = "this project: docs/metric.md"
    summary: ClassVar[str] = "samples with E[x0 | x_t, y] in the metric of the local uncertainty; exact for Gaussian priors"
    needs: ClassVar[str] = "A and A^T; clean data also A^+"
    needs_metric: ClassVar[bool] = True

    eta: float = 1.0
    """Share of the noise that is drawn anew: 1 the ancestral process, 0 the probability flow."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.eta <= 1:
            raise LeaderError(f"The eta of the method 'posterior' must lie in [0, 1]; found {self.eta}.")

    def correct(self, context: Context, state: State, estimate: Estimate, x0: Tensor, t: Tensor, u: Tensor) -> Tensor:
        return context.expected(x0)

    def advance(self, context: Context, state: State, estimate: Estimate, x0_hat: Tensor, t: Tensor, u: Tensor) -> State:
        now, after = context.level(t), context.level(u)
        eps = (state.x - now.signal * x0_hat) / now.noise
        fresh = self.eta**2 * (1 - after.abar) / (1 - now.abar) * (1 - now.abar / after.abar)
        kept = now.cast((1 - after.abar - fresh).clamp_min(0).sqrt())
        return State(after.signal * x0_hat + kept * eps + now.cast(fresh.clamp_min(0).sqrt()) * context.noise("step"))
