"""UCPM, uncertainty-calibrated prior modulation: an image prior acts where Sigma is large. LEADer, section 4.3.

J(x) = 1/2 (x - x0)^T Sigma^{-1} (x - x0) + Phi(x);  xbar = x0 - Lambda grad Phi(x0).

The paper: Lambda = (Sigma^{-1} + H)^{-1} with the Hessian H of Phi, and only the null-space part of the change is kept
(Algorithm 1); `UCPMPaper` is that. Ours, `UCPM`: Lambda = Sigma / (1 + M Sigma) with M a diagonal majoriser of H, a closed form
with which J never rises; where there is noise all of the change is kept, because a deblurring A^+ A is nearly the identity
and little would be left; and an optional sharpening where Sigma is small.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

import torch
from torch import Tensor

from leader.errors import LeaderError
from leader.methods.base import Method
from leader.operators.cg import conjugate_gradients
from leader.plugins.base import MapName, Plugin, StepInfo, map_sigma
from leader.plugins.image_priors import ImagePrior, adjoint, differences, image_prior
from leader.problem import Problem

LARGEST_SHARPENING = 1 / 32
"""D^T D has eigenvalues up to 8: a step raises no frequency by more than a quarter, however large U_t is at high noise."""


@dataclass(frozen=True)
class UCPM(Plugin):
    """Modulates the strength of an image prior per pixel.

    >>> UCPM().name, UCPM.needs_sigma
    ('ucpm', True)
    """

    name: ClassVar[str] = "ucpm"
    label: ClassVar[str] = "UCPM"
    summary: ClassVar[str] = "modulates the strength of an image prior per pixel by the local uncertainty"
    needs_sigma: ClassVar[bool] = True

    phi: str | ImagePrior = "tv"
    """The image prior: tv, tikhonov, an ImagePrior, pirp (the host PIRP's own term, which this then replaces), or host: the
    host's own term with its own strength where it has one, tv elsewhere.
    """
    lam: float = 0.2
    """Strength lambda; for pirp positive sharpens (G_-) and negative smooths (G_+)."""
    solve: Literal["diagonal", "cg", "hessian"] = "diagonal"
    """How the change d of x0 is found. "diagonal": d = -Sigma / (1 + M Sigma) grad Phi, M a diagonal majoriser of the Hessian.
    By conjugate gradients: "cg": (Sigma^{-1} + D^T W D) d = -grad Phi, the quadratic majoriser with the weights of x0;
    "hessian": (Sigma^{-1} + H) d = -grad Phi with the Hessian itself, as the paper writes it. pirp's term has no Hessian
    (it is no gradient): it always takes the diagonal form.
    """
    map: MapName = "local"
    """"local": Sigma itself; "mean": its mean U_t; "shuffle": its pixels in random order. The latter two are ablations."""
    sharpen: float = 0.0
    """Adds `sharpen` U_t exp(-Sigma / U_t), at most 1/32, times the negative Laplacian: sharpens where Sigma is small."""
    width: Annotated[float, "(0, inf)"] = 0.01
    """Width g of pirp's Gaussian weight."""
    argument: Literal["curvature", "gradient"] = "curvature"
    """What pirp's weight sees: "curvature" or "gradient"."""
    project: Literal["clean", "always"] = "clean"
    """Where only the null-space part of the change is kept: "clean": for data without noise; "always": as the paper does."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.phi != "pirp":
            prior = self._prior  # refuses unknown names
            if self.lam < 0:
                raise LeaderError(f"UCPM's lam must be >= 0 for the prior '{prior.name}'; found {self.lam}.")

    @property
    def takes_over(self) -> str | None:
        return "pirp" if self.phi == "pirp" else None

    @property
    def _prior(self) -> ImagePrior:
        return image_prior("tv" if self.phi == "host" else self.phi)

    def for_host(self, method: Method) -> UCPM:
        if self.phi != "host" or method.term is None:
            return self
        return replace(self, phi=method.term, **{name: getattr(method, name) for name in ("lam", "width", "argument")})

    def modulate(self, x0: Tensor, sigma: Tensor, info: StepInfo, problem: Problem) -> Tensor:
        change = self.change(x0, map_sigma(sigma, self.map, info))
        return x0 + (problem.operator.null(change) if problem.noise_free or self.project == "always" else change)

    def change(self, x0: Tensor, sigma: Tensor) -> Tensor:
        """xbar - x0 for Sigma [B, C, H, W]."""
        change = self._regularised(x0, sigma) if self.lam != 0 else torch.zeros_like(x0)
        if self.sharpen == 0:
            return change
        mean = sigma.mean((1, 2, 3), keepdim=True).clamp_min(1e-12)
        weight = (self.sharpen * mean * (-sigma / mean).exp()).clamp_max(LARGEST_SHARPENING)
        return change + weight * adjoint(differences(x0))

    def _regularised(self, x0: Tensor, sigma: Tensor) -> Tensor:
        if self.phi == "pirp":
            from leader.methods.pirp import gradient_term

            # G_- is concave: its best diagonal majoriser is 0. G_+ smooths with weights of at most 1 on four differences.
            damping = 1 + max(0.0, -self.lam) * 8 * sigma
            return self.lam * sigma / damping * gradient_term(x0, self.width, self.argument)
        prior = self._prior
        gradient, majoriser = prior.slope_and_majoriser(x0)
        slope = self.lam * gradient
        if self.solve == "diagonal":
            return -sigma / (1 + self.lam * majoriser * sigma) * slope
        # (Sigma^{-1} + C) d = -slope with d = Sigma^{1/2} v stays definite where Sigma vanishes.
        root, curvature = sigma.clamp_min(0).sqrt(), prior.curvature(x0) if self.solve == "cg" else prior.hessian(x0)
        v, _ = conjugate_gradients(lambda v: v + self.lam * root * curvature(root * v), -root * slope)
        return root * v


@dataclass(frozen=True)
class UCPMPaper(UCPM):
    """UCPM as the paper writes it: lines 8 to 10 of Algorithm 1, on PIRP with that host's own term and strength.

    Only the null-space part of the change is kept, also with noise; the range-space part of line 10 is the host's data step.

    >>> UCPMPaper().name, UCPMPaper.needs_sigma
    ('ucpm-paper', True)
    """

    name: ClassVar[str] = "ucpm-paper"
    label: ClassVar[str] = "UCPM (paper)"
    summary: ClassVar[str] = "UCPM as the paper writes it: TV or PIRP's own term, the Hessian, the null space, no sharpening"

    phi: str | ImagePrior = "host"
    solve: Literal["diagonal", "cg", "hessian"] = "hessian"
    project: Literal["clean", "always"] = "always"
