"""Thumbnails as made by Pillow: nearest neighbour, box, bilinear, bicubic and Lanczos; and by OpenCV's plain bilinear one.

`resize` of Pillow widens every kernel by the factor when it shrinks (nearest neighbour excepted, which takes the pixel in
the middle of the cell) and moves weights beyond the border to the pixels inside. Bicubic differs from `BicubicSR` only at the
border, box from `AveragePoolSR` only in partial cells: Pillow has none, its scale is that of the whole sides, n / ceil(n /
factor). Presets treat the smooth ones as variants of "sr-bicubic".

Bilinear interpolation without antialiasing, OpenCV's default, mixes the two pixels beside the middle
of a cell, whatever its size: at factor 2 it is box, at odd factors nearest neighbour.

If the kernel is unknown, the operator is a weighted mean ("box:30+lanczos:70"). The mean of separable operators, sum p_k B_k x
B_k, is not separable, and a sampler needs its decomposition. The product of the factors' means, M x M with M = sum p_k B_k, is
separable: it leaves out sum p_k (B_k - M) x (B_k - M), which is of second order and matters only where both axes have fine
detail, and the omitted part is included in the uncertainty that counts as noise (`leader.forensics.size.thumbnails`).
"""

from collections.abc import Callable
from functools import lru_cache
from itertools import accumulate
from typing import ClassVar

import torch
from torch import Tensor

from leader.errors import LeaderError
from leader.operators.resize import ResizeOperator, count_samples, keys_cubic
from leader.operators.separable import Factor, SeparableOperator, check_side


class PillowSR(ResizeOperator):
    """PIL.Image.resize to ceil(H / factor) x ceil(W / factor), or to `small`; `kernel` names one of KERNELS."""

    kernel: ClassVar[str]

    @classmethod
    def make_matrix(cls, size: int, count: int, scale: float) -> Tensor:
        return pillow_matrix(size, count, cls.kernel)


class NearestSR(PillowSR):
    task = "sr-nearest"
    kernel = "nearest"


class SoftNearestSR(PillowSR):
    """The mean of the pixels within half a cell around the one that nearest neighbour takes, with larger weights for nearer
    pixels.

    A single pixel in four or sixteen gives a prior too little to start with; the difference from a mean counts as noise. If
    half a cell holds only that pixel, at factors up to 2, three quarters of a cell are used.
    """

    task = "sr-nearest"
    kernel = "soft-nearest"
    revision = 2


class OpenCVBilinearSR(PillowSR):
    """cv2.resize with INTER_LINEAR, and torch's interpolate: bilinear interpolation without antialiasing."""

    task = "sr-nearest"
    kernel = "opencv-bilinear"


class OpenCVBicubicSR(PillowSR):
    """cv2.resize with INTER_CUBIC: cubic interpolation without antialiasing."""

    task = "sr-bicubic"
    kernel = "opencv-bicubic"


class SoftCentredSR(PillowSR):
    """As SoftNearestSR, around the middle of the cell: serves thumbnails of OpenCVBilinearSR."""

    task = "sr-nearest"
    kernel = "soft-centred"


class BoxSR(PillowSR):
    task = "sr-bicubic"
    kernel = "box"


class BilinearSR(PillowSR):
    task = "sr-bicubic"
    kernel = "bilinear"


class PillowBicubicSR(PillowSR):
    task = "sr-bicubic"
    kernel = "bicubic"


class LanczosSR(PillowSR):
    task = "sr-bicubic"
    kernel = "lanczos"


class MixedSR(SeparableOperator):
    """The mean of several kernels of PILLOW_DOWNSAMPLING along each axis, for an unknown kernel.

    mixture  names and shares in per cent, which sum to 100

    >>> MixedSR((1, 8, 8), 2, None, "box:25+lanczos:75")(torch.ones(1, 1, 8, 8)).shape
    torch.Size([1, 1, 4, 4])
    """

    task = "sr-bicubic"

    def __init__(self, image_shape: tuple[int, int, int], factor: float, small: tuple[int, int] | None, mixture: str) -> None:
        if read_mixture(mixture) is None:
            raise LeaderError(
                f"A mixture of kernels is written box:30+lanczos:70, with shares that sum to 100; found '{mixture}'."
            )
        rows, columns = count_samples(image_shape, factor, small)
        _, height, width = image_shape
        super().__init__(image_shape, _mix_factor(height, rows, mixture), _mix_factor(width, columns, mixture))


@lru_cache(maxsize=16)
def _mix_factor(size: int, count: int, mixture: str) -> Factor:
    check_side(size)
    return Factor(pillow_matrix(size, count, mixture), rcond=1e-3)


PILLOW_DOWNSAMPLING: dict[str, type[PillowSR]] = {
    "nearest": NearestSR,
    "soft-nearest": SoftNearestSR,
    "box": BoxSR,
    "bilinear": BilinearSR,
    "pillow-bicubic": PillowBicubicSR,
    "lanczos": LanczosSR,
    "opencv-bilinear": OpenCVBilinearSR,
    "opencv-bicubic": OpenCVBicubicSR,
    "soft-centred": SoftCentredSR,
}


def read_mixture(text: str) -> dict[str, float] | None:
    """The shares, which sum to 1, of a mixture such as "box:30+lanczos:70"; None if the text is not a mixture."""
    parts = [part.split(":") for part in text.split("+")]
    if any(len(part) != 2 or part[0] not in PILLOW_DOWNSAMPLING or not part[1].isdecimal() for part in parts):
        return None
    shares = {name: int(share) for name, share in parts}
    if len(shares) < len(parts) or sum(shares.values()) != 100:
        return None
    return {name: share / 100 for name, share in shares.items()}


def _box(distance: Tensor) -> Tensor:
    return ((distance > -0.5) & (distance <= 0.5)).to(distance)


def _triangle(distance: Tensor) -> Tensor:
    return (1 - distance.abs()).clamp_min(0)


def _lanczos(distance: Tensor) -> Tensor:
    inside = (distance >= -3) & (distance < 3)
    return torch.where(inside, torch.sinc(distance) * torch.sinc(distance / 3), 0.0)


KERNELS: dict[str, tuple[Callable[[Tensor], Tensor], float]] = {
    "box": (_box, 0.5),
    "bilinear": (_triangle, 1.0),
    "bicubic": (keys_cubic, 2.0),
    "lanczos": (_lanczos, 3.0),
}
"""Pillow's kernels over the distance in pixels of the thumbnail, with the distance beyond which they are zero."""


OPENCVS_SHARPNESS = -0.75
"""Of Keys' cubic in OpenCV; Pillow's is -0.5."""


def _half_width(scale: float) -> float:
    """Pixels from the middle at which the weights of a soft operator end: half a cell, or three quarters of a small one."""
    return max(scale / 2, min(1.5, 0.75 * scale))


def pillow_matrix(size: int, rows: int, kernel: str, part: slice = slice(None)) -> Tensor:
    """The 1-D factor [rows, size] of a kernel or of a mixture, or a part of its rows, in float64; rows sum to 1."""
    shares = read_mixture(kernel)
    if shares is not None:
        means = [share * pillow_matrix(size, rows, PILLOW_DOWNSAMPLING[name].kernel, part) for name, share in shares.items()]
        return torch.stack(means).sum(0)
    scale = size / rows
    pixel = torch.arange(size, dtype=torch.float64)
    if kernel in ("nearest", "soft-nearest"):
        # Pillow accumulates its positions, which determines how they round
        places = torch.tensor(list(accumulate([scale] * (rows - 1), initial=scale / 2)), dtype=torch.float64)
        taken = places.floor()[part, None]
        if kernel == "nearest":
            return (pixel == taken).to(torch.float64)
        table = _triangle((pixel - taken) / _half_width(scale))
        return table / table.sum(1, keepdim=True)
    centre = (torch.arange(rows, dtype=torch.float64)[part] + 0.5) * scale
    if kernel == "opencv-bicubic":
        return _cubic_interpolation(size, centre - 0.5)
    if kernel in ("opencv-bilinear", "soft-centred"):
        width = 1.0 if kernel == "opencv-bilinear" else max(1.0, _half_width(scale))
        table = _triangle((pixel + 0.5 - centre[:, None]) / width)
        return table / table.sum(1, keepdim=True)
    weight, support = KERNELS[kernel]
    reach = support * scale
    first = (centre - reach + 0.5).trunc().clamp_min(0)[:, None]
    after = (centre + reach + 0.5).trunc().clamp_max(size)[:, None]
    table = weight((pixel + 0.5 - centre[:, None]) / scale)
    table = torch.where((pixel >= first) & (pixel < after), table, 0.0)
    return table / table.sum(1, keepdim=True)


def _cubic_interpolation(size: int, places: Tensor) -> Tensor:
    """[places, size]: OpenCV's bicubic interpolation between pixels; beyond the border the outermost one is repeated."""
    taken = places.floor()[:, None] + torch.arange(-1, 3)
    weights = keys_cubic(places[:, None] - taken, OPENCVS_SHARPNESS)
    matrix = torch.zeros(len(places), size, dtype=torch.float64)
    return matrix.scatter_add_(1, taken.long().clamp(0, size - 1), weights)
