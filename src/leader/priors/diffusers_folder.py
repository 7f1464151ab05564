"""A diffusers UNet2DModel with its scheduler's configuration as a prior, from a folder, a hub id or objects.

Weights are read by our own reader; diffusers only builds the network. Needs the extra `diffusers`.

The configuration is checked against the tensors before anything is built: no layer, width or table of a network can exceed its
weights, so the number of tensors bounds the layers, and the longest side of a tensor every width. The network is then built
without memory and compared name by name.
"""

import copy
import logging
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from leader.errors import LeaderError, UsageError
from leader.priors.adapters import LabelledNetwork, NetworkPrior
from leader.priors.base import LARGEST_SIDE
from leader.priors.betas import MOST_STEPS, from_diffusers, make_schedule
from leader.priors.checkpoints import Options
from leader.priors.json_files import check_flag, check_keys, check_list, check_number, check_whole, check_word, show
from leader.priors.networks.layers import plain_layout
from leader.priors.tensor_files import load_network, read_checkpoint
from leader.schedule import Schedule
from leader.toml import read_table

HUB = "hub:"
OPTIONS = ("label", "predicts", "schedule", "size")
WEIGHTS = ("diffusion_pytorch_model.safetensors", "diffusion_pytorch_model.bin")
PREDICTIONS = {"epsilon": "eps", "v_prediction": "v", "sample": "x0"}
REMEDY = "give a folder written by diffusers' save_pretrained"
# names of attention tensors in folders written by old versions of diffusers
OLD_NAMES = {".query.": ".to_q.", ".key.": ".to_k.", ".value.": ".to_v.", ".proj_attn.": ".to_out.0."}
LEVELS = 12
DOWN = ("DownBlock2D", "AttnDownBlock2D", "SkipDownBlock2D", "AttnSkipDownBlock2D", "ResnetDownsampleBlock2D")
UP = ("UpBlock2D", "AttnUpBlock2D", "SkipUpBlock2D", "AttnSkipUpBlock2D", "ResnetUpsampleBlock2D")
ACTIVATIONS = ("swish", "silu", "mish", "gelu", "relu")

Check = Callable[..., Any]


def is_folder(path: Path) -> bool:
    """Whether a folder looks like one written by diffusers."""
    return any((path / name).exists() for name in ("model_index.json", "config.json", "unet/config.json"))


def looks_like_an_id(name: str) -> bool:
    """Whether a name could be a repository on the Hugging Face Hub, OWNER/NAME."""
    return len(name) <= 200 and re.fullmatch(r"\w[\w.-]*/\w[\w.-]*", name, re.ASCII) is not None


def fetch(name: str, *, offline: bool = False) -> Path:
    """The local copy of the network and scheduler of `hub:OWNER/NAME`; logs a message before it contacts the Hub.

    offline  use only earlier downloads
    """
    hub_id = name.removeprefix(HUB)
    if not looks_like_an_id(hub_id):
        raise LeaderError(f"A prior on the Hugging Face Hub is named hub:OWNER/NAME; found '{name}'.")
    _require()
    from huggingface_hub import snapshot_download

    wanted = ["*.json", "unet/*.json", "scheduler/*.json", *WEIGHTS, *(f"unet/{name}" for name in WEIGHTS)]
    if not offline:
        # warnings are shown by default
        logging.getLogger("leader").warning(
            "Downloading the prior %s from the Hugging Face Hub, unless its newest version is already in the Hub's cache.",
            hub_id,
        )
    try:
        return Path(snapshot_download(hub_id, allow_patterns=wanted, local_files_only=offline))
    except (OSError, ValueError, RuntimeError) as error:
        raise LeaderError(
            f"The hub repository '{hub_id}' could not be downloaded ({type(error).__name__}): check its name and "
            "the network, or give a folder."
        ) from error


def open_folder(folder: Path, options: Options, name: str | None = None) -> NetworkPrior:
    """The prior in a diffusers folder: a pipeline (unet/, scheduler/) or both configurations side by side."""
    check_keys(options, OPTIONS, "option of a diffusers folder")
    home = folder / "unet" if (folder / "unet").is_dir() else folder
    file = home / "config.json"
    config = read_table(file, "the network's configuration", REMEDY)
    read = _scheduler(folder, options)
    weights = _find_weights(home)
    tensors = _read_tensors(weights)
    settings = network_settings(config, tensors, file)
    _require()
    from diffusers import UNet2DModel

    unet = load_network(lambda: UNet2DModel(**settings), tensors, weights, str(file))
    return _make_prior(unet, read, settings.get("sample_size"), options, name or folder.name)


def is_object(given: object) -> bool:
    """Whether an object is a pipeline or a network of diffusers."""
    return type(given).__module__.partition(".")[0] == "diffusers"


def open_object(given: Any, options: Options) -> NetworkPrior:
    """The prior in a DDPM or DDIM pipeline, or in a UNet2DModel with its scheduler as the option `scheduler`.

    The network is copied: changes to the prior do not affect the pipeline.
    """
    from diffusers import UNet2DModel

    told = dict(options)
    unet, scheduler = getattr(given, "unet", given), told.pop("scheduler", getattr(given, "scheduler", None))
    kind = type(given).__name__
    if not isinstance(unet, UNet2DModel):
        raise LeaderError(
            f"A {kind} has no UNet2DModel, a network on pixels: only DDPM and DDIM pipelines can serve as a prior."
        )
    if scheduler is None and told.get("schedule") is None:
        raise LeaderError(f"A {kind} has no noise schedule: give its scheduler as the option 'scheduler'.")
    check_keys(told, (*OPTIONS, "scheduler"), "option of a diffusers network")
    read = _read_scheduler({} if scheduler is None else dict(scheduler.config), told, kind)
    size = unet.config["sample_size"]
    own = None if size is None else sides(list(size) if isinstance(size, tuple) else size, "The sample_size")
    return _make_prior(copy.deepcopy(unet).eval(), read, own, told, kind)


def _make_prior(
    unet: Any, read: tuple[Schedule, str, bool], own_size: tuple[int, int] | None, options: Options, name: str
) -> NetworkPrior:
    """The prior of a UNet2DModel, if its channels, times and sizes fit what was read of its scheduler, and its options."""
    network: nn.Module = _prepare_network(unet)
    (table, predicts, learned), known = read, unet.config
    channels, outputs, classes = int(known["in_channels"]), int(known["out_channels"]), known["num_class_embeds"]
    if outputs != channels * (2 if learned else 1):
        raise LeaderError(
            f"The network of '{name}' turns {channels} channels into {outputs}; expected as many, or twice as many "
            "and a scheduler with the variance_type learned_range."
        )
    if known["time_embedding_type"] == "learned" and len(table) > int(known["num_train_timesteps"] or 0):
        raise LeaderError(f"The network of '{name}' has {known['num_train_timesteps']} times, its schedule {len(table)}.")
    if classes is not None:
        if options.get("label") is None:
            raise LeaderError(f"'{name}' is class-conditional: give the class to use with the option 'label'.")
        network = LabelledNetwork(network, check_whole(options["label"], "The option 'label'", 0, int(classes) - 1))
    size = own_size if options.get("size") is None else sides(options["size"], "The option 'size'")
    multiple = 1 << (len(known["block_out_channels"]) - 1)
    if size is not None and (size[0] % multiple or size[1] % multiple):
        raise LeaderError(f"The network of '{name}' needs a size in multiples of {multiple}; found {size[0]} x {size[1]}.")
    return NetworkPrior(
        network, table, predicts=predicts, learned_variance=learned, channels=channels, size=size, multiple=multiple, name=name
    )


def _scheduler(folder: Path, options: Options) -> tuple[Schedule, str, bool]:
    """Schedule, kind of prediction, and whether the variance was learned."""
    file = folder / "scheduler" / "scheduler_config.json"
    if not file.exists():
        file = folder / "scheduler_config.json"
    if not file.exists() and options.get("schedule") is None:
        raise LeaderError(f"{folder} has no noise schedule: add scheduler/scheduler_config.json or give the option 'schedule'.")
    config = read_table(file, "the schedule", REMEDY) if file.exists() else {}
    return _read_scheduler(config, options, str(file))


def _read_scheduler(config: Mapping[str, Any], options: Options, origin: str) -> tuple[Schedule, str, bool]:
    """The same from a scheduler's configuration; `origin` names it in errors."""
    kind = check_word(config.get("prediction_type", "epsilon"), "prediction type", PREDICTIONS)
    predicts = str(options.get("predicts", PREDICTIONS[kind]))
    learned = config.get("variance_type") == "learned_range"
    if options.get("schedule") is not None:
        return make_schedule(options["schedule"]), predicts, learned
    return from_diffusers(config, origin), predicts, learned


class DiffusersNetwork(nn.Module):
    """A UNet2DModel with the common calling convention."""

    def __init__(self, unet: Any) -> None:
        super().__init__()
        self.unet = unet

    def forward(self, x: Tensor, t: Tensor, label: Tensor | None = None) -> Tensor:
        answer: Tensor = self.unet(x, t, class_labels=label, return_dict=False)[0]
        return answer


def _require() -> None:
    try:
        import diffusers  # noqa: F401
    except ImportError as error:
        raise LeaderError("A diffusers folder or hub id needs the package diffusers: pip install diffusers.") from error


def _find_weights(home: Path) -> Path:
    for file in (home / name for name in WEIGHTS):
        if file.exists():
            return file
    if any((home / f"{name}.index.json").exists() for name in WEIGHTS):
        raise LeaderError(f"{home} holds its weights in several files, which is not supported: save them as one {WEIGHTS[0]}.")
    raise LeaderError(f"{home} holds no weights: expected {' or '.join(WEIGHTS)}.")


def _read_tensors(file: Path) -> dict[str, Tensor]:
    content = read_checkpoint(file)
    if not isinstance(content, dict) or not all(isinstance(value, Tensor) for value in content.values()):
        raise LeaderError(f"{file} holds more than the tensors of one network: {REMEDY}.")
    for old, new in OLD_NAMES.items():
        content = {str(name).replace(old, new): tensor for name, tensor in content.items()}
    return content


def _prepare_network(unet: Any) -> DiffusersNetwork:
    """The network with layers that support all derivatives."""
    from diffusers.models.attention_processor import Attention, AttnProcessor

    for module in unet.modules():
        if isinstance(module, Attention):
            module.set_processor(AttnProcessor())  # fused attention has no forward-mode derivative
        if isinstance(module, nn.GroupNorm):
            module.register_forward_pre_hook(lambda _, inputs: (plain_layout(inputs[0]),))
    return DiffusersNetwork(unet)


def _optional(check: Check) -> Check:
    return lambda value, what: None if value is None else check(value, what)


def _row(each: Check) -> Check:
    return lambda value, what: tuple(each(item, what) for item in check_list(value, what, 1, LEVELS))


def _checks(tensors: Mapping[str, Tensor]) -> dict[str, Check]:
    """The valid values of each setting of a UNet2DModel, for a network of these tensors."""
    longest = max((side for tensor in tensors.values() for side in tensor.shape), default=1)

    def number(low: float, high: float, check: Check = check_number) -> Check:
        return partial(check, low=low, high=high)

    def word(*valid: str) -> Check:
        return partial(check_word, valid=valid)

    whole = partial(number, check=check_whole)
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
