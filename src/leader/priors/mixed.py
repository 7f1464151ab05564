"""Coarser numbers where uncertainty allows it: a call is rounded while its rounding error is far below Sigma_t.

A call in bfloat16 takes half the time of one in float32, and a third in integers of eight bits (`leader.priors.int8`). The
rounding error hardly depends on the noise level, but Sigma_t does: at high noise it is a hundred times larger, near the end of
a run they are comparable. Both were measured once, by noise level, when the prior was published or its head was fitted
(`leader.train.tables`). The lowest time of each precision depends only on that table, never on the picture, so a repeated run
gives the same bits.
"""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from leader.errors import LeaderError
from leader.files import replacing
from leader.priors.adapters import AutocastPrior, WrappedPrior
from leader.priors.base import Prediction, Prior, is_differentiated
from leader.priors.int8 import int8_file, load_int8
from leader.priors.json_files import check_list, check_number
from leader.priors.pyramid import PyramidPrior
from leader.priors.pyramid_net import Body
from leader.schedule import Schedule
from leader.toml import read_table

SUFFIX = ".rounding.json"
REMEDY = "fit it again with `leader publish` or `leader fit-variance`"
SHARE = 0.1
"""Largest rounding error over the square root of Sigma_t's mean in a call; chosen with benchmarks/precision.py."""
HALF, INT8 = "half", "int8"
MIXTURES = {"mixed": (HALF,), "mixed-int8": (INT8,), "mixed-int8-half": (INT8, HALF)}
"""The precisions beside float32 by the name of their mixture, the coarsest first."""


@dataclass(frozen=True)
class Rounding:
    """The rounding error of coarser numbers, by noise level; [-1, 1] units.

    log_noise  log s_t^2, ascending
    error      root mean square of x0 in bfloat16 minus x0 in float32
    spread     square root of the mean of Sigma_t
    int8       as `error`, for integers of eight bits; None for a prior without them
    """

    log_noise: tuple[float, ...]
    error: tuple[float, ...]
    spread: tuple[float, ...]
    int8: tuple[float, ...] | None = None

    def first_time(self, schedule: Schedule, share: float = SHARE, kind: str = HALF) -> int | None:
        """The lowest time from which the error stays within `share` of the spread; None if it exceeds it at the last time."""
        errors = self.error if kind == HALF else self.int8
        if errors is None:
            return None
        noise = ((1 - schedule.abar_table) / schedule.abar_table).log().numpy()
        # log-linear between two levels; constant beyond them
        ratio = np.interp(noise, self.log_noise, np.log(np.divide(errors, self.spread)))
        too_much = np.flatnonzero(ratio > math.log(share))
        first = int(too_much[-1]) + 1 if len(too_much) else 0
        return first if first < len(schedule) else None

    def save(self, path: Path) -> None:
        """Writes the table as JSON, four digits each."""
        content = {name: [float(f"{value:.4g}") for value in values] for name, values in asdict(self).items() if values}
        with replacing(path) as temporary:
            temporary.write_text(json.dumps(content) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Rounding:
        """The table of a file, with every value validated."""
        content = read_table(path, "a table of rounding errors", REMEDY)
        columns = {}
        for name, low in (("log_noise", -100.0), ("error", 1e-12), ("spread", 1e-12), ("int8", 1e-12)):
            if name == "int8" and name not in content:
                continue
            values = check_list(content.get(name), f"{name} in {path}", 2, 1000)
            columns[name] = tuple(check_number(value, f"{name} in {path}", low, 1e6) for value in values)
        found = cls(**columns)
        if len({len(values) for values in columns.values()}) > 1 or any(b <= a for a, b in pairwise(found.log_noise)):
            raise LeaderError(f"{path} needs rising noise levels with an error and a spread for each: {REMEDY}.")
        return found


def rounding_file(checkpoint: Path) -> Path:
    return checkpoint / f"prior{SUFFIX}" if checkpoint.is_dir() else checkpoint.with_name(checkpoint.stem + SUFFIX)


def find_rounding(checkpoint: Path | None) -> Rounding | None:
    file = None if checkpoint is None else rounding_file(checkpoint)
    return Rounding.load(file) if file is not None and file.is_file() else None


def half_dtype(device: torch.device) -> torch.dtype:
    """The half precision of a device: GPUs have float16, which rounds eight times finer; processors have bfloat16."""
    return torch.bfloat16 if device.type == "cpu" else torch.float16


def round_to_half(prior: Prior, dtype: torch.dtype, below: int | None = None) -> Prior:
    """The prior with its network in half precision, as far as times `below` one need it; predictions are float32."""
    return round_prior(prior, dtype, below) if isinstance(prior, PyramidPrior) else AutocastPrior(prior, dtype)


class MixedPrior(WrappedPrior):
    """A prior in coarser numbers at the times where they suffice, and in float32 below.

    A batch with images on both sides runs in the finer precision. Differentiated calls run in float32: the rounding of
    derivatives was not measured, and integers have none.

    parts  (lowest time, name, prior) of every precision beside float32, the coarsest first
    """

    def __init__(self, base: Prior, parts: Sequence[tuple[int, str, Prior]], precision: str = "mixed") -> None:
        super().__init__(base)
        self.rounded = nn.ModuleList(prior for _, _, prior in parts)
        self.rounded_from = {name: first for first, name, _ in parts}
        self.precision = precision

    def _predict(self, x: Tensor, t: Tensor) -> Prediction:
        chosen: Any = self.base
        if not is_differentiated(x):
            lowest, able = min(t.tolist()), x.device.type == "cpu"
            parts = zip(self.rounded_from.items(), self.rounded)
            chosen = next((part for (name, first), part in parts if lowest >= first and (able or name != INT8)), self.base)
        answer: Prediction = chosen._predict(x, t)
        return answer


def mix_precisions(prior: Prior, rounding: Rounding, device: torch.device, kinds: Collection[str]) -> Prior:
    """The prior in the precisions of `kinds` where they suffice; unchanged if their rounding is always too large."""
    parts: list[tuple[int, str, Prior]] = []
    for kind in kinds:
        first = rounding.first_time(prior.schedule, SHARE, kind)
        if first is not None and first < min((part[0] for part in parts), default=len(prior.schedule)):
            below = parts[-1][0] if parts and device.type == "cpu" else None
            made = round_to_int8(prior) if kind == INT8 else round_to_half(prior, half_dtype(device), below)
            parts.append((first, kind, made))
    found = tuple(name for _, name, _ in parts)
    return MixedPrior(prior, parts, next(n for n, names in MIXTURES.items() if names == found)) if parts else prior


def has_int8(prior: Prior, rounding: Rounding) -> bool:
    """Whether a prior was measured in integers of eight bits, and they are beside its weights."""
    there = isinstance(prior, PyramidPrior) and prior.home is not None and int8_file(prior.home).is_file()
    return there and rounding.int8 is not None


def round_to_int8(prior: Prior) -> Prior:
    """The pyramid in the integers beside its weights."""
    assert isinstance(prior, PyramidPrior) and prior.home is not None
    return load_int8(prior, prior.home)


MOST_SCALED = 2.0**-6
"""A bias with a larger relative error is so small that half precision barely holds it: it is left unchanged."""


def round_prior(prior: PyramidPrior, dtype: torch.dtype, below: int | None = None) -> PyramidPrior:
    """A copy of the prior whose network computes in `dtype`, rounded so that its errors average out; predictions are float32.

    Rounded to the nearest number, weights and biases of bfloat16 shift whole pictures: a filter's errors add up over its
    taps, and a bias is wrong by the same amount everywhere. Two rearrangements remove that shift at no run-time cost:

    - the rounding error of a tap is carried over to the next one of its 3x3 filter, so the sum of the filter stays right;
    - ReLU commutes with positive factors, so every channel is scaled until its bias is exact in half precision, and
      the next layer divides by the factor.

    What remains is the rounding of activations, which has no bias. The first and the last layer, a fiftieth of the work,
    stay in float32: they see the picture itself. A body that no time `below` one asks is left as it is.
    """
    bodies = {"expert": prior.net.expert, "main": prior.net.main}
    if below is not None and prior.net.expert is not None and prior.sigma(below) <= prior.net.config.expert_max:
        del bodies["main"]  # the expert answers alone
    return prior.with_bodies({name: _round_body(body, dtype) for name, body in bodies.items() if body is not None})


@torch.no_grad()
def _round_body(exact: Body, dtype: torch.dtype) -> Body:
    body = copy.deepcopy(exact)
    factor = torch.ones_like(body.convs[0].bias)  # type: ignore[arg-type]
    for conv in body.convs[1:]:
        factor = _round_layer(conv, factor, dtype)  # type: ignore[arg-type]
    body.out.weight /= factor.view(1, -1, 1, 1)
    told = torch.ones(body.h1.in_channels - len(factor)).to(factor)  # noise and level, which are not features
    factor = _round_layer(body.h1, torch.cat([factor, told]), dtype)
    body.h2.weight /= factor.view(1, -1, 1, 1)
    return body


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
    order = _sort_by_size(taps).to(taps.device)
    rounded, carried = [], torch.zeros_like(taps[..., 0])
    for tap in taps.gather(-1, order).unbind(-1):
        rounded.append((tap + carried).to(dtype))
        carried = tap + carried - rounded[-1].to(tap)
    return torch.empty_like(taps, dtype=dtype).scatter_(-1, order, torch.stack(rounded, -1)).view(weight.shape)


def _sort_by_size(taps: Tensor) -> Tensor:
    """The numbers of float32 taps [..., n], the largest first, of equal ones the first.

    Floats above 0 are ordered as their bits are, and the number of a tap fits below them.
    """
    sizes = taps.abs().numpy(force=True)
    count = sizes.shape[-1]
    keys = -sizes.view(np.int32).astype(np.int64) * count + np.arange(count)
    keys.sort(-1)
    return torch.from_numpy(keys % count)
