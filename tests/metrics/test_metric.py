from __future__ import annotations

import pytest
import torch

from leader.metrics import METRICS
from tests.metrics.pictures import batch, waves


@pytest.mark.parametrize("name", ["psnr", "ssim", "lpips"])
def test_more_damage_scores_worse_in_the_declared_direction(name: str) -> None:
    metric = METRICS[name]
    x = waves(48, 48)
    clean = batch(x, x)
    noise = torch.randn(clean[:1].shape, generator=torch.Generator().manual_seed(0))
    mild, strong = metric.function(clean + torch.cat([0.05 * noise, 0.3 * noise]), clean)
    assert bool(mild > strong) == (metric.column.better > 0)
    assert metric.name == name
    assert "[0, 1]" in metric.column.convention
