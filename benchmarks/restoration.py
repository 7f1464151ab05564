"""Restorations with a prior beside what needs none: the second half of benchmarks/prior.py.

DDNM, T = 100, one seed, one eta for all tasks. Four-fold super-resolution without noise beside
bicubic interpolation, half of the pixels missing, Gaussian blur at sigma 0.05 beside the best Wiener estimate, compressed
sensing of a quarter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from super_resolution import FACTOR, bicubic
from torch import Tensor

from leader import Problem, Sampler, operators
from leader.metrics import lpips, psnr
from leader.operators import LinearOperator
from leader.operators.cg import conjugate_gradients
from leader.operators.tasks import Shape, build_task
from leader.plugins.image_priors import adjoint, differences
from leader.priors.base import Prior

STRENGTHS = tuple(10 ** (-3.5 + 0.25 * step) for step in range(13))
"""Strengths among which each picture's best Wiener estimate is picked, knowing the original."""


@dataclass(frozen=True)
class Row:
    """Means over the pictures of one task; `peer` names what the restoration is compared with."""

    task: str
    peer: str
    peer_psnr: float
    peer_lpips: float
    psnr: float
    lpips: float

    def __str__(self) -> str:
        return (
            f"{self.task}: {self.peer} {self.peer_psnr:.2f} dB, LPIPS {self.peer_lpips:.3f}; restored {self.psnr:.2f} dB, "
            f"LPIPS {self.lpips:.3f}; gain {self.psnr - self.peer_psnr:+.2f} dB, LPIPS ratio {self.lpips / self.peer_lpips:.2f}"
        )


@dataclass(frozen=True)
class Case:
    """A task: its operator for (image shape, seed), its noise, its peer as a function of (measurement, operator, original)."""

    title: str
    build: Callable[[Shape, int], LinearOperator]
    sigma: float
    peer: str
    estimate: Callable[[Tensor, LinearOperator, Tensor], Tensor]


def pseudo_inverse(y: Tensor, operator: LinearOperator, clean: Tensor) -> Tensor:
    """A^+ y."""
    return operator.pinv(y)


def enlarged(y: Tensor, operator: LinearOperator, clean: Tensor) -> Tensor:
    """Bicubic interpolation of the small picture."""
    return bicubic(y)


def best_wiener(y: Tensor, operator: LinearOperator, clean: Tensor) -> Tensor:
    """The Wiener estimate for spectra that fall as 1/f^2, or for a flat one, whichever and at the strength that suits best.

    Solves (A^T A + k D^T D) x = A^T y or (A^T A + k) x = A^T y around the mean of y.
    """
    mean = y.mean((2, 3), keepdim=True).expand_as(clean)
    right = operator.AT(y - operator.A(mean))
    penalties: tuple[Callable[[Tensor], Tensor], ...] = (lambda x: adjoint(differences(x)), lambda x: x)

    def solve(penalty: Callable[[Tensor], Tensor], strength: float) -> Tensor:
        return conjugate_gradients(lambda x: operator.AT(operator.A(x)) + strength * penalty(x), right, 1e-5)[0]

    estimates = [mean + solve(penalty, strength) for penalty in penalties for strength in STRENGTHS]
    return max(estimates, key=lambda estimate: float(psnr(estimate.clamp(0, 1), clean)))


def half_missing(shape: Shape, seed: int) -> LinearOperator:
    """Every pixel is missing with probability one half, in all channels."""
    known = torch.rand(1, *shape[1:], generator=torch.Generator().manual_seed(seed)) < 0.5
    return operators.Inpainting(shape, known.float())


CASES = (
    Case(f"super-resolution x{FACTOR}", lambda shape, _: operators.BicubicSR(shape, FACTOR), 0.0, "bicubic", enlarged),
    Case("inpainting, half of the pixels", half_missing, 0.0, "A^+ y", pseudo_inverse),
    Case("Gaussian deblurring, sigma 0.05", lambda shape, _: build_task("deblur-gaussian", shape), 0.05, "Wiener", best_wiener),
    Case("compressed sensing, a quarter, sigma 0.05", lambda shape, _: build_task("cs", shape), 0.05, "A^+ y", pseudo_inverse),
)


def restorations(
    prior: Prior, clean: Tensor, eta: float, cases: tuple[Case, ...] = CASES, seed: int = 0
) -> Iterator[Row]:
    """One row a case; clean [N, 3, H, W] in [0, 1]; `eta` is DDNM's."""
    for case in cases:
        totals = torch.zeros(4, dtype=torch.float64)
        for index, image in enumerate(torch.split(clean, 1)):
            operator = case.build((3, image.shape[2], image.shape[3]), index)
            y = operator.A(image)
            noise = torch.randn(y.shape, generator=torch.Generator().manual_seed(1000 * seed + index))
            y = y + case.sigma * noise
            result = Sampler(prior, "ddnm", (), eta=eta).run(Problem(y, operator, case.sigma), seed=seed)
            pictures = (case.estimate(y, operator, image), (result.images + 1) / 2)
            scores = [float(metric(picture.clamp(0, 1), image)) for picture in pictures for metric in (psnr, lpips)]
            totals += torch.tensor(scores, dtype=torch.float64) / len(clean)
        yield Row(case.title, case.peer, *totals.tolist())
