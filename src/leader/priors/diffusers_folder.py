"""A diffusers UNet2DModel with its scheduler's configuration as a prior, from a folder or a hub id.

The weights are read by our own reader; diffusers builds the network only. Needs the extra `diffusers`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from leader.errors import LeaderError, unknown_name
from leader.priors.adapters import LabelledNetwork, NetworkPrior
from leader.priors.checkpoints import Options, check_finite, make_schedule, read
from leader.priors.networks.layers import plain_layout
from leader.schedule import Schedule

OPTIONS = ("label", "predicts", "schedule", "size")
WEIGHTS = ("diffusion_pytorch_model.safetensors", "diffusion_pytorch_model.bin")
PREDICTIONS = {"epsilon": "eps", "v_prediction": "v", "sample": "x0"}
# names of attention tensors in folders written by old versions of diffusers
OLD_NAMES = {".query.": ".to_q.", ".key.": ".to_k.", ".value.": ".to_v.", ".proj_attn.": ".to_out.0."}


def is_folder(path: Path) -> bool:
    """Whether a folder looks like one written by diffusers."""
    return any((path / name).is_file() for name in ("model_index.json", "config.json", "unet/config.json"))


def fetch(hub_id: str) -> Path:
    """The local copy of a hub repository's network and scheduler, downloaded where it is not cached yet."""
    _require()
    from huggingface_hub import snapshot_download

    wanted = ["*.json", "unet/*.json", "scheduler/*.json", *WEIGHTS, *(f"unet/{name}" for name in WEIGHTS)]
    try:
        return Path(snapshot_download(hub_id, allow_patterns=wanted))
    except (OSError, ValueError, RuntimeError) as error:
        raise LeaderError(
            f"The hub repository '{hub_id}' could not be had ({type(error).__name__}): check its name and "
            "the network, or give a folder."
        ) from error


def open_folder(folder: Path, options: Options, name: str | None = None) -> NetworkPrior:
    """The prior in a diffusers folder: a pipeline (unet/, scheduler/) or both configurations side by side."""
    for key in options:
        if key not in OPTIONS:
            raise unknown_name("option of a diffusers folder", key, OPTIONS)
    home = folder / "unet" if (folder / "unet").is_dir() else folder
    config = _json(home / "config.json", "the network's configuration")
    kind = config.get("_class_name", "UNet2DModel")
    if kind != "UNet2DModel":
        raise LeaderError(f"{folder} holds a {kind}: only UNet2DModel, a network on pixels, can serve as a prior.")
    if config.get("center_input_sample"):
        raise LeaderError(f"{folder} centres its input itself (center_input_sample), which is not supported.")
    table, predicts, learned = _scheduler(folder, options)
    network: nn.Module = _network(config, home)
    if config.get("num_class_embeds") is not None:
        if options.get("label") is None:
            raise LeaderError(f"{folder} is class-conditional: give the class to use with the option 'label'.")
        network = LabelledNetwork(network, int(options["label"]))
    channels = int(config.get("in_channels", 3))
    size = options.get("size", config.get("sample_size"))
    return NetworkPrior(
        network,
        table,
        predicts=predicts,
        learned_variance=learned and int(config.get("out_channels", 3)) == 2 * channels,
        channels=channels,
        size=None if size is None else (size, size) if isinstance(size, int) else (int(size[0]), int(size[1])),
        multiple=1 << (len(config["block_out_channels"]) - 1),
        name=name or folder.name,
    )


def _json(path: Path, what: str) -> dict[str, Any]:
    if not path.is_file():
        raise LeaderError(f"{path} with {what} does not exist: give a folder written by diffusers' save_pretrained.")
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise LeaderError(f"{path} is not valid JSON ({error}): write the folder again.") from error
    return content


def _scheduler(folder: Path, options: Options) -> tuple[Schedule, str, bool]:
    """Schedule, kind of prediction, and whether the variance was learned."""
    file = folder / "scheduler" / "scheduler_config.json"
    if not file.is_file():
        file = folder / "scheduler_config.json"
    if not file.is_file() and options.get("schedule") is None:
        raise LeaderError(
            f"{folder} says nothing of the noise schedule: add scheduler/scheduler_config.json or give the option 'schedule'."
        )
    config = _json(file, "the schedule") if file.is_file() else {}
    kind = config.get("prediction_type", "epsilon")
    if kind not in PREDICTIONS:
        raise unknown_name("prediction type", str(kind), PREDICTIONS)
    predicts = str(options.get("predicts", PREDICTIONS[kind]))
    learned = config.get("variance_type") == "learned_range"
    if options.get("schedule") is not None:
        return make_schedule(options["schedule"]), predicts, learned
    return _betas(config, file), predicts, learned


def _betas(config: dict[str, Any], file: Path) -> Schedule:
    if config.get("trained_betas") is not None:
        return Schedule(torch.tensor(config["trained_betas"], dtype=torch.float64))
    if config.get("rescale_betas_zero_snr"):
        raise LeaderError(f"{file} asks for a last step without signal, at which x0 cannot be told; it is not supported.")
    kind = config.get("beta_schedule")
    steps = int(config.get("num_train_timesteps", 1000))
    start, end = float(config.get("beta_start", 1e-4)), float(config.get("beta_end", 0.02))
    if kind == "linear":
        return Schedule.linear(start, end, steps)
    if kind == "scaled_linear":
        return Schedule.scaled_linear(start, end, steps)
    if kind == "squaredcos_cap_v2":
        return Schedule.cosine(steps)
    raise LeaderError(
        f"{file} has the noise schedule {kind!r}, where linear, scaled_linear, squaredcos_cap_v2 or "
        "trained_betas were expected: give the option 'schedule'."
    )


class DiffusersNetwork(nn.Module):
    """A UNet2DModel called like every other network."""

    def __init__(self, unet: nn.Module) -> None:
        super().__init__()
        self.unet = unet

    def forward(self, x: Tensor, t: Tensor, label: Tensor | None = None) -> Tensor:
        answer: Tensor = self.unet(x, t, class_labels=label, return_dict=False)[0]
        return answer


def _require() -> None:
    try:
        import diffusers  # noqa: F401
    except ImportError as error:
        raise LeaderError(
            "A diffusers folder or hub id needs the package diffusers: pip install 'leader-ir[diffusers]'."
        ) from error


def _network(config: dict[str, Any], home: Path) -> nn.Module:
    _require()
    from diffusers import UNet2DModel
    from diffusers.models.attention_processor import Attention, AttnProcessor

    file = next((home / name for name in WEIGHTS if (home / name).is_file()), None)
    if file is None:
        raise LeaderError(f"{home} holds no weights: expected {' or '.join(WEIGHTS)}.")
    tensors: dict[str, Tensor] = {}
    for name, tensor in read(file).items():
        for old, new in OLD_NAMES.items():
            name = name.replace(old, new)
        tensors[name] = tensor
    check_finite(tensors, file.name)
    unet = UNet2DModel.from_config(config)
    try:
        unet.load_state_dict(tensors)
    except RuntimeError as error:
        raise LeaderError(
            f"{file} does not hold the tensors of the network that {home / 'config.json'} describes: restore the matching pair."
        ) from error
    for module in unet.modules():
        if isinstance(module, Attention):
            module.set_processor(AttnProcessor())  # fused attention has no forward-mode derivative
        if isinstance(module, nn.GroupNorm):
            module.register_forward_pre_hook(lambda _, inputs: (plain_layout(inputs[0]),))
    return DiffusersNetwork(unet.eval().requires_grad_(False))
