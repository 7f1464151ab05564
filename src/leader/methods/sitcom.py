"""SITCOM. Alkhouri et al., "SITCOM: step-wise triple-consistent diffusion sampling for inverse problems", ICML 2025.

Needs only A and its gradient. At each of a few times the *input* of the network is optimised by Adam until the estimate fits
the data; that estimate is then noised to the next time. Noisy data: squared misfit, stopped at |A x0 - y| < (sigma + margin)
sqrt(m); clean data: the norm itself, all K iterations.

Differs from the authors' code: m counts the entries A can reach, so masked ones do not raise the threshold, and the
margin is 0.002 in [-1, 1] units, 0.001 for [0, 1] images (theirs is 0.001 on [-1, 1] images that carry half the noise
others call 0.05: the same share of sigma); each image stops independently; the answer is that of the last time, not the best
one against the truth; the unused backward pass after the last forward pass is skipped; overwriting known pixels after the loop,
as in their noisy inpainting, is an option, `overwrite`; their blurs correlate with the image reflected at its borders (boundary
= "reflected" of our tasks), ours are circular convolutions. In a batch, images that have stopped are still evaluated until all
have: the ledger counts that work.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from torch import Tensor

from leader.errors import LeaderError
from leader.methods.base import Context, Cost, Estimate, Method, State, per_image
from leader.methods.shared import Adam, detached, measured_entries, misfit
from leader.operators.pointwise import Inpainting
from leader.priors.base import Prediction
from leader.problem import Problem


@dataclass(frozen=True)
class SITCOM(Method):
    """Optimises the network's input at each time, then re-noises its estimate.

    >>> SITCOM().cost
    Cost(forward=30, backward=29, start=0)
    """

    name: ClassVar[str] = "sitcom"
    paper: ClassVar[str] = "Alkhouri et al.: SITCOM, step-wise triple-consistent diffusion sampling (ICML 2025)"
    summary: ClassVar[str] = "optimises the input of the network at each time until its estimate fits the data"
    needs: ClassVar[str] = "A, differentiable"
    calls_per_step: ClassVar[str] = "up to `inner`, with one backward pass fewer"

    inner: Annotated[int, "[1, 1000]"] = 30
    """K, Adam iterations per time; the papers use 20 to 30."""
    rate: Annotated[float, "(0, inf)"] = 0.02
    """Adam's learning rate."""
    lam: Annotated[float, "[0, inf)"] = 0.0
    """Weight of the proximity term |v - x_t|^2; the paper has one, the released code has none."""
    margin: Annotated[float, "[0, inf)"] = 0.002
    """Slack of the stopping rule over sigma, in [-1, 1] units."""
    clamp: bool = True
    """Hold x0 in [-1, 1], inside the graph."""
    overwrite: bool = False
    """As published for noisy inpainting: after the inner loop known pixels become those of y, noise included."""

    def check(self, problem: Problem) -> None:
        if self.overwrite and not isinstance(problem.operator, Inpainting):
            raise LeaderError(f"SITCOM overwrites known pixels in inpainting; found '{problem.operator.task}': leave it out.")

    @property
    def cost(self) -> Cost:
        return Cost(forward=self.inner, backward=self.inner - 1)

    def threshold(self, context: Context) -> Tensor:
        """delta per image [B]: the norm of the residual that the noise explains; 0 for clean data, which
        never stop.
        """
        problem = context.problem
        if problem.noise_free:
            return torch.zeros_like(problem.y.flatten(1)[:, 0])
        return ((problem.sigma + self.margin) * measured_entries(problem).sqrt()).to(problem.y)

    def estimate(self, context: Context, state: State, t: Tensor) -> Estimate:
        start, threshold = state.x.detach(), self.threshold(context)
        v, asked = start, start
        adam = Adam(torch.zeros_like(v), torch.zeros_like(v))
        stopped = torch.zeros_like(threshold, dtype=torch.bool)
        best: Prediction | None = None
        for k in range(self.inner):
            with torch.enable_grad():
                v = v.detach().requires_grad_()
                prediction, norm = misfit(context, v, t, self.clamp)
                latest = detached(prediction, late=False)  # the last one is not differentiated
                best = latest if best is None else _choose(stopped, best, latest)
                asked = torch.where(per_image(stopped, v), asked, v.detach())
                stopped = stopped | (norm.detach() < threshold)
                if k == self.inner - 1 or bool(stopped.all()):
                    break
                loss = norm if context.problem.noise_free else norm**2
                if self.lam > 0:
                    loss = loss + self.lam * (v - start).flatten(1).square().sum(1)
                gradient = context.ask.gradient(loss, v)
            adam, v = adam.step(v.detach(), gradient, self.rate)
        assert best is not None
        return Estimate(asked, best)

    def correct(self, context: Context, state: State, estimate: Estimate, x0: Tensor, t: Tensor, u: Tensor) -> Tensor:
        if not context.problem.noise_free:  # clean data: the inner loop fits them as far as it can
            x0 = context.expected(x0)
        if not self.overwrite:
            return x0
        # Theirs is a gradient step of 1/2 on |M x0 - y|^2, then a clamp: exactly this, since M is 0 or 1.
        return (x0 - context.problem.operator.AT(context.problem.residual(x0))).clamp(-1, 1)

    def advance(self, context: Context, state: State, estimate: Estimate, x0_hat: Tensor, t: Tensor, u: Tensor) -> State:
        after = context.level(u)
        return State(after.signal * x0_hat + after.noise * context.noise("step"))


def _choose(stopped: Tensor, old: Prediction, new: Prediction) -> Prediction:
    """Images that have stopped keep their old prediction."""
    keep = per_image(stopped, new.x0)
    variance = None
    if old.variance is not None and new.variance is not None:
        variance = torch.where(keep, old.variance, new.variance)
    return Prediction(torch.where(keep, old.x0, new.x0), torch.where(keep, old.eps, new.eps), variance)
