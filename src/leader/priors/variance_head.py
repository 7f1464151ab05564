"""A variance head for any prior: a small network that predicts the squared error of a frozen network's x0.

E[(x0_hat - x0)^2 | x_t] is the diagonal of Cov[x0 | x_t] when x0_hat is the posterior mean, so a regression of squared errors,
fitted once by Gaussian likelihood, costs only a few small convolutions afterwards.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn import functional as F

from leader.errors import LeaderError
from leader.files import replacing
from leader.priors.json_files import read_shape
from leader.priors.tensor_files import load_network, read_safetensors

SUFFIX = ".variance.safetensors"
METADATA = "variance_head"

NODES = torch.arange(-10.0, 22.0, 2.0)
"""Values of log s^2 at which a fitted head stores the mean of the error; schedules that end almost without signal reach 20."""
OLD_NODES = 11
"""Nodes of heads fitted before the nodes were extended to 20: they are constant beyond their last one."""

LARGEST = 6.0
"""|lv| stays below this: a pixel's variance is within a factor of 400 of the typical one at its noise level."""


@dataclass(frozen=True)
class HeadShape:
    """Channels of the images, width and number of the convolutions."""

    channels: int = 3
    width: int = 32
    depth: int = 4


class VarianceHead(nn.Module):
    """(x_t, x0, abar) -> variance of x0's error, all in [-1, 1] units.

    Convolutions are dilated 1, 2, 1, 2, ... and nothing is normalised over space. The output is a factor exp(lv) on the typical
    error at the noise level: s^2/(s^2 + 1), s^2 = (1 - abar)/abar, the posterior variance of a unit Gaussian, times
    `correction`, which is measured. This is necessary: at the highest noise, a network that predicts eps is off by s times its
    error, which no image prior bounds.

    >>> x = torch.rand(1, 3, 8, 8)
    >>> VarianceHead()(x, x, torch.tensor([0.25])).shape
    torch.Size([1, 3, 8, 8])
    """

    def __init__(self, shape: HeadShape | None = None) -> None:
        super().__init__()
        self.shape = shape or HeadShape()
        channels, width = self.shape.channels, self.shape.width
        sizes = [3 * channels + 2] + [width] * self.shape.depth
        self.convs = nn.ModuleList(
            nn.Conv2d(a, b, 3, padding=1 + i % 2, dilation=1 + i % 2) for i, (a, b) in enumerate(pairwise(sizes))
        )
        self.out = nn.Conv2d(width, channels, 3, padding=1)
        for parameter in self.out.parameters():
            nn.init.zeros_(parameter)
        self.correction: Tensor
        self.register_buffer("correction", torch.zeros(len(NODES)))

    def log_factor(self, x_t: Tensor, x0: Tensor, abar: Tensor) -> Tensor:
        """lv [B, C, H, W]; abar is [B] or broadcastable to [B, 1, 1, 1].

        The inputs of the convolutions are bounded: x0 of an eps-network reaches hundreds at the noisiest times, eps of an
        x0-network at the cleanest. Each shows what the other's bound hides.
        """
        level = abar.to(x0).reshape(-1, 1, 1, 1)
        spread = (1 - level) / level
        eps = ((x_t - level.sqrt() * x0) / (1 - level).sqrt()).clamp(-5, 5)
        # log s and the signal's share encode the position on the schedule, both of order one at every time
        constants = torch.cat([0.25 * spread.log(), level], 1).expand(-1, 2, *x0.shape[2:])
        h = torch.cat([x_t, x0.clamp(-1.5, 1.5), eps, constants], 1)
        for conv in self.convs:
            h = F.silu(conv(h))
        return LARGEST * torch.tanh(self.out(h) / LARGEST)

    def forward(self, x_t: Tensor, x0: Tensor, abar: Tensor) -> Tensor:
        """Variance [B, C, H, W] in [-1, 1] units."""
        if x0.shape != x_t.shape or x0.shape[1] != self.shape.channels:
            raise LeaderError(
                f"The variance head was fitted to {self.shape.channels} channels, x_t and x0 alike; "
                f"found {list(x_t.shape)} and {list(x0.shape)}."
            )
        return self.usual(abar.to(x0)) * self.log_factor(x_t, x0, abar).exp()

    def usual(self, abar: Tensor) -> Tensor:
        """The typical squared error at abar [B], its logarithm linear between `NODES`, [B, 1, 1, 1]."""
        correction = node_weights(abar) @ self.correction.to(abar)
        return noise_share(abar) * correction.exp().reshape(-1, 1, 1, 1)

    def save(self, path: Path) -> None:
        """Tensors and shape in one safetensors file, whole or not at all."""
        tensors = {name: tensor.detach().contiguous().cpu() for name, tensor in self.state_dict().items()}
        with replacing(path) as temporary:
            save_file(tensors, temporary, metadata={METADATA: json.dumps(asdict(self.shape))})

    @classmethod
    def load(cls, path: str | Path) -> VarianceHead:
        """A head from its file, or from beside the checkpoint it was fitted to (see `head_file`)."""
        file = Path(path)
        if not file.name.endswith(SUFFIX) and not is_head(file):
            file = head_file(file)
        if not file.is_file():
            raise LeaderError(f"No variance head was found at {file}: fit one with `leader fit-variance`.")
        tensors, texts = read_safetensors(file)
        limits = {"channels": 64, "width": 4096, "depth": max(1, len(tensors))}  # limits for the file
        shape = HeadShape(**read_shape(texts.get(METADATA), limits, "variance head", file, "leader fit-variance"))
        if "correction" in tensors and tensors["correction"].shape == (OLD_NODES,):
            last = tensors["correction"][-1:]
            tensors["correction"] = torch.cat([tensors["correction"], last.expand(len(NODES) - OLD_NODES)])
        return load_network(lambda: cls(shape), tensors, file, str(file))


def noise_share(abar: Tensor) -> Tensor:
    """s^2/(s^2 + 1) = 1 - abar, [B, 1, 1, 1], floored so that a clean image has a finite logarithm."""
    return (1 - abar.reshape(-1, 1, 1, 1)).clamp_min(1e-6)


def node_weights(abar: Tensor) -> Tensor:
    """Weights [B, nodes] of linear interpolation between `NODES` at abar [B]; constant beyond the ends."""
    nodes = NODES.to(abar)
    low, high, gap = float(nodes[0]), float(nodes[-1]), float(nodes[1] - nodes[0])
    position = (((1 - abar) / abar).log().flatten().clamp(low, high) - low) / gap
    return (1 - (position[:, None] - torch.arange(len(nodes)).to(position)).abs()).clamp_min(0)


def head_file(checkpoint: Path) -> Path:
    """The path of the head fitted to a checkpoint (a file, a folder, or the bare name of a prior)."""
    return checkpoint / f"variance{SUFFIX}" if checkpoint.is_dir() else checkpoint.with_name(checkpoint.name + SUFFIX)


def is_head(file: Path) -> bool:
    return file.suffix == ".safetensors" and file.is_file() and METADATA in read_safetensors(file)[1]
