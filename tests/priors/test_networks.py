"""Both architectures: published sizes, and forward passes equal to diffusers on the same weights."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from leader.priors import catalogue
from leader.priors.detection import build_network, detect_config, drop_untold_settings
from leader.priors.networks import ADM, DDPM, ADMConfig, DDPMConfig

TENSORS = {"imagenet-256": 566, "celebahq-256-repaint": 566, "celebahq-256": 450, "ffhq-256": 362}


@pytest.mark.parametrize("name", catalogue.ENTRIES)
def test_published_networks_have_the_published_tensors(name: str) -> None:
    entry = catalogue.ENTRIES[name]
    with torch.device("meta"):
        state = build_network(entry.config).state_dict()
    assert sum(tensor.numel() for tensor in state.values()) == entry.parameters
    assert len(state) == TENSORS[name]
    assert detect_config(state, name) == drop_untold_settings(entry.config)


def randomised(network: nn.Module, seed: int = 0) -> nn.Module:
    """Every tensor away from its initial value: an unused or misplaced one would show."""
    generator = torch.Generator().manual_seed(seed)
    for parameter in network.parameters():
        noise = torch.randn(parameter.shape, generator=generator)
        fan = max(1, parameter[0].numel()) if parameter.ndim > 1 else 1
        parameter.data = noise / fan**0.5 if parameter.ndim > 1 else parameter.data + 0.2 * noise
    return network.eval().requires_grad_(False)


DDPM_RES = {name: name for name in ("norm1", "conv1", "norm2", "conv2")}
DDPM_RES |= {"temb_proj": "time_emb_proj", "nin_shortcut": "conv_shortcut"}
DDPM_ATTENTION = {"norm": "group_norm", "q": "to_q", "k": "to_k", "v": "to_v", "proj_out": "to_out.0"}
ADM_RES = {"in_layers.0": "norm1", "in_layers.2": "conv1", "out_layers.0": "norm2", "out_layers.3": "conv2"}
ADM_RES |= {"emb_layers.1": "time_emb_proj", "skip_connection": "conv_shortcut"}


def rename(name: str, source: str, target: str, table: dict[str, str]) -> str | None:
    """`source.<theirs>.weight` -> `target.<ours>.weight` by the table, or None where it does not apply."""
    if not name.startswith(source + "."):
        return None
    inner, _, kind = name[len(source) + 1 :].rpartition(".")
    return f"{target}.{table[inner]}.{kind}" if inner in table else None


def mapped(state: dict[str, Tensor], places: list[tuple[str, str, dict[str, str]]]) -> dict[str, Tensor]:
    found: dict[str, Tensor] = {}
    for name, tensor in state.items():
        targets = {target for place in places if (target := rename(name, *place))}
        assert len(targets) == 1, (name, targets)
        found[targets.pop()] = tensor
    return found


def loaded(theirs: nn.Module, tensors: dict[str, Tensor]) -> nn.Module:
    shapes = {name: tensor.shape for name, tensor in theirs.state_dict().items()}
    theirs.load_state_dict({name: tensor.reshape(shapes[name]) for name, tensor in tensors.items()})
    return theirs.eval().requires_grad_(False)


def block_types(config: ADMConfig | DDPMConfig, direction: str) -> tuple[str, ...]:
    levels = range(len(config.multipliers))
    resblock = isinstance(config, ADMConfig) and config.resblock_resampling
    plain = f"Resnet{direction}sampleBlock2D" if resblock else f"{direction}Block2D"
    types = [f"Attn{direction}Block2D" if level in config.attention else plain for level in levels]
    return tuple(types if direction == "Down" else reversed(types))


def same(ours: nn.Module, theirs: nn.Module, size: int = 32) -> None:
    x = torch.randn(2, 3, size, size, generator=torch.Generator().manual_seed(1))
    t = torch.tensor([3, 871])
    expected = theirs(x, t, return_dict=False)[0]
    found = ours(x, t)
    assert float(expected.std()) > 0.1
    assert float((found - expected).abs().max()) <= 1e-5 * float(expected.abs().max())


def shared_options(config: DDPMConfig | ADMConfig) -> dict[str, Any]:
    return {
        "in_channels": 3,
        "out_channels": config.out_channels,
        "down_block_types": block_types(config, "Down"),
        "up_block_types": block_types(config, "Up"),
        "block_out_channels": tuple(config.width * m for m in config.multipliers),
        "layers_per_block": config.blocks,
    }


def ddpm_twin(config: DDPMConfig, state: dict[str, Tensor]) -> nn.Module:
    diffusers = pytest.importorskip("diffusers")
    theirs = diffusers.UNet2DModel(
        **shared_options(config),
        freq_shift=1,
        flip_sin_to_cos=False,
        downsample_padding=0,
        attention_head_dim=None,
        norm_eps=1e-6,
    )
    outer = {"conv_in": "conv_in", "norm_out": "conv_norm_out", "conv_out": "conv_out"}
    top = {key: state.pop(key) for key in list(state) if key.split(".")[0] in outer}
    places = [("temb", "time_embedding", {"dense.0": "linear_1", "dense.1": "linear_2"})]
    places += [(f"mid.block_{i + 1}", f"mid_block.resnets.{i}", DDPM_RES) for i in range(2)]
    places += [("mid.attn_1", "mid_block.attentions.0", DDPM_ATTENTION)]
    levels = len(config.multipliers)
    for level in range(levels):
        rising = levels - 1 - level
        for i in range(config.blocks + 1):
            for side, other, at in (("down", "down_blocks", level), ("up", "up_blocks", rising)):
                places.append((f"{side}.{level}.block.{i}", f"{other}.{at}.resnets.{i}", DDPM_RES))
                places.append((f"{side}.{level}.attn.{i}", f"{other}.{at}.attentions.{i}", DDPM_ATTENTION))
        conv = {"conv": "conv"}
        places.append((f"down.{level}.downsample", f"down_blocks.{level}.downsamplers.0", conv))
        places.append((f"up.{level}.upsample", f"up_blocks.{rising}.upsamplers.0", conv))
    tensors = mapped(state, places)
    for key, tensor in top.items():
        name, kind = key.split(".")
        tensors[f"{outer[name]}.{kind}"] = tensor
    return loaded(theirs, tensors)


def test_ddpm_equals_diffusers() -> None:
    config = DDPMConfig(32, (1, 2, 2), 2, (1,))
    ours = randomised(DDPM(config))
    same(ours, ddpm_twin(config, dict(ours.state_dict())))


def split_heads(config: ADMConfig, name: str, tensor: Tensor) -> dict[str, Tensor]:
    """q, k and v of a fused tensor, by the order the configuration declares."""
    channels = tensor.shape[0] // 3
    if config.new_attention_order:
        q, k, v = tensor.chunk(3)
    else:
        heads = config.heads_of(channels)
        per_head = tensor.reshape(heads, 3, channels // heads, *tensor.shape[1:])
        q, k, v = (per_head[:, i].reshape(channels, *tensor.shape[1:]) for i in range(3))
    return {name.replace("qkv", key): part for key, part in (("q", q), ("k", k), ("v", v))}


def adm_twin(config: ADMConfig, state: dict[str, Tensor]) -> nn.Module:
    diffusers = pytest.importorskip("diffusers")
    assert config.head_channels is not None
    kind = "resnet" if config.resblock_resampling else "conv"
    theirs = diffusers.UNet2DModel(
        **shared_options(config),
        freq_shift=0,
        flip_sin_to_cos=True,
        downsample_padding=1,
        downsample_type=kind,
        upsample_type=kind,
        attention_head_dim=config.head_channels,
        attn_norm_num_groups=32,
        norm_eps=1e-5,
        resnet_time_scale_shift="scale_shift" if config.scale_shift else "default",
    )
    places = [
        ("time_embed", "time_embedding", {"0": "linear_1", "2": "linear_2"}),
        ("input_blocks.0", "x", {"0": "conv_in"}),
        ("out", "x", {"0": "conv_norm_out", "2": "conv_out"}),
        ("middle_block.0", "mid_block.resnets.0", ADM_RES),
        ("middle_block.1", "mid_block.attentions.0", DDPM_ATTENTION),
        ("middle_block.2", "mid_block.resnets.1", ADM_RES),
    ]
    levels, index = len(config.multipliers), 1
    resampler = ADM_RES | {"op": "conv", "conv": "conv"}
    for level in range(levels):
        for i in range(config.blocks):
            places.append((f"input_blocks.{index}.0", f"down_blocks.{level}.resnets.{i}", ADM_RES))
            places.append((f"input_blocks.{index}.1", f"down_blocks.{level}.attentions.{i}", DDPM_ATTENTION))
            index += 1
        places.append((f"input_blocks.{index}.0", f"down_blocks.{level}.downsamplers.0", resampler))
        index += level < levels - 1
    for index in range(levels * (config.blocks + 1)):
        at, i = divmod(index, config.blocks + 1)
        attention = levels - 1 - at in config.attention
        places.append((f"output_blocks.{index}.0", f"up_blocks.{at}.resnets.{i}", ADM_RES))
        places.append((f"output_blocks.{index}.1", f"up_blocks.{at}.attentions.{i}", DDPM_ATTENTION))
        up = f"output_blocks.{index}.{2 if attention else 1}"
        places.append((up, f"up_blocks.{at}.upsamplers.0", resampler))
    for name in [key for key in state if ".qkv." in key]:
        state |= split_heads(config, name, state.pop(name))
    tensors = mapped(state, places)
    return loaded(theirs, {key.removeprefix("x."): tensor for key, tensor in tensors.items()})


GUIDED = ADMConfig(32, (1, 2, 2), 1, (1, 2), out_channels=6, head_channels=16)


BOTH = pytest.mark.parametrize(
    "make", [lambda: ADM(GUIDED), lambda: DDPM(DDPMConfig(32, (1, 2), 1, (1,)))], ids=["adm", "ddpm"]
)
IMPROVED = replace(GUIDED, scale_shift=False, resblock_resampling=False, blocks=2, attention=(1,))


@pytest.mark.parametrize("config", [GUIDED, replace(GUIDED, new_attention_order=True), IMPROVED])
def test_adm_equals_diffusers(config: ADMConfig) -> None:
    ours = randomised(ADM(config))
    assert detect_config(ours.state_dict(), "") == drop_untold_settings(config)
    same(ours, adm_twin(config, dict(ours.state_dict())))


def test_heads_by_number_and_by_width_agree_where_they_mean_the_same() -> None:
    config = replace(GUIDED, multipliers=(1, 2, 2), attention=(1, 2))
    by_width = randomised(ADM(config))
    by_number = ADM(replace(config, head_channels=None, heads=4))
    by_number.load_state_dict(by_width.state_dict())
    one = ADM(replace(config, head_channels=None, heads=1))
    one.load_state_dict(by_width.state_dict())
    x, t = torch.randn(1, 3, 16, 16), torch.tensor([400])
    assert torch.equal(by_width(x, t), by_number(x, t))
    assert not torch.allclose(by_width(x, t), one(x, t), atol=1e-3)


@BOTH
def test_forward_mode_equals_a_difference_quotient(make: Any) -> None:
    network = randomised(make()).double()
    x, z = torch.randn(2, 1, 3, 16, 16, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    t = torch.tensor([300])
    tangent = torch.func.jvp(lambda v: network(v, t), (x,), (z,))[1]
    for parameter in network.parameters():
        if parameter.ndim == 4:
            parameter.data = parameter.data.contiguous(memory_format=torch.channels_last)
    assert torch.allclose(torch.func.jvp(lambda v: network(v, t), (x,), (z,))[1], tangent)
    h = 1e-5
    quotient = (network(x + h * z, t) - network(x - h * z, t)) / (2 * h)
    assert float((tangent - quotient).abs().max()) < 1e-6 * float(quotient.abs().max())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@BOTH
def test_half_precision_is_close(make: Any, dtype: torch.dtype) -> None:
    network = randomised(make())
    assert isinstance(network, (ADM, DDPM))
    x, t = torch.randn(1, 3, 16, 16, generator=torch.Generator().manual_seed(3)), torch.tensor([500])
    exact = network(x, t)
    network.set_precision(dtype)
    half = network(x, t)
    assert half.dtype == torch.float32 and {p.dtype for p in network.parameters()} == {torch.float32, dtype}
    # a relative error of eps per layer, some tens of layers deep, adding up like a random walk
    assert 0 < float((half - exact).std() / exact.std()) < 10 * torch.finfo(dtype).eps


def test_labels_change_the_answer() -> None:
    network = randomised(ADM(replace(GUIDED, classes=5)))
    x, t = torch.randn(2, 3, 16, 16), torch.tensor([10, 10])
    first, second = network(x, t, torch.tensor([0, 1])), network(x, t, torch.tensor([0, 2]))
    assert torch.equal(first[0], second[0]) and not torch.allclose(first[1], second[1])
