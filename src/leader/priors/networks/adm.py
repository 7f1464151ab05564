"""The U-Net of guided diffusion, ADM (Dhariwal & Nichol, 2021), under its published tensor names.

Time enters as scale and shift after the second norm; resampling happens inside residual blocks (in older
networks by convolutions); attention has heads of a fixed width. The published ImageNet 256 network is
`ADMConfig(256, (1, 1, 2, 2, 4, 4), 2, (3, 4, 5), out_channels=6, head_channels=64)`.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from leader.priors.networks.layers import Norm, UNet, UNetConfig, Upsample, angles, attend, conv

EPS = 1e-5


@dataclass(frozen=True)
class ADMConfig(UNetConfig):
    """The configuration of the network, in addition to the common part.

    scale_shift          time scales and shifts after the norm, instead of being added before it
    resblock_resampling  residual blocks resample, instead of convolutions
    classes              number of classes of a class-conditional network, or None
    head_channels        width of an attention head; or
    heads                number of heads: exactly one of the two
    new_attention_order  q, k, v split before the heads, instead of inside each head

    The shapes of the tensors do not determine the last three.
    """

    scale_shift: bool = True
    resblock_resampling: bool = True
    classes: int | None = None
    head_channels: int | None = None
    heads: int | None = None
    new_attention_order: bool = False

    def heads_of(self, channels: int) -> int:
        """Attention heads for a layer with this many channels."""
        if self.head_channels is not None:
            return channels // self.head_channels
        return self.heads or 1


def resample(x: Tensor, mode: str) -> Tensor:
    """'down': 2 x 2 means; 'up': every pixel four times; 'same': unchanged."""
    if mode == "down":
        return F.avg_pool2d(x, 2)
    return F.interpolate(x, scale_factor=2.0, mode="nearest") if mode == "up" else x


class ADMResBlock(nn.Module):
    """norm, SiLU, (resample), conv; norm with time, SiLU, conv; plus the (resampled) input."""

    def __init__(self, config: ADMConfig, inputs: int, outputs: int, mode: str = "same") -> None:
        super().__init__()
        self.mode, self.scale_shift = mode, config.scale_shift
        self.in_layers = nn.Sequential(Norm(inputs, EPS), nn.SiLU(), conv(inputs, outputs))
        factors = 2 if config.scale_shift else 1
        self.emb_layers = nn.Sequential(nn.SiLU(), nn.Linear(4 * config.width, factors * outputs))
        dropout = nn.Identity()  # keeps the published numbering
        self.out_layers = nn.Sequential(Norm(outputs, EPS), nn.SiLU(), dropout, conv(outputs, outputs))
        self.skip_connection = conv(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x: Tensor, embedding: Tensor) -> Tensor:
        norm, activation, first = self.in_layers
        h = first(resample(activation(norm(x)), self.mode))
        time = self.emb_layers(embedding).to(h.dtype)[:, :, None, None]
        if self.scale_shift:
            scale, shift = time.chunk(2, 1)
            h = self.out_layers[1:](self.out_layers[0](h) * (1 + scale) + shift)
        else:
            h = self.out_layers(h + time)
        out: Tensor = self.skip_connection(resample(x, self.mode)) + h
        return out


class ADMAttention(nn.Module):
    """Self-attention over all positions with several heads, plus the input."""

    def __init__(self, config: ADMConfig, channels: int) -> None:
        super().__init__()
        self.heads, self.new_order = config.heads_of(channels), config.new_attention_order
        self.norm = Norm(channels, EPS)
        self.qkv = nn.Conv1d(channels, 3 * channels, 1)
        self.proj_out = nn.Conv1d(channels, channels, 1)

    def forward(self, x: Tensor, embedding: Tensor) -> Tensor:
        batch, channels, height, width = x.shape
        flat = x.reshape(batch, channels, height * width)
        qkv = self.qkv(self.norm(flat))
        rows = batch * self.heads
        if self.new_order:
            q, k, v = (part.reshape(rows, -1, height * width) for part in qkv.chunk(3, 1))
        else:
            q, k, v = qkv.reshape(rows, -1, height * width).chunk(3, 1)
        mixed = attend(q, k, v).reshape(flat.shape)
        out: Tensor = (flat + self.proj_out(mixed)).reshape(x.shape)
        return out


class ADMDownsample(nn.Module):
    """Half the size by a strided convolution."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.op = conv(channels, channels, stride=2)

    def forward(self, x: Tensor, embedding: Tensor) -> Tensor:
        out: Tensor = self.op(x)
        return out


class First(nn.Conv2d):
    """The first convolution, callable like every other layer."""

    def forward(self, input: Tensor, embedding: Tensor | None = None) -> Tensor:
        return super().forward(input)


class Stage(nn.ModuleList):
    """Layers called one after the other with the embedding of time: one input, middle or output block."""

    def forward(self, h: Tensor, embedding: Tensor) -> Tensor:
        for layer in self:
            h = layer(h, embedding)
        return h


class ADM(UNet):
    """forward(x [B, in, H, W] in [-1, 1], t [B], label [B] or None) -> [B, out, H, W].

    H and W are multiples of `config.multiple`. With learned variance out = 2 in: the second half interpolates
    between the logarithms of the smallest and the largest reverse variance.
    """

    last = "out"

    def __init__(self, config: ADMConfig) -> None:
        super().__init__()
        self.config = config
        width, embedding = config.width, 4 * config.width
        channels = [width * multiplier for multiplier in config.multipliers]
        self.time_embed = nn.Sequential(nn.Linear(width, embedding), nn.SiLU(), nn.Linear(embedding, embedding))
        if config.classes is not None:
            self.label_emb = nn.Embedding(config.classes, embedding)
        first = First(config.in_channels, width, 3, padding=1)
        self.input_blocks = nn.ModuleList([Stage([first])])
        skips, last = [width], width
        for depth, size in enumerate(channels):
            for _ in range(config.blocks):
                self.input_blocks.append(self._stage(last, size, depth))
                last = size
                skips.append(last)
            if depth < len(channels) - 1:
                self.input_blocks.append(Stage([self._resampler(last, "down")]))
                skips.append(last)
        self.middle_block = Stage(
            [ADMResBlock(config, last, last), ADMAttention(config, last), ADMResBlock(config, last, last)]
        )
        self.output_blocks = nn.ModuleList()
        for depth in range(len(channels) - 1, -1, -1):
            for index in range(config.blocks + 1):
                stage = self._stage(last + skips.pop(), channels[depth], depth)
                last = channels[depth]
                if depth > 0 and index == config.blocks:
                    stage.append(self._resampler(last, "up"))
                self.output_blocks.append(stage)
        self.out = nn.Sequential(Norm(last, EPS), nn.SiLU(), conv(last, config.out_channels))

    def _stage(self, inputs: int, outputs: int, depth: int) -> Stage:
        stage = Stage([ADMResBlock(self.config, inputs, outputs)])
        if depth in self.config.attention:
            stage.append(ADMAttention(self.config, outputs))
        return stage

    def _resampler(self, channels: int, mode: str) -> nn.Module:
        if self.config.resblock_resampling:
            return ADMResBlock(self.config, channels, channels, mode)
        return ADMDownsample(channels) if mode == "down" else Upsample(channels)

    def _embedding(self, t: Tensor, label: Tensor | None) -> Tensor:
        half = self.config.width // 2
        angle = angles(t, half, half)
        code = torch.cat([angle.cos(), angle.sin()], 1).to(next(self.time_embed.parameters()).dtype)
        embedding: Tensor = self.time_embed(code)
        return embedding if label is None else embedding + self.label_emb(label)

    def forward(self, x: Tensor, t: Tensor, label: Tensor | None = None) -> Tensor:
        embedding = self._embedding(t, label)
        h = x.to(next(self.input_blocks.parameters()).dtype)
        skips = []
        for stage in self.input_blocks:
            h = stage(h, embedding)
            skips.append(h)
        h = self.middle_block(h, embedding)
        for stage in self.output_blocks:
            h = stage(torch.cat([h, skips.pop()], 1), embedding)
        out: Tensor = self.out(h.to(next(self.out.parameters()).dtype))
        return out
