"""Sigma as a plug-in takes it: itself, or one of two ablations that tell whether "local" matters."""

from __future__ import annotations

import torch
from torch import Tensor

from leader.plugins.base import StepInfo

MAPS = ("local", "mean", "shuffle")


def map_sigma(sigma: Tensor, name: str, info: StepInfo) -> Tensor:
    """Sigma [B, C, H, W] itself ("local"), its mean over each image ("mean"), or its pixels in random order ("shuffle")."""
    if name == "local":
        return sigma
    if name == "mean":
        return sigma.mean((1, 2, 3), keepdim=True).expand_as(sigma)
    shuffled = []
    for image, position, one in zip(info.ids, info.positions, sigma):
        generator = torch.Generator().manual_seed((1_000_003 * image + position) % 2**63)
        order = torch.randperm(one[0].numel(), generator=generator).to(sigma.device)
        shuffled.append(one.flatten(1)[:, order].reshape(one.shape))
    return torch.stack(shuffled)
