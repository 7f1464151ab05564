"""DDRM. Kawar, Elad, Ermon, Song, "Denoising diffusion restoration models", NeurIPS 2022.

Needs the SVD of the operator. For each spectral component the noise of y is compared with that of the next time: where y is
cleaner it replaces the estimate (share eta_b), where it is noisier it enters as a noise direction, and where nothing is
measured the step is DDIM's. It starts from y.

Differs from the authors' code: components that are cut off count as unmeasured (theirs enter as noise directions, which is
right only if y was made by the truncated operator); the start is scaled by sqrt(abar), not by 1/s_T, so its variance is exactly
that of the forward process (2e-5 apart at 100 steps); equality of the two noise levels belongs to the clean branch; their blur
loses a tap and its singular values are in the wrong places (the form "published" of the task gives theirs). As in their code,
the answer is the last estimate, not projected onto the data. RePaint's time travel is an option that theirs does not have.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from torch import Tensor

from leader.methods.base import Context, Estimate, Method, State, per_image, spectral
from leader.methods.shared import noise_up, spectral_split, travelling_grid
from leader.problem import Problem
from leader.schedule import Grid, Schedule


@dataclass(frozen=True)
class DDRM(Method):
    """DDRM for clean and noisy data.

    >>> DDRM().cost
    Cost(forward=1, backward=0, start=0)
    """

    name: ClassVar[str] = "ddrm"
    paper: ClassVar[str] = "Kawar, Elad, Ermon, Song: Denoising diffusion restoration models (NeurIPS 2022)"
    summary: ClassVar[str] = "diffuses in the singular vectors of the operator, component by component"
    needs: ClassVar[str] = "the SVD"

    eta: Annotated[float, "[0, 1]"] = 0.85
    """Share of fresh noise where y is noisier than the state, and where nothing is measured."""
    eta_b: Annotated[float, "[0, 1]"] = 1.0
    """Share of y in the estimate where y is cleaner than the state."""
    travel_length: Annotated[int, "[1, 1000]"] = 1
    travel_repeats: Annotated[int, "[1, 100]"] = 1
    """Time travel: from every travel_length-th step back up by as many, repeats - 1 times; 1: none, as published."""

    def default_grid(self, schedule: Schedule, steps: int) -> Grid:
        return travelling_grid(schedule, steps, self.travel_length, self.travel_repeats)

    def check(self, problem: Problem) -> None:
        spectral(problem, self.name)

    def start(self, context: Context, t: Tensor) -> State:
        """y at the noise level of t where it is cleaner than that, noise elsewhere."""
        if context.origin is not None:  # components with sigma / s above the noise of t have no signal
            return State(context.beginning(t))
        problem = context.problem
        operator = spectral(problem, self.name)
        s = operator.s.cpu()
        abar = per_image(context.level(t).abar, s)
        carried = abar.sqrt() * per_image(problem.sigma, s) / torch.where(s > 0, s, torch.ones_like(s))
        cleaner = (s > 0) & ((1 - abar).sqrt() > carried)
        share = torch.where(cleaner, abar.sqrt(), torch.zeros_like(carried))
        fresh = torch.where(cleaner, (1 - abar - carried**2).clamp_min(0), 1 - abar).sqrt()
        seen = operator.filter(lambda s: 1 / s, problem.y) * operator.data(problem.y)
        noise = operator.to(context.noise("start"))
        return State(operator.back(operator.cast(share, noise) * seen + operator.cast(fresh, noise) * noise))

    def correct(self, context: Context, state: State, estimate: Estimate, x0: Tensor, t: Tensor, u: Tensor) -> Tensor:
        operator = spectral(context.problem, self.name)
        split = spectral_split(context, operator, u, self.eta, self.eta_b)
        return split.corrected(context, operator.measured, context.expected(x0, taken=True))

    def advance(self, context: Context, state: State, estimate: Estimate, x0_hat: Tensor, t: Tensor, u: Tensor) -> State:
        operator = spectral(context.problem, self.name)
        split = spectral_split(context, operator, u, self.eta, self.eta_b)
        noise = split.noise(operator.measured, context.noise("step"), estimate.prediction.eps)
        return State(context.level(u).signal * x0_hat + noise)

    def travel(self, context: Context, state: State, t: Tensor, u: Tensor) -> State:
        return State(noise_up(context, state.x, t, u))
