"""ProjDiff. Zhang et al., "Unleashing the denoising capability of diffusion prior for solving inverse problems",
NeurIPS 2024.

Needs A and A^+ for clean data; with noise the SVD: every measured component of y is a partially noised image
coordinate, at the level a_i = 1 / (1 + sigma^2 / s_i^2) of the forward process. x0 is relaxed towards the estimate,
the observation x_o projected.

Differs from the authors' code: components with s_i = 0 are never divided by; the simple form (one level for all
coordinates, unmeasured ones included) runs in the same coordinates and projects x_o at every step, which matters only
if the grid starts below the noise level of y; the inner repeats and the momentum, whose published values are 1 and 0,
are left out. Their Gaussian blur is DDNM's, with a tap lost and singular values at the wrong places (the task's form
"published"); their "sr4" averages where ours is bicubic. As in their code, the start costs one call and has no signal part, and
with noise the step size acts only in the late phase; `early_step`, which the paper does not have, is the step size of the early
phase.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import torch
from torch import Tensor

from leader.errors import LeaderError
from leader.methods.base import Context, Cost, Estimate, Method, State, per_image, spectral
from leader.methods.shared import scale_data
from leader.operators.base import SpectralOperator
from leader.operators.components import Components
from leader.problem import Problem


@dataclass(frozen=True)
class ProjDiffState(State):
    """x: the last input of the network; x0: the clean variable; observed: the components of x_o that have observations of their
    own (for clean data, x0 made consistent with them).
    """

    x0: Tensor
    observed: Tensor


@dataclass(frozen=True)
class ProjDiff(Method):
    """Alternates a step of x0 towards the estimate with a projection onto the measurement.

    >>> ProjDiff().cost
    Cost(forward=1, backward=0, start=1)
    """

    name: ClassVar[str] = "projdiff"
    paper: ClassVar[str] = "Zhang et al.: Unleashing the denoising capability of diffusion prior (NeurIPS 2024)"
    summary: ClassVar[str] = "relaxes the clean image towards the estimate and projects onto the data"
    needs: ClassVar[str] = "A and A^+; with noise the SVD"
    calls_per_step: ClassVar[str] = "1, and 1 at the start"

    step: Annotated[float, "(0, inf)"] = 1.0
    """mu, the step of x0 towards the estimate; above 1 over-relaxes. With noise it acts where y is noisier than x_t."""
    early_step: Annotated[float, "(0, 2)"] = 1.0
    """With noise, the step for components where y is not noisier than x_t or nothing is measured. Published: 1. Above 1
    over-relaxes; at 2 and above runs diverge.
    """
    form: Literal["spectral", "simple"] = "spectral"
    """With noise: "spectral", a level per component, or "simple", one level, for operators of one singular
    value.
    """

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
        """Evaluates the network once on pure noise; a run that starts from a known image takes x_o from y directly."""
        problem = context.problem
        if context.origin is not None:
            x, x0 = context.beginning(t), context.origin
        else:
            x = context.level(t).noise * context.noise("start")
            x0 = context.ask(x, t).x0
        if problem.noise_free:
            return ProjDiffState(x, x0, _consistent(problem, x0))
        part = self._part(problem)
        if context.origin is not None:
            return ProjDiffState(x, x0, self._project_observation(context, part, part.to(x0)))
        return ProjDiffState(x, x0, self._draw_observation(context, part, x0, "extra"))

    def estimate(self, context: Context, state: State, t: Tensor) -> Estimate:
        assert isinstance(state, ProjDiffState)
        now, fresh = context.level(t), context.noise("step")
        x = now.signal * state.x0 + now.noise * fresh
        if not context.problem.noise_free:
            part = self._part(context.problem)
            x += part.back(self._aside(context, part, state, t, fresh))
        return Estimate(x, context.ask(x, t))

    def correct(self, context: Context, state: State, estimate: Estimate, x0: Tensor, t: Tensor, u: Tensor) -> Tensor:
        """With noise the data enter through x_o."""
        if not context.problem.noise_free:
            return context.expected(x0, taken=True)
        return x0 + context.metric.pinv(-context.problem.residual(x0))

    def advance(
        self, context: Context, state: State, estimate: Estimate, x0_hat: Tensor, t: Tensor, u: Tensor
    ) -> ProjDiffState:
        assert isinstance(state, ProjDiffState)
        problem, observed = context.problem, state.observed
        if problem.noise_free:
            moved = observed + self.step * (x0_hat - observed)
            return ProjDiffState(estimate.x, moved, moved)
        part = self._part(problem)
        moved = self._move_estimate(context, part, state, x0_hat, t, u)
        if self.form == "simple":  # otherwise y replaces everything measured, and nothing else is read
            early = self._early(context, part, t).to(observed.device)
            observed = torch.where(early, self._draw_observation(context, part, moved, "observation"), observed)
        return ProjDiffState(estimate.x, moved, self._project_observation(context, part, observed))

    def _move_estimate(
        self, context: Context, part: Components, state: ProjDiffState, x0_hat: Tensor, t: Tensor, u: Tensor
    ) -> Tensor:
        """x0 moved towards the estimate, or beyond it: by `step` in late components, by `early_step` in all others.

        At the end, measured early components are set to the estimate: no later step would bring them back to y.
        """
        change = x0_hat - state.x0
        moved = x0_hat if self.early_step == 1 else state.x0 + self.early_step * change
        early = self._early(context, part, t)
        measured = context.always("measured components", lambda: part.s.cpu() > 0)
        ended = early & measured & per_image(u < 0, part.s)
        one, beyond, step = torch.tensor((1.0, self.early_step, self.step), dtype=torch.float64)
        rate = torch.where(ended, one, torch.where(early, beyond, step))
        if bool((rate == self.early_step).all()):
            return moved
        rest = SpectralOperator.cast(rate - self.early_step, change)
        return moved + part.back(rest * part.to(change))

    def finish(self, context: Context, state: State) -> Tensor:
        assert isinstance(state, ProjDiffState)
        return state.x0

    def _part(self, problem: Problem) -> Components:
        """The components that have an observation of their own: the measured ones, or all in the simple form."""
        operator = spectral(problem, self.name)
        return operator if self.form == "simple" else operator.measured

    def _aside(self, context: Context, part: Components, state: ProjDiffState, t: Tensor, fresh: Tensor) -> Tensor:
        """The offset of the components of the next network input from those of x0 at the noise level of t.

        Early, that point climbs from the observation up to t; late, it follows the noise that x_o and x0 imply.
        """
        level, abar = self._level(context, part), per_image(context.level(t).abar, part.s)
        early = self._early(context, part, t).to(fresh.device)
        clean, noise = part.to(state.x0), part.to(fresh)

        def share(values: Tensor) -> Tensor:
            return SpectralOperator.cast(values.sqrt(), noise)

        ratio = (abar / level).clamp_max(1)
        climbed = share(ratio) * state.observed + (share(1 - ratio) - share(1 - abar)) * noise - share(abar) * clean
        implied = (state.observed - share(level) * clean) * share((1 - abar) / _safe(1 - level)) - share(1 - abar) * noise
        aside = torch.where(early, climbed, implied)
        return aside if self.form == "simple" else torch.where(self._measured(context, part, noise), aside, 0.0)

    def _draw_observation(self, context: Context, part: Components, x0: Tensor, draw: str) -> Tensor:
        """x_o of a clean image: its components, each with noise of its own level."""
        level, noise = self._level(context, part), part.to(context.noise(draw))
        cast = SpectralOperator.cast
        return cast(level.sqrt(), noise) * part.to(x0) + cast((1 - level).sqrt(), noise) * noise

    def _project_observation(self, context: Context, part: Components, observed: Tensor) -> Tensor:
        """x_o with y, at its level of the forward process, where something is measured."""

        def at_its_level() -> Tensor:
            return SpectralOperator.cast(self._level(context, part).sqrt(), observed) * scale_data(context, part)

        known = context.per_measurement("seen at its level", at_its_level)
        return torch.where(self._measured(context, part, observed), known, observed)

    @staticmethod
    def _measured(context: Context, part: Components, like: Tensor) -> Tensor:
        """Where something is measured, bool, on the device of `like`."""
        return context.always("measured", lambda: (part.s > 0).to(like.device))

    def _level(self, context: Context, part: Components) -> Tensor:
        """a_i: the abar at which the forward process has the noise of component i, float64; 1 where nothing is measured."""
        return context.always("level", lambda: self._compute_level(part.s.cpu(), context.problem))

    def _compute_level(self, s: Tensor, problem: Problem) -> Tensor:
        sigma = per_image(problem.sigma, s)
        if self.form == "simple":
            s = s.amax(tuple(range(1, s.ndim)), keepdim=True).expand_as(s)
        return torch.where(s > 0, 1 / (1 + (sigma / _safe(s)) ** 2), torch.ones_like(s))

    def _early(self, context: Context, part: Components, t: Tensor) -> Tensor:
        """The components whose observation is at most as noisy as x_t, bool, on the CPU."""
        return self._level(context, part) >= per_image(context.level(t).abar, part.s)


def _consistent(problem: Problem, x0: Tensor) -> Tensor:
    """x0 with A x0 = y."""
    return x0 - problem.operator.pinv(problem.residual(x0))


def _safe(values: Tensor) -> Tensor:
    """values with zeros replaced by 1, for divisions whose result is not used there."""
    return torch.where(values > 0, values, torch.ones_like(values))
