"""Quick checks on held-out photographs: PSNR and calibration of the variance head at several noise levels."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from leader.errors import LeaderError
from leader.pictures import list_pictures
from leader.priors.pyramid_net import PyramidNet, plan
from leader.train.data import crop_centre, decode, halved

SIGMAS = (10, 25, 50, 75, 100, 149, 200, 255, 400, 600)


def validation_crops(folder: Path, count: int = 16, size: int = 128) -> Tensor:
    """Central crops [count, 3, size, size] in [0, 1] of the first pictures, halved where they are large enough for it."""
    crops = []
    for path in list_pictures(folder)[:count]:
        picture = decode(path)
        crop = crop_centre(halved(picture) if min(picture.size) >= 2 * size else picture, size)
        if crop is None:
            raise LeaderError(f"{path} is smaller than {size} x {size} pixels: give larger pictures to validate with.")
        crops.append(crop)
    return torch.stack(crops)


@torch.no_grad()
def validate(net: PyramidNet, clean: Tensor, sigmas: tuple[float, ...] = SIGMAS, seed: int = 0) -> dict[str, list[float]]:
    """Mean PSNR [dB] and squared error over predicted variance per noise level (of 255); fixed noise."""
    generator = torch.Generator().manual_seed(seed)
    table: dict[str, list[float]] = {"sigma": list(sigmas), "psnr": [], "ratio": []}
    device = next(net.parameters()).device
    for value in sigmas:
        sigma = value / 255
        where = plan(sigma, clean.shape[2], clean.shape[3], net.config)
        noisy = clean + sigma * torch.randn(clean.shape, generator=generator)
        errors, variances = [], []
        for image, target in zip(torch.split(noisy, 4), torch.split(clean, 4), strict=True):
            estimate, variance = net(image.to(device), torch.full((len(image),), sigma, device=device), where)
            errors.append((estimate.clamp(0, 1).cpu() - target).square())
            variances.append(variance.cpu())
        error, predicted = torch.cat(errors), torch.cat(variances)
        table["psnr"].append(float((-10 * error.mean((1, 2, 3)).log10()).mean()))
        table["ratio"].append(float(error.mean() / predicted.mean()))
    return table
