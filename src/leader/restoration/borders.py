"""Blurred photographs have no circular borders: what lies beyond the frame was blurred into it.

The fast blur operator is circular, so a photograph y is extended by a margin as wide as the kernel reaches. The unknown image
lives on the extended frame; the operator then never wraps around into y. Beyond the frame the extension must look like a
blurred image that continues naturally and closes periodically: a rough solution x of M k*x = y (M keeps the frame) with a
smoothness term is computed by conjugate gradients, and k*x continues y.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from leader.errors import LeaderError
from leader.operators import Blur, LinearOperator
from leader.operators.cg import conjugate_gradients

SLACK = 8
"""Pixels of margin beyond the reach of the kernel, so that the prior's own border lies outside too."""
SMOOTHNESS = 3e-3
ITERATIONS = 40


@dataclass(frozen=True)
class Window:
    """Where the picture lies in the extended frame: top, left, height, width."""

    top: int
    left: int
    height: int
    width: int

    def crop(self, x: Tensor) -> Tensor:
        """The picture's part of x [..., H, W]."""
        return x[..., self.top : self.top + self.height, self.left : self.left + self.width]


def extended_blur(shape: tuple[int, int, int], kernel: Tensor, task: str) -> tuple[Blur, Window]:
    """The circular blur on a frame so large that it does not wrap into pictures of `shape` (C, H, W)."""
    channels, height, width = shape
    support = _trimmed(kernel)
    if support.shape[0] > height or support.shape[1] > width:
        raise LeaderError(
            f"The kernel covers {support.shape[1]} x {support.shape[0]} pixels, more than the picture's "
            f"{width} x {height}; "
            "use a smaller kernel."
        )
    margins = [support.shape[0] // 2 + SLACK, support.shape[1] // 2 + SLACK]
    frame = [fast_length(side + 2 * margin) for side, margin in zip((height, width), margins)]
    operator = Blur((channels, frame[0], frame[1]), support)
    operator.task = task
    return operator, Window((frame[0] - height) // 2, (frame[1] - width) // 2, height, width)


def extend(y: Tensor, operator: LinearOperator, window: Window) -> Tensor:
    """y [B, C, H, W] of the picture -> a measurement of the whole frame that agrees with it inside the window.

    operator  circular, the same for all channels: a product at each frequency, where x is sought
    """
    height, width = operator.image_shape[1:]
    inside = torch.zeros(1, 1, height, width)
    window.crop(inside).fill_(1)
    start = _reflected(y, (height, width), window)
    point = torch.zeros(1, *operator.image_shape)
    point[..., 0, 0] = 1
    transfer = torch.fft.rfft2(operator.A(point)[:, :1])
    down, across = (2 - 2 * torch.cos(2 * torch.pi * f) for f in (torch.fft.fftfreq(height), torch.fft.rfftfreq(width)))
    rough = SMOOTHNESS * (down[:, None] + across)  # the Hessian of half the squared differences
    # rfft2 holds most frequencies once for both signs: weighed so that sums of squares are those of pixels
    weight = torch.full((width // 2 + 1,), 2.0).sqrt()
    weight[:: width // 2] = 1  # the width is even
    there, back = transfer / weight, transfer.conj() * weight

    def normal(x: Tensor) -> Tensor:
        waves = torch.view_as_complex(x)
        seen = inside * torch.fft.irfft2(there * waves, s=(height, width))
        return torch.view_as_real(back * torch.fft.rfft2(seen) + rough * waves)

    first = torch.view_as_real(weight * torch.fft.rfft2(start))
    right = torch.view_as_real(back * torch.fft.rfft2(inside * start)) - normal(first)
    x = first + conjugate_gradients(normal, right, tolerance=1e-4, iterations=ITERATIONS)[0]
    blurred: Tensor = torch.fft.irfft2(there * torch.view_as_complex(x), s=(height, width))
    return inside * start + (1 - inside) * blurred


def blurred_by_camera(x: Tensor, kernel: Tensor, task: str) -> Tensor:
    """x [B, C, H, W] blurred with the scene mirrored beyond its border, as if a camera had seen more."""
    shape = (int(x.shape[1]), int(x.shape[2]), int(x.shape[3]))
    operator, window = extended_blur(shape, kernel, task)
    return window.crop(operator.A(_reflected(x, operator.image_shape[1:], window)))


def fast_length(length: int) -> int:
    """The smallest even length >= `length` without prime factors above 5, for the FFT."""
    length += length % 2
    while not _smooth(length):
        length += 2
    return length


def _smooth(number: int) -> bool:
    for prime in (2, 3, 5):
        while number % prime == 0:
            number //= prime
    return number == 1


def _trimmed(kernel: Tensor) -> Tensor:
    """The kernel without rows and columns that are zero on both sides alike, so that its centre stays."""

    def cut(weights: Tensor) -> int:
        used = torch.nonzero(weights.abs() > 0)
        return min(int(used.min()), len(weights) - 1 - int(used.max()))

    rows, columns = cut(kernel.abs().sum(1)), cut(kernel.abs().sum(0))
    return kernel[rows : kernel.shape[0] - rows, columns : kernel.shape[1] - columns]


def _reflected(y: Tensor, frame: tuple[int, ...], window: Window) -> Tensor:
    """y continued by mirror images over the whole frame."""

    def indices(length: int, before: int, total: int) -> Tensor:
        position = (torch.arange(total) - before) % (2 * length)
        return torch.minimum(position, 2 * length - 1 - position)

    rows = indices(window.height, window.top, frame[0])
    columns = indices(window.width, window.left, frame[1])
    return y.index_select(-2, rows).index_select(-1, columns)
