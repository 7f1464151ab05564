"""Any image size for networks of a fixed size: overlapping tiles, or padding to the next multiple.

A tile's border pixels lack their surroundings, so a tile has weight zero in the outer quarter of an overlap, fades in over the
middle half and has full weight beyond. A prior whose receptive radius is below a quarter of the overlap gives the same result
tiled and whole. Estimate and variance are blended in the same way; data consistency is left to the caller, on the whole image.
"""

import math

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from leader.errors import LeaderError
from leader.priors.adapters import WrappedPrior
from leader.priors.base import Prediction, Prior, from_x0


def reflect_indices(length: int, padded: int, device: torch.device) -> Tensor:
    """Indices [padded] that extend 0..length - 1 by reflection, as often as needed."""
    period = max(1, 2 * (length - 1))
    position = torch.arange(padded, device=device) % period
    return torch.minimum(position, period - position)


def pad_to(x: Tensor, height: int, width: int) -> Tensor:
    """x [B, C, H, W] reflected beyond its bottom and right to height x width."""
    if x.shape[-2] != height:
        x = x.index_select(-2, reflect_indices(x.shape[-2], height, x.device))
    if x.shape[-1] != width:
        x = x.index_select(-1, reflect_indices(x.shape[-1], width, x.device))
    return x


def round_up(length: int, multiple: int) -> int:
    """The smallest multiple that is not below length."""
    return -(-length // multiple) * multiple


class PaddedPrior(WrappedPrior):
    """A convolutional prior that needs sides in multiples, on any size.

    >>> PaddedPrior(load_prior("embedded", whole=True)).multiple
    1
    """

    def __init__(self, base: Prior) -> None:
        super().__init__(base)
        self.multiple = 1

    def _predict(self, x: Tensor, t: Tensor) -> Prediction:
        height, width = x.shape[-2:]
        padded = pad_to(x, round_up(height, self.base.multiple), round_up(width, self.base.multiple))
        return self.base._predict(padded, t).map(lambda part: part[..., :height, :width])

    def work(self, t: int, height: int, width: int) -> float:
        return self.base.work(t, round_up(height, self.base.multiple), round_up(width, self.base.multiple))


class Axis:
    """How tiles lie along one side of the image.

    length  of the padded side: at least one tile, and such that every start can be a multiple of `multiple`
    starts  of the tiles; neighbours share at least `overlap` pixels
    """

    def __init__(self, length: int, tile: int, overlap: int, multiple: int) -> None:
        self.tile, self.overlap = tile, overlap
        if tile < 2 * multiple:  # no two such starts could share pixels: the whole tile still fits the network
            multiple = 1
        self.length = tile + round_up(max(0, length - tile), multiple)
        stride = (tile - overlap) // multiple * multiple
        last = self.length - tile
        self.starts = [*range(0, last, stride), last]

    def weights(self, device: torch.device) -> Tensor:
        """[tiles, tile] float64 blending weights, which sum to one over the tiles that cover a pixel."""
        margin, ramp = self.overlap // 4, max(1, self.overlap // 2)
        distance = torch.arange(self.tile, dtype=torch.float64, device=device) + 0.5
        rise = torch.sin(((distance - margin) / ramp).clamp(0, 1) * math.pi / 2) ** 2
        rows = torch.ones(len(self.starts), self.tile, dtype=torch.float64, device=device)
        rows[1:] *= rise
        rows[:-1] *= rise.flip(0)
        total = torch.zeros(self.length, dtype=torch.float64, device=device)
        for start, row in zip(self.starts, rows):
            total[start : start + self.tile] += row
        return torch.stack([row / total[s : s + self.tile] for s, row in zip(self.starts, rows)])


class TiledPrior(WrappedPrior):
    """A prior evaluated on tiles of `tile` x `tile` pixels that share `overlap`; any image size.

    Images smaller than a tile are extended by reflection. Tiles run one by one and are recomputed in the backward pass, so the
    network needs the memory of one tile.

    >>> TiledPrior(load_prior("embedded", whole=True), tile=64, overlap=16).tile
    (64, 64)
    """

    def __init__(self, base: Prior, tile: int | tuple[int, int] = 256, overlap: int = 64) -> None:
        super().__init__(base)
        self.tile = (tile, tile) if isinstance(tile, int) else tile
        self.overlap = overlap
        if base.size is not None and self.tile != base.size:
            raise LeaderError(
                f"The prior '{base.name}' takes only {base.size[0]} x {base.size[1]} pixels; found tiles of "
                f"{self.tile[0]} x {self.tile[1]}: leave the tile size to the prior."
            )
        if not 0 < overlap <= min(self.tile) // 2:
            raise LeaderError(
                f"Tiles of {self.tile[0]} x {self.tile[1]} may overlap by 1 to {min(self.tile) // 2} pixels; found {overlap}."
            )
        if any(side % base.multiple for side in self.tile):
            raise LeaderError(
                f"The prior '{base.name}' needs tiles whose sides are multiples of {base.multiple}; found "
                f"{self.tile[0]} x {self.tile[1]}."
            )
        self.size, self.multiple = None, 1

    def axes(self, height: int, width: int) -> tuple[Axis, Axis]:
        """The layout of the tiles on an image of this size."""
        rows, columns = (
            Axis(length, tile, self.overlap, self.base.multiple) for length, tile in zip((height, width), self.tile)
        )
        return rows, columns

    def work(self, t: int, height: int, width: int) -> float:
        rows, columns = self.axes(height, width)
        return len(rows.starts) * len(columns.starts) * self.base.work(t, *self.tile)

    def _predict(self, x: Tensor, t: Tensor) -> Prediction:
        height, width = x.shape[-2:]
        if (height, width) == self.tile:
            return self.base._predict(x, t)
        rows, columns = self.axes(height, width)
        padded = pad_to(x, rows.length, columns.length)
        across = columns.weights(x.device).to(x.dtype)
        total: Tensor | None = None
        # sums of padded pieces instead of writes into slices: supports every kind of differentiation
        for top, down in zip(rows.starts, rows.weights(x.device).to(x.dtype)):
            strip: Tensor | None = None
            for left, right in zip(columns.starts, across):
                crop = padded[..., top : top + rows.tile, left : left + columns.tile]
                piece = self._tile(crop, t) * right
                piece = F.pad(piece, (left, columns.length - left - columns.tile))
                strip = piece if strip is None else strip + piece
            assert strip is not None
            strip = F.pad(strip * down[:, None], (0, 0, top, rows.length - top - rows.tile))
            total = strip if total is None else total + strip
        assert total is not None
        inside = total[..., :height, :width]
        x0, variance = inside[:, : x.shape[1]], inside[:, x.shape[1] :]
        return from_x0(x, t, x0, self.schedule, variance if variance.shape[1] else None)

    def _tile(self, crop: Tensor, t: Tensor) -> Tensor:
        """Estimate and, if there is one, variance of a tile, stacked along the channels."""
        if torch.is_grad_enabled() and crop.requires_grad:
            stacked: Tensor = checkpoint(self._stack_prediction, crop, t, use_reentrant=False, preserve_rng_state=False)
            return stacked
        return self._stack_prediction(crop, t)

    def _stack_prediction(self, crop: Tensor, t: Tensor) -> Tensor:
        answer = self.base._predict(crop, t)
        return answer.x0 if answer.variance is None else torch.cat([answer.x0, answer.variance], 1)


def any_size(prior: Prior, tile: int | None = None, overlap: int = 64) -> Prior:
    """The prior for images of any size: tiled if its size is fixed or tiles are requested, else padded.

    >>> any_size(load_prior("embedded", whole=True), None, 64).name
    'embedded'
    """
    if prior.size is not None or tile is not None:
        size = prior.size or (tile or 0, tile or 0)
        return TiledPrior(prior, size if tile is None else tile, min(overlap, min(size) // 2))
    return PaddedPrior(prior) if prior.multiple > 1 else prior
