"""Half precision where uncertainty allows it: a call runs in half precision while its rounding error is far below Sigma_t.

A call in bfloat16 takes half the time of one in float32. Its rounding error hardly depends on the noise level, but Sigma_t
does: at high noise it is a hundred times larger, near the end of a run they are comparable. Both were measured once, by noise
level, when the prior was published or its head was fitted (`leader.train.tables`). The lowest time in half precision depends
only on that table, never on the picture, so a repeated run gives the same bits.
"""

from __future__ import annotations

import copy
import json
import math
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

import torch
from torch import Tensor, nn

from leader.errors import LeaderError
from leader.files import replacing
from leader.priors.adapters import AutocastPrior, WrappedPrior
from leader.priors.base import Prediction, Prior
from leader.priors.json_files import check_list, check_number
from leader.priors.pyramid import PyramidPrior
from leader.priors.pyramid_net import Body
from leader.schedule import Schedule
from leader.toml import read_table

SUFFIX = ".rounding.json"
REMEDY = "fit it again with `leader publish` or `leader fit-variance`"
SHARE = 0.1
"""Largest rounding error over the square root of Sigma_t's mean for half precision; chosen with benchmarks/precision.py."""


@dataclass(frozen=True)
class Rounding:
    """The rounding error of half precision, by noise level; [-1, 1] units.

    log_noise  log s_t^2, ascending
    error      root mean square of x0 in bfloat16 minus x0 in float32
    spread     square root of the mean of Sigma_t
    """

    log_noise: tuple[float, ...]
    error: tuple[float, ...]
    spread: tuple[float, ...]

    def first_time(self, schedule: Schedule, share: float = SHARE) -> int | None:
        """The lowest time from which the error stays within `share` of the spread; None if it exceeds it at the last time."""
        # log-linear between two levels; constant beyond them
        nodes = torch.tensor(self.log_noise, dtype=torch.float64)
        ratio = torch.tensor([math.log(a / b) for a, b in zip(self.error, self.spread)], dtype=torch.float64)
        noise = ((1 - schedule.abar_table) / schedule.abar_table).log().clamp(nodes[0], nodes[-1])
        right = torch.searchsorted(nodes, noise).clamp(1, len(nodes) - 1)
        part = (noise - nodes[right - 1]) / (nodes[right] - nodes[right - 1])
        too_much = torch.lerp(ratio[right - 1], ratio[right], part) > math.log(share)
        first = int(too_much.nonzero().max()) + 1 if bool(too_much.any()) else 0
        return first if first < len(schedule) else None

    def save(self, path: Path) -> None:
        """Writes the table as JSON, four digits each."""
        content = {name: [float(f"{value:.4g}") for value in values] for name, values in asdict(self).items()}
        with replacing(path) as temporary:
            temporary.write_text(json.dumps(content) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Rounding:
        """The table of a file, with every value validated."""
        content = read_table(path, "a table of rounding errors", REMEDY)
        columns = {}
        for name, low in (("log_noise", -100.0), ("error", 1e-12), ("spread", 1e-12)):
            values = check_list(content.get(name), f"{name} in {path}", 2, 1000)
            columns[name] = tuple(check_number(value, f"{name} in {path}", low, 1e6) for value in values)
        found = cls(**columns)
        if len({len(values) for values in columns.values()}) > 1 or any(b <= a for a, b in pairwise(found.log_noise)):
            raise LeaderError(f"{path} needs rising noise levels with an error and a spread for each: {REMEDY}.")
        return found


def rounding_file(checkpoint: Path) -> Path:
    """The path of the table of a checkpoint (a file or a folder)."""
    return checkpoint / f"prior{SUFFIX}" if checkpoint.is_dir() else checkpoint.with_name(checkpoint.stem + SUFFIX)


def find_rounding(checkpoint: Path | None) -> Rounding | None:
    """The table beside a checkpoint, if there is one."""
    file = None if checkpoint is None else rounding_file(checkpoint)
    return Rounding.load(file) if file is not None and file.is_file() else None


def half_dtype(device: torch.device) -> torch.dtype:
    """The half precision of a device: GPUs have float16, which rounds eight times finer; processors have bfloat16."""
    return torch.bfloat16 if device.type == "cpu" else torch.float16


def round_to_half(prior: Prior, dtype: torch.dtype) -> Prior:
    """The prior with its network in half precision throughout; predictions are float32."""
    return round_prior(prior, dtype) if isinstance(prior, PyramidPrior) else AutocastPrior(prior, dtype)


class MixedPrior(WrappedPrior):
    """A prior that runs in half precision at times of at least `half_from`, and in float32 below.

    A batch with images on both sides runs in float32. So do calls with backward passes: the rounding of gradients was not
    measured.
    """

    def __init__(self, base: Prior, rounded: Prior, half_from: int) -> None:
        super().__init__(base)
        self.rounded, self.half_from = rounded, half_from
        self.precision = "mixed"

    def _predict(self, x: Tensor, t: Tensor) -> Prediction:
        differentiated = torch.is_grad_enabled() and x.requires_grad
        enough = not differentiated and min(t.tolist()) >= self.half_from
        return (self.rounded if enough else self.base)._predict(x, t)


def mix_precisions(prior: Prior, rounding: Rounding | None, device: torch.device) -> Prior:
    """The prior in both precisions; unchanged if its rounding is unknown or always too large."""
    first = None if rounding is None else rounding.first_time(prior.schedule)
    return prior if first is None else MixedPrior(prior, round_to_half(prior, half_dtype(device)), first)


MOST_SCALED = 2.0**-6
"""A bias with a larger relative error is so small that half precision barely holds it: it is left unchanged."""


def round_prior(prior: PyramidPrior, dtype: torch.dtype) -> PyramidPrior:
    """A copy of the prior whose network computes in `dtype`, rounded so that its errors average out; predictions are float32.

    Rounded to the nearest number, weights and biases of bfloat16 shift whole pictures: a filter's errors add up over its
    taps, and a bias is wrong by the same amount everywhere. Two rearrangements remove that shift at no run-time cost:

    - the rounding error of a tap is carried over to the next one of its 3x3 filter, so the sum of the filter stays right;
    - ReLU commutes with positive factors, so every channel is scaled until its bias is exact in half precision, and
      the next layer divides by the factor.

    What remains is the rounding of activations, which has no bias. The first and the last layer, a fiftieth of the work,
    stay in float32: they see the picture itself.
    """
    made = copy.deepcopy(prior)
    for body in (made.net.main, made.net.expert):
        if body is not None:
            _round_body(body, dtype)
    return made


@torch.no_grad()
def _round_body(body: Body, dtype: torch.dtype) -> None:
    factor = torch.ones_like(body.convs[0].bias)  # type: ignore[arg-type]
    for conv in body.convs[1:]:
        factor = _round_layer(conv, factor, dtype)  # type: ignore[arg-type]
    body.out.weight /= factor.view(1, -1, 1, 1)
    told = torch.ones(body.h1.in_channels - len(factor)).to(factor)  # noise and level, which are not features
    factor = _round_layer(body.h1, torch.cat([factor, told]), dtype)
    body.h2.weight /= factor.view(1, -1, 1, 1)


def _round_layer(conv: nn.Conv2d, before: Tensor, dtype: torch.dtype) -> Tensor:
    """Rounds a layer whose inputs are `before` times too large, [in]; returns the factors of its outputs, [out]."""
    assert conv.bias is not None
    bias = conv.bias.to(dtype)
    factor = bias.to(conv.bias) / conv.bias
    factor = torch.where((factor - 1).abs() < MOST_SCALED, factor, 1.0)
    weight = conv.weight * factor.view(-1, 1, 1, 1) / before.view(1, -1, 1, 1)
    conv.weight.data = round_filters(weight, dtype).contiguous(memory_format=torch.channels_last)
    conv.bias.data = bias
    return factor


def round_filters(weight: Tensor, dtype: torch.dtype) -> Tensor:
    """Filters [out, in, kH, kW] in `dtype`, the sum of every filter preserved: large taps first, their errors carried over."""
    taps = weight.flatten(2)
    order = taps.abs().argsort(-1, descending=True)
    rounded, carried = [], torch.zeros_like(taps[..., 0])
    for tap in taps.gather(-1, order).unbind(-1):
        rounded.append((tap + carried).to(dtype))
        carried = tap + carried - rounded[-1].to(tap)
    return torch.empty_like(taps, dtype=dtype).scatter_(-1, order, torch.stack(rounded, -1)).view(weight.shape)
