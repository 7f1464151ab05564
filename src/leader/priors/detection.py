"""Which network a set of tensors belongs to, from names and shapes alone.

Shapes do not tell the image size, the width of attention heads, the order of q, k and v, or the schedule.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields, replace

from torch import Tensor

from leader.errors import LeaderError
from leader.priors.networks import ADM, DDPM, ADMConfig, DDPMConfig

Config = ADMConfig | DDPMConfig
Tensors = Mapping[str, Tensor]


def family(config: Config) -> str:
    """'adm' or 'ddpm'."""
    return "adm" if isinstance(config, ADMConfig) else "ddpm"


def build(config: Config) -> ADM | DDPM:
    """The network of a configuration."""
    return ADM(config) if isinstance(config, ADMConfig) else DDPM(config)


def belongs_to_a_family(tensors: Tensors) -> bool:
    """Whether the names look like those of a network we know."""
    return "temb.dense.0.weight" in tensors or {"input_blocks.0.0.weight", "time_embed.0.weight"} <= set(tensors)


def detect(tensors: Tensors, origin: str) -> Config:
    """The configuration behind the tensors; what shapes cannot tell is left at its default.

    `origin` names the file in errors.
    """
    if not belongs_to_a_family(tensors):
        first = ", ".join(name[:40] for name in sorted(tensors)[:3])
        raise LeaderError(
            f"{origin} holds no diffusion network of a known family (ADM or DDPM): its tensors begin with "
            f"{first}; give a checkpoint of one of these, or a diffusers folder."
        )
    adm = "time_embed.0.weight" in tensors
    if adm and not any(name.startswith("output_blocks.") for name in tensors):
        raise LeaderError(
            f"{origin} holds a classifier (the encoder half of an ADM network), not a diffusion network: "
            "give the diffusion checkpoint it was published with."
        )
    try:
        config = _adm(tensors) if adm else _ddpm(tensors)
    except (KeyError, ZeroDivisionError, IndexError, ValueError) as error:
        raise LeaderError(
            f"{origin} begins like {'an ADM' if adm else 'a DDPM'} network but lacks {error}: "
            "the file is incomplete or of another architecture."
        ) from error
    if config.blocks < 1 or config.blocks * len(config.multipliers) > len(tensors):  # numbers in names cost nothing to invent
        raise LeaderError(
            f"{origin} numbers {config.blocks} blocks on each of {len(config.multipliers)} levels and holds {len(tensors)} "
            "tensors: the file is incomplete or of another architecture."
        )
    return config


def _count(tensors: Tensors, pattern: str) -> int:
    """1 + the largest number that `pattern` (one group) matches."""
    found = [int(match[1]) for name in tensors if (match := re.match(pattern, name))]
    return 1 + max(found, default=-1)


def _adm(tensors: Tensors) -> ADMConfig:
    width = tensors["time_embed.0.weight"].shape[1]
    first, last = tensors["input_blocks.0.0.weight"], tensors["out.2.weight"]
    block = "input_blocks.1.0"
    scale_shift = tensors[f"{block}.emb_layers.1.weight"].shape[0] == 2 * tensors[f"{block}.out_layers.3.weight"].shape[0]
    resblock = not any(re.match(r"input_blocks\.\d+\.0\.op\.weight", name) for name in tensors)
    upsampler = r"output_blocks\.\d+\.[12]\." + ("in_layers.0.weight" if resblock else "conv.weight")
    levels = 1 + sum(1 for name in tensors if re.fullmatch(upsampler, name))
    stages = _count(tensors, r"output_blocks\.(\d+)\.") // levels
    deepest_first = [f"output_blocks.{index * stages}" for index in range(levels)]
    multipliers = [tensors[f"{name}.0.out_layers.3.weight"].shape[0] // width for name in deepest_first]
    attention = [levels - 1 - i for i, name in enumerate(deepest_first) if f"{name}.1.qkv.weight" in tensors]
    return ADMConfig(
        width=width,
        multipliers=tuple(reversed(multipliers)),
        blocks=stages - 1,
        attention=tuple(sorted(attention)),
        in_channels=first.shape[1],
        out_channels=last.shape[0],
        scale_shift=scale_shift,
        resblock_resampling=resblock,
        classes=tensors["label_emb.weight"].shape[0] if "label_emb.weight" in tensors else None,
    )


def _ddpm(tensors: Tensors) -> DDPMConfig:
    width = tensors["conv_in.weight"].shape[0]
    levels = _count(tensors, r"down\.(\d+)\.block\.")
    return DDPMConfig(
        width=width,
        multipliers=tuple(tensors[f"down.{i}.block.0.conv1.weight"].shape[0] // width for i in range(levels)),
        blocks=_count(tensors, r"down\.0\.block\.(\d+)\."),
        attention=tuple(i for i in range(levels) if f"down.{i}.attn.0.q.weight" in tensors),
        in_channels=tensors["conv_in.weight"].shape[1],
        out_channels=tensors["conv_out.weight"].shape[0],
    )


def shape_only(config: Config) -> Config:
    """The configuration without what shapes cannot tell."""
    if isinstance(config, DDPMConfig):
        return config
    return replace(config, head_channels=None, heads=None, new_attention_order=False)


def describe(config: Config) -> dict[str, object]:
    """A flat description for people and JSON."""
    values = {item.name: getattr(config, item.name) for item in fields(config)}
    return {key: list(value) if isinstance(value, tuple) else value for key, value in values.items()}
