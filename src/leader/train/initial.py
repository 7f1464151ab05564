"""Starting points for training: weights of earlier pyramids and of FFDNet, mapped onto `PyramidNet`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from torch import Tensor

from leader.errors import LeaderError
from leader.priors.pyramid_net import PyramidNet
from leader.priors.tensor_files import check_weights, read_checkpoint, read_safetensors


def body_from_ffdnet(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """FFDNet colour (Zhang, Zuo, Zhang 2018) numbers its convolutions 0, 2, ...: use `Body`'s names."""
    numbers = sorted({int(name.split(".")[1]) for name in state})
    names = [f"convs.{index}" for index in range(len(numbers) - 1)] + ["out"]
    return {
        f"{name}.{kind}": state[f"model.{number}.{kind}"].float()
        for name, number in zip(names, numbers, strict=True)
        for kind in ("weight", "bias")
    }


def load_ffdnet(path: Path) -> dict[str, Tensor]:
    """A body's tensors from FFDNet's colour checkpoint (a tensor-only pickle)."""
    try:
        return body_from_ffdnet(read_checkpoint(path))
    except (LookupError, ValueError, AttributeError, TypeError) as error:
        raise LeaderError(f"{path} does not hold FFDNet's colour weights: give the path of ffdnet_color.pth.") from error


def load_pyramid(path: Path) -> dict[str, Tensor]:
    """The tensors of a pyramid's weights, in float32."""
    if path.suffix != ".safetensors":
        raise LeaderError(f"{path} is not a .safetensors file: give the weights of a pyramid prior.")
    tensors, _ = read_safetensors(path)
    check_weights(tensors, path)
    return {name: tensor.float() for name, tensor in tensors.items()}


def initialise(net: PyramidNet, pyramid: Mapping[str, Tensor], ffdnet: Mapping[str, Tensor] | None) -> None:
    """Starts from a pyramid's weights or, if there are none, from FFDNet's.

    A pyramid without an expert gets FFDNet as its expert, or else its main body.
    """
    known = net.state_dict()
    fitting = {name: tensor for name, tensor in pyramid.items() if name in known and tensor.shape == known[name].shape}
    if pyramid and not any(name.startswith("main.convs") for name in fitting):
        raise LeaderError("The weights to start from are not those of a pyramid of this shape: give others, or 'scratch'.")
    net.load_state_dict({**known, **fitting})
    if not pyramid and ffdnet is not None:
        net.main.load_state_dict({**net.main.state_dict(), **ffdnet})
    if net.expert is not None and not any(name.startswith("expert.") for name in fitting):
        net.expert.load_state_dict({**net.main.state_dict(), **(ffdnet or {})})
