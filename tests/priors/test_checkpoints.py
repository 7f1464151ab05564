"""Checkpoint files: every route gives the same bits, nothing is guessed, bad files end in one sentence."""

import hashlib
import json
import os
import pickle
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from leader.priors import catalogue
from leader.priors.adapters import HeadedPrior, NetworkPrior
from leader.priors.betas import make_schedule
from leader.priors.checkpoints import network_tensors
from leader.priors.detection import build_network
from leader.priors.inspection import inspect
from leader.priors.loading import load_prior
from leader.priors.networks import ADM, ADMConfig
from leader.priors.pyramid_net import Body
from leader.priors.spectrum import spectrum_file
from leader.priors.tiling import TiledPrior
from leader.priors.variance_head import HeadShape, VarianceHead
from leader.schedule import Schedule
from tests.sentences import refusal
from tests.uncertainty.spectra import toy_spectrum

TINY = ADMConfig(32, (1, 1), 1, (1,), out_channels=6, head_channels=16)
OPTIONS: dict[str, Any] = {"size": 16, "schedule": "linear", "head_channels": 16, "attention_order": "legacy"}


def tiny(config: ADMConfig = TINY) -> dict[str, Tensor]:
    torch.manual_seed(0)
    return dict(ADM(config).state_dict())


def bare(path: Path | str, **options: Any) -> NetworkPrior:
    prior = load_prior(path, whole=True, **options)
    assert isinstance(prior, NetworkPrior)
    return prior


def same_bits(prior: NetworkPrior, state: dict[str, Tensor]) -> bool:
    found = prior.network.state_dict()
    return found.keys() == state.keys() and all(torch.equal(found[key], state[key]) for key in state)


@pytest.mark.parametrize("name", ["celebahq-256", "ffhq-256", "imagenet-256"])
def test_every_route_gives_the_same_bits_at_a_width_of_32(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    published = catalogue.ENTRIES[name]
    config = replace(published.config, width=32)
    if isinstance(config, ADMConfig):
        config = replace(config, head_channels=16)
    entry = replace(published, name="narrow", config=config, sha256=None)  # that of the full size
    monkeypatch.setitem(catalogue.ENTRIES, "narrow", entry)
    monkeypatch.setenv("LEADER_CACHE", str(tmp_path))
    torch.manual_seed(1)
    state = dict(build_network(config).state_dict())

    torch.save(state, entry.path)
    by_name = bare("narrow")
    assert same_bits(by_name, state) and by_name.name == "narrow"
    assert by_name.size == (256, 256) and by_name.multiple == 32 and by_name.channels == 3
    assert not by_name.network.training and not any(weight.requires_grad for weight in by_name.parameters())
    assert same_bits(bare(entry.path), state)  # the published file name and shapes suffice
    tensors = tmp_path / "own" / "weights.safetensors"
    tensors.parent.mkdir()
    save_file(state, tensors)
    assert same_bits(bare(tensors, like="narrow"), state)
    assert same_bits(bare(tensors, **entry.options), state)
    tensors.with_suffix(".json").write_text(json.dumps(entry.options))
    assert same_bits(bare(tensors), state)
    assert same_bits(bare(tensors.parent), state)  # a folder with one checkpoint
    assert (by_name.source == "learned") == (name != "celebahq-256")


@pytest.fixture()
def registered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> catalogue.CatalogueEntry:
    """A tiny published checkpoint without a known hash, in the cache folder."""
    monkeypatch.setenv("LEADER_CACHE", str(tmp_path / "cache"))
    entry = replace(catalogue.ENTRIES["ffhq-256"], name="small-faces", filename="published.pt", config=TINY, size=16)
    monkeypatch.setitem(catalogue.ENTRIES, entry.name, entry)
    entry.path.parent.mkdir()
    torch.save(tiny(), entry.path)
    return entry


def test_a_published_file_has_its_name_wherever_it_lies(registered: catalogue.CatalogueEntry, tmp_path: Path) -> None:
    copy, other = tmp_path / "renamed.pt", tmp_path / "mine.pt"
    copy.write_bytes(registered.path.read_bytes())
    torch.save({key: value + 1 for key, value in tiny().items()}, other)
    assert bare(copy).name == bare("small-faces").name == "small-faces", "its options are the registry's too"
    assert bare(other, **OPTIONS).name == "mine"
    torch.save({key: value + 1 for key, value in tiny().items()}, copy)
    assert bare(copy, **OPTIONS).name == "renamed", "other bytes under the same path"
    registered.path.unlink()
    elsewhere = tmp_path / "published.pt"
    torch.save(tiny(), elsewhere)
    assert bare(elsewhere).name == "small-faces", "by its published name, where no hash is known"


def test_a_known_hash_is_checked_on_load(
    registered: catalogue.CatalogueEntry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = hashlib.sha256(registered.path.read_bytes()).hexdigest()
    monkeypatch.setitem(catalogue.ENTRIES, "small-faces", replace(registered, sha256=known))
    assert bare("small-faces").name == "small-faces"
    torch.save({key: value + 1 for key, value in tiny().items()}, registered.path)
    assert known in refusal(bare, "small-faces")
    impostor = tmp_path / "published.pt"
    torch.save({key: value + 1 for key, value in tiny().items()}, impostor)
    assert bare(impostor, **OPTIONS).name == "published", "its name alone does not make it the published one"


@pytest.mark.parametrize("suffix", [".pt", ".pth", ".ckpt", ".safetensors"])
@pytest.mark.parametrize("prefix", ["", "module.", "model.diffusion_model."])
def test_suffixes_and_prefixes(suffix: str, prefix: str, tmp_path: Path) -> None:
    state, path = tiny(), tmp_path / f"weights{suffix}"
    content = {prefix + key: tensor for key, tensor in state.items()}
    if suffix == ".safetensors":
        save_file(content, path)
    else:
        torch.save(content, path)
    assert same_bits(bare(path, **OPTIONS), state)


def test_wrapped_old_and_half_precision_files(tmp_path: Path) -> None:
    state, path = tiny(), tmp_path / "weights.pt"
    torch.save({"step": 7, "state_dict": state}, path)
    assert same_bits(bare(path, **OPTIONS), state)
    torch.save(state, path, _use_new_zipfile_serialization=False)
    assert same_bits(bare(path, **OPTIONS), state)
    halves = {key: tensor.half() for key, tensor in state.items()}
    torch.save(halves, path)
    assert same_bits(bare(path, **OPTIONS), {key: tensor.float() for key, tensor in halves.items()})


def test_one_of_several_networks_must_be_named(tmp_path: Path) -> None:
    state, path = tiny(), tmp_path / "weights.pt"
    average = {key: tensor + 1 for key, tensor in state.items()}
    torch.save([state, {"step": 1}, average], path)
    assert "several networks (0, 2)" in refusal(bare, path, **OPTIONS)
    assert same_bits(bare(path, part="2", **OPTIONS), average)
    assert "Unknown part" in refusal(bare, path, part="ema", **OPTIONS)


refused = partial(refusal, load_prior)


@pytest.mark.parametrize("absent", OPTIONS)
def test_what_shapes_do_not_tell_is_asked_for(absent: str, path: Path) -> None:
    given = {key: value for key, value in OPTIONS.items() if key != absent}
    text = refused(path, **given)
    assert absent in text and "weights.json" in text
    assert not any(key in text.split(":")[0] for key in given)


def test_the_registry_is_offered_where_shapes_agree_but_not_used(tmp_path: Path) -> None:
    path = tmp_path / "face.pt"
    with torch.device("meta"):
        shapes = build_network(catalogue.find_entry("ffhq-256").config).state_dict()
    torch.save({key: torch.zeros(1).expand(tensor.shape) for key, tensor in shapes.items()}, path)
    assert "like='ffhq-256'" in refused(path)
    assert inspect(path)["same_shapes_as"] == ["ffhq-256"]


def test_options_override_the_side_car(path: Path) -> None:
    path.with_suffix(".json").write_text(json.dumps(OPTIONS | {"predicts": "v"}))
    prior = bare(path, heads=1, size=[16, 32], schedule={"type": "cosine", "steps": 50}, attention_order="new")
    assert prior.predicts == "v" and prior.size == (16, 32) and len(prior.schedule) == 50
    assert isinstance(prior.network, ADM)
    legacy: Any = bare(path).network
    assert (legacy.config.heads, legacy.config.head_channels, legacy.config.new_attention_order) == (None, 16, False)
    config = prior.network.config
    assert (config.heads, config.head_channels, config.new_attention_order) == (1, None, True)


def test_a_label_for_a_class_conditional_network(tmp_path: Path) -> None:
    path = tmp_path / "weights.pt"
    torch.save(tiny(replace(TINY, classes=4)), path)
    assert "label" in refused(path, **OPTIONS)
    assert "from 0 to 3; found 4" in refused(path, label=4, **OPTIONS)
    answer = load_prior(path, label=2, **OPTIONS).predict(torch.zeros(1, 3, 16, 16), torch.tensor([5]))
    assert answer.x0.shape == (1, 3, 16, 16)


class Malicious:
    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.mkdir, (str(self.marker),)


@pytest.mark.parametrize("how", ["archive", "old archive", "pickle"])
def test_a_file_that_would_run_code_is_refused_and_nothing_runs(how: str, tmp_path: Path) -> None:
    marker, path = tmp_path / "marker", tmp_path / "weights.pt"
    content = tiny() | {"extra": Malicious(marker)}
    if how == "pickle":
        path.write_bytes(pickle.dumps(Malicious(marker)))
    else:
        torch.save(content, path, _use_new_zipfile_serialization=how == "archive")
    assert "nothing was executed" in refused(path, **OPTIONS)
    assert not marker.exists()
    if how == "archive":  # the trap works: a trusting reader would have run it
        torch.load(path, weights_only=False)
        assert marker.exists()


@pytest.mark.parametrize("suffix", [".pt", ".safetensors"])
def test_damaged_files(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"weights{suffix}"
    if suffix == ".pt":
        torch.save(tiny(), path)
    else:
        save_file(tiny(), path)
    whole = path.read_bytes()
    for damaged in (whole[: len(whole) // 2], whole[:3], b"", b"<html>not found</html>"):
        path.write_bytes(damaged)
        assert "cannot be read as a checkpoint" in refused(path, **OPTIONS)


def test_files_that_hold_something_else(path: Path) -> None:
    state = tiny()

    def without(word: str) -> dict[str, Tensor]:
        return {key: tensor for key, tensor in state.items() if not key.startswith(word)}

    for content, told in (
        (without("output_blocks."), "holds a classifier"),
        ({"conv1.weight": torch.zeros(4, 3, 7, 7), "fc.weight": torch.zeros(10, 4)}, "no diffusion network of a known family"),
        ({"steps": 3}, "holds no tensors"),
        (without("middle_block.1.norm.bias"), "such as middle_block.1.norm.bias"),
        (without("out.2.weight"), "lacks 'out.2.weight'"),
        (tiny(replace(TINY, in_channels=4)), "turns 4 channels into 6"),
        (state | {"out.2.bias": torch.tensor([0, torch.nan, 0, 0, 0, 0])}, "not finite (first in out.2.bias)"),
    ):
        torch.save(content, path)
        assert told in refused(path, **OPTIONS)


def test_names_and_paths_that_lead_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEADER_CACHE", str(tmp_path))
    assert "leader priors get ffhq-256" in refused(Path("ffhq-256"))
    assert "did you mean 'imagenet-256'" in refused(Path("imagenet-265"))
    assert "does not exist" in refused(tmp_path / "weights.pt")
    assert "holds 0 checkpoints" in refused(tmp_path)
    (tmp_path / "photo.png").write_bytes(b"x")
    assert "is not a checkpoint" in refused(tmp_path / "photo.png")
    assert "takes none" in refusal(load_prior, "embedded", size=256)


def test_a_head_beside_the_checkpoint_is_used(path: Path) -> None:
    assert inspect(path)["variance_head"] is None
    toy_spectrum().save(spectrum_file(path))
    head = VarianceHead(HeadShape(width=4, depth=1))
    for file in (path.with_name("weights.pt.variance.safetensors"), path.with_name("weights.variance.safetensors")):
        head.save(file)
        prior = load_prior(path, whole=True, **OPTIONS)
        assert isinstance(prior, HeadedPrior) and prior.source == "head" and prior.spectrum is not None
        assert not isinstance(load_prior(path, whole=True, head=False, **OPTIONS), HeadedPrior)
        x, t = torch.randn(1, 3, 16, 16), torch.tensor([100])
        answer = prior.predict(x, t)
        assert answer.variance is not None
        assert torch.equal(answer.variance, head(x, answer.x0, prior.schedule.abar(t)))
        assert inspect(path)["variance_head"] == str(file)
        file.unlink()


def test_any_size_precision_and_formats_are_options(path: Path) -> None:
    x, t = torch.randn(2, 3, 21, 30, generator=torch.Generator().manual_seed(0)), torch.tensor([50, 700])
    plain = load_prior(path, **OPTIONS)
    assert isinstance(plain, TiledPrior) and plain.source == "learned"
    exact = plain.predict(x, t)
    assert exact.variance is not None and exact.x0.shape == exact.variance.shape == x.shape
    formatted = load_prior(path, channels_last=True, **OPTIONS).predict(x, t)
    assert torch.allclose(formatted.x0, exact.x0, rtol=1e-3, atol=1e-4)
    level = plain.schedule.level(t)
    for dtype in ("bfloat16", torch.float16):
        half = load_prior(path, dtype=dtype, **OPTIONS).predict(x, t)
        assert half.x0.dtype == torch.float32 and not torch.equal(half.x0, exact.x0)
        error = (half.eps - exact.eps) * level.signal  # eps of the tiles, free of the division by sqrt(abar)
        assert float(error.abs().max()) < 0.1
    for settings, text in (({"dtype": "int8"}, "dtype"), ({"device": "cuda"}, "not available")):
        if not torch.cuda.is_available():
            assert text in refused(path, **settings, **OPTIONS)


@pytest.mark.parametrize("name", ["weights.pt", "embedded"])
def test_what_is_compiled_is_the_network(name: str, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[tuple[type, dict[str, Any]]] = []
    monkeypatch.setattr(torch.nn.Module, "compile", lambda self, **words: compiled.append((type(self), words)))
    file, options = (name, {}) if name == "embedded" else (path, OPTIONS)
    load_prior(file, compile="eager", **options)
    load_prior(file, compile=True, **options)
    kinds = [Body, Body] if name == "embedded" else [ADM]
    assert compiled == [(kind, words) for words in ({"backend": "eager"}, {}) for kind in kinds]


@pytest.mark.slow
def test_a_compiled_network_answers_the_same(path: Path) -> None:
    x, t = torch.randn(1, 3, 16, 16, generator=torch.Generator().manual_seed(0)), torch.tensor([50])
    compiled = load_prior(path, compile="eager", channels_last=True, **OPTIONS).predict(x, t)
    assert torch.allclose(compiled.x0, load_prior(path, **OPTIONS).predict(x, t).x0, rtol=1e-3, atol=1e-4)


def test_the_embedded_prior_and_a_trained_folder(tmp_path: Path) -> None:
    embedded = load_prior()
    x, t = torch.randn(1, 3, 20, 24, generator=torch.Generator().manual_seed(0)), torch.tensor([300])
    expected = embedded.predict(x, t).x0
    weights = Path(catalogue.__file__).parent / "weights"
    for name in ("pyramid.safetensors", "pyramid.json"):
        (tmp_path / name).write_bytes((weights / name).read_bytes())
    assert torch.equal(load_prior(tmp_path).predict(x, t).x0, expected)
    assert torch.equal(load_prior(tmp_path / "pyramid.safetensors").predict(x, t).x0, expected)
    t = torch.tensor([100])  # at 300 a picture this small is left to the Gaussian prior
    half = load_prior(dtype="bfloat16").predict(x, t).x0
    assert half.dtype == torch.float32 and 0 < float((half - embedded.predict(x, t).x0).abs().max()) < 0.2


def test_schedules_by_name_and_settings() -> None:
    assert torch.equal(make_schedule("linear").betas, Schedule.linear().betas)
    made = make_schedule({"type": "scaled_linear", "beta_start": 0.001, "beta_end": 0.01, "steps": 10})
    assert torch.equal(made.betas, Schedule.scaled_linear(0.001, 0.01, 10).betas)
    assert torch.equal(make_schedule({"type": "cosine", "steps": 20}).betas, Schedule.cosine(20).betas)
    assert "setting of a cosine schedule" in refusal(make_schedule, {"type": "cosine", "beta_start": 0.1})


def test_inspect_tells_what_is_known_and_what_is_not(path: Path) -> None:
    found = inspect(path)
    assert found["family"] == "adm" and found["learned_variance"] is True
    assert found["tensors"] == len(tiny()) and found["parameters"] == sum(v.numel() for v in tiny().values())
    assert found["missing"] == ["size", "schedule", "head_channels (or heads)", "attention_order"]
    path.with_suffix(".json").write_text(json.dumps(OPTIONS))
    assert found["side_car"] is None
    found = inspect(path)
    assert found["side_car"] == str(path.with_suffix(".json")) and found["missing"] == []
    assert found["settings"] == OPTIONS and json.dumps(found)


def test_rescaled_times_go_up_to_a_thousand(path: Path) -> None:
    options = {**OPTIONS, "schedule": {"type": "linear", "steps": 250}}
    assert bare(path, **options, rescale_timesteps=True).time_factor == 4.0
    assert bare(path, **options).time_factor == 1.0


def test_where_no_network_is_known_the_largest_set_of_tensors_is_told() -> None:
    large, small = {"p": torch.zeros(1), "q": torch.zeros(1)}, {"z": torch.zeros(1)}
    for content in ({"one": large, "two": small}, {"one": small, "two": large}):
        assert network_tensors(content, "net.pt").keys() == {"p", "q"}


def test_sides_fit_the_network_both_ways(path: Path) -> None:
    assert "does not have the shapes of 'ffhq-256'" in refused(path, like="ffhq-256")
    for size in ([16, 15], [15, 16]):
        told = refused(path, **{**OPTIONS, "size": size})
        assert f"needs a size in multiples of 2; found {size[0]} x {size[1]}" in told
