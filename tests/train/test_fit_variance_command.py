"""`leader fit-variance` from the shell on a diffusers network of random shape, trained for two minutes."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from leader import Problem, Sampler, load_prior, operators
from leader.priors.variance_head import beside
from leader.train.data import cached, crop
from tests.train.pictures import write_pictures

diffusers = pytest.importorskip("diffusers")


def random_network(seed: int) -> Any:
    """A small UNet2DModel: widths, depth and the place of its attention are drawn."""
    rng = np.random.default_rng(seed)
    widths = tuple(int(rng.choice([16, 24, 32])) for _ in range(int(rng.integers(2, 4))))
    attention = int(rng.integers(len(widths)))
    kinds = ["AttnDownBlock2D" if index == attention else "DownBlock2D" for index in range(len(widths))]
    return diffusers.UNet2DModel(
        sample_size=32,
        block_out_channels=widths,
        layers_per_block=int(rng.integers(1, 3)),
        down_block_types=tuple(kinds),
        up_block_types=tuple(kind.replace("Down", "Up") for kind in reversed(kinds)),
        norm_num_groups=8,
        attention_head_dim=8,
    )


def train(network: Any, scheduler: Any, folder: Path, seconds: float) -> None:
    """Plain eps-training on random crops."""
    photos = cached(folder, folder / "cache")
    optimiser = torch.optim.Adam(network.parameters(), 1e-3)
    rng, generator, end = np.random.default_rng(0), torch.Generator().manual_seed(0), time.monotonic() + seconds
    while time.monotonic() < end:
        clean = 2 * torch.stack([crop(rng, photos, 32) for _ in range(8)]) - 1
        noise = torch.randn(clean.shape, generator=generator)
        t = torch.randint(0, 1000, (8,), generator=generator)
        loss = (network(scheduler.add_noise(clean, noise, t), t).sample - noise).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()


@pytest.mark.slow
def test_a_head_for_a_strangers_network_is_calibrated(tmp_path: Path) -> None:
    pictures = write_pictures(tmp_path / "pictures", count=24)
    torch.manual_seed(0)
    network, scheduler = random_network(seed=int(time.time())), diffusers.DDPMScheduler()
    train(network, scheduler, pictures, seconds=120)
    network.save_pretrained(tmp_path / "model" / "unet")
    scheduler.save_pretrained(tmp_path / "model" / "scheduler")
    leader = [sys.executable, "-c", "from leader.cli import main; main()"]
    command = [*leader, "fit-variance", "--prior", str(tmp_path / "model"), "--images", str(pictures), "--minutes", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    said = re.search(r"held-out pictures: ([0-9]+\.[0-9]+)", done.stderr.replace("\n", " "))
    assert said is not None and 0.8 < float(said[1]) < 1.25, f"{dict(network.config)}: {done.stderr[-400:]}"
    print(f"channels {network.config.block_out_channels}: squared error over predicted variance {said[1]}")
    assert beside(tmp_path / "model").exists()
    # from then on the head is found beside the checkpoint and used
    operator = operators.AveragePoolSR((3, 32, 32), 2)
    problem = Problem(torch.rand(1, 3, 16, 16), operator)
    result = Sampler(load_prior(tmp_path / "model"), "ddnm", ("leader",), steps=10, estimator="head").run(problem)
    assert bool(torch.isfinite(result.images).all())
