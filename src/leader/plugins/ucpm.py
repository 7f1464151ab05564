"""UCPM, uncertainty-calibrated prior modulation: an image prior acts where Sigma is large. LEADer, section 4.3.

xbar = x0 - Lambda grad Phi(x0), Lambda = Sigma / (1 + M Sigma), with M a diagonal majoriser of the Hessian, so that
J(x) = 1/2 (x - x0)^T Sigma^{-1} (x - x0) + Phi(x) never rises. Without noise only the null-space part of the change is kept, so
that every host stays consistent with its data; with noise all of it, because a deblurring A^+ A is nearly the identity.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from leader.errors import LeaderError
from leader.operators.cg import conjugate_gradients
from leader.plugins.base import Plugin, StepInfo
from leader.plugins.image_priors import ImagePrior, adjoint, differences, image_prior
from leader.problem import Problem

MAPS = ("local", "mean", "shuffle")
LARGEST_SHARPENING = 1 / 32
"""D^T D has eigenvalues up to 8: a step raises no frequency by more than a quarter, however large U_t is at high noise."""


@dataclass(frozen=True)
class UCPM(Plugin):
    """Modulates the strength of an image prior per pixel."""

    name: ClassVar[str] = "ucpm"
    summary: ClassVar[str] = "modulates the strength of an image prior per pixel by the local uncertainty"
    needs_sigma: ClassVar[bool] = True

    phi: str | ImagePrior = "tv"
    """The image prior: tv, tikhonov, an ImagePrior, or pirp (the host PIRP's own term, which this then replaces)."""
    lam: float = 0.2
    """Strength lambda; for pirp positive sharpens (G_-) and negative smooths (G_+)."""
    solve: str = "diagonal"
    """"diagonal": the closed form; "cg": (Sigma^{-1} + H) d = -grad Phi by conjugate gradients."""
    map: str = "local"
    """"local": Sigma itself; "mean": its mean U_t; "shuffle": its pixels in random order. The latter two are ablations."""
    sharpen: float = 0.0
    """Adds `sharpen` U_t exp(-Sigma / U_t), at most 1/32, times the negative Laplacian: sharpens where Sigma is small."""
    width: float = 0.01
    """Width g of pirp's Gaussian weight."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.phi != "pirp":
            prior = image_prior(self.phi)  # refuses unknown names
            if self.lam < 0:
                raise LeaderError(f"UCPM's lam must be >= 0 for the prior '{prior.name}'; found {self.lam}.")
        if self.width <= 0:
            raise LeaderError(f"UCPM's width must be > 0; found {self.width}.")
        if self.solve not in ("diagonal", "cg") or self.map not in MAPS:
            raise LeaderError(
                f"UCPM's solve is diagonal or cg and its map one of {', '.join(MAPS)}; found '{self.solve}' and '{self.map}'."
            )

    @property
    def takes_over(self) -> str | None:
        return "pirp" if self.phi == "pirp" else None

    def modulate(self, x0: Tensor, sigma: Tensor, info: StepInfo, problem: Problem) -> Tensor:
        change = self.change(x0, self._mapped(sigma, info))
        return x0 + (problem.operator.null(change) if problem.noise_free else change)

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
            return self.lam * sigma / damping * gradient_term(x0, self.width)
        prior = image_prior(self.phi)
        slope = self.lam * prior.gradient(x0)
        if self.solve == "diagonal":
            return -sigma / (1 + self.lam * prior.majoriser(x0) * sigma) * slope
        # (Sigma^{-1} + H) d = -slope with d = Sigma^{1/2} v stays definite where Sigma vanishes.
        root, curvature = sigma.clamp_min(0).sqrt(), prior.curvature(x0)
        v, _ = conjugate_gradients(lambda v: v + self.lam * root * curvature(root * v), -root * slope)
        return root * v

    def _mapped(self, sigma: Tensor, info: StepInfo) -> Tensor:
        if self.map == "local":
            return sigma
        if self.map == "mean":
            return sigma.mean((1, 2, 3), keepdim=True).expand_as(sigma)
        shuffled = []
        for image, position, one in zip(info.ids, info.positions, sigma):
            generator = torch.Generator().manual_seed((1_000_003 * image + position) % 2**63)
            order = torch.randperm(one[0].numel(), generator=generator).to(sigma.device)
            shuffled.append(one.flatten(1)[:, order].reshape(one.shape))
        return torch.stack(shuffled)
