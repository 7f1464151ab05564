"""Opposed noise: standard normal at every step, nothing over a block, and an answer that depends on it less."""

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from leader import Grid, LeaderError, Sampler
from leader.noise import SeededNoise
from leader.plugins import Opposed
from leader.priors.gaussian import GaussianPrior, stationary
from tests.plugins.test_informed import OPERATORS, SHAPE, problem_of

GRID = Grid((900, 700, 500, 400, 300, 200, 100, 50, -1))


def draw_all(plugin: Opposed, name: str = "step") -> list[Tensor | None]:
    source = SeededNoise(3)
    return [plugin.oppose(lambda p: source([0], [p], name, (3, 40, 40)), name, GRID, place) for place in range(GRID.visits)]


@pytest.mark.parametrize("together", [2, 3])
def test_blocks_add_up_to_nothing_and_every_draw_is_standard_normal(together: int) -> None:
    draws = draw_all(Opposed(together=together, first=700, last=100))  # six times: 700 to 100
    assert [draw is None for draw in draws] == [True, *[False] * 6, True]
    inside = [draw for draw in draws if draw is not None]
    for start in range(0, 6, together):
        block = torch.stack(inside[start : start + together])
        assert block.sum(0).abs().max() < 1e-5
        assert torch.allclose(block.std((1, 2, 3, 4)), torch.ones(together), atol=0.05)
    assert abs(float((inside[0] * inside[together]).mean())) < 0.05  # blocks know nothing of each other


def test_a_last_block_is_shorter_and_a_single_draw_stays() -> None:
    three = draw_all(Opposed(together=3))  # eight times: 3, 3 and 2
    assert three[6] is not None and three[7] is not None and torch.allclose(three[6], -three[7], atol=1e-6)
    seven = draw_all(Opposed(together=7))
    assert seven[7] is None and all(draw is not None for draw in seven[:7])
    assert draw_all(Opposed(), "start") == [None] * GRID.visits


def test_where_a_grid_moves_up_only_steps_that_move_down_are_counted() -> None:
    grid, source = Grid((300, 200, 300, 200, 100, -1)), SeededNoise(3)
    draws = {place: Opposed().oppose(lambda p: source([0], [p], "step", (3, 8, 8)), "step", grid, place) for place in range(5)}
    assert draws[1] is None
    for first, second in ((0, 2), (3, 4)):
        assert torch.allclose(draws[first], -draws[second], atol=1e-6)  # type: ignore[arg-type, operator]


class Silence:
    """Draws of zeros: on a Gaussian prior, where answers are linear in their noise, it gives their mean."""

    def __call__(self, ids: Sequence[int], positions: Sequence[int], name: str, shape: Sequence[int]) -> Tensor:
        return torch.zeros(len(ids), *shape, dtype=torch.float64)


@pytest.mark.parametrize("method", ["projdiff", "ddnm", "diffpir"])
def test_the_answer_depends_on_the_noise_less(method: str) -> None:
    problem = problem_of(OPERATORS["inpaint"])

    def spread(plugins: tuple[Any, ...]) -> tuple[float, Tensor]:
        sampler = Sampler(GaussianPrior(stationary(SHAPE, 0.5)), method, plugins, 12, grid="quadratic", use_presets=False)
        mean = sampler.run(problem, noise=Silence()).images
        errors = [(sampler.run(problem, seed).images - mean).square().mean() for seed in range(6)]
        return float(torch.stack(errors).mean()), mean

    plain, opposed = spread(()), spread((Opposed(),))
    assert torch.allclose(plain[1], opposed[1])
    assert opposed[0] < 0.6 * plain[0]


def test_times_in_the_wrong_order_are_refused() -> None:
    with pytest.raises(LeaderError, match="no smaller than it ends"):
        Opposed(first=100, last=200)
