"""The training objective: noise levels, noisy crops, and the loss."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from leader.errors import LeaderError
from leader.priors.pyramid_net import PyramidNet, expand, guide_levels, halve
from leader.train.data import Photographs, draw_level_crop

GOLDEN = (math.sqrt(5) - 1) / 2


@dataclass(frozen=True)
class Task:
    """One body's share of a training step."""

    batch: int
    crop: int
    sigma_low: float
    sigma_high: float
    coarse_sigma_low: float
    level_shares: tuple[float, ...]
    sigma_power: float = 1.0


def fit_task(task: Task, photos: dict[str, Photographs]) -> Task:
    """The task without the levels whose crops are larger than every picture; the other levels take over their share."""
    largest = max(min(height, width) for height, width in photos["full"].shapes)
    shares = task.level_shares[: sum(task.crop * 2**level <= largest for level in range(len(task.level_shares)))]
    if not sum(shares):
        raise LeaderError(
            f"The largest training picture has {largest} pixels on its short side, and crops of {task.crop} are needed: "
            "give larger pictures."
        )
    return replace(task, level_shares=tuple(share / sum(shares) for share in shares))


@dataclass(frozen=True)
class Examples:
    """Noisy level crops that share the number of guides, with their clean sides.

    noisy, clean: [B, 3, S, S]; full: per image the clean full-resolution crop [3, S 2^k, S 2^k]; sigma, level: [B].
    """

    noisy: Tensor
    clean: Tensor
    full: list[Tensor]
    sigma: Tensor
    level: Tensor
    guides: int


def spread(step: int, count: int, rng: np.random.Generator) -> npt.NDArray[np.float64]:
    """`count` numbers in [0, 1): evenly spaced, shifted by the golden ratio each step, in random order.

    Within a step they are stratified, over many steps they fill the interval with low discrepancy.
    """
    shift = (step * GOLDEN) % 1.0
    return rng.permutation((np.arange(count) + shift) / count)


def draw_examples(
    net: PyramidNet, photos: dict[str, Photographs], task: Task, seed: int, step: int, expert: bool
) -> list[Examples]:
    """One step's examples for one body, grouped by the number of guides; depends only on (seed, step)."""
    rng = np.random.default_rng([seed, step, int(expert)])
    places = spread(step, task.batch, rng) ** task.sigma_power
    groups: dict[int, list[tuple[Tensor, Tensor, float, int]]] = {}
    for place in places:
        level = int(rng.choice(len(task.level_shares), p=task.level_shares))
        full, clean = draw_level_crop(rng, photos, task.crop, level)
        if expert:  # the expert works only at full resolution: it treats a coarse level as another kind of picture
            full, level = clean, 0
        low = task.coarse_sigma_low if level else task.sigma_low
        sigma = low + float(place) * (task.sigma_high - low)
        guides = 0 if expert else max(1, guide_levels(sigma, net.config)) if net.config.cascade else 0
        groups.setdefault(guides, []).append((full, clean, sigma, level))
    noise, found = torch.Generator().manual_seed(int(rng.integers(2**62))), []
    for guides, members in sorted(groups.items()):
        columns: Any = zip(*members)
        crops, cleans, sigmas, levels = columns
        clean, noise_levels = torch.stack(cleans), torch.tensor(sigmas)
        noisy = clean + noise_levels.view(-1, 1, 1, 1) * torch.randn(clean.shape, generator=noise)
        found.append(Examples(noisy, clean, list(crops), noise_levels, torch.tensor(levels).float(), guides))
    return found


def loss(net: PyramidNet, examples: Examples, device: torch.device) -> tuple[Tensor, dict[str, float]]:
    """Summed loss over the images of a group, and sums for the log.

    10 mse/sqrt(sigma^2 + 0.02^2) balances the noise levels; the head learns by the Gaussian likelihood of the
    detached full-resolution error from detached features, so it never affects the estimate.
    """
    noisy, clean = examples.noisy.to(device), examples.clean.to(device)
    sigma, level = examples.sigma.to(device), examples.level.to(device)
    body = net.body(examples.guides)
    estimate, features = net.features(noisy, sigma, examples.guides)
    mse = (estimate - clean).square().mean((1, 2, 3))
    log_variance = body.log_variance(features.detach(), sigma, level)
    error = full_resolution_error(estimate.detach(), examples).to(device)
    ratio = error / net.noise_power(sigma) * torch.exp(-log_variance)
    nll = 0.5 * (log_variance + ratio).mean((1, 2, 3))
    denoising = 10 * mse / (sigma**2 + 0.02**2).sqrt()
    sums = {"denoising": denoising.sum(), "nll": nll.sum(), "ratio": ratio.mean((1, 2, 3)).sum()}
    return (denoising + 0.01 * nll).sum(), {name: float(value.detach()) for name, value in sums.items()}


def full_resolution_error(estimate: Tensor, examples: Examples) -> Tensor:
    """Squared error of the enlarged estimates at full resolution, averaged over each level pixel's block."""
    rows = []
    for index, full in enumerate(examples.full):
        level = int(examples.level[index])
        enlarged = expand(estimate[index : index + 1].float().cpu(), level)
        rows.append(halve((enlarged - full[None]).square(), level))
    return torch.cat(rows)
