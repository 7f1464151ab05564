"""DDNM and DDNM+. Wang, Yu, Zhang, "Zero-shot image restoration using denoising diffusion null-space model", ICLR 2023.

Noise-free data: the range-space part of x0 is replaced by A^+ y. Noisy data: DDNM+, component by component in the SVD of A;
operators without one use the paper's simplified form, which assumes that A^+ y has noise of standard deviation sigma.

Differs from the authors' code: V^T is applied to the predicted noise; the noise split uses the truncated spectrum, and
components that are cut off count as unmeasured (`noise = "published"` gives theirs); the simplified form uses sqrt(abar) and
sqrt(1 - abar), with the noise factor applied once; equality of the two noise levels belongs to the clean branch; all spectral
operators are supported with noise. Their Gaussian blur loses a tap and its singular values are in the wrong places; ours has
all five taps and every value in the right place (the task's form "published" gives theirs).
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import torch
from torch import Tensor

from leader.errors import LeaderError
from leader.methods.base import Context, Estimate, Method, State
from leader.methods.shared import spectral_split, travelling_grid
from leader.operators.base import SpectralOperator
from leader.operators.blur import Blur
from leader.problem import Problem
from leader.schedule import Grid, Schedule


@dataclass(frozen=True)
class DDNMState(State):
    """x, and the last un-projected x0, from which time travel re-noises."""

    x0: Tensor


@dataclass(frozen=True)
class DDNM(Method):
    """DDNM for clean data, DDNM+ for noisy data.

    >>> DDNM().cost
    Cost(forward=1, backward=0, start=0)
    """

    name: ClassVar[str] = "ddnm"
    paper: ClassVar[str] = "Wang, Yu, Zhang: Zero-shot image restoration using DDNM (ICLR 2023)"
    summary: ClassVar[str] = "replaces the range-space part of the estimate by the data"
    needs: ClassVar[str] = "A and A^+; with noise the SVD, or else the simplified form"

    eta: Annotated[float, "[0, 1]"] = 0.85
    """Share of fresh noise where nothing is measured."""
    travel_length: Annotated[int, "[1, 1000]"] = 1
    travel_repeats: Annotated[int, "[1, 100]"] = 1
    """Time travel: from every travel_length-th step back up by as many, repeats - 1 times."""
    form: Literal["auto", "spectral", "simple", "plain"] = "auto"
    """For noisy data: "spectral" (DDNM+), "simple", "auto": spectral where the operator has an SVD; or "plain": the update for
    clean data on noisy data too, as Algorithm 1 of the LEADer paper writes it.
    """
    noise: Literal["rotated", "published"] = "rotated"
    """DDNM+'s noise: "rotated" into the basis of the SVD, or "published": the released code takes the pixels of the predicted
    noise for its coefficients, and splits by the spectrum before the cut.
    """

    def default_grid(self, schedule: Schedule, steps: int) -> Grid:
        return travelling_grid(schedule, steps, self.travel_length, self.travel_repeats)

    def check(self, problem: Problem) -> None:
        if self.form == "spectral" and not isinstance(problem.operator, SpectralOperator):
            raise LeaderError(f"The operator '{problem.operator.task}' has no known SVD; use form 'simple' or 'auto'.")
        operator = None if self._exact(problem) else self._svd(problem)
        if self.noise == "published" and operator is not None and isinstance(operator, Blur):
            raise LeaderError(
                "A circular blur has complex coefficients, for which no noise was published; use noise 'rotated'."
            )

    def start(self, context: Context, t: Tensor) -> DDNMState:
        x = context.beginning(t)
        return DDNMState(x, torch.zeros_like(x))

    def correct(self, context: Context, state: State, estimate: Estimate, x0: Tensor, t: Tensor, u: Tensor) -> Tensor:
        problem = context.problem
        if self._exact(problem):
            return x0 + context.metric.pinv(-problem.residual(x0))
        operator = self._svd(problem)
        x0 = context.expected(x0, taken=operator is not None)
        if operator is not None:
            return spectral_split(context, operator, u, self.eta).corrected(context, operator.measured, x0)
        correction, _ = _simple_split(context, u)
        return x0 - correction * problem.operator.pinv(problem.residual(x0))

    def advance(self, context: Context, state: State, estimate: Estimate, x0_hat: Tensor, t: Tensor, u: Tensor) -> DDNMState:
        problem, after = context.problem, context.level(u)
        predicted, fresh = estimate.prediction.eps, context.noise("step")
        exact = self._exact(problem)
        operator = None if exact else self._svd(problem)
        if operator is not None:
            noise = self._spectral_noise(context, operator, u, fresh, predicted)
        else:
            scale = after.noise if exact else _simple_split(context, u)[1]
            noise = scale * (self.eta * fresh + (1 - self.eta**2) ** 0.5 * predicted)
        return DDNMState(after.signal * x0_hat + noise, estimate.prediction.x0)

    def _spectral_noise(
        self, context: Context, operator: SpectralOperator, u: Tensor, fresh: Tensor, predicted: Tensor
    ) -> Tensor:
        if self.noise == "rotated":
            return spectral_split(context, operator, u, self.eta).noise(operator.measured, fresh, predicted)
        split = spectral_split(context, operator, u, self.eta, whole=True)
        shape = operator.to(fresh).shape
        return operator.back(split.fresh * fresh.reshape(shape) + split.predicted * predicted.reshape(shape))

    def travel(self, context: Context, state: State, t: Tensor, u: Tensor) -> DDNMState:
        assert isinstance(state, DDNMState)
        up = context.level(u)
        return DDNMState(up.signal * state.x0 + up.noise * context.noise("travel"), state.x0)

    def _exact(self, problem: Problem) -> bool:
        """Whether the data are treated as noise-free."""
        return problem.noise_free or self.form == "plain"

    def _svd(self, problem: Problem) -> SpectralOperator | None:
        if self.form == "simple" or not isinstance(problem.operator, SpectralOperator):
            return None
        return problem.operator


def _simple_split(context: Context, u: Tensor) -> tuple[Tensor, Tensor]:
    """The simplified form: (lambda, gamma), one number per image."""
    level = context.level(u)
    signal, noise = level.abar.sqrt(), (1 - level.abar).sqrt()
    carried = signal * context.problem.sigma_column(level.abar)
    clean = noise >= carried
    correction = torch.where(clean, torch.ones_like(noise), noise / carried)
    gamma = torch.where(clean, (noise**2 - carried**2).clamp_min(0).sqrt(), torch.zeros_like(noise))
    return level.cast(correction), level.cast(gamma)
