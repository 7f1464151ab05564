"""Draws by address: every part of it counts, and nothing else does."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from torch import Tensor

from leader.errors import LeaderError
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


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ((3, 5, 7, "step"), [0.1345455, -0.8247083, 0.3011532, 0.8006070]),
        ((0, 0, 0, "start"), [0.0023438, 1.9256542, 1.4832324, 1.7983630]),
    ],
)
def test_a_kept_run_finds_its_noise_again(address: tuple[int, int, int, str], expected: list[float]) -> None:
    """Every stored summary and record rests on these numbers: whoever changes them makes all of them another picture."""
    assert draw(*address).flatten()[:4].tolist() == pytest.approx(expected, abs=1e-6)


def test_draws_have_names() -> None:
    noise = SeededNoise(0)
    draws = {name: noise([0], [0], name, (4,)) for name in NAMES}
    assert len({tuple(draw.flatten().tolist()) for draw in draws.values()}) == len(NAMES)
    with pytest.raises(LeaderError, match="did you mean 'start'"):
        noise([0], [0], "strat", (4,))
    for seed in ("0", 1.5, True, None):
        with pytest.raises(LeaderError, match="whole number"):
            SeededNoise(seed)  # type: ignore[arg-type]
