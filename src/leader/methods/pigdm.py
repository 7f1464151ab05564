"""PiGDM. Song, Vahdat, Mardani, Kautz, "Pseudoinverse-guided diffusion models for inverse problems", ICLR 2023.

    g = r_t^2 J^T A^T (r_t^2 A A^T + sigma^2)^{-1} (y - A x0),   J = dx0/dx_t,   r_t^2 = 1 - abar_t

Needs the regularised inverse, for clean data A^+, and a product with the network's transposed Jacobian. It is the score of y if
x0 | x_t ~ N(x0, r_t^2): r_t^2 is exact for independent pixels of variance 1; `variance` sets another one. DDIM's step then
continues from x0 + sqrt(abar_t) g, the adaptive weights of the paper, or with the unweighted score (`weights = "score"`).

Differs from the authors' code (that of RED-diff, whose authors are the same): their guidance ignores sigma, ours has the
paper's noisy form; they start from A^+ y at the first noise level and we start from pure noise, which is indistinguishable at
abar_T = 4e-5; their inpainting overwrites known pixels of x0, ours leaves them to the guidance; their share of fresh noise is 0
by default, the paper's tables and ours use 1.

A plug-in's metric is not used: J is abar_t^(1/2) / (1 - abar_t) Cov[x0 | x_t] by Tweedie's formula, so g is already in that
metric, and PiGDM becomes the host `posterior` with `ucdc` if r_t^2 is that covariance too. The image prior of a plug-in enters
x0, not the guidance.
"""

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

import torch
from torch import Tensor

from leader.methods.base import Context, Cost, Estimate, State
from leader.methods.ddim import DDIM
from leader.methods.shared import detached


@dataclass(frozen=True)
class PiGDM(DDIM):
    """DDIM around x0 plus the guidance of the pseudo-inverse through the network.

    >>> PiGDM().cost
    Cost(forward=1, backward=1, start=0)
    """

    name: ClassVar[str] = "pigdm"
    paper: ClassVar[str] = "Song, Vahdat, Mardani, Kautz: Pseudoinverse-guided diffusion models (ICLR 2023)"
    summary: ClassVar[str] = "guides each step by the pseudo-inverse of the misfit, taken back through the network"
    needs: ClassVar[str] = "A^+; with noise A^T (A A^T + eta)^{-1}"
    calls_per_step: ClassVar[str] = "1, and 1 backward pass"

    eta: Annotated[float, "[0, 1]"] = 1.0
    """Share of fresh noise: 1 is the ancestral process, 0 the probability flow."""
    variance: Annotated[float, "(0, inf)"] = 1.0
    """v, the variance of clean pixels: r_t^2 = v (1 - abar) / (1 - abar + v abar)."""
    weights: Literal["adaptive", "score"] = "adaptive"
    """"adaptive", as published: x0 moves by sqrt(abar_t) g and the predicted noise stays; "score": both follow the score of y,
    exact for a white Gaussian prior of that variance.
    """

    @property
    def cost(self) -> Cost:
        return Cost(backward=1)

    def left(self, context: Context, t: Tensor) -> Tensor:
        """r_t^2, the variance of a clean pixel given x_t, float64 [B, 1, 1, 1]."""
        abar = context.level(t).abar
        return self.variance * (1 - abar) / (1 - abar + self.variance * abar)

    def estimate(self, context: Context, state: State, t: Tensor) -> Estimate:
        problem = context.problem
        with torch.enable_grad():
            v = state.x.detach().requires_grad_()
            prediction = context.ask(v, t)
            missing = -problem.residual(prediction.x0.detach())
            if problem.noise_free:
                move = problem.operator.pinv(missing)
            else:
                move = problem.operator.regularised_pinv(missing, problem.sigma**2 / self.left(context, t).flatten())
            guidance = context.ask.gradient((prediction.x0 * move.detach()).flatten(1).sum(1), v)
        return Estimate(v.detach(), detached(prediction), guidance)

    def correct(self, context: Context, state: State, estimate: Estimate, x0: Tensor, t: Tensor, u: Tensor) -> Tensor:
        assert estimate.guidance is not None
        now = context.level(t)
        if self.weights == "adaptive":
            return x0 + now.signal * estimate.guidance
        return x0 + now.cast((1 - now.abar) / now.abar.sqrt() / self.left(context, t)) * estimate.guidance

    def advance(self, context: Context, state: State, estimate: Estimate, x0_hat: Tensor, t: Tensor, u: Tensor) -> State:
        assert estimate.guidance is not None
        if self.weights == "score":
            now = context.level(t)
            eps = estimate.prediction.eps - now.cast((1 - now.abar).sqrt() / self.left(context, t)) * estimate.guidance
            estimate = replace(estimate, prediction=replace(estimate.prediction, eps=eps))
        return super().advance(context, state, estimate, x0_hat, t, u)
