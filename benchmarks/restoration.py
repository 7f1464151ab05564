"""Restorations with a prior beside what needs none: the second half of benchmarks/prior.py.

DDNM, T = 100, one seed; eta, grid and time travel of each task were chosen among TRIALS on validation photographs. Four-fold
super-resolution without noise beside bicubic interpolation, half of the pixels missing, Gaussian blur at sigma 0.05 beside
the best Wiener estimates, compressed sensing of a quarter.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

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
"""Strengths among which the best Wiener estimate is picked, knowing the originals."""

Settings = dict[str, Any]
"""DDNM's, and the grid."""
Pictures = dict[str, Tensor]
"""Estimates [N, 3, H, W] by the name of what made them."""


@dataclass(frozen=True)
class Score:
    """Means over the pictures."""

    psnr: float
    lpips: float


@dataclass(frozen=True)
class Row:
    """One task: its restorations beside its peers."""

    task: str
    settings: Settings
    restored: Score
    peers: dict[str, Score]

    def __str__(self) -> str:
        settings = ", ".join(f"{name} {value}" for name, value in self.settings.items())
        lines = [f"{self.task} ({settings}): {self.restored.psnr:.2f} dB, LPIPS {self.restored.lpips:.3f}"]
        for name, peer in self.peers.items():
            gain, ratio = self.restored.psnr - peer.psnr, self.restored.lpips / peer.lpips
            lines.append(f"  {name}: {peer.psnr:.2f} dB, LPIPS {peer.lpips:.3f}; gain {gain:+.2f} dB, LPIPS ratio {ratio:.2f}")
        return "\n".join(lines)


@dataclass(frozen=True)
class Case:
    """A task: its operator for (image shape, seed), its noise, its peers as a function of (measurements, operators, originals),
    and the settings of DDNM.
    """

    title: str
    build: Callable[[Shape, int], LinearOperator]
    sigma: float
    peers: Callable[[list[Tensor], list[LinearOperator], Tensor], Pictures]
    settings: Settings


def pseudo_inverse(measured: list[Tensor], used: list[LinearOperator], clean: Tensor) -> Pictures:
    """A^+ y."""
    return {"A^+ y": torch.cat([operator.pinv(y) for y, operator in zip(measured, used, strict=True)])}


def enlarged(measured: list[Tensor], used: list[LinearOperator], clean: Tensor) -> Pictures:
    """Bicubic interpolation of the small pictures."""
    return {"bicubic": torch.cat([bicubic(y) for y in measured])}


def best_wiener(measured: list[Tensor], used: list[LinearOperator], clean: Tensor) -> Pictures:
    """Wiener estimates for spectra that fall as 1/f^2 and for flat ones, at the kind and strength that suit best: the originals
    being known, for each picture by itself (no filter that is set without them can be better), and for all of them together.

    Solves (A^T A + k D^T D) x = A^T y or (A^T A + k) x = A^T y around the mean of y.
    """
    operator, y = used[0], torch.cat(measured)
    mean = y.mean((2, 3), keepdim=True).expand_as(clean)
    right = operator.AT(y - operator.A(mean))
    penalties: tuple[Callable[[Tensor], Tensor], ...] = (lambda x: adjoint(differences(x)), lambda x: x)

    def solve(penalty: Callable[[Tensor], Tensor], strength: float) -> Tensor:
        return conjugate_gradients(lambda x: operator.AT(operator.A(x)) + strength * penalty(x), right, 1e-4)[0]

    filtered = [(mean + solve(penalty, strength)).clamp(0, 1) for penalty in penalties for strength in STRENGTHS]
    estimates = torch.stack(filtered)
    scores = torch.stack([psnr(estimate, clean) for estimate in filtered])
    each = estimates[scores.argmax(0), torch.arange(len(clean))]
    return {"Wiener, best for each picture": each, "Wiener, best for all": estimates[int(scores.mean(1).argmax())]}


def half_missing(shape: Shape, seed: int) -> LinearOperator:
    """Every pixel is missing with probability one half, in all channels."""
    known = torch.rand(1, *shape[1:], generator=torch.Generator().manual_seed(seed)) < 0.5
    return operators.Inpainting(shape, known.float())


def plain(eta: float, grid: str = "uniform") -> Settings:
    """Settings of DDNM without time travel."""
    return {"eta": eta, "grid": grid}


def travelling(length: int, repeats: int, eta: float) -> Settings:
    """Settings of DDNM with time travel."""
    return {"eta": eta, "travel_length": length, "travel_repeats": repeats}


def super_resolution(aim: str, settings: Settings) -> Case:
    """Four-fold, without noise. Less fresh noise (eta) keeps more detail, true and false."""
    title = f"super-resolution x{FACTOR}, {aim}"
    return Case(title, lambda shape, _: operators.BicubicSR(shape, FACTOR), 0.0, enlarged, settings)


CASES = {
    "sr": super_resolution("for PSNR", plain(1.0)),
    "sr-balanced": super_resolution("balanced", plain(0.85)),
    "sr-travelling": super_resolution("best PSNR at half of bicubic's LPIPS", travelling(10, 4, 0.65)),
    "inpainting": Case("inpainting, half of the pixels", half_missing, 0.0, pseudo_inverse, plain(1.0, "quadratic")),
    "deblurring": Case(
        "Gaussian deblurring, sigma 0.05",
        lambda shape, _: build_task("deblur-gaussian", shape),
        0.05,
        best_wiener,
        plain(0.85),
    ),
    "cs": Case(
        "compressed sensing, a quarter, sigma 0.05",
        lambda shape, _: build_task("cs", shape),
        0.05,
        pseudo_inverse,
        travelling(10, 8, 1.0),
    ),
}


TRIALS: dict[str, list[Settings]] = {
    "sr": [
        *(plain(eta) for eta in (0.5, 0.7, 0.85, 0.92, 0.96, 0.985, 1.0)),
        *(plain(eta, "quadratic") for eta in (0.5, 0.7, 0.85, 1.0)),
        *(travelling(10, 2, eta) for eta in (0.5, 0.7)),
        travelling(10, 3, 0.6),
        *(travelling(10, 4, eta) for eta in (0.6, 0.65, 0.7)),
        *(travelling(1, 2, 0.7), travelling(5, 2, 0.7), travelling(25, 2, 0.75)),
    ],
    "inpainting": [
        *(plain(eta) for eta in (0.5, 0.7, 0.85, 0.92, 0.96, 0.985)),
        *(plain(eta, "quadratic") for eta in (0.985, 1.0)),
    ],
    "deblurring": [
        *(plain(eta) for eta in (0.5, 0.7, 0.85, 0.88, 0.92, 0.96)),
        plain(0.85, "quadratic"),
        travelling(10, 2, 0.85),
    ],
    "cs": [travelling(10, repeats, 1.0) for repeats in (4, 8)],
}
"""What was tried on eight validation photographs; more on compressed sensing in docs/results/compressed_sensing.md."""


def restore(prior: Prior, clean: Tensor, case: Case, peers: dict[str, Score] | None = None, seed: int = 0) -> Row:
    """One row; clean [N, 3, H, W] in [0, 1]; `peers` where they are known already."""
    measured, chosen, restored = [], [], []
    for index, image in enumerate(torch.split(clean, 1)):
        operator = case.build((3, image.shape[2], image.shape[3]), index)
        y = operator.A(image)
        noise = torch.randn(y.shape, generator=torch.Generator().manual_seed(1000 * seed + index))
        y = y + case.sigma * noise
        result = Sampler(prior, "ddnm", (), **case.settings).run(Problem(y, operator, case.sigma), seed=seed)
        measured.append(y)
        chosen.append(operator)
        restored.append((result.images + 1) / 2)
    if peers is None:
        peers = {name: score(pictures, clean) for name, pictures in case.peers(measured, chosen, clean).items()}
    return Row(case.title, case.settings, score(torch.cat(restored), clean), peers)


def score(pictures: Tensor, clean: Tensor) -> Score:
    """Mean PSNR and LPIPS of pictures [N, 3, H, W], clamped to [0, 1]."""
    bounded = pictures.clamp(0, 1)
    return Score(float(psnr(bounded, clean).mean()), float(lpips(bounded, clean).mean()))
