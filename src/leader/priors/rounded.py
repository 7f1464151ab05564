"""The network of the embedded prior in half precision, rounded so that its errors average out.

Rounded to the nearest number, weights and biases of bfloat16 shift whole pictures: a filter's errors add up over its
taps, and a bias is wrong by the same amount everywhere. Two rearrangements remove that shift without a cost later:

- the rounding error of a tap is carried on to the next one of its 3x3 filter, so that the sum of the filter stays right;
- ReLU commutes with positive factors, so every channel is scaled until its bias is a number of half precision, and
  the next layer divides by the factor.

What is left is the rounding of activations, which has no sign. The first and the last layer, a fiftieth of the work, stay
in float32: they see the picture itself.
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from leader.priors.pyramid import PyramidPrior
from leader.priors.pyramid_net import Body

MOST_SCALED = 2.0**-6
"""A bias that is further off, relatively, is so small that half precision barely holds it: it is left as it is."""


def round_prior(prior: PyramidPrior, dtype: torch.dtype) -> PyramidPrior:
    """A copy of the prior whose network computes in `dtype`; estimates and variances are float32."""
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
    told = torch.ones(body.h1.in_channels - len(factor)).to(factor)  # noise and level, which are no features
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
    """Filters [out, in, kH, kW] in `dtype`, the sum of every filter kept: large taps first, their errors carried on."""
    taps = weight.flatten(2)
    order = taps.abs().argsort(-1, descending=True)
    rounded, carried = [], torch.zeros_like(taps[..., 0])
    for tap in taps.gather(-1, order).unbind(-1):
        rounded.append((tap + carried).to(dtype))
        carried = tap + carried - rounded[-1].to(tap)
    return torch.empty_like(taps, dtype=dtype).scatter_(-1, order, torch.stack(rounded, -1)).view(weight.shape)
