"""RePaint. Lugmayr et al., "RePaint: inpainting using denoising diffusion probabilistic models", CVPR 2022.

Needs A and A^+. After every DDPM step the measured part is replaced by y at the noise of the next time, and from every
`travel_length`-th step the run goes back up by as many steps, `travel_repeats` - 1 times, so that the rest can adapt to it: the
grid of DDNM's time travel, with x itself re-noised, x_u = sqrt(abar_u / abar_t) x_t + sqrt(1 - abar_u / abar_t) z.

Published for masks, where A^+ is the mask itself. Other operators use the same step with their A^+ (for downsampling this is
ILVR's step). In the metric of a plug-in DDPM's step goes towards E[x0 | x_t, y], and what is measured is replaced as before.

Differs from the authors' code: known pixels are replaced at the end of a step and once more at the very end, as in the paper's
algorithm, so the answer has the pixels of y; theirs replaces at the beginning of a step, after a move up too, never at the end.
Noisy data, which the paper does not cover, enter as far as their noise allows (`damping = 0` uses them as they are). Moves up
and down use the betas between the times of the grid, which is uniform; their 250 times reach from 0 to 999. The variance is
the network's own if it was trained to predict one, as that of the step between two times (see `dps`), else beta_tilde.
"""

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

from torch import Tensor

from leader.methods.base import Context, Estimate, Method, State
from leader.methods.shared import (
    ancestral_step,
    clamp_x0,
    noise_up,
    replace_measured,
    travelling_grid,
)
from leader.schedule import Grid, Schedule


@dataclass(frozen=True)
class RePaint(Method):
    """DDPM's step, then the measured part of x_u from y, with time travel.

    >>> RePaint().cost
    Cost(forward=1, backward=0, start=0)
    """

    name: ClassVar[str] = "repaint"
    paper: ClassVar[str] = "Lugmayr et al.: RePaint, inpainting using denoising diffusion probabilistic models (CVPR 2022)"
    summary: ClassVar[str] = "replaces the measured part of every state, and goes back up in time to harmonise the rest"
    needs: ClassVar[str] = "A and A^+; with noise A^T (A A^T + eta)^{-1}"
    revision: ClassVar[int] = 2

    travel_length: Annotated[int, "[1, 1000]"] = 10
    travel_repeats: Annotated[int, "[1, 100]"] = 10
    """Time travel: from every travel_length-th step back up by as many, repeats - 1 times; 1: none."""
    clamp: bool = True
    """Hold x0 in [-1, 1]."""
    damping: Annotated[float, "[0, inf)"] = 4.0
    """Damping of noisy data; 0: they are used as they are."""

    def default_grid(self, schedule: Schedule, steps: int) -> Grid:
        return travelling_grid(schedule, steps, self.travel_length, self.travel_repeats)

    def estimate(self, context: Context, state: State, t: Tensor) -> Estimate:
        estimate = super().estimate(context, state, t)
        return replace(estimate, prediction=clamp_x0(estimate.prediction)) if self.clamp else estimate

    def correct(self, context: Context, state: State, estimate: Estimate, x0: Tensor, t: Tensor, u: Tensor) -> Tensor:
        return context.expected(x0, taken=True)

    def advance(self, context: Context, state: State, estimate: Estimate, x0_hat: Tensor, t: Tensor, u: Tensor) -> State:
        return State(replace_measured(context, ancestral_step(context, estimate, x0_hat, t, u), t, u, self.damping))

    def travel(self, context: Context, state: State, t: Tensor, u: Tensor) -> State:
        return State(noise_up(context, state.x, t, u))
