"""Draws by address: every part of it counts, and nothing else does."""

from __future__ import annotations

import pytest
from torch import Tensor

from leader.errors import LeaderError
from leader.noise import NAMES, SeededNoise


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
