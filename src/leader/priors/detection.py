"""Detects the network of a set of tensors from names and shapes alone.

Shapes do not determine the image size, the width of attention heads, the order of q, k and v, or the schedule.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from leader.errors import LeaderError
from leader.priors.networks import ADM, DDPM, ADMConfig, DDPMConfig

Config = ADMConfig | DDPMConfig
Tensors = Mapping[str, Tensor]


@dataclass(frozen=True)
class Family:
    """A supported kind of network: to add one, write its network and a row of FAMILIES.

    name     as `leader priors inspect` shows it
    marks    names of tensors that every checkpoint of the family has, and no other family
    config   the class of its configurations
    read     a configuration from names and shapes; raises KeyError and the like if tensors are missing
    build    the network of a configuration
    untold   settings that shapes do not determine, with the values that mean "unknown"
    """

    name: str
    marks: frozenset[str]
    config: type[ADMConfig] | type[DDPMConfig]
    read: Callable[[Tensors], Config]
    build: Callable[[Any], ADM | DDPM]
    untold: Mapping[str, Any]


def find_family(config: Config) -> Family:
    return next(family for family in FAMILIES if isinstance(config, family.config))


def build_network(config: Config) -> ADM | DDPM:
    return find_family(config).build(config)


def guess_family(tensors: Tensors) -> Family | None:
    """The supported family whose names these are."""
    return next((family for family in FAMILIES if family.marks <= set(tensors)), None)


def detect_config(tensors: Tensors, origin: str) -> Config:
    """The configuration of the tensors; settings that shapes do not determine keep their defaults.

    `origin` names the file in errors.
    """
    family = guess_family(tensors)
    if family is None:
        first = ", ".join(name[:40] for name in sorted(tensors)[:3])
        known = " or ".join(item.name.upper() for item in FAMILIES)
        raise LeaderError(
            f"{origin} holds no diffusion network of a known family ({known}): its tensors begin with "
            f"{first}; give a checkpoint of one of these, or a diffusers folder."
        )
    if family.name == "adm" and not any(name.startswith("output_blocks.") for name in tensors):
        raise LeaderError(
            f"{origin} holds a classifier (the encoder half of an ADM network), not a diffusion network: "
            "give the diffusion checkpoint it was published with."
        )
    try:
        config = family.read(tensors)
    except (KeyError, ZeroDivisionError, IndexError, ValueError) as error:
        raise LeaderError(
            f"{origin} begins like a network of the family {family.name.upper()} but lacks {error}: "
            "the file is incomplete or of another architecture."
        ) from error
    if config.blocks < 1 or config.blocks * len(config.multipliers) > len(
        tensors
    ):  # hostile files can use any numbers in names
        raise LeaderError(
            f"{origin} numbers {config.blocks} blocks on each of {len(config.multipliers)} levels and holds {len(tensors)} "
            "tensors: the file is incomplete or of another architecture."
        )
    return config


def _count_numbered(tensors: Tensors, pattern: str) -> int:
    """1 + the largest number that `pattern` (one group) matches."""
    found = [int(match[1]) for name in tensors if (match := re.match(pattern, name))]
    return 1 + max(found, default=-1)


def _read_adm(tensors: Tensors) -> ADMConfig:
    width = tensors["time_embed.0.weight"].shape[1]
    first, last = tensors["input_blocks.0.0.weight"], tensors["out.2.weight"]
    block = "input_blocks.1.0"
    scale_shift = tensors[f"{block}.emb_layers.1.weight"].shape[0] == 2 * tensors[f"{block}.out_layers.3.weight"].shape[0]
    resblock = not any(re.match(r"input_blocks\.\d+\.0\.op\.weight", name) for name in tensors)
    upsampler = r"output_blocks\.\d+\.[12]\." + ("in_layers.0.weight" if resblock else "conv.weight")
    levels = 1 + sum(1 for name in tensors if re.fullmatch(upsampler, name))
    stages = _count_numbered(tensors, r"output_blocks\.(\d+)\.") // levels
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


def _read_ddpm(tensors: Tensors) -> DDPMConfig:
    width = tensors["conv_in.weight"].shape[0]
    levels = _count_numbered(tensors, r"down\.(\d+)\.block\.")
    return DDPMConfig(
        width=width,
        multipliers=tuple(tensors[f"down.{i}.block.0.conv1.weight"].shape[0] // width for i in range(levels)),
        blocks=_count_numbered(tensors, r"down\.0\.block\.(\d+)\."),
        attention=tuple(i for i in range(levels) if f"down.{i}.attn.0.q.weight" in tensors),
        in_channels=tensors["conv_in.weight"].shape[1],
        out_channels=tensors["conv_out.weight"].shape[0],
    )


FAMILIES = (
    Family(
        "adm",
        frozenset({"input_blocks.0.0.weight", "time_embed.0.weight"}),
        ADMConfig,
        _read_adm,
        ADM,
        {"head_channels": None, "heads": None, "new_attention_order": False},
    ),
    Family("ddpm", frozenset({"temb.dense.0.weight"}), DDPMConfig, _read_ddpm, DDPM, {}),
)


def drop_untold_settings(config: Config) -> Config:
    """The configuration without the settings that shapes do not determine."""
    return replace(config, **find_family(config).untold)
