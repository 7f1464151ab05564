"""Every part of a draw's address counts, and nothing else does."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from torch import Tensor

from leader.noise import NAMES, SeededNoise


def draw(seed: int = 3, image: int = 5, position: int = 7, name: str = "step") -> Tensor:
    return SeededNoise(seed)([image], [position], name, (2, 40))


@pytest.mark.parametrize("change", [{"seed": 4}, {"image": 6}, {"position": 8}])
def test_another_seed_image_or_position_is_another_draw(change: dict[str, Any]) -> None:
    one, other = draw().flatten(), draw(**change).flatten()
    assert torch.equal(one, draw().flatten())
    assert float((one - other).abs().max()) > 0.1
    assert abs(float(torch.corrcoef(torch.stack([one, other]))[0, 1])) < 0.5


def test_names_do_not_share_their_noise() -> None:
    for one, other in itertools.combinations(NAMES, 2):
        assert float((draw(name=one) - draw(name=other)).abs().max()) > 0.1, f"{one} and {other} are the same"


def test_a_batch_is_its_images_draws() -> None:
    batch = SeededNoise(3)([5, 6], [7, 9], "step", (2, 40))
    assert torch.equal(batch[0], draw()[0]) and torch.equal(batch[1], draw(image=6, position=9)[0])
