"""Opening a checkpoint file as a prior. Nothing in it is executed, nothing about the network is guessed.

Names and shapes tell the architecture. What they cannot tell comes, each overriding the one before, from the
registry (for a published file under its published name, or with `like`), from a side-car `<stem>.json`, or
from options:

    size               side of the training images, or [height, width]
    schedule           "linear", "scaled_linear", "cosine", or an object with "type", "beta_start",
                       "beta_end", "steps"
    head_channels      channels of an attention head (ADM), or
    heads              number of attention heads (ADM)
    attention_order    "legacy" or "new" (ADM)
    predicts           "eps" (default), "v" or "x0"
    rescale_timesteps  the network was trained on times scaled to 0..1000 (default false)
    label              the class to use (class-conditional ADM)
    part               which of several networks in the file
    like               take all of this from a registered checkpoint of the same shapes
"""

from __future__ import annotations

import json
import pickle
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from leader.errors import LeaderError, unknown_name
from leader.priors import catalogue
from leader.priors.adapters import LabelledNetwork, NetworkPrior
from leader.priors.detection import Config, belongs_to_a_family, build, detect, shape_only
from leader.priors.networks import ADMConfig
from leader.schedule import Schedule

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
ARCHIVE, PICKLE = b"PK\x03\x04", b"\x80"  # how torch files begin; those without an archive cannot be mapped


def read(path: Path) -> Any:
    """The content of a checkpoint file: lists and dicts of tensors and plain values, mapped, not copied."""
    start = b""
    try:
        if path.suffix == ".safetensors":
            with safe_open(path, framework="pt") as content:
                return {name: content.get_tensor(name) for name in content.keys()}  # noqa: SIM118
        with path.open("rb") as file:
            start = file.read(len(ARCHIVE))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about pickle protocols: what cannot be read is refused below
            return torch.load(path, map_location="cpu", weights_only=True, mmap=start == ARCHIVE)
    except FileNotFoundError as error:
        raise LeaderError(f"{path} does not exist: give the path of a checkpoint.") from error
    except pickle.UnpicklingError as error:
        if start != ARCHIVE and not start.startswith(PICKLE):
            raise _damaged(path) from error
        raise LeaderError(
            f"{path} holds more than tensors and could run code when read, so it was refused and nothing was "
            "executed; convert it where you trust it: torch.save(model.state_dict(), 'weights.pt')."
        ) from error
    except (RuntimeError, EOFError, SafetensorError, OSError, ValueError, KeyError) as error:
        raise _damaged(path) from error


def _damaged(path: Path) -> LeaderError:
    return LeaderError(
        f"{path} ({path.stat().st_size} bytes) cannot be read as a checkpoint: it is truncated, damaged or "
        "of another kind; download it again."
    )


def _parts(content: Any) -> Iterator[tuple[str, dict[str, Tensor]]]:
    """Every set of tensors in the file: the whole, and its entries one level down, by name."""
    if isinstance(content, Mapping):
        items = [(str(key), value) for key, value in content.items()]
    elif isinstance(content, (list, tuple)):
        items = [(str(key), value) for key, value in enumerate(content)]
    else:
        return
    whole = {key: value for key, value in items if isinstance(value, Tensor)}
    if whole:
        yield "", whole
    for key, value in items:
        if isinstance(value, Mapping):
            inner = {str(name): tensor for name, tensor in value.items() if isinstance(tensor, Tensor)}
            if inner:
                yield key, inner


def network_tensors(content: Any, origin: str, part: str | None = None) -> dict[str, Tensor]:
    """The tensors of the one network in a file, without wrapping keys and prefixes such as 'module.'."""
    found: dict[str, dict[str, Tensor]] = {}
    largest: dict[str, Tensor] = {}
    for label, tensors in _parts(content):
        largest = max(largest, tensors, key=len)
        prefixes = {match[1] for name in tensors if (match := re.fullmatch(r"(.*?)(temb\.dense|time_embed)\.0\.weight", name))}
        for prefix in sorted(prefixes):
            inside = {name[len(prefix) :]: v for name, v in tensors.items() if name.startswith(prefix)}
            if belongs_to_a_family(inside):
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


def side_car(path: Path) -> dict[str, Any]:
    """The settings in the `.json` beside a checkpoint; empty where there is none."""
    file = path.with_suffix(".json")
    if not file.is_file():
        return {}
    try:
        settings = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise LeaderError(f"{file} is not valid JSON ({error}): correct it or remove it.") from error
    if not isinstance(settings, dict):
        raise LeaderError(f"{file} must hold one JSON object with the checkpoint's options.")
    return settings


def make_schedule(spec: Any) -> Schedule:
    """A schedule from its name, from {"type", "beta_start", "beta_end", "steps"}, or as it is."""
    if isinstance(spec, Schedule):
        return spec
    settings = {"type": spec} if isinstance(spec, str) else dict(spec)
    kind = str(settings.pop("type", "linear"))
    names = {"beta_start": "start", "beta_end": "end", "steps": "steps"}
    makers = {"linear": Schedule.linear, "scaled_linear": Schedule.scaled_linear, "cosine": Schedule.cosine}
    if kind not in makers:
        raise unknown_name("schedule", kind, makers)
    if kind == "cosine":
        del names["beta_start"], names["beta_end"]
    for key in settings:
        if key not in names:
            raise unknown_name(f"setting of a {kind} schedule", key, names)
    return makers[kind](**{names[key]: value for key, value in settings.items()})


def settle(path: Path, config: Config, options: Options) -> dict[str, Any]:
    """All settings of a checkpoint from registry, side-car and options; what nobody says is missing."""
    layers: list[Options] = [side_car(path), options]
    for layer in layers:
        for key in layer:
            if key not in OPTIONS:
                raise unknown_name("checkpoint option", key, OPTIONS)
    like = options.get("like", layers[0].get("like"))
    if like is not None:
        model = catalogue.entry(str(like))
        if shape_only(model.config) != shape_only(config):
            raise LeaderError(f"{path.name} has not the shapes of '{like}': give its own options instead of 'like'.")
        layers.insert(0, model.options)
    else:
        published = [entry for entry in twins(config) if entry.filename == path.name]
        layers[:0] = [entry.options for entry in published]
    settled: dict[str, Any] = {}
    for layer in layers:
        for one, other in (("heads", "head_channels"), ("head_channels", "heads")):
            if layer.get(one) is not None:  # one excludes the other, also when a later layer overrides
                settled.pop(other, None)
        settled |= {key: value for key, value in layer.items() if value is not None}
    return settled


def twins(config: Config) -> list[catalogue.Entry]:
    """Registered checkpoints of the same shapes."""
    return [entry for entry in catalogue.ENTRIES.values() if shape_only(entry.config) == shape_only(config)]


def missing(config: Config, settings: Options) -> list[str]:
    """The settings that tensors do not tell and nobody has given."""
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
    """The prior in a checkpoint file."""
    tensors = network_tensors(read(path), path.name, options.get("part", side_car(path).get("part")))
    config = detect(tensors, path.name)
    settings = settle(path, config, options)
    lacking = missing(config, settings)
    if lacking:
        same = twins(config)
        hint = f", or like='{same[0].name}' if it is a relative of that one" if same else ""
        raise LeaderError(
            f"The tensors of {path.name} do not tell {', '.join(lacking)}: give them as options or in "
            f"{path.with_suffix('.json').name} beside it{hint}."
        )
    config = _complete(config, settings, path.name)
    network: nn.Module = _load(config, tensors, path.name)
    if isinstance(config, ADMConfig) and config.classes is not None:
        label = int(settings["label"])
        if not 0 <= label < config.classes:
            raise LeaderError(f"{path.name} knows the classes 0 to {config.classes - 1}; found the label {label}.")
        network = LabelledNetwork(network, label)
    schedule = make_schedule(settings["schedule"])
    return NetworkPrior(
        network,
        schedule,
        predicts=settings.get("predicts", "eps"),
        learned_variance=config.out_channels == 2 * config.in_channels,
        channels=config.in_channels,
        size=_size(settings["size"], config.multiple, path.name),
        multiple=config.multiple,
        time_factor=1000 / len(schedule) if settings.get("rescale_timesteps") else 1.0,
        name=path.stem,
    )


def _size(value: Any, multiple: int, origin: str) -> tuple[int, int]:
    height, width = (value, value) if isinstance(value, int) else value
    if min(height, width) < 1 or height % multiple or width % multiple:
        raise LeaderError(f"The network in {origin} needs a size in multiples of {multiple}; found {height} x {width}.")
    return int(height), int(width)


def _complete(config: Config, settings: Options, origin: str) -> Config:
    """The configuration with what shapes could not tell."""
    if config.out_channels not in (config.in_channels, 2 * config.in_channels):
        raise LeaderError(
            f"The network in {origin} turns {config.in_channels} channels into {config.out_channels}, where "
            "as many or twice as many were expected: networks with extra inputs are not supported."
        )
    if not isinstance(config, ADMConfig):
        return config
    order = settings["attention_order"]
    if order not in ("legacy", "new"):
        raise unknown_name("attention order", str(order), ("legacy", "new"))
    config = replace(
        config,
        head_channels=settings.get("head_channels"),
        heads=settings.get("heads"),
        new_attention_order=order == "new",
    )
    last = len(config.multipliers) - 1
    for channels in {config.width * config.multipliers[level] for level in (*config.attention, last)}:
        heads = max(1, config.heads_of(channels))
        if channels % heads or (config.head_channels and channels % config.head_channels):
            raise LeaderError(f"{origin} has attention over {channels} channels, which do not divide into such heads.")
    return config


def _load(config: Config, tensors: Mapping[str, Tensor], origin: str) -> nn.Module:
    """The network with the tensors in place: copied only where their dtype changes, frozen, in eval mode."""
    with torch.device("meta"):
        network = build(config)
    expected = {name: tensor.shape for name, tensor in network.state_dict().items()}
    wrong = sorted(
        name
        for name in expected.keys() | tensors.keys()
        if name not in expected or name not in tensors or tensors[name].shape != expected[name]
    )
    if wrong:
        raise LeaderError(
            f"{origin} has not the tensors of the {len(expected)}-tensor network that its first ones "
            f"describe ({len(wrong)} differ, such as {wrong[0]}): it is incomplete or another one."
        )
    check_finite(tensors, origin)
    network.load_state_dict({name: tensors[name].float() for name in expected}, assign=True)
    return network.eval().requires_grad_(False)


def check_finite(tensors: Mapping[str, Tensor], origin: str) -> None:
    """Refuse weights that are not numbers."""
    for name, tensor in tensors.items():
        if not bool(torch.isfinite(tensor).all()):
            raise LeaderError(
                f"{origin} holds values that are not finite (first in {name}): its training diverged or the "
                "file is damaged; use another checkpoint."
            )
