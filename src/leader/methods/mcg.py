"""MCG. Chung, Sim, Ryu, Ye, "Improving diffusion models for inverse problems using manifold constraints", NeurIPS 2022.

Needs A, its gradient and A^+. DPS's guidance, the gradient of |A x0(x_t) - y| through the network, followed by a projection:
the measured part of x_u is replaced by y at the noise of u. In the metric of a plug-in DDPM's step goes towards E[x0 | x_t, y]
instead: the gradient is a multiple of Cov[x0 | x_t] A^T r by Tweedie's formula, so both together would move x0 twice.

Differs from the authors' code: one norm per image; their W is the identity (inpainting) or A^T and A^+ (colourisation, CT),
which for their operators weigh all measured components equally, and is the identity here; their gradient is restricted to the
unmeasured part, which the projection does anyway. Their y is at the noise of t when x is at that of the next step, ours at that
of u, and y itself at the end, so clean data are matched exactly. Their colourisation compares x0 with y at the noise of t, ours
with y. Noisy data, which they use as they are (`damping = 0`), enter as far as their noise allows. Their CT alternates with a
corrector and takes gradient steps instead of the projection. They use 1000 steps; with fewer steps the scale has to be larger,
as with DPS.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from torch import Tensor

from leader.methods.base import Context, Estimate, State
from leader.methods.dps import DPS
from leader.methods.shared import ancestral_step, replace_measured


@dataclass(frozen=True)
class MCG(DPS):
    """DPS's step, then the measured part of x_u from y.

    >>> MCG().cost
    Cost(forward=1, backward=1, start=0)
    """

    name: ClassVar[str] = "mcg"
    paper: ClassVar[str] = "Chung, Sim, Ryu, Ye: Diffusion models with manifold constraints (NeurIPS 2022)"
    summary: ClassVar[str] = "guides each step by the gradient of the misfit, then replaces the measured part"
    needs: ClassVar[str] = "A, differentiable, and A^+; with noise A^T (A A^T + eta)^{-1}"
    revision: ClassVar[int] = 2

    scale: Annotated[float | None, "[0, inf)"] = 1.0
    """Strength of the guidance; None: that published for DPS on the task."""
    damping: Annotated[float, "[0, inf)"] = 4.0
    """Damping of noisy data; 0: they are used as they are."""

    def correct(self, context: Context, state: State, estimate: Estimate, x0: Tensor, t: Tensor, u: Tensor) -> Tensor:
        return context.expected(x0, taken=True)

    def advance(self, context: Context, state: State, estimate: Estimate, x0_hat: Tensor, t: Tensor, u: Tensor) -> State:
        if context.given_metric is None:
            moved = super().advance(context, state, estimate, x0_hat, t, u).x
        else:
            moved = ancestral_step(context, estimate, x0_hat, t, u, self.variance)
        return State(replace_measured(context, moved, t, u, self.damping))
