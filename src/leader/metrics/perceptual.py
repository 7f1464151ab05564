"""LPIPS v0.1 (Zhang et al. 2018): a distance between deep features, weighted to agree with human judgement.

Both pictures go through a network trained for classification; the activations after five of its layers are
scaled to unit length per pixel, and their squared differences are weighted per channel, averaged over space
and summed. The AlexNet weights come with the package (float16, while the published ones are float32: this changes a distance by
less than 1e-3); VGG16's are 29 MB and are read from a file given by the user, made by `tools/convert_lpips.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors import SafetensorError
from safetensors.torch import load_file

from leader.errors import LeaderError, unknown_name
from leader.metrics.checks import check_pair, check_sides

_SHIFT = (-0.030, -0.088, -0.188)
_SCALE = (0.458, 0.448, 0.450)
_EPSILON = 1e-10
_WEIGHTS = Path(__file__).parent / "weights"


@dataclass(frozen=True)
class Conv:
    """One convolution with its ReLU: output channels, kernel, stride, padding; a tap feeds LPIPS; a pool may precede it."""

    channels: int
    kernel: int
    stride: int = 1
    padding: int = 0
    tap: bool = True
    pool_before: int = 0


@dataclass(frozen=True)
class Trunk:
    """The part of a feature network that LPIPS uses: its convolutions and the smallest side it can process (pixels)."""

    layers: tuple[Conv, ...]
    smallest: int


TRUNKS = {
    "alex": Trunk(
        (
            Conv(64, 11, stride=4, padding=2),
            Conv(192, 5, padding=2, pool_before=3),
            Conv(384, 3, padding=1, pool_before=3),
            Conv(256, 3, padding=1),
            Conv(256, 3, padding=1),
        ),
        smallest=31,
    ),
    "vgg": Trunk(
        tuple(
            Conv(channels, 3, padding=1, tap=index == count - 1, pool_before=2 if block and index == 0 else 0)
            for block, (channels, count) in enumerate(((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)))
            for index in range(count)
        ),
        smallest=16,
    ),
}


@torch.no_grad()
def lpips(
    restored: torch.Tensor, reference: torch.Tensor, network: str = "alex", weights: str | Path | None = None
) -> torch.Tensor:
    """LPIPS distance, [B] float32, 0 for equal pictures.

    Pictures [B, C, H, W] in [0, 1], clamped, mapped to [-1, 1]; grey ones are repeated over three channels.
    No resizing. network: 'alex' (weights shipped) or 'vgg' (weights: a safetensors file). Each pair is evaluated separately, so
    an image gets the same score alone and in any batch.
    """
    if network not in TRUNKS:
        raise unknown_name("LPIPS network", network, TRUNKS)
    restored, reference = check_pair(restored, reference)
    check_sides(restored, TRUNKS[network].smallest, f"LPIPS with '{network}'")
    parameters = _parameters(network, _weights_file(network, weights))
    parameters = {name: value.to(restored.device) for name, value in parameters.items()}
    distances = [_distance(_network_input(torch.stack(pair)), TRUNKS[network], parameters) for pair in zip(restored, reference)]
    return torch.stack(distances)


def trunk_features(x: torch.Tensor, trunk: Trunk, parameters: dict[str, torch.Tensor]) -> list[torch.Tensor]:
    """The tapped activations of scaled pictures [B, 3, H, W], first layer first."""
    taps: list[torch.Tensor] = []
    for index, layer in enumerate(trunk.layers):
        if layer.pool_before:
            x = F.max_pool2d(x, layer.pool_before, stride=2)
        weight, bias = parameters[f"trunk.{index}.weight"], parameters[f"trunk.{index}.bias"]
        x = F.relu(F.conv2d(x, weight, bias, stride=layer.stride, padding=layer.padding))
        if layer.tap:
            taps.append(x)
    return taps


def parameter_shapes(trunk: Trunk) -> dict[str, tuple[int, ...]]:
    """Name and shape of every tensor in a weights file."""
    shapes: dict[str, tuple[int, ...]] = {}
    inputs, taps = 3, 0
    for index, layer in enumerate(trunk.layers):
        shapes[f"trunk.{index}.weight"] = (layer.channels, inputs, layer.kernel, layer.kernel)
        shapes[f"trunk.{index}.bias"] = (layer.channels,)
        if layer.tap:
            shapes[f"linear.{taps}.weight"] = (layer.channels,)
            taps += 1
        inputs = layer.channels
    return shapes


def _network_input(pictures: torch.Tensor) -> torch.Tensor:
    """[0, 1] pictures [B, 1 or 3, H, W] to the channel statistics that the networks were trained with."""
    x = 2.0 * pictures.float().expand(-1, 3, -1, -1) - 1.0
    return (x - _row(_SHIFT, x)) / _row(_SCALE, x)


def _row(values: Sequence[float], like: torch.Tensor) -> torch.Tensor:
    return torch.tensor(values, dtype=like.dtype, device=like.device).view(1, -1, 1, 1)


def _distance(pair: torch.Tensor, trunk: Trunk, parameters: dict[str, torch.Tensor]) -> torch.Tensor:
    """LPIPS between the two scaled pictures of a pair [2, 3, H, W]."""
    total = pair.new_zeros(())
    for index, features in enumerate(trunk_features(pair, trunk, parameters)):
        length = features.square().sum(dim=1, keepdim=True).sqrt()
        unit = features / (length + _EPSILON)
        square = (unit[0] - unit[1]).square().mean(dim=(1, 2))
        total = total + (square * parameters[f"linear.{index}.weight"]).sum()
    return total


def _weights_file(network: str, given: str | Path | None) -> Path:
    if given is not None:
        return Path(given)
    if network == "alex":
        return _WEIGHTS / "lpips_alex.safetensors"
    raise LeaderError(
        f"The weights of LPIPS '{network}' are not shipped; make the file with tools/convert_lpips.py and "
        "give its path as 'weights', or use network 'alex'."
    )


@lru_cache(maxsize=2)
def _parameters(network: str, file: Path) -> dict[str, torch.Tensor]:
    """The float32 parameters of a network, every name and shape checked."""
    if not file.is_file():
        raise LeaderError(f"There is no LPIPS weights file '{file}'; make it with tools/convert_lpips.py.")
    try:
        stored: dict[str, torch.Tensor] = load_file(file)
    except SafetensorError as error:
        raise LeaderError(f"The LPIPS weights file '{file}' is not a safetensors file; make it again.") from error
    expected = parameter_shapes(TRUNKS[network])
    found = {name: tuple(value.shape) for name, value in stored.items()}
    if found != expected:
        wrong = sorted(name for name in found.keys() | expected.keys() if found.get(name) != expected.get(name))
        raise LeaderError(
            f"The LPIPS weights file '{file}' does not hold network '{network}' ({wrong[0]} is "
            f"{found.get(wrong[0])}, expected {expected.get(wrong[0])}); give the file made for that network."
        )
    return {name: value.float() for name, value in stored.items()}
