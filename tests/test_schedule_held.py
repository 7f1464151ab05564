"""The schedule: the numbers that only a few methods ask for."""

from __future__ import annotations

import math

import pytest
import torch

from leader.errors import LeaderError
from leader.schedule import Grid, Schedule, grid_on, make_grid, noise_grid, travel_grid


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


@pytest.mark.parametrize("beta", [0.0, 1.0, -0.1, math.nan])
def test_betas_lie_strictly_between_0_and_1(beta: float) -> None:
    with pytest.raises(LeaderError, match="strictly between 0 and 1"):
        Schedule(torch.tensor([0.1, beta, 0.2]))


def test_the_standard_clock_is_one_table_not_one_length() -> None:
    assert Schedule.linear().standard and not Schedule.cosine(1000).standard
    assert not Schedule.linear(1e-4, 2.1e-2).standard and not Schedule.linear(steps=999).standard


@pytest.mark.parametrize("schedule", [Schedule.cosine(50), Schedule.linear(1e-3, 0.2, 100)])
def test_a_time_of_the_clock_is_the_one_with_its_noise_on_any_schedule(schedule: Schedule) -> None:
    clock = Schedule.linear().log_noise
    for time in (0, 30, 400, 700, 999, 5000):
        wanted = clock[min(time, 999)]
        found = schedule.at_clock(time)
        assert float((schedule.log_noise[found] - wanted).abs()) == float((schedule.log_noise - wanted).abs().min())
    assert Schedule.linear().at_clock(5000) == 999


def test_little_noise_has_a_time_of_its_own_where_the_schedule_knows_so_little() -> None:
    fine = Schedule.linear(1e-6, 2e-2)
    assert fine.nearest(1e-3) == 0 < fine.nearest(1e-2) and fine.nearest(0.0) == 0


def test_a_noise_grid_of_another_length_has_the_same_noise_levels() -> None:
    whole, half = make_grid("noise", 6, Schedule.linear()), noise_grid(6, 500)
    assert whole.times[0] == 999 and half.times[0] == 499 and half.times[-2:] == (0, -1)
    assert all(abs(2 * b - a) <= 2 or b < 6 for a, b in zip(whole.times[:-1], half.times[:-1], strict=True))


def test_time_travel_visits_its_times_again_on_every_schedule() -> None:
    def build(count: int, total: int) -> Grid:
        return travel_grid(count, 3, 2, total)

    found, standard = grid_on(Schedule.cosine(1000), 10, build), build(10, 1000)
    assert found.clock == standard.times and found.visits == standard.visits
    assert found.times[:4] == tuple(Schedule.cosine(1000).at_clock(time) for time in standard.times[:4])


@pytest.mark.parametrize("times", [(5, -1, 3, -1), (-2, -1), (5, -1, -1)])
def test_only_the_last_time_is_the_clean_image(times: tuple[int, ...]) -> None:
    with pytest.raises(LeaderError, match="must end in -1"):
        Grid(times)
