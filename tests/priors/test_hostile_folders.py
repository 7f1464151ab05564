"""Diffusers folders made by somebody who means ill: each ends in one sentence, within 20 s and 1 GB."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from leader.priors.loading import load_prior
from tests.priors.limits import bounded
from tests.priors.test_diffusers_folder import edit, write
from tests.sentences import refusal

diffusers = pytest.importorskip("diffusers")

CONFIG, TABLE = Path("unet/config.json"), Path("scheduler/scheduler_config.json")
WEIGHTS = Path("unet/diffusion_pytorch_model.safetensors")


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("good") / "model"
    write(folder)
    load_prior(folder)  # what is imported and warmed up here does not count below
    return folder


@pytest.fixture
def folder(good: Path, tmp_path: Path) -> Path:
    shutil.copytree(good, tmp_path / "model")
    return tmp_path / "model"


def refused(folder: Path, **options: Any) -> str:
    with bounded():
        return refusal(load_prior, folder, **options)


NETWORKS: list[tuple[dict[str, Any], str]] = [
    ({"layers_per_block": 100_000}, "layers_per_block"),
    ({"layers_per_block": 90}, "layers, and the weights"),
    ({"layers_per_block": 1.5}, "found 1.5"),
    ({"layers_per_block": "many"}, "found 'many'"),
    ({"layers_per_block": True}, "found True"),
    ({"sample_size": 10**9}, "from 1 to 1024"),
    ({"sample_size": 0}, "sample_size"),
    ({"sample_size": [16]}, "2 values"),
    ({"sample_size": 17}, "multiples of 2"),
    ({"block_out_channels": [10**9, 10**9]}, "block_out_channels"),
    ({"block_out_channels": [10**400, 8]}, "an enormous number"),
    ({"block_out_channels": [-8, 8]}, "found -8"),
    ({"block_out_channels": ["8", "8"]}, "found '8'"),
    ({"block_out_channels": []}, "1 to 12 values"),
    ({"block_out_channels": None}, "found None"),
    ({"block_out_channels": 8}, "found 8"),
    ({"block_out_channels": [8] * 5000}, "found 5000 values"),
    ({"block_out_channels": [[8], [8]]}, "found a list"),
    ({"block_out_channels": [8, 8, 8]}, "a network that cannot be built"),
    ({"block_out_channels": [8, 16]}, "does not hold the tensors"),
    ({"act_fn": "exec"}, "act_fn"),
    ({"act_fn": ["silu"]}, "a list"),
    ({"norm_num_groups": 0}, "norm_num_groups"),
    ({"attention_head_dim": 0}, "attention_head_dim"),
    ({"attention_head_dim": {}}, "an object"),
    ({"down_block_types": ["DownBlock2D", "CrossAttnDownBlock2D"]}, "down_block_types"),
    ({"up_block_types": "UpBlock2D"}, "up_block_types"),
    ({"mid_block_type": "UNetMidBlock2DCrossAttn"}, "mid_block_type"),
    ({"time_embedding_type": "fourier"}, "time_embedding_type"),
    ({"time_embedding_type": "learned", "num_train_timesteps": 10**15}, "num_train_timesteps"),
    ({"time_embedding_dim": 10**12}, "time_embedding_dim"),
    ({"norm_eps": -1}, "norm_eps"),
    ({"dropout": 7}, "dropout"),
    ({"mid_block_scale_factor": 0}, "mid_block_scale_factor"),
    ({"downsample_padding": 10**6}, "downsample_padding"),
    ({"in_channels": 10**7}, "in_channels"),
    ({"out_channels": 10**7}, "out_channels"),
    ({"num_class_embeds": 10**12}, "num_class_embeds"),
    ({"class_embed_type": "identity"}, "class_embed_type"),
    ({"resnet_time_scale_shift": "spatial"}, "resnet_time_scale_shift"),
    ({"center_input_sample": True}, "center_input_sample"),
    ({"center_input_sample": "no"}, "true or false"),
    ({"run_this": "import os"}, "'run_this'"),
]


@pytest.mark.parametrize(("values", "told"), NETWORKS, ids=[str(values)[:60] for values, _ in NETWORKS])
def test_network_configurations(values: dict[str, Any], told: str, folder: Path) -> None:
    edit(folder / CONFIG, **values)
    assert told in refused(folder)


SCHEDULERS: list[tuple[dict[str, Any], str]] = [
    ({"num_train_timesteps": 10**12}, "from 2 to 100000"),
    ({"num_train_timesteps": -5}, "found -5"),
    ({"num_train_timesteps": "1000"}, "found '1000'"),
    ({"num_train_timesteps": 1e3}, "found 1000.0"),
    ({"num_train_timesteps": 100_000}, "leaves a signal"),
    ({"beta_start": -0.1}, "beta_start"),
    ({"beta_end": 1.5}, "beta_end"),
    ({"beta_end": 0}, "strictly between 0 and 1"),
    ({"beta_start": [1e-4]}, "a list"),
    ({"beta_schedule": None}, "None"),
    ({"beta_schedule": {"a": 1}}, "an object"),
    ({"beta_schedule": "x" * 10_000}, "..."),
    ({"trained_betas": []}, "betas"),
    ({"trained_betas": [0.1, "b"]}, "A beta of"),
    ({"trained_betas": [0.01] * 150_000}, "150000 values"),
    ({"prediction_type": 3}, "prediction type"),
]


@pytest.mark.parametrize(("values", "told"), SCHEDULERS, ids=[str(values)[:60] for values, _ in SCHEDULERS])
def test_scheduler_configurations(values: dict[str, Any], told: str, folder: Path) -> None:
    edit(folder / TABLE, **values)
    assert told in refused(folder)


TEXTS: list[tuple[bytes, str]] = [
    (b"", "not valid JSON"),
    (b"[" * 100_000, "nested too deeply"),
    ('{"act_fn": "sél"}'.encode("latin-1"), "not UTF-8"),
    (b"[]", "names and values"),
    (b'{"norm_eps": NaN}', "NaN is not a number"),
    (b'{"norm_eps": Infinity}', "Infinity is not a number"),
    (b'{"norm_eps": 1e999}', "norm_eps"),
    (b'{"layers_per_block": ' + b"9" * 5000 + b"}", ""),
    (b" " * (5 << 20), "over 4 MB"),
]


@pytest.mark.parametrize(("content", "told"), TEXTS, ids=[f"{number}" for number in range(len(TEXTS))])
@pytest.mark.parametrize("file", [CONFIG, TABLE], ids=["config", "scheduler"])
def test_files_that_are_no_settings(file: Path, content: bytes, told: str, folder: Path) -> None:
    (folder / file).write_bytes(content)
    text = refused(folder)
    assert told in text or (file == TABLE and told == "norm_eps")  # a scheduler has no norm_eps: its betas are missed


@pytest.mark.parametrize("file", [CONFIG, TABLE, WEIGHTS], ids=["config", "scheduler", "weights"])
@pytest.mark.parametrize("kind", ["fifo", "folder", "loop", "dangling", "device", "absent"])
def test_things_in_place_of_files(file: Path, kind: str, folder: Path) -> None:
    path = folder / file
    path.unlink()
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind != "absent":
        path.symlink_to({"loop": path, "dangling": folder / "nowhere", "device": Path("/dev/zero")}[kind])
    refused(folder)


def test_a_symbolic_link_to_a_good_file_is_followed(folder: Path) -> None:
    (folder / CONFIG).rename(folder / "elsewhere.json")
    (folder / CONFIG).symlink_to(folder / "elsewhere.json")
    assert load_prior(folder, whole=True).size == (16, 16)


def test_weights_in_several_files(folder: Path) -> None:
    (folder / WEIGHTS).rename(folder / "unet/diffusion_pytorch_model-00001-of-00002.safetensors")
    (folder / "unet/diffusion_pytorch_model.safetensors.index.json").write_text(json.dumps({"weight_map": {}}))
    assert "several files" in refused(folder)


def test_weights_that_are_none(folder: Path) -> None:
    state = load_file(folder / WEIGHTS)
    first = next(iter(state))
    for changed, told in (
        ({first: state[first].to(torch.int32)}, "as int32"),
        ({first: torch.full_like(state[first], torch.nan)}, "not finite"),
        ({first: state[first].to(torch.float8_e4m3fn)}, "as float8_e4m3fn"),
        ({"extra": torch.zeros(1)}, "does not hold the tensors"),
    ):
        save_file({**state, **changed}, folder / WEIGHTS)
        assert told in refused(folder)
    save_file({}, folder / WEIGHTS)
    refused(folder)


def test_options_are_judged_like_the_files(folder: Path) -> None:
    for options, told in (
        ({"size": 10**9}, "from 1 to 1024"),
        ({"size": "x"}, "'size'"),
        ({"schedule": 7}, "must be a name"),
        ({"schedule": {"type": "linear", "steps": 10**12}}, "from 2 to 100000"),
        ({"predicts": "noise"}, "prediction"),
    ):
        assert told in refused(folder, **options)
    edit(folder / TABLE, variance_type="learned_range")
    assert "turns 3 channels into 3" in refused(folder)
