"""Fits the tables beside a network with a variance: the spectrum of its errors, and its rounding in coarser numbers."""

import time
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor

from leader.errors import LeaderError
from leader.priors import mixed, spectrum
from leader.priors.adapters import HeadedPrior
from leader.priors.base import Prior
from leader.priors.mixed import Rounding, round_to_half
from leader.priors.spectrum import Spectrum, dct_radius
from leader.priors.variance_head import VarianceHead
from leader.train.data import Images, central_crops
from leader.uncertainty.dct import dct2

SIDE = 64
"""Side of the crops in pixels, if the network takes any size."""
RINGS = 14
"""Rings of equal width in the logarithm of the radius; the mean of a picture is in none of them."""
SPECTRUM_LEVELS, SPECTRUM_CROPS = 10, 48
ROUNDING_LEVELS, ROUNDING_CROPS = 12, 6
"""A crop has many pixels, so a few crops are enough."""


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


@torch.no_grad()
def count_affordable_crops(prior: Prior, crop: Tensor, seconds: float) -> int:
    """The number of crops like `crop` [1, C, H, W] to which a spectrum can be fitted in this time."""
    began = time.monotonic()
    prior.predict(crop, torch.tensor([len(prior.schedule) // 2]))
    each = SPECTRUM_LEVELS * (time.monotonic() - began)
    return min(SPECTRUM_CROPS, int(seconds / each))


def list_times(prior: Prior, first: int, count: int) -> tuple[list[int], Tensor]:
    """Times from `first` to the last whose noise levels are evenly spaced in the logarithm, and log s_t^2 at these times."""
    noise = ((1 - prior.schedule.abar_table) / prior.schedule.abar_table).log()
    wanted = torch.linspace(float(noise[first]), float(noise[-1]), count, dtype=torch.float64)
    times = list(dict.fromkeys(int((noise - place).abs().argmin()) for place in wanted))
    return times, noise[times]


def ask_about(
    prior: Prior, clean: Tensor, t: Tensor, generator: torch.Generator
) -> Iterator[tuple[Tensor, Tensor, Tensor, Tensor]]:
    """Each crop, x_t of it, and the prior's estimate and variance."""
    level = prior.schedule.level(t, clean)
    for one in torch.split(clean, 1):
        x = level.signal * one + level.noise * torch.randn(one.shape, generator=generator)
        answer = prior.predict(x, t)
        if answer.variance is None:
            raise LeaderError(f"The prior '{prior.name}' predicts no variance; fit its head first.")
        yield one, x, answer.x0, answer.variance


@torch.no_grad()
def fit_spectrum(prior: Prior, clean: Tensor) -> Spectrum:
    """The spectrum of a prior with a variance of its own, from held-out crops.

    clean  [N, C, H, W] in [-1, 1]; a few dozen are enough: a ring averages over many coefficients of each
    """
    if len(clean) < 2:
        raise LeaderError(f"A spectrum needs at least two pictures; found {len(clean)}.")
    colour = clean.double().mean((0, 2, 3))
    rings = Rings(int(clean.shape[-2]), int(clean.shape[-1]))
    images, images_mean = rings.power(clean.double() - colour.reshape(1, -1, 1, 1))
    generator = torch.Generator().manual_seed(0)
    times, noise = list_times(prior, (len(prior.schedule) - 1) // 100, SPECTRUM_LEVELS)
    powers, means = [], []
    for t in times:
        asked = ask_about(prior, clean, torch.tensor([t]), generator)
        errors = [(one - x0) / variance.clamp_min(1e-10).sqrt() for one, _, x0, variance in asked]
        power, mean = rings.power(torch.cat(errors).double())
        powers.append(power)
        means.append(mean)
    return Spectrum(noise, rings.radii, torch.stack(powers), torch.stack(means), images, images_mean, colour)


@torch.no_grad()
def fit_rounding(prior: Prior, clean: Tensor, half: Prior | None = None, small: Prior | None = None) -> Rounding:
    """The table of a prior with a variance of its own.

    clean  [N, C, H, W] in [-1, 1], of which at most six are used
    half   the same prior in half precision; made here if None
    small  the same in integers of eight bits, if it has them
    """
    rounded = [half or round_to_half(prior, torch.bfloat16), *([] if small is None else [small])]
    generator = torch.Generator().manual_seed(0)
    times, noise = list_times(prior, 0, ROUNDING_LEVELS)
    errors, spreads, count = [], [], len(clean[:ROUNDING_CROPS])
    for t in torch.split(torch.tensor(times), 1):
        error, spread = [0.0 for _ in rounded], 0.0
        for _, x, x0, variance in ask_about(prior, clean[:ROUNDING_CROPS], t, generator):
            error = [sum_ + float((other.predict(x, t).x0 - x0).square().mean()) for sum_, other in zip(error, rounded)]
            spread += float(variance.mean())
        errors.append([max(one / count, 1e-20) ** 0.5 for one in error])
        spreads.append(max(spread / count, 1e-20) ** 0.5)
    columns = [tuple(column) for column in zip(*errors)]
    return Rounding(tuple(noise.tolist()), columns[0], tuple(spreads), *columns[1:])


class Rings:
    """The frequency plane of H x W pictures in rings."""

    def __init__(self, height: int, width: int) -> None:
        radius = dct_radius(height, width)
        self.pixels = height * width
        lowest, highest = float(radius[radius > 0].min()), float(radius.max())
        edges = torch.logspace(0, 1, RINGS + 1, base=highest / lowest, dtype=torch.float64) * lowest
        index = torch.bucketize(radius, edges[1:-1])
        index[0, 0] = -1
        filled = [ring for ring in range(RINGS) if bool((index == ring).any())]  # low rings of small pictures may be empty
        self.members = [index == ring for ring in filled]
        self.radii = torch.stack([radius[where].log().mean().exp() for where in self.members])

    def power(self, errors: Tensor) -> tuple[Tensor, Tensor]:
        """Pictures [N, C, H, W] -> mean power [rings, C, C] and covariance of their means [C, C]."""
        coefficients = dct2(errors)
        channels = errors.shape[1]
        power = []
        for where in self.members:
            rows = coefficients[..., where].permute(1, 0, 2).reshape(channels, -1)
            power.append(_make_definite(rows @ rows.T / rows.shape[1]))
        first = coefficients[..., 0, 0]
        return torch.stack(power), _make_definite(first.T @ first / len(first) / self.pixels)


def _make_definite(matrix: Tensor) -> Tensor:
    """A channel matrix with a little of its mean added to the diagonal: from two pictures it is singular, and it is rounded."""
    return matrix + 1e-4 * matrix.diagonal().mean() * torch.eye(len(matrix), dtype=matrix.dtype)
