"""The pieces of benchmarks/front that decide what is compared with what."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from leader import Problem, Schedule
from leader.errors import LeaderError
from leader.methods import Context, make_method
from leader.priors.ask import Ask

FOLDER = Path(__file__).parents[2] / "benchmarks" / "front"


@pytest.fixture(scope="module")
def parts() -> Any:
    """The modules of the benchmark, which is a program and not a package."""
    sys.path.insert(0, str(FOLDER))
    try:
        names = ("measure", "points", "scores", "recipes", "lengths")
        modules: dict[str, ModuleType] = {name: __import__(name) for name in names}
        yield type("Parts", (), modules)
    finally:
        sys.path.remove(str(FOLDER))


@pytest.mark.parametrize("kind", ["uniform", "quadratic", "cube"])
def test_times_fall_from_the_top_to_zero_without_repeating(parts: Any, kind: str) -> None:
    for count, top in ((2, 990), (25, 990), (12, 100), (9, 8), (50, 300)):
        times = parts.points.spaced(kind, count, top, Schedule.linear())
        assert len(times) == count and times[0] == top and times[-1] == 0
        assert times == sorted(set(times), reverse=True)


def test_cube_is_equally_spaced_in_the_cube_root_of_the_noise(parts: Any) -> None:
    schedule = Schedule.linear()
    times = torch.tensor(parts.points.spaced("cube", 6, 900, schedule))
    roots = schedule.level(times).sigma.flatten() ** (1 / 3)
    steps = roots[:-1] - roots[1:]
    assert torch.allclose(steps, steps.mean().expand_as(steps), rtol=0.02)


def test_late_start_jumps_from_the_top_and_counts_that_call(parts: Any) -> None:
    times = parts.points.times_of("uniform", 10, parts.points.Start("late", 200))
    assert times[:2] == (990, 200) and times[-2:] == (0, -1) and len(times) == 11
    assert parts.points.Start.parse("late 200") == parts.points.Start("late", 200)


def test_uniform_grid_from_the_top_is_that_of_the_package(parts: Any) -> None:
    from leader.schedule import Schedule, make_grid

    assert parts.points.times_of("uniform", 30, parts.points.Start()) == make_grid("uniform", 30, Schedule.linear()).times


@pytest.mark.parametrize("method", ["ddnm", "ddpg", "projdiff", "diffpir"])
@pytest.mark.parametrize("task", ["gaussian", "sr", "inpaint"])
def test_every_host_begins_at_the_same_state_when_it_starts_from_the_data(parts: Any, method: str, task: str) -> None:
    """What the host makes of x_T is sqrt(abar) A^+ y plus noise of the level, whatever it adds by itself."""
    points, measure = parts.points, parts.measure
    sigma = points.TASKS[task].sigma
    operator = points.TASKS[task].operator(0)
    problem = Problem(operator.A(torch.rand(1, 3, 128, 128, generator=torch.Generator().manual_seed(1))), operator, sigma)
    point = points.Point(task, method, {}, (200, 0, -1), "uniform", points.Start("data", 200))
    x_T = measure.beginning(point, problem)
    prior = points.prior()
    context = Context(Ask(prior, prior.predict), problem, prior.schedule, lambda name: x_T if name == "start" else x_T * 0)
    state = make_method(method, {}).start(context, torch.tensor([200]))
    level = prior.schedule.level(torch.tensor([200]), problem.y)
    rest = (state.x - level.signal * measure.backprojection(problem)) / level.noise
    assert abs(float(rest.std()) - 1) < 0.02 and abs(float(rest.mean())) < 0.02
    reference = measure.beginning(points.Point(task, "ddnm", {}, (200, 0, -1), "uniform", points.Start("data", 200)), problem)
    assert torch.allclose(state.x, reference, atol=1e-4)


def test_most_times_that_fit_into_the_work(parts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts.recipes, "table_of_work", lambda: {t: 1.0 if t < 300 else 0.1 for t in range(0, 1000, 20)})
    recipe = parts.recipes.Recipe("ddnm", {}, "quadratic", parts.points.Start(), None)
    count = parts.recipes.fitting(recipe, 14.4)
    costs = [
        parts.recipes.expected_cost(recipe, parts.points.times_of("quadratic", n, recipe.start)) for n in (count, count + 1)
    ]
    assert costs[0] <= 14.4 < costs[1]


def _mean(parts: Any, name: str, psnr: float, lpips: float, cost: float) -> Any:
    row = {"method": name, "plugins": [], "settings": {}, "grid": "uniform", "start": "top"}
    return parts.scores.Mean(name, row, 4, psnr, lpips, 25, cost, cost, 1.0, 1.0)


def test_front_keeps_what_nothing_beats_for_no_more_work(parts: Any) -> None:
    cheap, good, beaten, sharp = (
        _mean(parts, *values)
        for values in (("cheap", 25, 0.3, 5), ("good", 27, 0.2, 15), ("beaten", 26, 0.25, 20), ("sharp", 24, 0.1, 30))
    )
    assert parts.scores.front([sharp, beaten, good, cheap]) == [cheap, good, sharp]
    assert parts.scores.pareto([sharp, beaten, good, cheap]) == [good, sharp]


def test_means_compare_the_same_photographs_only(parts: Any) -> None:
    def row(group: str, index: int, **more: Any) -> dict[str, Any]:
        numbers = {"psnr": 20.0 + index, "lpips": 0.1, "calls": 1, "work": 1, "cost": 1, "seconds": 1, "cpu": 1}
        return {"group": group, "index": index, **numbers, **more}

    rows = [row("a", 0), row("a", 1), row("b", 0), {"group": "c", "index": 0, "error": "no"}, row("c", 1)]
    found = {mean.group: mean for mean in parts.scores.means(rows, range(2))}
    assert set(found) == {"a", "c"}
    assert found["a"].psnr == 20.5 and found["c"].score == float("-inf")


def test_records_survive_a_torn_line_and_are_not_run_again(parts: Any, tmp_path: Path) -> None:
    path = tmp_path / "front-x.jsonl"
    parts.measure.Records(path).append({"key": "a", "cell": "a", "psnr": 1.0})
    with path.open("a", encoding="utf-8") as file:
        file.write('{"key": "torn"')
    records = parts.measure.Records(path, [{"key": "k", "cell": "k"}])
    assert set(records.rows) == {"a"} and records.find("k") is not None and records.find("torn") is None
    records.append({"key": "b", "cell": "b"})
    assert set(parts.measure.Records(path).rows) == {"a", "b"}


def test_unknown_starts_are_refused(parts: Any) -> None:
    with pytest.raises(LeaderError, match="top, late or data"):
        parts.points.Start("middle", 3)
