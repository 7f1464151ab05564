"""Folders and objects of diffusers: x0 equal to what its own scheduler makes of the same network."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from tools.fuzz.seeds import TINY_UNET

import leader
from leader.priors.adapters import NetworkPrior
from leader.priors.loading import load_prior
from leader.priors.tiling import PaddedPrior, TiledPrior
from tests.cheap_prior import photograph
from tests.sentences import refusal

diffusers = pytest.importorskip("diffusers")


def make_unet(sample_size: Any = 16, channels: int = 3, **settings: Any) -> Any:
    torch.manual_seed(0)
    settings = {"out_channels": channels, **TINY_UNET, **settings}
    return diffusers.UNet2DModel(sample_size=sample_size, in_channels=channels, **settings)


def write(
    folder: Path, *, pipeline: bool = True, scheduler: bool = True, network: dict[str, Any] | None = None, **settings: Any
) -> Any:
    """A tiny network and its scheduler, saved by diffusers; returns both."""
    unet = make_unet(**(network or {}))
    table = diffusers.DDPMScheduler(clip_sample=False, **settings)
    unet.save_pretrained(folder / "unet" if pipeline else folder)
    if scheduler:
        table.save_pretrained(folder / "scheduler" if pipeline else folder)
    return unet.eval().requires_grad_(False), table


@pytest.mark.parametrize("prediction", ["epsilon", "v_prediction", "sample"])
@pytest.mark.parametrize("betas", ["linear", "scaled_linear", "squaredcos_cap_v2"])
def test_x0_equals_the_schedulers(prediction: str, betas: str, tmp_path: Path) -> None:
    unet, table = write(tmp_path, prediction_type=prediction, beta_schedule=betas, beta_start=5e-4, beta_end=0.015)
    prior = load_prior(tmp_path, whole=True)
    assert prior.size == (16, 16) and prior.multiple == 2 and prior.channels == 3
    x = torch.randn(1, 3, 16, 16, generator=torch.Generator().manual_seed(1))
    for t in (0, 137, 600, 950):
        output = unet(x, torch.tensor([t])).sample
        expected = table.step(output, t, x).pred_original_sample
        answer = prior.predict(x, torch.tensor([t]))
        abar = float(prior.schedule.abar(t))
        # their table is a float32 product of t factors: abar is off by t units of 2^-24, 1 - abar by that
        # over itself; the image is divided by sqrt(abar)
        relative = 2.0**-24 * (t + 8) * max(1.0, abar / (1 - abar))
        scale = float(x.abs().max() + output.abs().max()) / abar**0.5
        assert float((answer.x0 - expected).abs().max()) <= relative * scale + 1e-6


def test_both_layouts_and_old_tensor_names(tmp_path: Path) -> None:
    write(tmp_path / "pipeline")
    unet, _ = write(tmp_path / "flat", pipeline=False)
    x, t = torch.randn(1, 3, 16, 16), torch.tensor([300])
    expected = load_prior(tmp_path / "pipeline").predict(x, t).x0
    assert torch.equal(load_prior(tmp_path / "flat").predict(x, t).x0, expected)
    old = {
        name.replace("to_q", "query").replace("to_k", "key").replace("to_v", "value").replace("to_out.0", "proj_attn"): v
        for name, v in unet.state_dict().items()
    }
    assert old.keys() != unet.state_dict().keys()
    (tmp_path / "flat" / "diffusion_pytorch_model.safetensors").unlink()
    torch.save(old, tmp_path / "flat" / "diffusion_pytorch_model.bin")
    assert torch.equal(load_prior(tmp_path / "flat").predict(x, t).x0, expected)


def test_sizes_precision_tangents_and_learned_variance(tmp_path: Path) -> None:
    write(tmp_path / "tied", network={"out_channels": 6}, variance_type="learned_range")
    write(tmp_path / "free", network={"sample_size": None, "channels": 1})
    tied, free = load_prior(tmp_path / "tied"), load_prior(tmp_path / "free")
    assert isinstance(tied, TiledPrior) and tied.source == "learned" and isinstance(free, PaddedPrior)
    x, t = torch.randn(1, 3, 19, 23), torch.tensor([100])
    answer = tied.predict(x, t)
    assert answer.variance is not None and answer.variance.shape == x.shape
    assert free.predict(x[:, :1], t).x0.shape == (1, 1, 19, 23)
    half = load_prior(tmp_path / "free", dtype="bfloat16").predict(x[:, :1], t)
    assert half.x0.dtype == torch.float32
    assert 0 < float((half.x0 - free.predict(x[:, :1], t).x0).abs().max()) < 0.2
    z = torch.randn_like(x)
    tangent = torch.func.jvp(lambda v: tied.predict(v, t).x0, (x,), (z,))[1]
    step = 1e-2
    quotient = (tied.predict(x + step * z, t).x0 - tied.predict(x - step * z, t).x0) / (2 * step)
    assert float((tangent - quotient).abs().max()) < 1e-2 * float(quotient.abs().max())


def test_options_replace_what_the_folder_says(tmp_path: Path) -> None:
    write(tmp_path, network={"num_class_embeds": 3}, scheduler=False)
    prior = load_prior(tmp_path, whole=True, schedule="cosine", predicts="x0", size=32, label=1)
    assert isinstance(prior, NetworkPrior)
    assert prior.predicts == "x0" and prior.size == (32, 32) and prior.name == tmp_path.name
    assert prior.predict(torch.zeros(1, 3, 32, 32), torch.tensor([4])).x0.shape == (1, 3, 32, 32)


refused = partial(refusal, load_prior)


def edit(file: Path, **values: Any) -> None:
    file.write_text(json.dumps(json.loads(file.read_text()) | values))


def test_folders_that_cannot_serve(tmp_path: Path) -> None:
    write(tmp_path / "a", scheduler=False)
    assert "has no noise schedule" in refused(tmp_path / "a")
    write(tmp_path / "b", network={"num_class_embeds": 3})
    assert "class-conditional" in refused(tmp_path / "b")
    write(tmp_path / "c")
    table, config = tmp_path / "c/scheduler/scheduler_config.json", tmp_path / "c/unet/config.json"
    assert "option of a diffusers folder" in refused(tmp_path / "c", heads=2)
    for file, values, told in (
        (table, {"rescale_betas_zero_snr": True}, "without signal"),
        (table, {"rescale_betas_zero_snr": False, "beta_schedule": "sigmoid"}, "'sigmoid'"),
        (table, {"beta_schedule": "linear", "prediction_type": "flow"}, "prediction type"),
        (config, {"block_out_channels": [8, 16]}, "prediction type"),  # the scheduler is read first
        (table, {"prediction_type": "epsilon"}, "does not hold the tensors"),
        (config, {"_class_name": "UNet2DConditionModel"}, "UNet2DConditionModel"),
    ):
        edit(file, **values)
        assert told in refused(tmp_path / "c")
    config.write_text("{")
    assert "not valid JSON" in refused(tmp_path / "c")
    (tmp_path / "b/unet/diffusion_pytorch_model.safetensors").unlink()
    assert "holds no weights" in refused(tmp_path / "b")


def test_the_hub_is_asked_only_by_its_prefix_and_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    hub = pytest.importorskip("huggingface_hub")
    asked: list[str] = []

    def offline(name: str, **settings: Any) -> str:
        asked.append(name)
        raise OSError("no network")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(hub, "snapshot_download", offline)
    assert "use hub:somebody/some-model" in refused(Path("somebody/some-model"))
    assert not asked and not caplog.messages
    assert "could not be downloaded" in refused("hub:somebody/some-model")
    assert asked == ["somebody/some-model"] and "Downloading the prior somebody/some-model" in caplog.text
    for name in ("hub:", "hub:alone", "hub:a/b/c", "hub:../up", "hub:https://host/name"):
        assert "hub:OWNER/NAME" in refused(name)
    write(tmp_path / "copy")
    monkeypatch.setattr(hub, "snapshot_download", lambda *args, **settings: str(tmp_path / "copy"))
    prior = load_prior("hub:somebody/some-model", whole=True)
    assert prior.name == "hub:somebody/some-model" and prior.size == (16, 16)


def test_a_learned_embedding_must_know_every_time_of_the_schedule(tmp_path: Path) -> None:
    for times in (10, 1000):
        write(tmp_path / str(times), network={"time_embedding_type": "learned", "num_train_timesteps": times})
    assert "has 10 times, its schedule 1000" in refused(tmp_path / "10")
    assert load_prior(tmp_path / "1000", whole=True).size == (16, 16)
    assert load_prior(tmp_path / "10", whole=True, schedule={"type": "linear", "steps": 10}).size == (16, 16)


FLAT: dict[str, Any] = {"sample_size": (16, 24)}


@pytest.mark.parametrize("kind", ["DDPM", "DDIM"])
def test_a_pipeline_is_a_prior(kind: str) -> None:
    scheduler = getattr(diffusers, f"{kind}Scheduler")(num_train_timesteps=500, beta_schedule="squaredcos_cap_v2")
    pipeline = getattr(diffusers, f"{kind}Pipeline")(unet=make_unet(**FLAT), scheduler=scheduler)
    prior = load_prior(pipeline, whole=True)
    x, t = torch.randn(2, 3, 16, 24), torch.tensor([50, 411])
    raw = pipeline.unet(x, t).sample
    assert torch.allclose(prior.predict(x, t).eps, raw, atol=1e-5) and len(prior.schedule) == 500
    assert torch.allclose(prior.schedule.abar(t), scheduler.alphas_cumprod[t].double(), atol=1e-5)
    restored = leader.restore(photograph(20, 28), "denoise", sigma=0.1, prior=pipeline, steps=3, method="ddnm", check=False)
    assert restored.array.shape == (20, 28, 3), "other sizes are tiled"


def test_a_network_comes_with_its_scheduler() -> None:
    network, scheduler = make_unet(**FLAT), diffusers.DDPMScheduler(prediction_type="v_prediction")
    prior = load_prior(network, scheduler=scheduler, whole=True)
    x, t = torch.randn(1, 3, 16, 24), torch.tensor([300])
    level = prior.schedule.level(t, x)
    with torch.no_grad():
        v = network(x, t).sample
        assert torch.allclose(prior.predict(x, t).x0, level.signal * x - level.noise * v, atol=1e-5)
    assert len(load_prior(network, schedule={"type": "linear", "steps": 40}, whole=True).schedule) == 40
    assert "scheduler" in refusal(load_prior, network)
    assert "DDPM and DDIM" in refusal(
        load_prior, diffusers.AutoencoderKL(block_out_channels=(4,), norm_num_groups=4), scheduler=scheduler
    )
