"""The exact sampler of a Gaussian posterior: E[x0 | x_t, y], and the noise that belongs to it. This project: docs/metric.md.

    x_hat = E[x0 | x_t, y],   eps = (x_t - sqrt(abar) x_hat) / sqrt(1 - abar),   x_u = DDIM's step with both

(sqrt(abar) x_hat - x_t) / (1 - abar) is the score of p(x_t | y), so the steps follow the posterior's own reverse process: if x0
| x_t is Gaussian with the metric's Sigma, the law of the answer converges to p(x0 | y) as the number of steps grows. It needs a
metric that knows how uncertain x0 is (the plug-in `ucdc`); for networks, whose covariance is a model, it is a reference rather
than the best host: with few steps it commits early where much is measured with noise.
"""

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

from torch import Tensor

from leader.methods.base import Context, Estimate, State
from leader.methods.ddim import DDIM


@dataclass(frozen=True)
class Posterior(DDIM):
    """DDIM with E[x0 | x_t, y] instead of E[x0 | x_t].

    >>> Posterior().cost
    Cost(forward=1, backward=0, start=0)
    """

    name: ClassVar[str] = "posterior"
    paper: ClassVar[str] = "this project: docs/metric.md"
    summary: ClassVar[str] = "samples with E[x0 | x_t, y] in the metric of the local uncertainty; exact for Gaussian priors"
    needs: ClassVar[str] = "A and A^T; clean data also A^+"
    needs_metric: ClassVar[bool] = True

    eta: Annotated[float, "[0, 1]"] = 1.0
    """Share of fresh noise: 1 is the ancestral process, 0 the probability flow."""

    def correct(self, context: Context, state: State, estimate: Estimate, x0: Tensor, t: Tensor, u: Tensor) -> Tensor:
        return context.expected(x0)

    def advance(self, context: Context, state: State, estimate: Estimate, x0_hat: Tensor, t: Tensor, u: Tensor) -> State:
        now = context.level(t)
        eps = (state.x - now.signal * x0_hat) / now.noise
        return super().advance(
            context, state, replace(estimate, prediction=replace(estimate.prediction, eps=eps)), x0_hat, t, u
        )
