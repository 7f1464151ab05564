"""Checkpoints, side-cars, variance heads and pyramids made by somebody who means ill: one sentence, within 20 s and 1 GB."""

import json
import math
import os
import pickle
import shutil
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from leader.priors import catalogue, tensor_files
from leader.priors.inspection import inspect
from leader.priors.loading import load_prior
from leader.priors.networks import DDPM, DDPMConfig
from leader.priors.tensor_files import check_weights, is_harmless
from leader.priors.variance_head import NODES, OLD_NODES, HeadShape, VarianceHead
from tests.priors.limits import bounded
from tests.priors.test_checkpoints import OPTIONS, tiny
from tests.sentences import refusal

SHIPPED = Path(catalogue.__file__).parent / "weights"


def refused(path: Path | str, open_it: Callable[..., object] = load_prior, **options: Any) -> str:
    with bounded():
        return refusal(open_it, path, **options)


SIDE_CARS: list[tuple[dict[str, Any], str]] = [
    ({"size": "large"}, "The size of"),
    ({"size": 10**9}, "from 1 to 1024"),
    ({"size": [16, 16, 16]}, "3 values"),
    ({"size": [16, None]}, "None"),
    ({"size": {"height": 16}}, "an object"),
    ({"schedule": 3}, "must be a name"),
    ({"schedule": {"type": ["linear"]}}, "schedule"),
    ({"schedule": {"type": "linear", "steps": 10**12}}, "100000"),
    ({"schedule": {"type": "linear", "beta_end": "x"}}, "beta_end"),
    ({"schedule": {"type": "linear", "self": 1}}, "'self'"),
    ({"schedule": {"type": "table"}}, "betas"),
    ({"head_channels": 0}, "head_channels"),
    ({"head_channels": None, "heads": -1}, "heads of"),
    ({"attention_order": ["new"]}, "attention order"),
    ({"predicts": 5}, "prediction"),
    ({"rescale_timesteps": "yes"}, "true or false"),
    ({"like": {"a": 1}}, "Unknown prior"),
    ({"part": ["x"]}, "part of"),
    ({"__class__": 1}, "'__class__'"),
]


@pytest.mark.parametrize(("values", "told"), SIDE_CARS, ids=[str(values)[:50] for values, _ in SIDE_CARS])
def test_side_cars(values: dict[str, Any], told: str, path: Path) -> None:
    path.with_suffix(".json").write_text(json.dumps(OPTIONS | values))
    assert told in refused(path)


@pytest.mark.parametrize("content", [b"[" * 100_000, "é".encode("latin-1"), b"\x00" * 64, b"[1]", b" " * (5 << 20), b"{"])
def test_side_cars_that_are_no_settings(content: bytes, path: Path) -> None:
    path.with_suffix(".json").write_bytes(content)
    for open_it in (load_prior, inspect):
        assert "weights.json" in refused(path, open_it)


def test_a_pipe_beside_or_instead_of_a_checkpoint(path: Path) -> None:
    os.mkfifo(path.with_suffix(".json"))
    assert "not a regular file" in refused(path)
    path.unlink()
    os.mkfifo(path)
    assert "neither a file nor a folder" in refused(path)
    assert "not a regular file" in refused(path, inspect)


@pytest.mark.parametrize("name", ["x" * 300, "x" * 5000, "a\0b", "~nobody-of-this-name/x", "", "/dev/null/x", "a/../" * 2000])
def test_names_no_file_can_have(name: str) -> None:
    refused(name)


def test_numbers_in_tensor_names_build_nothing(tmp_path: Path) -> None:
    path = tmp_path / "weights.safetensors"
    adm, ddpm = tiny(), dict(DDPM(DDPMConfig(32, (1, 1), 1, (1,))).state_dict())
    for state, name in (
        (ddpm, "down.0.block.999999999.conv1.weight"),
        (ddpm, "down.999999999.block.0.conv1.weight"),
        (ddpm, f"down.0.block.{'9' * 5000}.conv1.weight"),
        (adm, "output_blocks.999999999.0.in_layers.0.weight"),
        (adm, "input_blocks.999999999.0.in_layers.0.weight"),
    ):
        save_file({**state, name: torch.zeros(1)}, path)
        refused(path, **OPTIONS)
    save_file({**{f"p{i}.time_embed.0.weight": torch.zeros(1) for i in range(5000)}}, path)
    refused(path, **OPTIONS)
    narrow = {**ddpm, "conv_in.weight": torch.zeros(1, 3, 3, 3)}  # widths that do not divide into groups
    save_file(narrow, path)
    refused(path, **OPTIONS)


def header(text: bytes, body: bytes = b"", length: int | None = None) -> bytes:
    return struct.pack("<Q", len(text) if length is None else length) + text + body


HEADERS = [
    header(b"{}", length=2**63),
    header(b"{}", length=2**40),
    header(b"{" * 100_000),
    header(b'{"a":{"dtype":"F32","shape":[1000000000000,1000000000000],"data_offsets":[0,4]}}', b"\0" * 4),
    header(b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4000000000000]}}', b"\0" * 4),
    header(b'{"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}}', b"\0" * 4),
    header(b'{"a":{"dtype":"OBJ","shape":[1],"data_offsets":[0,4]}}', b"\0" * 4),
    header(
        b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}',
        b"\0" * 4,
    ),
    b"",
    b"\0" * 7,
]


@pytest.mark.parametrize("content", HEADERS, ids=range(len(HEADERS)))
def test_absurd_safetensors(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "weights.safetensors"
    path.write_bytes(content)
    for open_it in (load_prior, inspect, VarianceHead.load):
        refused(path, open_it)
    (tmp_path / "weights.variance.safetensors").write_bytes(content)
    torch.save(tiny(), tmp_path / "weights.pt")
    refused(tmp_path / "weights.pt", **OPTIONS)


def test_archives_that_grow(path: Path) -> None:
    """Torch files packed tightly: 64 MB of zeros in 64 kB, of pickle or of tensors."""
    for packed in ("archive/data.pkl", "archive/data/0"):
        with zipfile.ZipFile(path, "w") as archive:
            for name in ("archive/data.pkl", "archive/data/0"):
                how = {"compress_type": zipfile.ZIP_DEFLATED} if name == packed else {}
                archive.writestr(name, b"\x80\x02" + b"0" * ((64 << 20) if name == packed else 1), **how)
        assert path.stat().st_size < 1 << 20
        assert "compressed" in refused(path, **OPTIONS)


def doubled(depth: int, use: bytes) -> bytes:
    """A pickle that names a tuple of 2^depth parts in four bytes a level, and what is done with it."""
    levels = b"".join(b"h" + bytes([i]) + b"\x86q" + bytes([i + 1]) for i in range(depth))
    return b"\x80\x02" + use.replace(b"T", b")q\x00" + levels) + b"."


KEYS = {"a key": b"}TK\x01s", "keys": b"}(TK\x01K\x02K\x03u", "a value": b"}K\x01Ts", "bare": b"T", "in a slice": b"(Tt"}


@pytest.mark.parametrize("use", KEYS)
@pytest.mark.parametrize("legacy", [False, True])
def test_tuples_without_end_are_refused_before_they_are_hashed(use: str, legacy: bool, path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        content = {item.filename: archive.read(item) for item in archive.infolist()}
    pickled = doubled(60, KEYS[use])
    if legacy:
        magic = b"".join(pickle.dumps(item, 2) for item in (0x1950A86A20F9469CFC6C, 1001, {"little_endian": True}))
        path.write_bytes(magic + pickled + pickle.dumps([], 2))
    else:
        with zipfile.ZipFile(path, "w") as archive:
            for name, data in content.items():
                archive.writestr(name, pickled if name.endswith("data.pkl") else data)
    assert "excessively nested tuples" in refused(path)


def test_a_key_that_is_named_too_often_is_refused() -> None:
    """Each of the 5,000 keys is small enough; all of them together would be hashed for minutes."""
    levels = b"".join(b"h" + bytes([i]) + b"\x86q" + bytes([i + 1]) for i in range(12))
    few, many = (b"\x80\x02})q\x00" + levels + b"K\x01s" + b"h\x0cK\x01s" * count + b"." for count in (10, 5000))
    assert is_harmless(few) and not is_harmless(many)
    once, twice = (b"\x80\x02)q\x00" + levels + b"(" + b"h\x0c" * count + b"t." for count in (1, 2))
    assert is_harmless(once) and not is_harmless(twice), "all of a slice counts"


def test_files_that_torch_writes_are_harmless(tmp_path: Path) -> None:
    content = {"state": tiny(), "step": 3, "betas": (0.9, 0.999), ("a", (1, 2)): [torch.zeros(2, 3)], "words": {"x"}}
    for name, new in (("new.pt", True), ("old.pt", False)):
        torch.save(content, tmp_path / name, _use_new_zipfile_serialization=new)
        assert tensor_files.read_checkpoint(tmp_path / name)["step"] == 3
    for protocol in range(6):
        pickled = pickle.dumps({**content, "state": None}, protocol)
        assert is_harmless(pickled) and is_harmless(pickled[:-3])
    assert is_harmless(b"no pickle at all") and is_harmless(b"")


def test_tensors_that_claim_more_than_their_file(path: Path) -> None:
    huge = {name: torch.zeros(1, dtype=torch.float16).expand(tensor.shape) for name, tensor in tiny().items()}
    torch.save(huge, path)
    assert "claim" in refused(path, **OPTIONS)


def test_tensors_of_other_kinds(path: Path) -> None:
    state = tiny()
    for changed in (
        state["out.2.bias"].to(torch.int64),
        state["out.2.bias"].to(torch.complex64),
        state["out.2.bias"].to_sparse(),
        torch.empty(6, device="meta"),
        torch.quantize_per_tensor(state["out.2.bias"], 0.1, 0, torch.qint8),
    ):
        torch.save({**state, "out.2.bias": changed}, path)
        refused(path, **OPTIONS)


def test_what_is_no_dictionary_of_tensors(path: Path) -> None:
    nested = {"a": {"b": {"c": torch.zeros(1)}}}
    contents: list[Any] = [[], {}, 3, "text", [[[]]], nested, torch.zeros(3), {1: torch.zeros(1)}]
    for content in contents:
        torch.save(content, path)
        for open_it in (load_prior, inspect):
            refused(path, open_it)


def save_head(path: Path, tensors: dict[str, Tensor], shape: str | None) -> None:
    save_file(tensors, path, metadata=None if shape is None else {"variance_head": shape})


HEAD_SHAPES: list[tuple[str | None, str]] = [
    (None, "not a variance head"),
    ("", "not valid JSON"),
    ("[]", "must give"),
    ('{"channels": 3, "width": 1000000000, "depth": 1}', "width"),
    ('{"channels": 3, "width": 4, "depth": 1000000000}', "depth"),
    ('{"channels": 1000000000, "width": 4, "depth": 1}', "channels"),
    ('{"channels": 3, "width": 4096, "depth": 1}', "does not hold the tensors"),
]


@pytest.mark.parametrize(("shape", "told"), HEAD_SHAPES, ids=[str(shape)[:40] for shape, _ in HEAD_SHAPES])
def test_variance_heads(shape: str | None, told: str, path: Path) -> None:
    tensors = dict(VarianceHead(HeadShape(3, 4, 1)).state_dict())
    beside = path.with_name("weights.pt.variance.safetensors")
    save_head(beside, tensors, shape)
    assert told in refused(beside, VarianceHead.load)
    assert told in refused(path, **OPTIONS)
    assert load_prior(path, head=False, **OPTIONS).source == "learned"  # the checkpoint itself is fine


def test_heads_with_wrong_weights_or_for_other_images(path: Path) -> None:
    beside = path.with_name("weights.pt.variance.safetensors")
    tensors, shape = dict(VarianceHead(HeadShape(3, 4, 1)).state_dict()), '{"channels": 3, "width": 4, "depth": 1}'
    save_head(beside, tensors | {"correction": torch.full((len(NODES),), torch.nan)}, shape)
    assert "not finite" in refused(path, **OPTIONS)
    save_head(beside, tensors | {"correction": torch.zeros(3)}, shape)
    assert "does not hold" in refused(path, **OPTIONS)
    VarianceHead(HeadShape(1, 4, 1)).save(beside)
    assert "fitted to images of 1 channels" in refused(path, **OPTIONS)


def test_a_head_of_fewer_nodes_goes_on_as_its_last_one(tmp_path: Path) -> None:
    head = VarianceHead(HeadShape(3, 4, 1))
    few = torch.linspace(-1, 1, OLD_NODES)
    save_head(
        tmp_path / "a.variance.safetensors", {**head.state_dict(), "correction": few}, '{"channels":3,"width":4,"depth":1}'
    )
    found = VarianceHead.load(tmp_path / "a.variance.safetensors").correction
    assert torch.equal(found[:OLD_NODES], few) and bool((found[OLD_NODES:] == few[-1]).all()) and len(found) == len(NODES)


PYRAMIDS: list[tuple[str, Any, str]] = [
    ("net", None, "'net'"),
    ("net", {"width": 10**9}, "width"),
    ("net", {"depth": 10**9}, "depth"),
    ("net", {"expert_max": 0}, "expert_max"),
    ("net", {"expert_max": 1e-7}, "more levels"),
    ("net", {"sigma_max": -1}, "sigma_max"),
    ("net", {"min_level_size": 0}, "min_level_size"),
    ("net", {"variance_floor": 0}, "variance_floor"),
    ("net", {"cascade": 1}, "true or false"),
    ("net", {"cascade": False}, "restore the matching pair"),
    ("net", {"eval": 1}, "'eval'"),
    ("schedule", None, "'schedule'"),
    ("schedule", {"type": "linaer"}, "did you mean 'linear'"),
    ("schedule", {"steps": 10**12}, "100000"),
    ("schedule", {"beta_end": 3}, "beta_end"),
    ("coarse", {"mean": [0.5]}, "1 values"),
    ("coarse", {"mean": 0.5}, "mean"),
    ("coarse", {"detail": []}, "detail"),
    ("coarse", {"knee": [0, 0, 0]}, "knee"),
    ("coarse", {"power": ["a", "b", "c"]}, "power"),
    ("variance_scale", {"sigma": [1.0]}, "rising"),
    ("variance_scale", {"sigma": [1.0, 1.0], "factor": [1.0, 2.0]}, "rising"),
    ("variance_scale", {"sigma": [], "factor": []}, "sigma"),
    ("variance_scale", {"sigma": [1.0], "factor": [-1.0]}, "factor"),
]


@pytest.mark.parametrize(("key", "value", "told"), PYRAMIDS, ids=[f"{key}-{value}"[:50] for key, value, _ in PYRAMIDS])
def test_pyramids(key: str, value: Any, told: str, tmp_path: Path) -> None:
    shutil.copy(SHIPPED / "pyramid.safetensors", tmp_path / "mine.safetensors")
    settings = json.loads((SHIPPED / "pyramid.json").read_text())
    settings[key] = settings[key] | value if isinstance(value, dict) else value
    (tmp_path / "mine.json").write_text(json.dumps(settings))
    assert told in refused(tmp_path / "mine.safetensors")
    if "matching pair" not in told:
        assert told in refused(tmp_path / "mine.safetensors", inspect)


def test_a_pyramids_type_of_schedule_is_heard(tmp_path: Path) -> None:
    shutil.copy(SHIPPED / "pyramid.safetensors", tmp_path / "mine.safetensors")
    settings = json.loads((SHIPPED / "pyramid.json").read_text())
    (tmp_path / "mine.json").write_text(json.dumps(settings | {"schedule": {"type": "cosine", "steps": 300}}))
    found = load_prior(tmp_path / "mine.safetensors").schedule
    assert len(found) == 300 and float(found.betas[-1]) == pytest.approx(0.999)
    (tmp_path / "mine.safetensors").write_bytes(b"junk")
    assert "cannot be read" in refused(tmp_path / "mine.safetensors")
    save_file({"a": load_file(SHIPPED / "pyramid.safetensors")["share"]}, tmp_path / "mine.safetensors")
    assert "matching pair" in refused(tmp_path / "mine.safetensors")


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_weights_are_finite(tmp_path: Path, value: float) -> None:
    file = tmp_path / "net.pt"
    file.write_bytes(bytes(64))
    check_weights({"one": torch.ones(4)}, file)
    assert "values that are not finite (first in two)" in refusal(
        check_weights, {"one": torch.ones(4), "two": torch.tensor([1.0, value])}, file
    )
