"""Pipelines and networks of diffusers given as objects."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import leader
from leader.priors import load_prior
from tests.cheap_prior import photograph
from tests.sentences import refusal

diffusers = pytest.importorskip("diffusers", reason="the extra diffusers is not installed")


def unet(**changes: Any) -> Any:
    torch.manual_seed(0)
    small = {"sample_size": (16, 24), "block_out_channels": (8, 16), "layers_per_block": 1, "norm_num_groups": 4}
    blocks = {"down_block_types": ("DownBlock2D", "AttnDownBlock2D"), "up_block_types": ("AttnUpBlock2D", "UpBlock2D")}
    return diffusers.UNet2DModel(**{**small, **blocks, "in_channels": 3, "out_channels": 3, **changes})


@pytest.mark.parametrize("kind", ["DDPM", "DDIM"])
def test_a_pipeline_is_a_prior(kind: str) -> None:
    scheduler = getattr(diffusers, f"{kind}Scheduler")(num_train_timesteps=500, beta_schedule="squaredcos_cap_v2")
    pipeline = getattr(diffusers, f"{kind}Pipeline")(unet=unet(), scheduler=scheduler)
    prior = load_prior(pipeline, whole=True)
    x, t = torch.randn(2, 3, 16, 24), torch.tensor([50, 411])
    raw = pipeline.unet(x, t).sample
    assert torch.allclose(prior.predict(x, t).eps, raw, atol=1e-5) and len(prior.schedule) == 500
    assert torch.allclose(prior.schedule.abar(t), scheduler.alphas_cumprod[t].double(), atol=1e-5)
    restored = leader.restore(photograph(20, 28), "denoise", sigma=0.1, prior=pipeline, steps=3, method="ddnm", check=False)
    assert restored.array.shape == (20, 28, 3), "other sizes are tiled"


def test_a_network_comes_with_its_scheduler() -> None:
    network, scheduler = unet(), diffusers.DDPMScheduler(prediction_type="v_prediction")
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
