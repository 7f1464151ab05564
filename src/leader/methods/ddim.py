"""DDIM: no data step. Song, Meng, Ermon, "Denoising diffusion implicit models", ICLR 2021.

Needs nothing from the operator. Draws unconditional samples, and is the host on which SATP's error is provable: with
eta = 0 it is the Euler discretisation of the probability flow.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from torch import Tensor

from leader.methods.base import Context, Estimate, Method, State


@dataclass(frozen=True)
class DDIM(Method):
    """x_u = sqrt(abar_u) x0 + sqrt(1 - abar_u - sigma^2) eps + sigma z.

    >>> DDIM().cost
    Cost(forward=1, backward=0, start=0)
    """

    name: ClassVar[str] = "ddim"
    paper: ClassVar[str] = "Song, Meng, Ermon: Denoising diffusion implicit models (ICLR 2021)"
    summary: ClassVar[str] = "unconditional sampling, no data step"
    needs: ClassVar[str] = "nothing"

    eta: Annotated[float, "[0, 1]"] = 0.0
    """0: the deterministic flow; 1: the ancestral sampler."""

    def advance(self, context: Context, state: State, estimate: Estimate, x0_hat: Tensor, t: Tensor, u: Tensor) -> State:
        now, after = context.level(t), context.level(u)
        fresh = self.eta**2 * (1 - after.abar) / (1 - now.abar) * (1 - now.abar / after.abar)
        kept = (1 - after.abar - fresh).clamp_min(0).sqrt()
        x = after.signal * x0_hat + now.cast(kept) * estimate.prediction.eps
        if self.eta > 0:
            x = x + now.cast(fresh.clamp_min(0).sqrt()) * context.noise("step")
        return State(x)
