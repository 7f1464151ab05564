"""Fits the Gaussian prior of tiny level images to photographs: moments, and spectra by maximum likelihood."""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from leader.priors.coarse_gaussian import OPPONENT, CoarseGaussian, dct_matrix, frequencies
from leader.priors.pyramid_net import expand, halve
from leader.train.data import Photographs, draw_crop, open_photographs

LEVELS = 6


def fit_coarse_gaussian(images: Path, cache: Path, crops: int = 600, size: int = 20, seed: int = 0) -> CoarseGaussian:
    """Statistics of random square crops averaged down to `size` pixels (the prior is used at 16 to 31)."""
    photos = open_photographs(images, cache)
    rng = np.random.default_rng(seed)
    largest = max(4, min(min(shape) for shape in photos["full"].shapes) // size)
    blocks = (
        (block, draw_crop(rng, photos, size * block)) for block in (int(rng.integers(4, largest + 1)) for _ in range(crops))
    )
    level_images = torch.stack([F.avg_pool2d(crop[None].double(), block)[0] for block, crop in blocks])
    mean = level_images.mean((0, 2, 3))
    components = torch.einsum("oc,bchw->bohw", OPPONENT, level_images - mean.view(1, 3, 1, 1))
    matrix = dct_matrix(size)
    power = (matrix @ components @ matrix.T).square().mean(0)
    fitted = [_fit_spectrum(power[component]) for component in range(3)]
    return CoarseGaussian(
        mean=tuple(mean.tolist()),
        dc=tuple(components.mean((2, 3)).square().mean(0).tolist()),
        scale=tuple(values[0] for values in fitted),
        knee=tuple(values[1] for values in fitted),
        power=tuple(values[2] for values in fitted),
        detail=_detail(rng, photos, max(8, crops // 10)),
    )


def _fit_spectrum(power: Tensor) -> tuple[float, float, float]:
    """(scale, knee, exponent) of maximum likelihood for mean squared coefficients [n, n], without DC."""
    grid = frequencies(len(power))
    square = (grid[:, None] ** 2 + grid[None, :] ** 2).flatten()[1:]
    target = power.flatten()[1:]
    values = torch.tensor([-6.0, -3.5, 2.0], dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS([values], max_iter=200, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimiser.zero_grad()
        logarithm = values[0] - values[2] / 2 * torch.log(square + torch.exp(2 * values[1]))
        cost = (logarithm + target * torch.exp(-logarithm)).mean()
        torch.autograd.backward([cost])
        return cost

    optimiser.step(closure)  # type: ignore[no-untyped-call]
    scale, knee, exponent = values.detach().tolist()
    return float(np.exp(scale)), float(np.exp(knee)), float(exponent)


def _detail(rng: np.random.Generator, photos: dict[str, Photographs], crops: int) -> tuple[float, ...]:
    """Mean squared difference between crops and their enlarged level images, up to the last level the pictures allow."""
    detail, largest = [0.0], max(min(shape) for shape in photos["full"].shapes)
    for level in range(1, LEVELS):
        if 16 * 2**level > largest:
            break
        pictures = torch.stack([draw_crop(rng, photos, 16 * 2**level) for _ in range(crops)])
        detail.append(float((expand(halve(pictures, level), level) - pictures).square().mean()))
    return tuple(detail)
