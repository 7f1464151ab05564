"""ProjDiff. Zhang et al., "Unleashing the denoising capability of diffusion prior for solving inverse problems",
NeurIPS 2024.

Needs A and A^+ for clean data; with noise the SVD: every measured component of y is a partially noised image
coordinate, at the level a_i = 1 / (1 + sigma^2 / s_i^2) of the forward process. x0 is relaxed towards the estimate,
the observation x_o projected.

Differs from the authors' code: components with s_i = 0 are never divided by; the simple form (one level for all
coordinates, unmeasured ones included) runs in the same coordinates and projects x_o at every step, which matters only
if the grid starts below the noise level of y; the inner repeats and the momentum, whose published values are 1 and 0,
are left out. Their Gaussian blur is DDNM's, with a tap lost and singular values at the wrong places (the task's form
"published"); their "sr4" averages where ours is bicubic. As there, the start costs one call, has no signal part, and
the step size acts in the late phase only when there is noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from leader.errors import LeaderError
from leader.methods.base import Context, Cost, Estimate, Method, State, per_image, spectral
from leader.operators.base import SpectralOperator
from leader.problem import Problem


@dataclass(frozen=True)
class ProjDiffState(State):
    """x: the point last asked about; x0: the clean variable; observed: x_o in V-coordinates (for clean data
    x0 again).
    """

    x0: Tensor
    observed: Tensor


@dataclass(frozen=True)
class ProjDiff(Method):
    """Alternates a step of x0 towards the estimate with a projection onto the measurement."""

    name: ClassVar[str] = "projdiff"
    paper: ClassVar[str] = "Zhang et al.: Unleashing the denoising capability of diffusion prior (NeurIPS 2024)"
    summary: ClassVar[str] = "relaxes the clean image towards the estimate and projects onto the data"
    needs: ClassVar[str] = "A and A^+; with noise the SVD"
    calls_per_step: ClassVar[str] = "1, and 1 at the start"

    step: float = 1.0
    """mu, the step of x0 towards the estimate; above 1 over-relaxes."""
    form: str = "spectral"
    """With noise: "spectral", a level per component, or "simple", one level, for operators of one singular
    value.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.step <= 0:
            raise LeaderError(f"ProjDiff's step must be > 0; found {self.step}.")
        if self.form not in ("spectral", "simple"):
            raise LeaderError(f"ProjDiff's form must be spectral or simple; found '{self.form}'.")

    @property
    def cost(self) -> Cost:
        return Cost(start=1)

    def check(self, problem: Problem) -> None:
        if problem.noise_free:
            return
        measured = spectral(problem, self.name).s
        measured = measured[measured > 0]
        if self.form == "simple" and float(measured.max() - measured.min()) > 1e-6 * float(measured.max()):
            raise LeaderError(
                "ProjDiff's simple form needs a single non-zero singular value; "
                f"'{problem.operator.task}' has several: use form 'spectral'."
            )

    def start(self, context: Context, t: Tensor) -> ProjDiffState:
        """Asks the network once about pure noise; a run that begins from a known image takes x_o from y at once."""
        if context.origin is not None:
            x = context.beginning(t)
            return ProjDiffState(x, context.origin, self._observed(context, context.origin))
        x = context.level(t).noise * context.noise("start")
        x0 = context.ask(x, t).x0
        if context.problem.noise_free:
            return ProjDiffState(x, x0, x0)
        operator = spectral(context.problem, self.name)
        level = self._level(context, operator)
        noise = operator.to(context.noise("extra"))
        cast = operator.cast
        return ProjDiffState(x, x0, cast(level.sqrt(), noise) * operator.to(x0) + cast((1 - level).sqrt(), noise) * noise)

    def estimate(self, context: Context, state: State, t: Tensor) -> Estimate:
        assert isinstance(state, ProjDiffState)
        now, fresh = context.level(t), context.noise("step")
        if context.problem.noise_free:
            x = now.signal * state.x0 + now.noise * fresh
            return Estimate(x, context.ask(x, t))
        operator = spectral(context.problem, self.name)
        level = self._level(context, operator)
        abar, early = self._early(context, level, t)
        clean, noise = operator.to(state.x0), operator.to(fresh)
        cast = operator.cast
        # Early: from the observation up to t. Late: along the noise that x_o and x0 imply.
        ratio = (abar / level).clamp_max(1)
        climbed = cast(ratio.sqrt(), noise) * state.observed + cast((1 - ratio).sqrt(), noise) * noise
        implied = (state.observed - cast(level.sqrt(), noise) * clean) * cast(((1 - abar) / _safe(1 - level)).sqrt(), noise)
        x = operator.back(torch.where(early, climbed, cast(abar.sqrt(), noise) * clean + implied))
        return Estimate(x, context.ask(x, t))

    def correct(self, context: Context, state: State, estimate: Estimate, x0: Tensor, t: Tensor, u: Tensor) -> Tensor:
        assert isinstance(state, ProjDiffState)
        problem = context.problem
        relaxed = state.x0 + self.step * (x0 - state.x0)
        if problem.noise_free:
            return relaxed - problem.operator.pinv(problem.residual(relaxed))
        operator = spectral(problem, self.name)
        _, early = self._early(context, self._level(context, operator), t)
        return operator.back(torch.where(early, operator.to(x0), operator.to(relaxed)))

    def advance(
        self, context: Context, state: State, estimate: Estimate, x0_hat: Tensor, t: Tensor, u: Tensor
    ) -> ProjDiffState:
        assert isinstance(state, ProjDiffState)
        problem = context.problem
        if problem.noise_free:
            return ProjDiffState(estimate.x, x0_hat, x0_hat)
        operator = spectral(problem, self.name)
        level = self._level(context, operator)
        _, early = self._early(context, level, t)
        noise = operator.to(context.noise("observation"))
        cast = operator.cast
        renewed = cast(level.sqrt(), noise) * operator.to(x0_hat) + cast((1 - level).sqrt(), noise) * noise
        observed = torch.where(early, renewed, state.observed)
        return ProjDiffState(estimate.x, x0_hat, self._projected(context, operator, observed))

    def finish(self, context: Context, state: State) -> Tensor:
        assert isinstance(state, ProjDiffState)
        return state.x0

    def _observed(self, context: Context, x0: Tensor) -> Tensor:
        """x_o of a run that begins from x0: y where something is measured, x0 elsewhere."""
        problem = context.problem
        if problem.noise_free:
            return x0
        operator = spectral(problem, self.name)
        return self._projected(context, operator, operator.to(x0))

    def _projected(self, context: Context, operator: SpectralOperator, observed: Tensor) -> Tensor:
        """x_o with y, at its level of the forward process, where something is measured."""

        def seen() -> Tensor:
            y, share = context.problem.y, operator.cast(self._level(context, operator).sqrt(), observed)
            return share * operator.filter(lambda s: 1 / s, y) * operator.data(y)

        there = context.always("measured", lambda: (operator.s > 0).to(observed.device))
        return torch.where(there, context.always("seen at its level", seen), observed)

    def _level(self, context: Context, operator: SpectralOperator) -> Tensor:
        """a_i: abar at which the forward process has the noise of component i, float64; 1 where nothing is
        measured.
        """
        return context.always("level", lambda: self._made_level(operator, context.problem))

    def _made_level(self, operator: SpectralOperator, problem: Problem) -> Tensor:
        s = operator.s.cpu()
        sigma = per_image(problem.sigma, s)
        if self.form == "simple":
            s = s.amax(tuple(range(1, s.ndim)), keepdim=True).expand_as(s)
        return torch.where(s > 0, 1 / (1 + (sigma / _safe(s)) ** 2), torch.ones_like(s))

    @staticmethod
    def _early(context: Context, level: Tensor, t: Tensor) -> tuple[Tensor, Tensor]:
        """abar_t, and the components whose observation is at most as noisy as x_t."""
        abar = per_image(context.level(t).abar, level)
        return abar, (level >= abar).to(context.problem.y.device)


def _safe(values: Tensor) -> Tensor:
    """values with zeros replaced by 1, for divisions whose result is not used there."""
    return torch.where(values > 0, values, torch.ones_like(values))
