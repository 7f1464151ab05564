"""Measures what half precision costs a prior, by noise level, beside what Sigma_t is there."""

from __future__ import annotations

import torch
from torch import Tensor

from leader.errors import LeaderError
from leader.priors.base import Prior
from leader.priors.mixed import Rounding, round_to_half

LEVELS = 12
MOST_CROPS = 6
"""The errors of a crop's pixels are many: a few crops are enough."""


@torch.no_grad()
def fit_rounding(prior: Prior, clean: Tensor, half: Prior | None = None, seed: int = 0) -> Rounding:
    """The table of a prior with a variance of its own.

    clean  [N, C, H, W] in [-1, 1], of which at most six are used
    half   the same prior in half precision, where it is not to be made here
    """
    rounded = round_to_half(prior, torch.bfloat16) if half is None else half
    generator = torch.Generator().manual_seed(seed)
    noise = ((1 - prior.schedule.abar_table) / prior.schedule.abar_table).log()
    wanted = torch.linspace(float(noise[0]), float(noise[-1]), LEVELS, dtype=torch.float64)
    times = list(dict.fromkeys(int((noise - place).abs().argmin()) for place in wanted))
    errors, spreads = [], []
    for t in (torch.tensor([time]) for time in times):
        level = prior.schedule.level(t, clean)
        error, spread = 0.0, 0.0
        for one in torch.split(clean[:MOST_CROPS], 1):
            x = level.signal * one + level.noise * torch.randn(one.shape, generator=generator)
            answer = prior.predict(x, t)
            if answer.variance is None:
                raise LeaderError(f"The prior '{prior.name}' predicts no variance; fit its head first.")
            error += float((rounded.predict(x, t).x0 - answer.x0).square().mean())
            spread += float(answer.variance.mean())
        count = len(clean[:MOST_CROPS])
        errors.append(max(error / count, 1e-20) ** 0.5)
        spreads.append(max(spread / count, 1e-20) ** 0.5)
    return Rounding(tuple(noise[times].tolist()), tuple(errors), tuple(spreads))
