"""Layers that both architectures share: normalisation, the embedding of time, attention, and mixed precision.

Everything here is plain differentiable torch: reverse and forward mode both work through it.
"""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.nn import functional as F

GROUPS = 32


@dataclass(frozen=True)
class UNetConfig:
    """The configuration that both architectures share.

    width        channels at full size
    multipliers  channels of each level, in units of width
    blocks       residual blocks per level on the way down (one more on the way up)
    attention    levels that have attention; the middle always does
    """

    width: int
    multipliers: tuple[int, ...]
    blocks: int
    attention: tuple[int, ...]
    in_channels: int = 3
    out_channels: int = 3

    @property
    def multiple(self) -> int:
        """Sides must be multiples of this."""
        return 1 << (len(self.multipliers) - 1)


def plain_layout(x: Tensor) -> Tensor:
    """x unchanged or, under forward-mode differentiation, in the default memory layout.

    The tangent of torch's group normalisation exists for that layout only (not for channels-last).
    """
    if forward_ad.unpack_dual(x).tangent is None:  # type: ignore[no-untyped-call]
        return x
    return x.clone(memory_format=torch.contiguous_format)


class Norm(nn.GroupNorm):
    """Group normalisation over 32 groups, in float32 or better whatever the dtype of the features."""

    def __init__(self, channels: int, eps: float) -> None:
        super().__init__(GROUPS, channels, eps=eps)

    def forward(self, input: Tensor) -> Tensor:
        exact = plain_layout(input).to(torch.promote_types(input.dtype, torch.float32))
        weight, bias = self.weight.to(exact.dtype), self.bias.to(exact.dtype)
        return F.group_norm(exact, self.num_groups, weight, bias, self.eps).to(input.dtype)


def angles(t: Tensor, half: int, last: float) -> Tensor:
    """t_b * 10000^(-i / last) for i < half: the angles [B, half] whose sines and cosines encode the time."""
    rates = torch.exp(-math.log(10000.0) / last * torch.arange(half, dtype=torch.float32, device=t.device))
    return t.float()[:, None] * rates[None]


def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attention over positions for q, k, v [B, C, N], one head each; the softmax runs in float32 or better.

    Written out, because fused attention kernels have no forward-mode derivative.
    """
    scale = float(q.shape[1]) ** -0.25  # on both factors: their product cannot overflow in float16
    scores: Tensor = (q * scale).transpose(1, 2) @ (k * scale)
    weights = scores.to(torch.promote_types(q.dtype, torch.float32)).softmax(-1).to(q.dtype)
    mixed: Tensor = v @ weights.transpose(1, 2)
    return mixed


class UNet(nn.Module):
    """A network whose last layers, `last`, stay in float32."""

    last: str

    def set_precision(self, dtype: torch.dtype) -> None:
        """All convolutions except the last in `dtype`; everything else stays in float32.

        This is how the published half-precision networks run; the state dict keeps its names.
        """
        kept = {id(module) for module in getattr(self, self.last).modules()}
        for module in self.modules():
            if isinstance(module, (nn.Conv1d, nn.Conv2d)) and id(module) not in kept:
                module.to(dtype)


def conv(inputs: int, outputs: int, size: int = 3, **settings: Any) -> nn.Conv2d:
    """A convolution that keeps the size of its input by default."""
    return nn.Conv2d(inputs, outputs, size, **({"padding": size // 2} | settings))


class Upsample(nn.Module):
    """Twice the size, every pixel four times, then a convolution; the embedding of time is not used."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = conv(channels, channels)

    def forward(self, x: Tensor, embedding: Tensor | None = None) -> Tensor:
        out: Tensor = self.conv(F.interpolate(x, scale_factor=2.0, mode="nearest"))
        return out
