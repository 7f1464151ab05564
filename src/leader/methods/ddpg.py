"""DDPG and IDPG. Garber, Tirer, "Image restoration by denoising diffusion models with iteratively preconditioned
guidance", CVPR 2024.

Needs A, A^T and the regularised inverse. The data step blends back-projection, A^T (A A^T + eta)^{-1} r, at high
noise with least squares, A^T r, near the end. DDPG renews noise at every step; IDPG carries none and is an optimiser.

Differs from the authors' code: settings out of range are refused, where theirs assert a constant; their legacy
formula for eta is left out. (A A^T + eta)^{-1} uses the whole spectrum of A, including what A^+ cuts off, as their FFT
operators do; their SVD operators invert the cut spectrum, and their Gaussian blur has all taps but singular values in the wrong
places (the form "published" of the task has both errors of DDNM). Their motion blur is circular like ours. As in their code,
noisy data end in the unguided estimate of the last step and clean data in the back-projected one.
"""

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import torch
from torch import Tensor

from leader.methods.base import Context, Estimate, Method, State
from leader.methods.shared import is_last


@dataclass(frozen=True)
class DDPG(Method):
    """x~ = x0 - mu [(1 - delta) A^+_eta r + delta c A^T r], then part of the noise is renewed.

    >>> DDPG().cost
    Cost(forward=1, backward=0, start=0)
    """

    name: ClassVar[str] = "ddpg"
    paper: ClassVar[str] = "Garber, Tirer: Iteratively preconditioned guidance (CVPR 2024)"
    summary: ClassVar[str] = "moves from back-projection to least squares while the noise falls"
    needs: ClassVar[str] = "A, A^T and A^T (A A^T + eta)^{-1}"

    gamma: Annotated[float, "[0, inf)"] = 8.0
    """With noise, delta = abar_u^gamma: larger values keep back-projection longer."""
    zeta: Annotated[float, "[0, 1]"] = 0.5
    """Share of the noise that is renewed."""
    eta_tilde: Annotated[float, "[0, inf)"] = 0.7
    """eta = max(eta_floor, eta_tilde sigma^2)."""
    eta_floor: Annotated[float, "(0, inf)"] = 1e-4
    mode: Literal[0, 1, 2] | None = None
    """Step size: 0: 1; 1: (1 - abar_u) / (1 - abar_t); 2: the latter on least squares only; None: 0 clean, 1
    noisy.
    """
    ls_scale: float = 1.0
    """c, the factor of the least-squares direction."""
    inject: bool = True
    """Carry noise from step to step; False: IDPG, and the starred variants of PIRP."""

    def correct(self, context: Context, state: State, estimate: Estimate, x0: Tensor, t: Tensor, u: Tensor) -> Tensor:
        problem, now, after = context.problem, context.level(t), context.level(u)
        mode = self.mode if self.mode is not None else (0 if problem.noise_free else 1)
        delta = self._blend(context, u)
        eta = (self.eta_tilde * problem.sigma**2).clamp_min(self.eta_floor)
        residual = problem.residual(x0)
        one = torch.ones_like(now.abar)
        decay = (1 - after.abar) / (1 - now.abar)
        back_step, ls_step = {0: (one, one), 1: (decay, decay), 2: (one, decay)}[mode]
        move = now.cast(back_step * (1 - delta)) * context.metric.regularised_pinv(residual, eta)
        if bool((delta > 0).any()):
            move = move + now.cast(ls_step * delta * self.ls_scale) * problem.operator.AT(residual)
        return x0 - torch.where(self._unguided(context, u, x0), torch.zeros_like(move), move)

    def advance(self, context: Context, state: State, estimate: Estimate, x0_hat: Tensor, t: Tensor, u: Tensor) -> State:
        now, after = context.level(t), context.level(u)
        x = after.signal * x0_hat
        if not self.inject:
            return State(x)
        eps = (state.x - now.signal * x0_hat) / now.noise
        carried = now.cast(self._trust(context, u)) * math.sqrt(1 - self.zeta) * eps
        return State(x + after.noise * (math.sqrt(self.zeta) * context.noise("step") + carried))

    def _blend(self, context: Context, u: Tensor) -> Tensor:
        """delta, the share of least squares, float64 [B, 1, 1, 1]."""
        trust = self._trust(context, u)
        return torch.zeros_like(trust) if context.problem.noise_free else trust

    def _trust(self, context: Context, u: Tensor) -> Tensor:
        """The share of the effective noise that is carried over, float64 [B, 1, 1, 1]: damped while noisy data are
        back-projected.
        """
        abar = context.level(u).abar
        return torch.ones_like(abar) if context.problem.noise_free else abar**self.gamma

    def _unguided(self, context: Context, u: Tensor, like: Tensor) -> Tensor:
        """Images for which this step gives the answer, without the data step: noisy data at their last step."""
        last = is_last(u, like)
        return torch.zeros_like(last) if context.problem.noise_free else last


@dataclass(frozen=True)
class IDPG(DDPG):
    """DDPG's data step without any noise.

    >>> IDPG().cost
    Cost(forward=1, backward=0, start=0)
    """

    name: ClassVar[str] = "idpg"
    summary: ClassVar[str] = "DDPG without noise: an optimiser rather than a sampler"

    mode: Literal[0, 1, 2] | None = 0
    inject: bool = False
