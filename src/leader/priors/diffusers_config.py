"""Checks the configuration of a diffusers network against its tensors before anything is built.

No layer, width or table of a network can exceed its weights: the number of tensors bounds the layers, and the longest side of a
tensor bounds every width. The network is then built without memory and compared name by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from torch import Tensor

from leader.errors import LeaderError, UsageError
from leader.priors.base import LARGEST_SIDE
from leader.priors.betas import MOST_STEPS
from leader.priors.json_files import check_flag, check_list, check_number, check_whole, check_word, show

LEVELS = 12
DOWN = ("DownBlock2D", "AttnDownBlock2D", "SkipDownBlock2D", "AttnSkipDownBlock2D", "ResnetDownsampleBlock2D")
UP = ("UpBlock2D", "AttnUpBlock2D", "SkipUpBlock2D", "AttnSkipUpBlock2D", "ResnetUpsampleBlock2D")
ACTIVATIONS = ("swish", "silu", "mish", "gelu", "relu")

Check = Callable[[Any, str], Any]


def _optional(check: Check) -> Check:
    return lambda value, what: None if value is None else check(value, what)


def _row(each: Check) -> Check:
    return lambda value, what: tuple(each(item, what) for item in check_list(value, what, 1, LEVELS))


def _checks(tensors: Mapping[str, Tensor]) -> dict[str, Check]:
    """The valid values of each setting of a UNet2DModel, for a network of these tensors."""
    longest = max((side for tensor in tensors.values() for side in tensor.shape), default=1)

    def whole(low: int, high: int) -> Check:
        return partial(check_whole, low=low, high=high)

    def number(low: float, high: float) -> Check:
        return partial(check_number, low=low, high=high)

    def word(*valid: str) -> Check:
        return partial(check_word, valid=valid)

    width = whole(1, longest)
    return {
        "sample_size": _optional(sides),
        "in_channels": width,
        "out_channels": width,
        "center_input_sample": check_flag,
        "time_embedding_type": word("positional", "learned"),
        "time_embedding_dim": _optional(width),
        "freq_shift": number(0, 1),
        "flip_sin_to_cos": check_flag,
        "down_block_types": _row(word(*DOWN)),
        "mid_block_type": _optional(word("UNetMidBlock2D")),
        "up_block_types": _row(word(*UP)),
        "block_out_channels": _row(width),
        "layers_per_block": whole(1, max(1, len(tensors))),
        "mid_block_scale_factor": number(1e-3, 1e3),
        "downsample_padding": whole(0, 1),
        "downsample_type": word("conv", "resnet"),
        "upsample_type": word("conv", "resnet"),
        "dropout": number(0, 1),
        "act_fn": word(*ACTIVATIONS),
        "attention_head_dim": _optional(width),
        "norm_num_groups": width,
        "attn_norm_num_groups": _optional(width),
        "norm_eps": number(1e-12, 1),
        "resnet_time_scale_shift": word("default", "scale_shift"),
        "add_attention": check_flag,
        "num_class_embeds": _optional(width),
        "num_train_timesteps": _optional(whole(1, MOST_STEPS)),
    }


def sides(value: Any, what: str) -> tuple[int, int]:
    """A size in pixels, one number or two."""
    pair = [value, value] if isinstance(value, int) else check_list(value, what, 2, 2)
    height, width = (check_whole(side, what, 1, LARGEST_SIDE) for side in pair)
    return height, width


def network_settings(config: Mapping[str, Any], tensors: Mapping[str, Tensor], file: Path) -> dict[str, Any]:
    """The settings to build the network with; `file` is where they were read."""
    kind = config.get("_class_name", "UNet2DModel")
    if kind != "UNet2DModel":
        raise LeaderError(f"{file} describes a {show(kind)}: only UNet2DModel, a network on pixels, can serve as a prior.")
    checks = _checks(tensors)
    settings: dict[str, Any] = {}
    for key, value in config.items():
        if key in checks:
            try:
                settings[key] = checks[key](value, f"{key} in {file}")
            except UsageError as error:  # an unknown value in a foreign file is not a usage error
                raise LeaderError(str(error)) from error
        elif not key.startswith("_") and value is not None:
            raise LeaderError(f"{file} sets {show(key)}, which is not supported: only plain UNet2DModel networks are.")
    if settings.get("center_input_sample"):
        raise LeaderError(f"{file} centres the network's input itself (center_input_sample), which is not supported.")
    layers = settings.get("layers_per_block", 2) * len(settings.get("block_out_channels", ()))
    if layers > len(tensors):
        raise LeaderError(f"{file} describes {layers} layers, and the weights beside it hold {len(tensors)} tensors in all.")
    return settings
