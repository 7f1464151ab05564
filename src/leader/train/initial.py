"""Starting points for training: weights of earlier pyramids and of FFDNet, mapped onto `PyramidNet`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from leader.priors.pyramid_net import Body, PyramidNet


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
    return body_from_ffdnet(torch.load(path, map_location="cpu", weights_only=True))


def fill_body(body: Body, tensors: Mapping[str, Tensor]) -> None:
    """Copy tensors into a body; those that are missing stay as they are."""
    body.load_state_dict({**body.state_dict(), **tensors})


def initialise(net: PyramidNet, pyramid: Mapping[str, Tensor], ffdnet: Mapping[str, Tensor] | None) -> None:
    """Start from a pyramid's weights; if it has no expert, that is FFDNet or else the main body."""
    known = net.state_dict()
    tensors = {name: tensor.float() for name, tensor in pyramid.items()}
    net.load_state_dict({**known, **{name: tensor for name, tensor in tensors.items() if name in known}})
    if net.expert is not None and not any(name.startswith("expert.") for name in tensors):
        fill_body(net.expert, {**net.main.state_dict(), **(ffdnet or {})})
