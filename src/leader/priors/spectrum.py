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
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from leader.errors import LeaderError

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

    def at(self, abar: float, height: int, width: int) -> Tensor:
        """Channel matrices [H, W, C, C] of the normalised error at abar; the mean of their diagonals is 1."""
        spread = (1 - abar) / abar
        weights = _interpolate(torch.tensor([math.log(max(spread, 1e-12))], dtype=torch.float64), self.log_noise)[0]
        power = _mix_matrices(weights, self.power)
        table = _spread_over_grid(power, self.radii, height, width)
        table[0, 0] = _mix_matrices(weights, self.mean) * height * width
        return table / table.diagonal(dim1=-2, dim2=-1).mean()

    def photographs(self, height: int, width: int) -> Tensor:
        """Channel matrices [H, W, C, C] of whole photographs about their mean colour, in [-1, 1] units."""
        table = _spread_over_grid(self.images, self.radii, height, width)
        table[0, 0] = self.images_mean * height * width
        return table

    def grey(self) -> Spectrum:
        """The spectrum of grey pictures: of the mean of the channels."""

        def mean(table: Tensor) -> Tensor:
            return table.mean((-2, -1), keepdim=True)

        return replace(
            self,
            power=mean(self.power),
            mean=mean(self.mean),
            images=mean(self.images),
            images_mean=mean(self.images_mean),
            colour=self.colour.mean(-1, keepdim=True),
        )

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
    """The path of the spectrum of a checkpoint (a file or a folder)."""
    return checkpoint / f"prior{SUFFIX}" if checkpoint.is_dir() else checkpoint.with_name(checkpoint.stem + SUFFIX)


def find_spectrum(checkpoint: Path) -> Spectrum | None:
    """The spectrum beside a checkpoint, if there is one."""
    file = spectrum_file(checkpoint)
    return Spectrum.load(file) if file.is_file() else None


def dct_radius(height: int, width: int) -> Tensor:
    """Cycles per pixel of every coefficient of the H x W DCT, [H, W] float64."""
    rows = torch.arange(height, dtype=torch.float64) / (2 * height)
    columns = torch.arange(width, dtype=torch.float64) / (2 * width)
    return (rows[:, None] ** 2 + columns**2).sqrt()


def _spread_over_grid(power: Tensor, radii: Tensor, height: int, width: int) -> Tensor:
    """Matrices [R, C, C] over radii -> [H, W, C, C] over DCT coefficients."""
    places = dct_radius(height, width).flatten().clamp_min(float(radii[0])).log()
    channels = power.shape[-1]
    return _mix_matrices(_interpolate(places, radii.log()), power).reshape(height, width, channels, channels)


def _mix_matrices(weights: Tensor, matrices: Tensor) -> Tensor:
    """Matrices [K, ..., C, C] blended by weights [..., K]: traces geometrically, shapes linearly.

    Powers span orders of magnitude between two nodes, where a straight line would bulge; shapes do not.
    """
    trace = matrices.diagonal(dim1=-2, dim2=-1).sum(-1).clamp_min(1e-30)
    shape = matrices / trace[..., None, None]
    blended = torch.tensordot(weights, shape, 1)
    size = torch.tensordot(weights, trace.log(), 1).exp()
    mixed: Tensor = blended * size[..., None, None]
    return mixed


def _interpolate(places: Tensor, nodes: Tensor) -> Tensor:
    """Weights [N, K] of linear interpolation between ascending nodes [K]; constant beyond the ends."""
    if len(nodes) == 1:
        return torch.ones(len(places), 1, dtype=nodes.dtype)
    clamped = places.clamp(float(nodes[0]), float(nodes[-1]))
    right = torch.searchsorted(nodes, clamped).clamp(1, len(nodes) - 1)
    share = (clamped - nodes[right - 1]) / (nodes[right] - nodes[right - 1])
    weights = torch.zeros(len(places), len(nodes), dtype=nodes.dtype)
    weights.scatter_(1, (right - 1)[:, None], (1 - share)[:, None])
    return weights.scatter_add_(1, right[:, None], share[:, None])


def _round_table(table: Tensor) -> Any:
    def rounded(value: Any) -> Any:
        return [rounded(item) for item in value] if isinstance(value, list) else float(f"{value:.6g}")

    return rounded(table.tolist())
