"""The schedule against published reference values, and the grids against their published lists."""

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
import torch

from leader.errors import LeaderError
from leader.schedule import (
    Grid,
    Schedule,
    grid_on,
    linspace_grid,
    make_grid,
    noise_grid,
    quadratic_grid,
    respaced_grid,
    travel_grid,
    uniform_grid,
)

REFERENCE = {0: 0.9999, 100: 0.89514159, 200: 0.65634701, 500: 0.077796658, 999: 4.0358298e-5}


@pytest.mark.parametrize(("t", "value"), REFERENCE.items())
def test_linear_table(t: int, value: float) -> None:
    assert float(Schedule.linear().abar(t)) == pytest.approx(value, rel=1e-7)


def test_uniform_grid_is_the_papers() -> None:
    grid = uniform_grid(100)
    assert grid.times[:3] == (990, 980, 970) and grid.times[-3:] == (10, 0, -1) and grid.visits == 100


@pytest.mark.parametrize(("length", "repeats", "calls"), [(1, 1, 100), (1, 2, 199), (2, 2, 198), (10, 3, 280), (10, 10, 910)])
def test_time_travel_costs_what_was_published(length: int, repeats: int, calls: int) -> None:
    grid = travel_grid(100, length, repeats)
    assert grid.visits == calls and grid.times[-2:] == (0, -1)


def test_respaced_grid_is_the_published_list() -> None:
    grid = respaced_grid(100)
    assert grid.times[:2] == (999, 989) and grid.times[-4:] == (20, 10, 0, -1)


@pytest.mark.parametrize("count", [1, 7, 93, 100, 1000])
def test_quadratic_grid_strictly_decreases(count: int) -> None:
    times = quadratic_grid(count).times
    assert len(times) == count + 1 and all(a > b for a, b in pairwise(times))
    assert times[0] == 999 or count == 1


def test_linspace_grid() -> None:
    grid = linspace_grid(93)
    assert grid.times[0] == 990 and grid.times[-2:] == (0, -1) and len(grid.times) == 94


def test_run_ends_stop_at_turning_points() -> None:
    grid = Grid((5, 3, 4, 2, 0, -1))
    assert grid.run_ends == (1, 1, 4, 4, 4, 4)


@pytest.mark.parametrize("name", ["uniform", "quadratic", "noise"])
def test_times_that_coincide_on_a_short_schedule_are_visited_once(name: str) -> None:
    schedule = Schedule.cosine(20)
    grid = make_grid(name, 18, schedule)
    assert all(now > after for now, after in pairwise(grid.times)) and grid.visits < 18
    assert tuple(schedule.at_clock(time) for time in grid.clock[:-1]) == grid.times[:-1]


def test_a_noise_grid_has_evenly_spaced_cube_roots_of_the_noise_and_a_quadratic_one_square_roots_of_the_time() -> None:
    clock = Schedule.linear()
    roots = clock.log_noise[list(make_grid("noise", 9, clock).times[:-1])].div(6).exp()
    assert torch.allclose(roots.diff(), roots.diff().mean(), rtol=0.02)
    times = torch.tensor(quadratic_grid(9).times[:-1], dtype=torch.float64)
    assert torch.allclose(times.sqrt().diff(), -times.sqrt()[0] / 8, atol=0.1)


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


@pytest.mark.parametrize(
    ("make", "argument", "message"),
    [
        *((Grid, times, "must end in -1") for times in ((5, 3), (-1,), (5, -1, -1))),
        (lambda clock: Grid((5, 3, -1), clock=clock), (1, 2), "equal lengths"),
        *((uniform_grid, count, "between 1 and 1000") for count in (0, 1001)),
        (lambda name: make_grid(name, 10, Schedule.linear()), "quadratik", "did you mean 'quadratic'"),
        (lambda length: travel_grid(10, length, 2), 0, "at least 1"),
        *(
            (lambda beta: Schedule(torch.tensor([0.1, beta])), b, "strictly between 0 and 1")
            for b in (0.0, 1.0, -0.1, math.nan)
        ),
    ],
)
def test_wrong_grids_and_betas_are_refused(make: Callable[[Any], object], argument: Any, message: str) -> None:
    with pytest.raises(LeaderError, match=message):
        make(argument)
