"""The embedded prior on large pictures: evaluated piece by piece, with the same result as the whole.

Its network has a finite receptive field (`receptive_radius`), so a piece cut out with that much of its surroundings gives the
same result as the whole picture, up to the rounding of sums in a different order. The network needs the memory of one piece.
Levels that average many pixels work on small images and are left whole, and so are differentiated calls.
"""

import math
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from leader.priors.adapters import WrappedPrior
from leader.priors.base import Prediction, Prior, from_x0
from leader.priors.mixed import MixedPrior
from leader.priors.pyramid import PyramidPrior
from leader.priors.pyramid_net import plan, receptive_radius

MOST_WHOLE = 4_000_000
"""Largest picture in pixels that is not cut: about 1.3 GB for the network."""
PIECE = 3_000_000
"""Pixels of a piece with its surroundings, at the level where the network works."""


@dataclass(frozen=True)
class Cut:
    """A stretch of one side: `begin` to `end` with its surroundings, of which `first` to `last` are kept."""

    begin: int
    end: int
    first: int
    last: int


def cut_side(length: int, longest: int, margin: int, multiple: int) -> list[Cut]:
    """Cuts a side into stretches of about equal length, about `longest` with a `margin` on both ends, starting at multiples.

    margin is a multiple of `multiple`; at the ends of the side there is none. At least half of `longest` is kept.
    """
    count = math.ceil(length / max(longest - 2 * margin, longest // 2))
    bounds = [round(length * number / count / multiple) * multiple for number in range(count)] + [length]
    return [
        Cut(max(0, first - margin), min(length, last + margin), first, last) for first, last in pairwise(bounds) if last > first
    ]


class PiecewisePrior(WrappedPrior):
    """A pyramid prior evaluated on at most `piece` pixels at a time."""

    def __init__(self, base: Prior, pyramid: PyramidPrior, piece: int = PIECE) -> None:
        super().__init__(base)
        self.one_by_one = base.one_by_one
        self._pyramid, self.piece = [pyramid], piece  # in a list: its weights already count as those of `base`

    def _layout(self, t: int, height: int, width: int, channels: int) -> tuple[list[Cut], list[Cut]]:
        """How a picture is cut at time t; one stretch in each direction if it stays whole."""
        pyramid = self._pyramid[0]
        sigma = pyramid.sigma(t) * (math.sqrt(3) if channels == 1 else 1)  # the noise level used for grey pictures
        where = plan(sigma, height, width, pyramid.net.config)
        if not where.fits or height * width <= self.piece * 4**where.level:
            return [Cut(0, height, 0, height)], [Cut(0, width, 0, width)]
        multiple = where.multiple
        reach = receptive_radius(pyramid.net.config, where.level, where.guides)
        margin = math.ceil(reach / multiple) * multiple
        side = math.isqrt(self.piece) * 2**where.level
        short, long = sorted((height, width))
        first = cut_side(short, side, margin, multiple)
        tallest = max(cut.end - cut.begin for cut in first)
        second = cut_side(long, max(side, self.piece * 4**where.level // tallest), margin, multiple)
        return (first, second) if height <= width else (second, first)

    def work(self, t: int, height: int, width: int) -> float:
        rows, columns = self._layout(t, height, width, self.channels or 3)
        if len(rows) == len(columns) == 1:
            return self.base.work(t, height, width)
        return sum(self.base.work(t, row.end - row.begin, column.end - column.begin) for row in rows for column in columns)

    def _predict(self, x: Tensor, t: Tensor) -> Prediction:
        times = set(t.tolist())
        if len(times) > 1 or (torch.is_grad_enabled() and x.requires_grad):
            return self.base._predict(x, t)
        rows, columns = self._layout(times.pop(), x.shape[-2], x.shape[-1], x.shape[1])
        if len(rows) == len(columns) == 1:
            return self.base._predict(x, t)
        estimate, variance = torch.empty_like(x), torch.empty_like(x)
        for row in rows:
            for column in columns:
                crop = x[..., row.begin : row.end, column.begin : column.end].contiguous()
                answer = self.base._predict(crop, t)
                assert answer.variance is not None  # a pyramid has a head
                there = (..., slice(row.first, row.last), slice(column.first, column.last))
                down, across = (slice(cut.first - cut.begin, cut.last - cut.begin) for cut in (row, column))
                kept = (..., down, across)
                estimate[there], variance[there] = answer.x0[kept], answer.variance[kept]
        return from_x0(x, t, estimate, self.schedule, variance)


def cut_into_pieces(prior: Prior, height: int, width: int, most: int = MOST_WHOLE) -> Prior:
    """The prior for pictures of this size: an embedded prior in pieces if they are large, any other unchanged."""
    inner = prior.base if isinstance(prior, MixedPrior) else prior
    return PiecewisePrior(prior, inner) if isinstance(inner, PyramidPrior) and height * width > most else prior
