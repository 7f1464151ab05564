"""Fits the tables that lie beside a network with a variance: the spectrum of its errors, its rounding in half precision."""

from __future__ import annotations

from pathlib import Path

import torch

from leader.priors import mixed, spectrum
from leader.priors.adapters import HeadedPrior
from leader.priors.base import Prior
from leader.priors.variance_head import VarianceHead
from leader.train.calibrate import central_crops
from leader.train.data import Images
from leader.train.rounding import fit_rounding
from leader.train.spectrum import count_affordable_crops, fit_spectrum

SIDE = 64
"""Of the crops, in pixels, where a network takes any."""


def fit_tables(
    network: Prior, head: VarianceHead | None, images: Images, checkpoint: Path, seconds: float, least: int = 0
) -> int:
    """Writes both tables beside a checkpoint, from as many crops as fit into the time: returns how many, 0 for no time at all.

    head   of the network; None where it predicts a variance of its own
    least  crops to take, however long that lasts
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
