"""The network of the embedded prior: two small convolutional denoisers in a pyramid of 2x2 averages.

Averaging 2x2 pixels halves independent noise, so at level k of an averaging pyramid noise sigma has become
sigma/2^k. The network answers at the first level where that fits its range. There, with little noise, the
*expert* works alone. With more, the *main* body is helped by the next coarser level, where the noise is half
as strong and the field of view twice as wide: averaged down, the two estimates should agree, and a share of
their difference is added back. The recursion ends after at most two coarser levels, so the receptive field is
finite; nothing is normalised over space.

Everything here is in [0, 1] units and independent of schedules: `leader.priors.pyramid` converts.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from leader.operators.separable import BandedMatrix

LARGEST_PRODUCT = 1024
"""Longest side in pixels that is enlarged by two matrix products, a third of the time of torch's own."""
Late = Callable[[], Tensor]
"""Computes the variance of an answer when it is asked for."""


@dataclass(frozen=True)
class PyramidConfig:
    """Shape and ranges of a `PyramidNet`; noise levels are standard deviations of [0, 1] images."""

    width: int = 96
    depth: int = 11
    head_width: int = 48
    sigma_max: float = 150 / 255
    expert_max: float = 37.5 / 255
    cascade: bool = True
    min_level_size: int = 16
    variance_floor: float = 1e-4


@dataclass(frozen=True)
class LevelPlan:
    """The level at which an image with noise sigma is estimated.

    level: k, the number of 2x2 averagings before the answering network.
    sigma: noise left at that level.
    guides: number of coarser levels below it that contribute guides.
    fits: whether the network's range covers `sigma`; if not, the image is too small to be averaged further.
    """

    level: int
    sigma: float
    guides: int
    fits: bool

    @property
    def multiple(self) -> int:
        """Sides of the (padded) full-resolution image must be multiples of this."""
        return int(2 ** (self.level + self.guides + 1))


def plan(sigma: float, height: int, width: int, config: PyramidConfig) -> LevelPlan:
    """The level and the number of guides for noise `sigma` on an image of height x width pixels."""
    deepest = max(0, math.floor(math.log2(max(1.0, min(height, width) / config.min_level_size))))
    level = 0
    while sigma > config.sigma_max and level < deepest:
        sigma, level = sigma / 2, level + 1
    if sigma > config.sigma_max:
        return LevelPlan(level, sigma, 0, False)
    return LevelPlan(level, sigma, guide_levels(sigma, config), True)


def guide_levels(sigma: float, config: PyramidConfig) -> int:
    """How many coarser levels guide the answer at level noise `sigma`; 0: the expert answers alone."""
    if not config.cascade:
        return 0
    guides = 0
    while sigma > config.expert_max:
        sigma, guides = sigma / 2, guides + 1
    return guides


def receptive_radius(config: PyramidConfig, level: int, guides: int) -> int:
    """Full-resolution pixels beyond which nothing influences an estimate or its variance.

    A stack of n 3x3 convolutions on cells of 2x2 pixels reaches 2n + 1 pixels. Passing to the level below and
    back (averaging, bicubic enlargement with two pixels to each side) turns a reach of r into 2 (r + 2) + 1.
    The difference of two levels comes through that passage from both.
    """
    body = 2 * (config.depth + 1) + 1
    reach = body
    for _ in range(guides):
        reach = max(body + 2 * 2 + 1, 2 * (reach + 2) + 1)
    reach = max(reach, 2 * (config.depth + 2) + 1)  # the head has one convolution more than the estimate
    return reach if level == 0 else 2**level * (reach + 4) + 2**level - 1  # expanding interpolates twice


class Body(nn.Module):
    """A plain convolutional denoiser on 2x2 cells of pixels, with a head for its own log-variance.

    Layers may have different precisions (`leader.priors.mixed`): each gets its input in its own.
    """

    def __init__(self, width: int, depth: int, head_width: int) -> None:
        super().__init__()
        sizes = [13] + [width] * depth
        self.convs = nn.ModuleList(nn.Conv2d(a, b, 3, padding=1) for a, b in pairwise(sizes))
        self.out = nn.Conv2d(width, 12, 3, padding=1)
        self.h1 = nn.Conv2d(width + 2, head_width, 3, padding=1)
        self.h2 = nn.Conv2d(head_width, 12, 3, padding=1)

    def forward(self, pixels: Tensor, sigma: Tensor) -> tuple[Tensor, Tensor]:
        """pixels [B, 3, H, W], sigma [B] -> estimate [B, 3, H, W] and features [B, width, H/2, W/2]."""
        cells = F.pixel_unshuffle(pixels, 2)
        h = torch.cat([cells, _constant(sigma, cells)], 1).contiguous(memory_format=torch.channels_last)
        for conv in self.convs:
            assert isinstance(conv, nn.Conv2d)
            h = F.relu(conv(h.to(conv.weight.dtype)), inplace=True)
        return F.pixel_shuffle(self.out(h.to(self.out.weight.dtype)), 2), h

    def log_variance(self, features: Tensor, sigma: Tensor, level: Tensor) -> Tensor:
        """features [B, width, H/2, W/2], sigma [B], level [B] -> log of variance/(sigma^2 + floor)."""
        h = torch.cat([features, _constant(10 * sigma, features), _constant(level / 4, features)], 1)
        h = F.relu(self.h1(h), inplace=True)
        return F.pixel_shuffle(self.h2(h.to(self.h2.weight.dtype)), 2)


def _constant(value: Tensor, like: Tensor) -> Tensor:
    return value.to(like.dtype).view(-1, 1, 1, 1).expand(-1, 1, like.shape[2], like.shape[3])


def halve(image: Tensor, times: int = 1) -> Tensor:
    """Average blocks of 2^times x 2^times pixels; sides must be multiples of the block."""
    return F.avg_pool2d(image, 2**times) if times else image


def enlarge(image: Tensor, times: int = 1, mode: str = "bicubic") -> Tensor:
    """Interpolate to 2^times the size, cell centres aligned with block centres."""
    if not times:
        return image
    height, width = image.shape[-2:]
    if max(height, width) << times > LARGEST_PRODUCT:
        return F.interpolate(image, scale_factor=2.0**times, mode=mode, align_corners=False)
    return _interpolation(height, times, mode).rows(_interpolation(width, times, mode).columns(image))


@lru_cache(maxsize=64)
def _interpolation(side: int, times: int, mode: str) -> BandedMatrix:
    """What `enlarge` does along one axis, [2^times side, side]: interpolation is separable."""
    columns = torch.eye(side, dtype=torch.float64)[None, None]
    return BandedMatrix(F.interpolate(columns, scale_factor=(2.0**times, 1.0), mode=mode, align_corners=False)[0, 0])


def expand(image: Tensor, times: int) -> Tensor:
    """Enlarge an estimate of block averages to an estimate of pixels.

    The average of a posterior mean is the posterior mean of the average, so averaging the result should give
    the image back: the remaining error of bicubic interpolation is added once more.
    """
    if not times:
        return image
    height, width = image.shape[-2:]
    if max(height, width) << times > LARGEST_PRODUCT:
        again = halve(enlarge(image, times), times)
    else:
        again = _there_and_back(height, times).rows(_there_and_back(width, times).columns(image))
    return enlarge(image + (image - again), times)


@lru_cache(maxsize=64)
def _there_and_back(side: int, times: int) -> BandedMatrix:
    """Interpolation and the averages of its blocks along one axis, [side, side]."""
    return BandedMatrix(_interpolation(side, times, "bicubic").constant.reshape(side, 2**times, side).mean(1))


class PyramidNet(nn.Module):
    """The denoiser of the embedded prior; see the module's docstring."""

    def __init__(self, config: PyramidConfig) -> None:
        super().__init__()
        self.config = config
        shape = (config.width, config.depth, config.head_width)
        self.main = Body(*shape)
        self.expert = Body(*shape) if config.cascade else None
        # a + b sigma of the difference to the coarser level is added; starts at a least-squares fit
        self.share = nn.Parameter(torch.tensor([0.1, 0.9])) if config.cascade else None
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def compile(self, *arguments: Any, **options: Any) -> None:
        """Compiles the bodies, which do nearly all of the work: a prior calls them, not `forward`."""
        for body in (self.main, self.expert):
            if body is not None:
                body.compile(*arguments, **options)

    def body(self, guides: int) -> Body:
        """The body that answers when `guides` coarser levels contribute."""
        return self.main if guides or self.expert is None else self.expert

    def features(self, noisy: Tensor, sigma: Tensor, guides: int) -> tuple[Tensor, Tensor]:
        """Estimate [B, 3, H, W] of a level image with noise sigma [B], and the answering body's features."""
        estimate, h = self.body(guides)(noisy, sigma)
        if guides and self.share is not None:
            coarse, _ = self.features(halve(noisy), sigma / 2, guides - 1)
            share = (self.share[0] + self.share[1] * sigma).view(-1, 1, 1, 1)
            estimate = estimate + share * enlarge(coarse - halve(estimate))
        return estimate, h

    def noise_power(self, sigma: Tensor) -> Tensor:
        """sigma^2 + floor, [B, 1, 1, 1]: the scale of the predicted variance."""
        return (sigma**2 + self.config.variance_floor).view(-1, 1, 1, 1)

    def forward(self, noisy: Tensor, sigma: Tensor, where: LevelPlan) -> tuple[Tensor, Tensor]:
        """Full resolution: noisy [B, 3, H, W] with noise sigma [B] -> estimate, variance [B, 3, H, W].

        All images share `where`; sides of any size (padded and cropped here). The variance is that of a full-resolution
        pixel's error, averaged over the block of 2^level pixels.
        """
        estimate, late = self.answer(noisy, sigma, where)
        return estimate, late()

    def answer(self, noisy: Tensor, sigma: Tensor, where: LevelPlan) -> tuple[Tensor, Late]:
        """The same with what computes the variance in its place: until it is called, it holds the features."""
        height, width = noisy.shape[2:]
        level, left = torch.full_like(sigma, where.level), sigma / 2**where.level
        small, h = self.features(halve(pad_to_multiple(noisy, where.multiple), where.level), left, where.guides)

        def compute_variance() -> Tensor:
            variance = self.noise_power(left) * self.body(where.guides).log_variance(h, left, level).exp()
            return enlarge(variance, where.level, "bilinear")[..., :height, :width]

        return expand(small, where.level)[..., :height, :width], compute_variance

    def work(self, where: LevelPlan, height: int, width: int) -> float:
        """Full-resolution-equivalent pixels processed by the bodies for one image, over all levels."""
        padded = [-(-side // where.multiple) * where.multiple for side in (height, width)]
        return padded[0] * padded[1] * sum(4.0 ** -(where.level + step) for step in range(where.guides + 1))


def pad_to_multiple(image: Tensor, multiple: int) -> Tensor:
    """Pads bottom and right to multiples by reflection; repeats the edge where that is impossible."""
    height, width = image.shape[2:]
    bottom, right = -height % multiple, -width % multiple
    image = _pad(image, (0, 0, 0, bottom), bottom < height) if bottom else image
    return _pad(image, (0, right, 0, 0), right < width) if right else image


def _pad(image: Tensor, amounts: tuple[int, int, int, int], reflect: bool) -> Tensor:
    return F.pad(image, amounts, mode="reflect" if reflect else "replicate")
