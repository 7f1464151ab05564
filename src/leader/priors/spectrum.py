"""The correlation of a prior's error between pixels and channels, by noise level.

The error of x0 at time t, divided pixel by pixel by its standard deviation, is far from white: its power is a hundred times
larger at low frequencies than at high ones, and the channels are correlated. It is stored as a table: for some noise levels and
some radii in the frequency plane a channel matrix [C, C], in the orthonormal DCT (which does not wrap around at borders). The
mean of a picture has a row of its own, since it cannot be interpolated from its neighbours. One more level describes the
photographs themselves.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from leader.errors import LeaderError
from leader.priors.coarse_gaussian import frequencies

SUFFIX = ".spectrum.json"


@dataclass(frozen=True)
class Spectrum:
    """Tables in float64, [-1, 1] units.

    log_noise  [L] log s_t^2 of the levels, ascending
    radii      [R] cycles per pixel, ascending, > 0
    power      [L, R, C, C] of the normalised error, per orthonormal DCT coefficient
    mean       [L, C, C] covariance of the normalised error's mean over all pixels
    images     [R, C, C] power of the photographs about their mean colour
    images_mean  [C, C] covariance of a photograph's mean
    colour     [C] the mean colour
    """

    log_noise: Tensor
    radii: Tensor
    power: Tensor
    mean: Tensor
    images: Tensor
    images_mean: Tensor
    colour: Tensor

    @property
    def channels(self) -> int:
        return int(self.colour.shape[0])

    def at(self, abar: float, height: int, width: int, share: float = 1.0) -> Tensor:
        """Channel matrices [H, W, C, C] of the normalised error at abar; the mean of their diagonals is 1.

        share  of the variance: with less than 1 only the low frequencies that hold so much, an eighth, a quarter or half of
               either side if these do
        """
        spread = (1 - abar) / abar
        weights = _interpolate(math.log(max(spread, 1e-12)), self.log_noise)
        power = _mix_matrices(weights, self.power)
        mean = _mix_matrices(weights, self.mean) * height * width
        sizes = _sizes_over_grid(power, self.radii, height, width)
        sizes[0, 0] = mean.trace()
        total, (rows, columns) = float(sizes.sum()), (height, width)
        for part in (8, 4, 2) if share < 1 else ():
            low = (-(-height // part), -(-width // part))
            if float(sizes[: low[0], : low[1]].sum()) >= share * total:
                rows, columns = low
                break
        table = _spread_over_grid(power, self.radii, sizes, rows, columns)
        table[0, 0] = mean
        return table.mul_(self.channels * height * width / total)

    def photographs(self, height: int, width: int) -> Tensor:
        """Channel matrices [H, W, C, C] of whole photographs about their mean colour, in [-1, 1] units."""
        sizes = _sizes_over_grid(self.images, self.radii, height, width)
        table = _spread_over_grid(self.images, self.radii, sizes, height, width)
        table[0, 0] = self.images_mean * height * width
        return table

    def grey(self) -> Spectrum:
        """The spectrum of grey pictures: of the mean of the channels."""

        means = {name: getattr(self, name).mean((-2, -1), keepdim=True) for name in ("power", "mean", "images", "images_mean")}
        return replace(self, **means, colour=self.colour.mean(-1, keepdim=True))

    def save(self, path: Path) -> None:
        """Writes the tables as JSON, six digits each."""
        content = {name: _round_table(getattr(self, name)) for name in self.__dataclass_fields__}
        path.write_text(json.dumps(content) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Spectrum:
        """The tables of a file; anything else is rejected."""
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            return cls.checked(content)
        except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
            raise LeaderError(
                f"{path} is not a spectrum of `leader publish` or `leader fit-variance`; fit it again."
            ) from error

    @classmethod
    def checked(cls, content: Mapping[str, Any]) -> Spectrum:
        """The tables of a mapping, if they are consistent."""
        tables = {name: torch.tensor(content[name], dtype=torch.float64) for name in cls.__dataclass_fields__}
        found = cls(**tables)
        levels, radii, channels = len(found.log_noise), len(found.radii), found.channels
        shapes = {
            "power": (levels, radii, channels, channels),
            "mean": (levels, channels, channels),
            "images": (radii, channels, channels),
            "images_mean": (channels, channels),
        }
        for name, shape in shapes.items():
            table = tables[name]
            if tuple(table.shape) != shape or not bool(torch.isfinite(table).all()):
                raise ValueError(f"{name} has shape {list(table.shape)}")
            if bool((torch.linalg.eigvalsh(table) < -1e-6 * table.abs().max()).any()):
                raise ValueError(f"{name} holds matrices that are not covariances")
        for name in ("log_noise", "radii"):
            if bool((tables[name].diff() <= 0).any()):
                raise ValueError(f"{name} does not ascend")
        if float(found.radii[0]) <= 0:
            raise ValueError("a radius is not positive")
        return found


def spectrum_file(checkpoint: Path) -> Path:
    return checkpoint / f"prior{SUFFIX}" if checkpoint.is_dir() else checkpoint.with_name(checkpoint.stem + SUFFIX)


def find_spectrum(checkpoint: Path) -> Spectrum | None:
    file = spectrum_file(checkpoint)
    return Spectrum.load(file) if file.is_file() else None


def dct_radius(height: int, width: int) -> Tensor:
    """Cycles per pixel of every coefficient of the H x W DCT, [H, W] float64."""
    return (frequencies(height)[:, None] ** 2 + frequencies(width) ** 2).sqrt()


def _sizes_over_grid(power: Tensor, radii: Tensor, height: int, width: int) -> Tensor:
    """The traces of matrices [R, C, C] over radii at DCT coefficients [H, W]."""
    left, share = _places_between(tuple(radii.tolist()), height, width)
    nodes = _take_apart(power)[0].log()
    return torch.addcmul(nodes[left], _steps(nodes)[left], share).exp_()


def _spread_over_grid(power: Tensor, radii: Tensor, sizes: Tensor, rows: int, columns: int) -> Tensor:
    """Matrices [R, C, C] over radii -> [rows, columns, C, C] over the first DCT coefficients, a view of one plane after the
    other; `sizes` [H, W] are their traces.
    """
    height, width = sizes.shape
    left, share = (part[:rows, :columns] for part in _places_between(tuple(radii.tolist()), height, width))
    nodes = _take_apart(power)[1].flatten(1).mT
    planes = torch.addcmul(nodes[:, left], _steps(nodes)[:, left], share).mul_(sizes[:rows, :columns])
    return planes.reshape(*power.shape[1:], rows, columns).permute(2, 3, 0, 1)


def _steps(nodes: Tensor) -> Tensor:
    """From every node to the next along the last axis; 0 at the last."""
    return torch.cat([nodes.diff(), torch.zeros_like(nodes[..., :1])], -1)


@lru_cache(maxsize=8)
def _places_between(radii: tuple[float, ...], height: int, width: int) -> tuple[Tensor, Tensor]:
    """For every DCT coefficient [H, W]: the radius below it, and how far it is on the way to the next, by logarithms."""
    nodes = torch.tensor(radii, dtype=torch.float64).log()
    places = dct_radius(height, width).clamp(radii[0], radii[-1]).log()
    left = (torch.searchsorted(nodes, places) - 1).clamp(0, max(len(radii) - 2, 0))
    step = nodes.diff().clamp_min(1e-300) if len(radii) > 1 else torch.ones(1, dtype=torch.float64)
    return left, (places - nodes[left]) / step[left]


def _mix_matrices(weights: Tensor, matrices: Tensor) -> Tensor:
    """Matrices [K, ..., C, C] blended by weights [K]: traces geometrically, shapes linearly.

    Powers span orders of magnitude between two nodes, where a straight line would bulge; shapes do not.
    """
    trace, shape = _take_apart(matrices)
    blended = torch.tensordot(weights, shape, 1)
    size = torch.tensordot(weights, trace.log(), 1).exp()
    mixed: Tensor = blended * size[..., None, None]
    return mixed


def _take_apart(matrices: Tensor) -> tuple[Tensor, Tensor]:
    """Traces [...] and the matrices [..., C, C] of trace 1."""
    trace = matrices.diagonal(dim1=-2, dim2=-1).sum(-1).clamp_min(1e-30)
    return trace, matrices / trace[..., None, None]


def _interpolate(place: float, nodes: Tensor) -> Tensor:
    """Weights [K] of linear interpolation between ascending nodes [K]; constant beyond the ends."""
    weights = torch.zeros_like(nodes)
    right = int(torch.searchsorted(nodes, torch.tensor(place, dtype=nodes.dtype)))
    if right in (0, len(nodes)):
        weights[min(right, len(nodes) - 1)] = 1
        return weights
    share = (place - nodes[right - 1]) / (nodes[right] - nodes[right - 1])
    weights[right - 1], weights[right] = 1 - share, share
    return weights


def _round_table(table: Tensor) -> Any:
    def rounded(value: Any) -> Any:
        return [rounded(item) for item in value] if isinstance(value, list) else float(f"{value:.6g}")

    return rounded(table.tolist())
