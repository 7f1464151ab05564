"""RED-diff. Mardani, Song, Kautz, Vahdat, "A variational perspective on solving inverse problems with diffusion models", ICLR
2024.

Needs A and A^T, and A^+ to start. A clean image mu is optimised by Adam, one step per time, from high noise to low. It is
noised to x_t with noise z; the network's eps gives the gradient of a regulariser, and y that of a least-squares term,

    (w_t (eps(x_t) - z) + c A^T (A mu - y)) / pixels,   w_t = lam s_t^power,   s_t^2 = (1 - abar_t) / abar_t

With power = 1 the first term is lam (mu - x0(x_t)), so the image prior of a plug-in enters through x0. In a plug-in's metric
E[x0 | x_t, y] replaces x0; the least-squares term has no inverse that a metric could change.

Both are means over pixels and over entries, as in their code, so that Adam's 1e-8 weighs against gradients as small as theirs.

Differs from the authors' code: c counts the entries of y that A can reach, as theirs does by leaving out the others; noisy data
start at A^T (A A^T + sigma^2)^{-1} y, theirs at A^+ y; the images of a batch do not share a mean; their answer is mu before the
last step. Their spread of mu, 0 by default, is left out. They use 1000 steps; with fewer, Adam's rate of 0.1 still reaches the
data.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from torch import Tensor

from leader.methods.base import Context, Estimate, Method, State, per_image
from leader.methods.shared import Adam, measured_entries


@dataclass(frozen=True)
class REDDiffState(State):
    """x, the last input of the network; mu, the clean image that is optimised; and Adam's state for it, count [B, 1, 1, 1]."""

    mu: Tensor
    first: Tensor
    second: Tensor
    count: Tensor


@dataclass(frozen=True)
class REDDiff(Method):
    """Adam on a clean image: least squares on the data, and the residual of the predicted noise.

    >>> REDDiff().cost
    Cost(forward=1, backward=0, start=0)
    """

    name: ClassVar[str] = "red-diff"
    label: ClassVar[str] = "RED-diff"
    paper: ClassVar[str] = "Mardani, Song, Kautz, Vahdat: A variational perspective on solving inverse problems (ICLR 2024)"
    summary: ClassVar[str] = "optimises a clean image with the network's noise residual as its regulariser"
    needs: ClassVar[str] = "A and A^T, and A^+ to start"
    revision: ClassVar[int] = 2

    lam: Annotated[float, "[0, inf)"] = 0.25
    """Weight of the noise residual."""
    power: float = 1.0
    """Exponent of s_t in that weight: 1 as published; 0: constant."""
    rate: Annotated[float, "(0, inf)"] = 0.1
    """Adam's learning rate."""

    def start(self, context: Context, t: Tensor) -> REDDiffState:
        problem, level = context.problem, context.level(t)
        mu = context.origin
        if mu is None:
            mu = (
                problem.operator.pinv(problem.y)
                if problem.noise_free
                else problem.operator.regularised_pinv(problem.y, problem.sigma**2)
            )
        none = torch.zeros_like(mu)
        return REDDiffState(level.signal * mu + level.noise * context.noise("start"), mu, none, none, none[:, :1, :1, :1])

    def estimate(self, context: Context, state: State, t: Tensor) -> Estimate:
        assert isinstance(state, REDDiffState)
        now = context.level(t)
        x = now.signal * state.mu + now.noise * context.noise("step")
        return Estimate(x, context.ask(x, t))

    def correct(self, context: Context, state: State, estimate: Estimate, x0: Tensor, t: Tensor, u: Tensor) -> Tensor:
        return context.expected(x0)

    def advance(self, context: Context, state: State, estimate: Estimate, x0_hat: Tensor, t: Tensor, u: Tensor) -> REDDiffState:
        assert isinstance(state, REDDiffState)
        problem, now = context.problem, context.level(t)
        # eps(x_t) - z = (mu - x0) / s_t, since x_t = sqrt(abar) mu + sqrt(1 - abar) z = sqrt(abar) x0 + sqrt(1 - abar) eps.
        weight = now.cast(self.lam * ((1 - now.abar) / now.abar).sqrt() ** (self.power - 1))
        gradient = weight / state.mu[0].numel() * (state.mu - x0_hat)
        share = now.cast(per_image(1 / measured_entries(problem), state.mu))
        gradient = gradient + share * problem.operator.AT(problem.residual(state.mu))
        adam, mu = Adam(state.first, state.second, state.count, 0.99).step(state.mu, gradient, self.rate)
        assert isinstance(adam.count, Tensor)
        return REDDiffState(estimate.x, mu, adam.first, adam.second, adam.count)

    def finish(self, context: Context, state: State) -> Tensor:
        assert isinstance(state, REDDiffState)
        return state.mu
