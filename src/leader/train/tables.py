"""Fits the tables beside a network with a variance: the spectrum of its errors, its rounding in coarser numbers."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from leader.errors import LeaderError
from leader.priors import mixed, spectrum
from leader.priors.adapters import HeadedPrior
from leader.priors.base import Prior
from leader.priors.mixed import Rounding, round_to_half
from leader.priors.variance_head import VarianceHead
from leader.train.calibrate import central_crops
from leader.train.data import Images
from leader.train.spectrum import count_affordable_crops, fit_spectrum

SIDE = 64
"""Side of the crops in pixels, if the network takes any size."""


def fit_tables(
    network: Prior, head: VarianceHead | None, images: Images, checkpoint: Path, seconds: float, least: int = 0
) -> int:
    """Writes both tables beside a checkpoint, from as many crops as fit into the time: returns their number, 0 if there was no
    time.

    head   of the network; None if it predicts its own variance
    least  minimum number of crops, however long they take
    """
    headed = network if head is None else HeadedPrior(network, head)
    crops = 2 * central_crops(images, SIDE if network.size is None else min(network.size)) - 1
    count = min(len(crops), max(least, count_affordable_crops(headed, crops[:1], seconds)))
    if count < 2:
        return 0
    fit_spectrum(headed, crops[:count]).save(spectrum.spectrum_file(checkpoint))
    half = None if head is None else mixed.round_to_half(network, torch.bfloat16)
    fit_rounding(headed, crops[:2], half).save(mixed.rounding_file(checkpoint))
    return count


LEVELS = 12
MOST_CROPS = 6
"""A crop has many pixels, so a few crops are enough."""


@torch.no_grad()
def fit_rounding(prior: Prior, clean: Tensor, half: Prior | None = None, small: Prior | None = None, seed: int = 0) -> Rounding:
    """The table of a prior with a variance of its own.

    clean  [N, C, H, W] in [-1, 1], of which at most six are used
    half   the same prior in half precision; made here if None
    small  the same in integers of eight bits, if it has them
    """
    rounded = [half or round_to_half(prior, torch.bfloat16), *([] if small is None else [small])]
    generator = torch.Generator().manual_seed(seed)
    noise = ((1 - prior.schedule.abar_table) / prior.schedule.abar_table).log()
    wanted = torch.linspace(float(noise[0]), float(noise[-1]), LEVELS, dtype=torch.float64)
    times = list(dict.fromkeys(int((noise - place).abs().argmin()) for place in wanted))
    errors, spreads, count = [], [], len(clean[:MOST_CROPS])
    for t in (torch.tensor([time]) for time in times):
        level = prior.schedule.level(t, clean)
        error, spread = [0.0 for _ in rounded], 0.0
        for one in torch.split(clean[:MOST_CROPS], 1):
            x = level.signal * one + level.noise * torch.randn(one.shape, generator=generator)
            answer = prior.predict(x, t)
            if answer.variance is None:
                raise LeaderError(f"The prior '{prior.name}' predicts no variance; fit its head first.")
            error = [sum_ + float((other.predict(x, t).x0 - answer.x0).square().mean()) for sum_, other in zip(error, rounded)]
            spread += float(answer.variance.mean())
        errors.append([max(one / count, 1e-20) ** 0.5 for one in error])
        spreads.append(max(spread / count, 1e-20) ** 0.5)
    columns = [tuple(column) for column in zip(*errors)]
    return Rounding(tuple(noise[times].tolist()), columns[0], tuple(spreads), *columns[1:])
