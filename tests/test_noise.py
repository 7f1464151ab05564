"""Draws by address: every part of it counts, and nothing else does."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from leader.errors import LeaderError
from leader.noise import NAMES, MirroredNoise, SeededNoise


def draw(seed: int = 3, image: int = 5, position: int = 7, name: str = "step") -> Tensor:
    return SeededNoise(seed)([image], [position], name, (2, 40))


def test_draws_have_names() -> None:
    noise = SeededNoise(0)
    draws = {name: noise([0], [0], name, (4,)) for name in NAMES}
    assert len({tuple(draw.flatten().tolist()) for draw in draws.values()}) == len(NAMES)
    with pytest.raises(LeaderError, match=r"list it in `draws`.*start"):
        noise([0], [0], "strat", (4,))
    for seed in ("0", 1.5, True, None):
        with pytest.raises(LeaderError, match="whole number"):
            SeededNoise(seed)  # type: ignore[arg-type]


def test_mirrored_draws_are_opposite_within_a_pair_and_belong_to_the_pair() -> None:
    four = MirroredNoise(3)([0, 1, 6, 7], [7, 7, 7, 7], "step", (2, 40))
    assert (
        torch.equal(four[0], -four[1]) and torch.equal(four[2], -four[3]) and not torch.allclose(four[0].abs(), four[2].abs())
    )
    assert torch.equal(four[2], SeededNoise(3)([3], [7], "step", (2, 40))[0])
    assert torch.equal(MirroredNoise(3)([7], [7], "step", (2, 40))[0], four[3])
