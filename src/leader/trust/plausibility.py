"""Does the answer look like a picture, beside the given one? Its detail, its spectrum, and what the network would change."""

import math
from itertools import pairwise

import torch
from torch import Tensor
from torch.nn import functional as F

from leader.operators.base import LinearOperator
from leader.priors.base import Prior
from leader.trust.limits import BANDS, CLOCK
from leader.trust.strips import LARGE, STRIP, strips


@torch.no_grad()
def find_change(prior: Prior, x: Tensor, noise: Tensor) -> Tensor:
    """What the network would change of finished pictures, per pixel [B, C, H, W], for [0, 1] images: the pictures minus the
    network's estimate of them.

    One pass over x [B, C, H, W] in [-1, 1] with `noise` of the same shape, standard normal.
    """
    t = torch.full((len(x),), prior.schedule.at_clock(CLOCK), dtype=torch.long, device=x.device)
    level = prior.schedule.level(t, x)
    seen = prior.predict(level.signal * x + level.noise * noise.to(x), t)
    return (x - seen.x0) / 2


def cut_quarter(x: Tensor) -> Tensor:
    """A quarter of the pixels of a picture [1, C, H, W]: the middle of each of its four parts, [4, C, H/4, W/4]."""
    height, width = (side // 4 for side in x.shape[-2:])
    places = ((top, left) for top in (height // 2, 5 * height // 2) for left in (width // 2, 5 * width // 2))
    return torch.cat([x[..., top : top + height, left : left + width] for top, left in places])


def root_mean_square(values: Tensor) -> float:
    """The root mean square of all values, summed in float64; many of them a few at a time."""
    if values.numel() <= 3 * LARGE:
        return float(values.double().square().mean().sqrt())
    flat, total = values.reshape(-1), 0.0
    for first in range(0, flat.numel(), STRIP):
        total += float(flat[first : first + STRIP].double().square().sum())
    return math.sqrt(total / flat.numel())


def measure_detail(picture: Tensor, known: Tensor | None = None) -> float:
    """Root mean square of neighbouring differences of a picture [C, H, W], right and below, where both are known [H, W]."""
    total, count, end = 0.0, 0.0, 0
    for rows in strips(picture.shape[-2], picture.shape[-1], more=1):
        x, seen = picture[..., rows, :].double(), None if known is None else known[rows]
        new = slice(end - rows.start, None)  # the first row of all but the first strip was the last of the one before
        end = rows.stop
        for axis, lines in ((-1, new), (-2, slice(None))):
            part, there = x[..., lines, :], None if seen is None else seen[lines]
            size = part.shape[axis]
            square = (part.narrow(axis, 1, size - 1) - part.narrow(axis, 0, size - 1)).square()
            if there is not None:
                both = (there.narrow(axis, 1, size - 1) & there.narrow(axis, 0, size - 1)).to(square).expand_as(square)
                square = both * square
                count += float(both.sum())
            else:
                count += square.numel()
            total += float(square.sum())
    return (total / count) ** 0.5 if count else 0.0


def measure_bands(picture: Tensor) -> list[float]:
    """Power of a picture [C, H, W] between the edges `BANDS`, channels averaged, times frequency squared: flat for photographs.

    In octaves: log2 of the mean of |FFT|^2 f^2 / pixels of each band, under a Hann window; -60 where there is nothing.
    """
    height, width = picture.shape[-2:]
    grey = picture.double().mean(0) if height * width <= LARGE else picture.mean(0).double()
    window = torch.hann_window(height, False, dtype=torch.float64)[:, None] * torch.hann_window(
        width, False, dtype=torch.float64
    )
    power = torch.fft.fft2((grey - (grey * window).sum() / window.sum()) * window).abs().square() / window.square().sum()
    rows, columns = (torch.fft.fftfreq(side, dtype=torch.float64) for side in (height, width))
    radius = (rows[:, None] ** 2 + columns**2).sqrt()
    found = []
    for low, high in pairwise(BANDS):
        inside = (radius >= low) & (radius < high)
        mean = float((power * radius.square())[inside].mean()) if bool(inside.any()) else 0.0
        found.append(math.log2(max(mean, 2.0**-60)))
    return found


def find_removed_detail(operator: LinearOperator, shape: tuple[int, int, int]) -> float:
    """How many times more detail a picture with the spectrum of photographs, 1/f, has than what A makes of it."""
    channels, height, width = shape
    rows, columns = (torch.fft.fftfreq(side, dtype=torch.float64) for side in (height, width))
    radius = (rows[:, None] ** 2 + columns**2).sqrt()
    radius[0, 0] = math.inf
    white = torch.randn(height, width, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    picture = torch.fft.ifft2(torch.fft.fft2(white) / radius).real
    picture = (picture / picture.std() / 4).float().expand(1, channels, height, width).contiguous()
    seen = operator.A(picture)
    if seen.ndim != 4:
        seen = operator.pinv(seen)
    after = F.interpolate(seen, size=(height, width), mode="bicubic") if seen.shape[-2:] != picture.shape[-2:] else seen
    return measure_detail(picture[0]) / max(measure_detail(after[0]), 1e-9)


def enlarge_bicubically(given: Tensor, size: tuple[int, int]) -> Tensor:
    """A picture [C, h, w] enlarged by bicubic interpolation to `size` (height, width) where it is smaller."""
    if tuple(given.shape[-2:]) == size:
        return given
    return F.interpolate(given[None], size=size, mode="bicubic", align_corners=False)[0].clamp(0, 1)
