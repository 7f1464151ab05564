"""The referee: a small convolutional network that says, from the evidence of a finished run, how large its errors are.

It is fitted to the squared errors of runs whose truth is known (`leader fit-trust`), lies beside the prior's weights
(NAME.referee, in the safetensors format), and costs less than one call of the network it judges.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from itertools import pairwise, product
from pathlib import Path
from weakref import WeakKeyDictionary

import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn import functional as F

from leader.errors import LeaderError
from leader.files import replacing
from leader.priors.base import Prior
from leader.priors.catalogue import ENTRIES
from leader.priors.json_files import read_shape
from leader.priors.pyramid import embedded_file
from leader.priors.tensor_files import load_network, read_safetensors
from leader.trust.evidence import CHANNELS, LEAST, Evidence
from leader.trust.strips import LARGE

SUFFIX = ".referee"
"""Not .safetensors: a folder is a prior where it holds one such file."""
EMBEDDED = "embedded"
METADATA = "referee"
COARSEST = 8
"""Pixels of the full size in one of the coarsest stage."""
REACH = 96
"""Pixels around one that its answer depends on, by the convolutions and by the windows of the evidence: at most."""
PIECE = 768
"""Rows and columns of a large picture that are judged at a time: its convolutions take 500 bytes a pixel."""
MOST = 2.0
"""The largest standard deviation that it can give, [-1, 1] units: the whole range. The smallest is `LEAST`."""


@dataclass(frozen=True)
class RefereeShape:
    """Channels of the evidence and widths of the convolutions: at full size, a half, a quarter and an eighth of it."""

    channels: int = CHANNELS
    full: int = 16
    half: int = 32
    quarter: int = 48
    eighth: int = 72


class Referee(nn.Module):
    """Features [B, CHANNELS, H, W] of `Evidence` -> log standard deviation of the error [B, H, W], [-1, 1] units.

    Down to an eighth of the size and up again, so that a pixel is judged by some hundred pixels around it: whether a part of a
    picture is smooth or textured says more of its errors than the pixel does.
    """

    def __init__(self, shape: RefereeShape | None = None) -> None:
        super().__init__()
        self.shape = shape or RefereeShape()
        full, half, quarter, eighth = self.shape.full, self.shape.half, self.shape.quarter, self.shape.eighth
        self.down = nn.ModuleList(_make_conv(a, b) for a, b in pairwise((self.shape.channels, full, half, quarter, eighth)))
        self.deep = _make_conv(eighth, eighth, dilation=2)
        self.side = nn.ModuleList(nn.Conv2d(a, b, 1) for a, b in pairwise((eighth, quarter, half, full)))
        self.up = nn.ModuleList(_make_conv(width, width) for width in (quarter, half, full))
        self.out = nn.Conv2d(full + self.shape.channels, 1, 1)
        for parameter in self.out.parameters():
            nn.init.zeros_(parameter)

    def forward(self, features: Tensor) -> Tensor:
        stages = [F.silu(self.down[0](features))]
        for conv in self.down[1:]:
            stages.append(F.silu(conv(F.avg_pool2d(stages[-1], 2, ceil_mode=True, count_include_pad=False))))
        h = stages.pop()
        h = h + F.silu(self.deep(h))
        for narrowed, conv in zip(self.side, self.up):
            beside = stages.pop()
            wider = F.interpolate(narrowed(h), scale_factor=2, mode="bilinear", align_corners=False)
            h = F.silu(conv(wider[..., : beside.shape[-2], : beside.shape[-1]] + beside))
        log_std: Tensor = self.out(torch.cat([h, features], 1))[:, 0] - 3
        return log_std

    @torch.no_grad()
    def std(self, evidence: Evidence) -> Tensor:
        """The standard deviation of the error per pixel [H, W], [-1, 1] units, on the device of the evidence."""
        height, width = evidence.misfit.shape
        if height * width <= LARGE:
            return self._std(evidence)
        whole = torch.empty_like(evidence.misfit)
        for top, left in product(range(0, height, PIECE), range(0, width, PIECE)):
            # with what the edges of a piece see around them, from where a pixel of the coarsest stage begins
            row, column = (max(0, first - REACH) // COARSEST * COARSEST for first in (top, left))
            part = evidence.cropped(row, column, top + PIECE + REACH - row, left + PIECE + REACH - column)
            kept = self._std(part)[top - row : top - row + PIECE, left - column : left - column + PIECE]
            whole[top : top + PIECE, left : left + PIECE] = kept
        return whole

    def _std(self, evidence: Evidence) -> Tensor:
        features = evidence.features()[None].contiguous(memory_format=torch.channels_last)  # a quarter faster on the CPU
        log_std: Tensor = self.to(features.device)(features)[0]
        return log_std.exp().clamp(LEAST, MOST)

    def save(self, path: Path) -> None:
        """Tensors in half precision and shape in one safetensors file, whole or not at all."""
        tensors = {name: tensor.detach().contiguous().cpu().half() for name, tensor in self.state_dict().items()}
        with replacing(path) as temporary:
            save_file(tensors, temporary, metadata={METADATA: json.dumps(asdict(self.shape))})

    @classmethod
    def load(cls, file: Path) -> Referee:
        """A referee from its file."""
        tensors, texts = read_safetensors(file)
        shape = _read_shape(texts.get(METADATA), file)
        return load_network(lambda: cls(shape), tensors, file, str(file))


def _make_conv(given: int, made: int, dilation: int = 1) -> nn.Conv2d:
    return nn.Conv2d(given, made, 3, padding=dilation, dilation=dilation, padding_mode="replicate")


def _read_shape(text: str | None, file: Path) -> RefereeShape:
    """The shape in a referee's file, bounded; one for other evidence than this version gathers is refused."""
    limits = dict.fromkeys((item.name for item in fields(RefereeShape)), 1024)
    shape = RefereeShape(**read_shape(text, limits, "referee", file, "leader fit-trust"))
    if shape.channels != CHANNELS:
        raise LeaderError(
            f"The referee {file} looks at {shape.channels} maps; this version gathers {CHANNELS}: fit it again with "
            "`leader fit-trust`."
        )
    return shape


def beside(weights: Path) -> Path:
    """Where the referee of a prior (a file or a folder) is stored; its factors lie beside it as .json."""
    return weights / f"prior{SUFFIX}" if weights.is_dir() else weights.with_name(weights.stem + SUFFIX)


_FILES: WeakKeyDictionary[Prior, Path] = WeakKeyDictionary()


def attach(prior: Prior, file: Path) -> None:
    """Sets where the referee of a prior lies, or will lie."""
    _FILES[prior] = file


def file_of(prior: Prior) -> Path | None:
    """Where the referee of a prior lies: where it was attached, else beside its weights."""
    if prior in _FILES:
        return _FILES[prior]
    return None if prior.home is None else beside(prior.home)


def weights_of(name: str) -> Path | None:
    """The file or folder that a prior by name or path was read from; None where there is none."""
    if name == EMBEDDED:
        return embedded_file()
    if name in ENTRIES:
        return ENTRIES[name].path
    try:
        path = Path(os.path.expanduser(name))
        return path if path.exists() else None
    except (OSError, ValueError):  # a name that no file can have
        return None


def referee_of(prior: Prior) -> Referee | None:
    """The referee of a prior, where one was fitted."""
    file = file_of(prior)
    return _open(file, file.stat().st_mtime_ns) if file is not None and file.is_file() else None


@lru_cache(maxsize=8)
def _open(file: Path, changed: int) -> Referee:
    return Referee.load(file)
