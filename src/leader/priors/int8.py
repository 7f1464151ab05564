"""The pyramid's network in integers of eight bits, a quarter of the time where the processor multiplies them (VNNI, AMX).

Activations are unsigned and weights signed integers; sums are exact in 32 bits, so their bits depend on neither threads nor
the order of channels. Between two layers only the integers of the next one are written: ReLU, scale and bias of an output
channel are applied to its sum. Every channel has a scale of its own, since ReLU commutes with positive factors: the next
layer's weights absorb it. The first layer, which sees the picture itself, and the head's last stay in float32.

The integers were fitted to what the layers see (`leader.train.int8`), and are stored beside the weights.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from leader.errors import LeaderError
from leader.files import sha256_once
from leader.priors.pyramid import PyramidPrior
from leader.priors.pyramid_net import Body
from leader.priors.tensor_files import read_safetensors

SUFFIX = ".int8"
REMEDY = "write it again with `leader publish`"
LARGEST = 127
"""Largest weight; -128 is not used, so that a weight can change its sign."""
BODIES = ("main", "expert")
FEWEST = 256
"""Cells of the smallest picture that is worth it."""


class Int8Conv(nn.Module):
    """A 3x3 convolution of unsigned bytes [B, in, H, W]: max(0, bias + scale sum), rounded to bytes; or as it is, in float32.

    weight  int8 [out, in, 3, 3]
    scale   of a sum, [out]; bias: [out]; both in steps of the output's bytes
    """

    weight: Tensor
    scale: Tensor
    bias: Tensor

    def __init__(self, weight: Tensor, scale: Tensor, bias: Tensor, to_bytes: bool) -> None:
        super().__init__()
        for name, value in (("weight", weight), ("scale", scale), ("bias", bias)):
            self.register_buffer(name, value)
        self.to_bytes = to_bytes
        self._packed: tuple[Tensor, Tensor] | None = None

    def forward(self, x: Tensor) -> Tensor:
        if self._packed is None:  # at the first call: a run in float32 needs no packing
            self._packed = pack(self.weight, self.scale), torch.zeros(len(self.scale), dtype=torch.int32)
        return convolve(x, self._packed, self.scale, self.bias, self.to_bytes)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_packed": None}  # packed weights can be neither copied nor sent to another process


PLACE = [1, 1], [1, 1], [1, 1], 1
"""Stride, padding, dilation and groups."""


def pack(weight: Tensor, scale: Tensor) -> Tensor:
    """Weights in the processor's own order."""
    packed: Tensor = torch.ops.onednn.qconv_prepack(weight, scale, 1.0, 0, *PLACE, None)
    return packed


def convolve(x: Tensor, packed: tuple[Tensor, Tensor], scale: Tensor, bias: Tensor, to_bytes: bool) -> Tensor:
    """The convolution of `Int8Conv`; `packed`: the weights in the processor's order, and zeros [out]."""
    kind, after = (torch.uint8, "relu") if to_bytes else (torch.float32, "none")
    weight, zeros = packed
    answer: Tensor = torch.ops.onednn.qconv2d_pointwise(
        x, 1.0, 0, weight, scale, zeros, bias, *PLACE, 1.0, 0, kind, after, [], ""
    )
    return answer


class Int8Body(nn.Module):
    """A `Body` in eight bits. Features are bytes.

    first  weight and bias of the first layer, in steps of its bytes
    exact  the body in float32, which takes small pictures: for those the processor's own order of weights is another one,
           and putting them into it costs more than is won
    """

    first_weight: Tensor
    first_bias: Tensor

    def __init__(self, body: Body, steps: Tensor, layers: dict[str, Int8Conv]) -> None:
        super().__init__()
        start: Any = body.convs[0]
        self.register_buffer("first_weight", start.weight / steps.view(-1, 1, 1, 1))
        self.register_buffer("first_bias", start.bias / steps + 0.5)  # integers are cut off: half a step rounds them
        self.convs = nn.ModuleList(layers[name] for name in list_layers(body)[:-2])
        self.out, self.h1 = layers["out"], layers["h1"]
        self.exact = body

    def forward(self, pixels: Tensor, sigma: Tensor) -> tuple[Tensor, Tensor]:
        """pixels [B, 3, H, W], sigma [B] -> estimate [B, 3, H, W] and features [B, width, H/2, W/2]."""
        cells = F.pixel_unshuffle(pixels, 2)
        if cells[0, 0].numel() < FEWEST:
            answer: tuple[Tensor, Tensor] = self.exact(pixels, sigma)
            return answer
        h = torch.cat([cells, _constant(sigma, cells)], 1).contiguous(memory_format=torch.channels_last)
        h = F.conv2d(h, self.first_weight, self.first_bias, padding=1).clamp_(0, 255).to(torch.uint8)
        for conv in self.convs:
            h = conv(h)
        return F.pixel_shuffle(self.out(h), 2), h

    def log_variance(self, features: Tensor, sigma: Tensor, level: Tensor) -> Tensor:
        """features [B, width, H/2, W/2], sigma [B], level [B] -> log of variance/(sigma^2 + floor)."""
        if features.is_floating_point():
            return self.exact.log_variance(features, sigma, level)
        known = torch.cat([_constant(10 * sigma, features), _constant(level / 4, features)], 1)
        known = F.conv2d(known, self.exact.h1.weight[:, features.shape[1] :], padding=1)
        return F.pixel_shuffle(self.exact.h2(self.h1(features).add_(known).relu_()), 2)


def _constant(value: Tensor, like: Tensor) -> Tensor:
    return value.view(-1, 1, 1, 1).expand(-1, 1, like.shape[2], like.shape[3])


def list_layers(body: Body) -> list[str]:
    """The layers in eight bits, in the order in which they are called: numbers of convolutions, "out" and the head's "h1"."""
    return [*map(str, range(1, len(body.convs))), "out", "h1"]


def find_layer(body: Body, name: str) -> nn.Conv2d:
    """A layer of a body by its name in `list_layers`."""
    layer = body.convs[int(name)] if name.isdecimal() else getattr(body, name)
    assert isinstance(layer, nn.Conv2d)
    return layer


def int8_file(checkpoint: Path) -> Path:
    return checkpoint.with_suffix(SUFFIX)


def list_shapes(prior: PyramidPrior) -> Iterator[tuple[str, tuple[int, ...], torch.dtype]]:
    """Name, shape and dtype of every tensor of a pyramid's file."""
    for part in BODIES:
        body: Body | None = getattr(prior.net, part)
        if body is None:
            continue
        width = body.out.in_channels
        yield f"{part}.steps", (width,), torch.float32
        for name in list_layers(body):
            channels = find_layer(body, name).out_channels
            yield f"{part}.{name}.weight", (channels, width, 3, 3), torch.int8
            yield f"{part}.{name}.scale", (channels,), torch.float32
            yield f"{part}.{name}.bias", (channels,), torch.float32


def load_int8(prior: PyramidPrior, weights: Path) -> PyramidPrior:
    """The pyramid of a weights file in eight bits, with every tensor validated."""
    file = int8_file(weights)
    tensors, texts = read_safetensors(file)
    if texts.get("weights") != sha256_once(weights):
        raise LeaderError(f"{file} was fitted to other weights than those of {weights.name}: {REMEDY}.")
    expected = {name: (shape, dtype) for name, shape, dtype in list_shapes(prior)}
    if {name: (tuple(item.shape), item.dtype) for name, item in tensors.items()} != expected:
        raise LeaderError(f"{file} does not hold the layers of {weights.name} in eight bits: {REMEDY}.")
    for name, tensor in tensors.items():
        positive = not name.endswith((".scale", ".steps")) or bool((tensor > 0).all())
        if not positive or not bool(torch.isfinite(tensor.float()).all()):
            raise LeaderError(f"{file} holds values in {name} that cannot be: {REMEDY}.")
    return place_int8(prior, tensors)


def place_int8(prior: PyramidPrior, tensors: dict[str, Tensor]) -> PyramidPrior:
    """A copy of the pyramid with these integers."""
    bodies = {}
    for part in BODIES:
        body: Body | None = getattr(prior.net, part)
        if body is not None:
            layers = {}
            for name in list_layers(body):
                weight, scale, bias = (tensors[f"{part}.{name}.{kind}"] for kind in ("weight", "scale", "bias"))
                layers[name] = Int8Conv(weight, scale, bias, name.isdecimal())
            bodies[part] = Int8Body(body, tensors[f"{part}.steps"], layers)
    return prior.with_bodies(bodies)


@torch.no_grad()
def is_exact() -> bool:
    """Whether torch convolves bytes here, and without saturating: the largest products are added up correctly."""
    x = torch.full((1, 32, 3, 5), 255, dtype=torch.uint8).contiguous(memory_format=torch.channels_last)
    weight = torch.full((32, 32, 3, 3), LARGEST, dtype=torch.int8)
    weight[1::2, ::3] = -LARGEST
    scale, bias = torch.ones(32), torch.zeros(32)
    try:
        found = convolve(x, (pack(weight, scale), torch.zeros(32, dtype=torch.int32)), scale, bias, False)
    except (AttributeError, RuntimeError, TypeError):
        return False  # the operator is absent, or takes other arguments
    return torch.equal(found.double(), F.conv2d(x.double(), weight.double(), padding=1))
