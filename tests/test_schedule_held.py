"""The schedule: the numbers that only a few methods ask for."""

from __future__ import annotations

import math

import pytest
import torch

from leader.schedule import Grid, Schedule, make_grid


@pytest.mark.parametrize("sigma", [0.0, 0.05, 0.34, 2.0, 60.0, 1e6])
def test_nearest_is_the_time_of_least_distance(sigma: float) -> None:
    schedule = Schedule.linear()
    product, distances = 1.0, []
    for beta in schedule.betas.tolist():
        product *= 1 - beta
        distances.append(abs(math.sqrt((1 - product) / product) - sigma))
    assert schedule.nearest(sigma) == distances.index(min(distances))


def test_the_cosine_schedule_ends_at_its_largest_beta() -> None:
    betas = Schedule.cosine().betas
    curve = [math.cos((t / 1000 + 0.008) / 1.008 * math.pi / 2) ** 2 for t in range(1001)]
    assert float(betas[-1]) == 0.999
    assert float(betas[-2]) == pytest.approx(1 - curve[999] / curve[998], rel=1e-9)


def test_a_time_visited_again_costs_a_call_and_a_move_upward_none() -> None:
    assert Grid((7, 7, 3, -1)).visits == 3
    assert Grid((7, 3, 7, 3, -1)).visits == 3


def test_a_level_is_signal_noise_and_their_ratio() -> None:
    schedule = Schedule.linear()
    times = torch.tensor([0, 250, 999, -1])
    level = schedule.level(times, torch.zeros(1, dtype=torch.float64))
    for row, time in enumerate(times.tolist()):
        abar = math.prod(1 - beta for beta in schedule.betas[: time + 1].tolist()) if time >= 0 else 1.0
        found = [float(value[row]) for value in (level.abar, level.signal, level.noise, level.sigma)]
        expected = [abar, math.sqrt(abar), math.sqrt(1 - abar), math.sqrt((1 - abar) / abar)]
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert level.signal.dtype == torch.float64 and schedule.level(times).signal.dtype == torch.float32


def test_a_pacer_goes_to_the_turning_point_and_from_it_one_move_on() -> None:
    grid = Grid((7, 5, 3, 7, 3, -1))
    assert [grid.farthest(position) for position in range(5)] == [2, 2, 3, 5, 5]


def test_more_steps_than_the_clock_has_are_counted_on_the_schedule() -> None:
    grid = make_grid("uniform", 1500, Schedule.linear(steps=3000))
    assert len(grid.times) == 1501 and grid.times == (*range(2998, -1, -2), -1)
