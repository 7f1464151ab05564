"""The U-Net of DDPM (Ho et al., 2020) under the tensor names of its PyTorch ports.

One attention head; strided convolutions after a zero row and column at the right and bottom; time is added.
The published CelebA-HQ 256 network is `DDPMConfig(128, (1, 1, 2, 2, 4, 4), 2, (4,))`.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from leader.priors.networks.layers import Norm, UNet, UNetConfig, Upsample, angles, attend, conv

EPS = 1e-6


@dataclass(frozen=True)
class DDPMConfig(UNetConfig):
    """The configuration of the network: only the common part."""


class DDPMResBlock(nn.Module):
    """norm, SiLU, conv, plus time, norm, SiLU, conv, plus the input."""

    def __init__(self, inputs: int, outputs: int, embedding: int) -> None:
        super().__init__()
        self.norm1 = Norm(inputs, EPS)
        self.conv1 = conv(inputs, outputs)
        self.temb_proj = nn.Linear(embedding, outputs)
        self.norm2 = Norm(outputs, EPS)
        self.conv2 = conv(outputs, outputs)
        self.nin_shortcut = conv(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x: Tensor, embedding: Tensor) -> Tensor:
        h = self.conv1(F.silu(self.norm1(x)))
        h = h + self.temb_proj(F.silu(embedding)).to(h.dtype)[:, :, None, None]
        h = self.conv2(F.silu(self.norm2(h)))
        out: Tensor = self.nin_shortcut(x) + h
        return out


class DDPMAttention(nn.Module):
    """Self-attention over all positions, one head, plus the input."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = Norm(channels, EPS)
        self.q, self.k, self.v = (conv(channels, channels, 1) for _ in range(3))
        self.proj_out = conv(channels, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        h = self.norm(x)
        mixed = attend(self.q(h).flatten(2), self.k(h).flatten(2), self.v(h).flatten(2))
        out: Tensor = x + self.proj_out(mixed.reshape(x.shape))
        return out


class DDPMDownsample(nn.Module):
    """Half the size. The padding is one-sided, as in the original."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = conv(channels, channels, stride=2, padding=0)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.conv(F.pad(x, (0, 1, 0, 1)))
        return out


class DDPMLevel(nn.Module):
    """Residual blocks of one resolution, each followed by attention if there is any."""

    def __init__(self, sizes: list[tuple[int, int]], embedding: int, attention: bool) -> None:
        super().__init__()
        self.block = nn.ModuleList(DDPMResBlock(inputs, outputs, embedding) for inputs, outputs in sizes)
        self.attn = nn.ModuleList(DDPMAttention(outputs) for _, outputs in sizes if attention)
        self.downsample: nn.Module | None = None
        self.upsample: nn.Module | None = None

    def step(self, index: int, h: Tensor, embedding: Tensor) -> Tensor:
        h = self.block[index](h, embedding)
        return self.attn[index](h) if len(self.attn) else h


class DDPM(UNet):
    """forward(x [B, in, H, W], t [B]) -> [B, out, H, W]; H and W multiples of `config.multiple`."""

    last = "conv_out"

    def __init__(self, config: DDPMConfig) -> None:
        super().__init__()
        self.config = config
        width, embedding = config.width, 4 * config.width
        channels = [width * multiplier for multiplier in config.multipliers]
        self.temb = nn.ModuleDict({"dense": nn.ModuleList([nn.Linear(width, embedding), nn.Linear(embedding, embedding)])})
        self.conv_in = conv(config.in_channels, width)
        skips, last = [width], width
        self.down = nn.ModuleList()
        for depth, size in enumerate(channels):
            sizes = [(last if i == 0 else size, size) for i in range(config.blocks)]
            level = DDPMLevel(sizes, embedding, depth in config.attention)
            skips += [size] * config.blocks
            if depth < len(channels) - 1:
                level.downsample = DDPMDownsample(size)
                skips.append(size)
            self.down.append(level)
            last = size
        block, attention, after = DDPMResBlock(last, last, embedding), DDPMAttention(last), DDPMResBlock(last, last, embedding)
        self.mid = nn.ModuleDict({"block_1": block, "attn_1": attention, "block_2": after})
        rising: list[DDPMLevel] = []
        for depth in range(len(channels) - 1, -1, -1):
            sizes = []
            for _ in range(config.blocks + 1):
                sizes.append((last + skips.pop(), channels[depth]))
                last = channels[depth]
            level = DDPMLevel(sizes, embedding, depth in config.attention)
            if depth > 0:
                level.upsample = Upsample(last)
            rising.append(level)
        self.up = nn.ModuleList(reversed(rising))  # named by depth, walked from the bottom
        self.norm_out = Norm(last, EPS)
        self.conv_out = conv(last, config.out_channels)

    def _embedding(self, t: Tensor) -> Tensor:
        """Sines then cosines of the time, through two linear layers: [B] -> [B, 4 width]."""
        half = self.config.width // 2
        angle = angles(t, half, half - 1)
        dense: Any = self.temb["dense"]
        first, second = dense
        out: Tensor = second(F.silu(first(torch.cat([angle.sin(), angle.cos()], 1).to(first.weight.dtype))))
        return out

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        embedding = self._embedding(t)
        h = self.conv_in(x.to(self.conv_in.weight.dtype))
        skips = [h]
        for level in self.down:
            assert isinstance(level, DDPMLevel)
            for index in range(len(level.block)):
                h = level.step(index, h, embedding)
                skips.append(h)
            if level.downsample is not None:
                h = level.downsample(h)
                skips.append(h)
        h = self.mid["attn_1"](self.mid["block_1"](h, embedding))
        h = self.mid["block_2"](h, embedding)
        for level in reversed(self.up):
            assert isinstance(level, DDPMLevel)
            for index in range(len(level.block)):
                h = level.step(index, torch.cat([h, skips.pop()], 1), embedding)
            if level.upsample is not None:
                h = level.upsample(h)
        out: Tensor = self.conv_out(F.silu(self.norm_out(h.to(self.conv_out.weight.dtype))))
        return out
