"""Opens a checkpoint file as a prior. Nothing in it is executed, and nothing about the network is guessed.

Names and shapes determine the architecture. Other settings come, each overriding the previous, from the registry (for a
published file, or with `like`), from a side-car `<stem>.json`, or from options:

    size               side of the training images, or [height, width]
    schedule           "linear", "scaled_linear", "cosine", or an object with "type" and its settings: see
                       `leader.priors.betas`
    head_channels      channels of an attention head (ADM), or
    heads              number of attention heads (ADM)
    attention_order    "legacy" or "new" (ADM)
    predicts           "eps" (default), "v" or "x0"
    rescale_timesteps  the network was trained on times scaled to 0..1000 (default false)
    label              the class to use (class-conditional ADM)
    part               which of several networks in the file
    like               take all of this from a registered checkpoint of the same shapes
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from leader.errors import LeaderError, unknown_name
from leader.priors import catalogue
from leader.priors.adapters import PREDICTS, LabelledNetwork, NetworkPrior
from leader.priors.base import LARGEST_SIDE
from leader.priors.betas import make_schedule
from leader.priors.detection import Config, build_network, detect_config, drop_untold_settings, guess_family
from leader.priors.json_files import check_flag, check_keys, check_list, check_whole, check_word
from leader.priors.networks import ADMConfig
from leader.priors.tensor_files import load_network, read_checkpoint
from leader.toml import read_table

SUFFIXES = (".pt", ".pth", ".ckpt", ".safetensors", ".bin")
OPTIONS = (
    "size",
    "schedule",
    "head_channels",
    "heads",
    "attention_order",
    "predicts",
    "rescale_timesteps",
    "label",
    "part",
    "like",
)
Options = Mapping[str, Any]
MOST_PARTS = 32
"""Largest number of networks to look for in one file."""


def _list_parts(content: Any) -> Iterator[tuple[str, dict[str, Tensor]]]:
    """Every set of tensors in the file: the top level, and its entries one level down, by name."""
    if isinstance(content, (list, tuple)):
        content = dict(enumerate(content))
    if not isinstance(content, Mapping):
        return
    for key, value in [("", content), *content.items()]:
        if isinstance(value, Mapping):
            tensors = {str(name): tensor for name, tensor in value.items() if isinstance(tensor, Tensor)}
            if tensors:
                yield str(key), tensors


def network_tensors(content: Any, origin: str, part: str | None = None) -> dict[str, Tensor]:
    """The tensors of the one network in a file, without wrapping keys and prefixes such as 'module.'."""
    found: dict[str, dict[str, Tensor]] = {}
    largest: dict[str, Tensor] = {}
    for label, tensors in _list_parts(content):
        largest = max(largest, tensors, key=len)
        prefixes = {match[1] for name in tensors if (match := re.fullmatch(r"(.*?)(temb\.dense|time_embed)\.0\.weight", name))}
        for prefix in sorted(prefixes)[:MOST_PARTS]:
            inside = {name[len(prefix) :]: v for name, v in tensors.items() if name.startswith(prefix)}
            if guess_family(inside) is not None:
                found["/".join(filter(None, (label, prefix.rstrip("."))))] = inside
    if not largest:
        raise LeaderError(f"{origin} holds no tensors: give the checkpoint of a network.")
    if part is not None:
        if part not in found:
            raise unknown_name(f"part of {origin}", part, found)
        return found[part]
    if len(found) > 1:
        raise LeaderError(
            f"{origin} holds several networks ({', '.join(sorted(found))}): name the one to use with the option 'part'."
        )
    return next(iter(found.values()), largest)


def read_side_car(path: Path) -> dict[str, Any]:
    """The settings in the `.json` beside a checkpoint; empty if there is none."""
    file = path.with_suffix(".json")
    return read_table(file, "the checkpoint's options", "correct it or remove it") if file.exists() else {}


def settle_settings(path: Path, config: Config, options: Options) -> dict[str, Any]:
    """All settings of a checkpoint from registry, side-car and options; unknown ones are missing."""
    layers: list[Options] = [read_side_car(path), options]
    for layer in layers:
        check_keys(layer, OPTIONS, "checkpoint option")
    like = options.get("like", layers[0].get("like"))
    model = find_published(path, config) if like is None else catalogue.find_entry(str(like))
    if model is not None and drop_untold_settings(model.config) != drop_untold_settings(config):
        raise LeaderError(f"{path.name} does not have the shapes of '{like}': give its own options instead of 'like'.")
    if model is not None:
        layers.insert(0, model.options)
    settled: dict[str, Any] = {}
    for layer in layers:
        for one, other in (("heads", "head_channels"), ("head_channels", "heads")):
            if layer.get(one) is not None:  # they exclude each other, even if a later source overrides
                settled.pop(other, None)
        settled |= {key: value for key, value in layer.items() if value is not None}
    return settled


def find_twins(config: Config) -> list[catalogue.CatalogueEntry]:
    """Registered checkpoints of the same shapes."""
    return [entry for entry in catalogue.ENTRIES.values() if drop_untold_settings(entry.config) == drop_untold_settings(config)]


def find_published(path: Path, config: Config) -> catalogue.CatalogueEntry | None:
    """The registered checkpoint that equals a file of these shapes, whatever its name and location."""
    return next((entry for entry in find_twins(config) if catalogue.is_published(entry, path)), None)


def find_missing(config: Config, settings: Options) -> list[str]:
    """The settings that are neither implied by the tensors nor given."""
    needed = [key for key in ("size", "schedule") if settings.get(key) is None]
    if isinstance(config, ADMConfig):
        if settings.get("head_channels") is None and settings.get("heads") is None:
            needed.append("head_channels (or heads)")
        if settings.get("attention_order") is None:
            needed.append("attention_order")
        if config.classes is not None and settings.get("label") is None:
            needed.append("label")
    return needed


def open_checkpoint(path: Path, options: Options) -> NetworkPrior:
    tensors = network_tensors(read_checkpoint(path), path.name, find_part(path, options))
    config = detect_config(tensors, path.name)
    settings = settle_settings(path, config, options)
    lacking = find_missing(config, settings)
    if lacking:
        same = find_twins(config)
        hint = f", or like='{same[0].name}' if it is a relative of that one" if same else ""
        raise LeaderError(
            f"The tensors of {path.name} do not determine {', '.join(lacking)}: give them as options or in "
            f"{path.with_suffix('.json').name} beside it{hint}."
        )
    config = _complete_config(config, settings, path.name)
    schedule = make_schedule(settings["schedule"], path.name)
    size = _check_size(settings["size"], config.multiple, path.name)
    rescaled = check_flag(settings.get("rescale_timesteps", False), f"rescale_timesteps of {path.name}")
    predicts = check_word(settings.get("predicts", "eps"), "prediction", PREDICTS)
    network: nn.Module = load_network(lambda: build_network(config), tensors, path, path.name)
    published = find_published(path, config)
    if isinstance(config, ADMConfig) and config.classes is not None:
        network = LabelledNetwork(network, check_whole(settings["label"], f"The label for {path.name}", 0, config.classes - 1))
    return NetworkPrior(
        network,
        schedule,
        predicts=predicts,
        learned_variance=config.out_channels == 2 * config.in_channels,
        channels=config.in_channels,
        size=size,
        multiple=config.multiple,
        time_factor=1000 / len(schedule) if rescaled else 1.0,
        name=path.stem if published is None else published.name,  # presets are looked up by it
    )


def find_part(path: Path, options: Options) -> str | None:
    """Which of several networks in the file to use, from the options or the side-car."""
    part = options.get("part", read_side_car(path).get("part"))
    return None if part is None else str(part)


def _check_size(value: Any, multiple: int, origin: str) -> tuple[int, int]:
    what = f"The size of {origin}"
    pair = check_list(value, what, 2, 2) if isinstance(value, (list, tuple)) else [value, value]
    height, width = (check_whole(side, what, 1, LARGEST_SIDE) for side in pair)
    if height % multiple or width % multiple:
        raise LeaderError(f"The network in {origin} needs a size in multiples of {multiple}; found {height} x {width}.")
    return height, width


def _complete_config(config: Config, settings: Options, origin: str) -> Config:
    """The configuration with the settings that shapes do not determine."""
    if config.out_channels not in (config.in_channels, 2 * config.in_channels):
        raise LeaderError(
            f"The network in {origin} turns {config.in_channels} channels into {config.out_channels}, where "
            "as many or twice as many were expected: networks with extra inputs are not supported."
        )
    if not isinstance(config, ADMConfig):
        return config
    order = check_word(settings["attention_order"], "attention order", ("legacy", "new"))
    widest = config.width * max(config.multipliers)
    each, count = (
        None if settings.get(key) is None else check_whole(settings[key], f"{key} of {origin}", 1, widest)
        for key in ("head_channels", "heads")
    )
    config = replace(config, head_channels=each, heads=count, new_attention_order=order == "new")
    last = len(config.multipliers) - 1
    for channels in {config.width * config.multipliers[level] for level in (*config.attention, last)}:
        heads = max(1, config.heads_of(channels))
        if channels % heads or (config.head_channels and channels % config.head_channels):
            raise LeaderError(f"{origin} has attention over {channels} channels, which do not divide into such heads.")
    return config
