"""PIRP. Yang, Zhang, Zhang, Zeng, "Parameterized image restoration with diffusion and gradient priors",
Knowledge-Based Systems 338, 2026.

Needs the same as DDPG, and differs from the authors' code where DDPG does. It adds to DDPG's data step lam R(x0), R(x) = sum_d
D_d^T (w_d D_d x) with w_d = exp(-L_d^2 / (2 g^2)) and L_d = D_d^T D_d x. lam > 0 sharpens (G_-, better LPIPS), lam < 0 smooths
(G_+, better PSNR). Variant "lb" (F_lb) blends least squares and back-projection, "b" (F_b) back-projects only; `inject = False`
gives the starred variants.

Differs from the authors' code: colour channels keep their own weights (theirs swaps the weights of red and blue); each image of
a batch has its own term; the strength is read from the existing setting. With the weight computed from the curvature, as
released, R is not the gradient of an energy; `argument = "gradient"` makes it one (Welsch's penalty). F_b with noise keeps
DDPG's damping of the carried noise, on which the published text is silent.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

import torch
from torch import Tensor

from leader.methods.base import Context, Estimate, State
from leader.methods.ddpg import DDPG


def gradient_term(x: Tensor, width: float, argument: str = "curvature") -> Tensor:
    """R(x) for images [B, C, H, W] with periodic differences; `width` g in [-1, 1] units.

    argument  the argument of the Gaussian weight: the "curvature" L = D^T D x, as released, or the "gradient" D x.
    """
    total = torch.zeros_like(x)
    for axis in (-1, -2):
        slope = torch.roll(x, -1, axis) - x
        seen = torch.roll(slope, 1, axis) - slope if argument == "curvature" else slope
        flow = torch.exp(-(seen**2) / (2 * width**2)) * slope
        total = total + torch.roll(flow, 1, axis) - flow
    return total


@dataclass(frozen=True)
class PIRP(DDPG):
    """DDPG with a weighted gradient term.

    >>> PIRP().cost
    Cost(forward=1, backward=0, start=0)
    """

    name: ClassVar[str] = "pirp"
    paper: ClassVar[str] = "Yang, Zhang, Zhang, Zeng: Parameterized image restoration (Knowledge-Based Systems, 2026)"
    summary: ClassVar[str] = "DDPG plus a weighted gradient term that sharpens (lam > 0) or smooths (lam < 0)"
    term: ClassVar[str | None] = "pirp"

    lam: float = 0.2
    """Strength: positive is G_-, negative G_+ (keep it above -0.25)."""
    width: Annotated[float, "(0, inf)"] = 0.01
    """g, the width of the Gaussian weight, in [-1, 1] units."""
    variant: Literal["lb", "b"] = "lb"
    """"lb": DDPG's blend; "b": back-projection only."""
    argument: Literal["curvature", "gradient"] = "curvature"
    """The argument of the weight: "curvature" or "gradient"."""

    def without_term(self) -> PIRP:
        return replace(self, lam=0.0)

    def correct(self, context: Context, state: State, estimate: Estimate, x0: Tensor, t: Tensor, u: Tensor) -> Tensor:
        guided = super().correct(context, state, estimate, x0, t, u)
        if self.lam == 0:
            return guided
        added = guided + self.lam * gradient_term(x0, self.width, self.argument)
        return torch.where(self._unguided(context, u, x0), guided, added)

    def _blend(self, context: Context, u: Tensor) -> Tensor:
        delta = super()._blend(context, u)
        return torch.zeros_like(delta) if self.variant == "b" else delta
