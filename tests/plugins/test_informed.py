"""The informed plug-ins, start, pace, Wiener and cells, against dense algebra on Gaussian priors with correlated pixels; other
clocks, batches, draws, and what is remembered between runs.
"""

import math
from itertools import pairwise

import pytest
import torch

from leader import Grid, LeaderError, Problem, Sampler
from leader.methods import METHODS
from leader.operators import (
    BicubicSR,
    Blur,
    FromFunctions,
    Inpainting,
    Jpeg,
    LinearOperator,
    gaussian_kernel,
    random_mask,
)
from leader.plugins import Cells, Pace, Start, StepInfo, Wiener
from leader.plugins.informed import FIRST_LABEL, by_time, informed_time, left_open, open_variances
from leader.plugins.pace import even_times
from leader.plugins.wiener import component_variances
from leader.priors.base import Prior
from leader.priors.gaussian import GaussianPrior, stationary
from leader.schedule import Schedule, quadratic_grid, uniform_grid
from tests.cheap_prior import CheapPrior

SHAPE = (3, 8, 8)
SIGMA = 0.1


def hole(side: int) -> torch.Tensor:
    mask = torch.ones(8, 8)
    mask[:side, :side] = 0
    return mask


OPERATORS: dict[str, LinearOperator] = {
    "sr": BicubicSR(SHAPE, 2),
    "blur": Blur(SHAPE, gaussian_kernel(1.0)),
    "inpaint": Inpainting(SHAPE, random_mask(8, 8, 0.5, 1)),
}


def prior_of() -> GaussianPrior:
    return GaussianPrior(stationary(SHAPE, 0.5))


def problem_of(operator: LinearOperator, sigma: float = SIGMA, seed: int = 0) -> Problem:
    x = stationary(SHAPE, 0.5).sample(1, torch.Generator().manual_seed(seed))
    y = operator.A(x)
    return Problem.internal(
        y + sigma * torch.randn(y.shape, generator=torch.Generator().manual_seed(9)).double(), operator, sigma
    )


def lost(schedule: Schedule, values: torch.Tensor, t: int) -> float:
    abar = float(schedule.abar(t))
    r = values * abar / (1 - abar)
    return float((values * r**2 / (1 + r) ** 2).sum() / values.sum())


@pytest.mark.parametrize("name", OPERATORS)
def test_the_time_is_that_of_dense_algebra(name: str) -> None:
    prior, problem = prior_of(), problem_of(OPERATORS[name])
    _, cov = prior.gaussian.posterior(problem.operator, problem.y[0], SIGMA)
    values = torch.linalg.eigvalsh(cov).clamp_min(0)
    exact = informed_time(prior.schedule, values, torch.ones_like(values), 0.05)
    assert lost(prior.schedule, values, exact) <= 0.05 < lost(prior.schedule, values, exact - 1)
    # one probe over 192 coordinates sees the spectrum to some ten per cent, and s_t^2 doubles within 60 times there
    assert abs(Start().first(prior, problem) - exact) <= 40
    assert informed_time(prior.schedule, torch.tensor([1e-9]), torch.tensor([1.0]), 0.05) == 0, "nothing is left open"
    assert Start(share=0.3).first(prior, problem) < Start().first(prior, problem) < Start(share=0.005).first(prior, problem)
    spread = Start(spread=True).grid(uniform_grid(20), prior, problem)
    assert spread.labels == by_time(spread).labels, "draws belong to times"


def test_a_cut_grid_keeps_times_draws_and_never_rises() -> None:
    whole = uniform_grid(100)
    short = whole.cut(175)
    assert short.times[:3] == (180, 170, 160) and short.labels[0] == whole.times.index(180) and short.times[-1] == -1
    travelling = Grid((900, 500, 300, 500, 300, 100, 0, -1)).cut(250)
    assert max(travelling.times) == 300 and travelling.times == (300, 100, 0, -1)
    assert whole.cut(2000).times == whole.times


@pytest.mark.parametrize("method", ["ddnm", "projdiff", "dps"])
@pytest.mark.parametrize("sigma", [0.0, SIGMA])
def test_hosts_begin_late_and_none_gets_worse(method: str, sigma: float) -> None:
    """DPS, whose scale is tuned to whole paths, begins at the top; calls are those of the cut grid."""
    prior = prior_of()
    truth = stationary(SHAPE, 0.5).sample(1, torch.Generator().manual_seed(0))
    problem = problem_of(OPERATORS["sr"], sigma)
    runs = {
        name: Sampler(prior, method, plugins, 25, estimator=None, use_presets=False).run(problem)
        for name, plugins in (("whole", ()), ("late", (Start(),)))
    }
    late, whole = runs["late"].ledger.total.calls, runs["whole"].ledger.total.calls
    first = runs["late"].trace[0][0].t
    if not METHODS[method].takes_origin:
        assert late == whole and torch.equal(runs["late"].images, runs["whole"].images)
        return
    assert late < whole and first < 500
    errors = {name: float((run.images - truth).square().mean()) for name, run in runs.items()}
    assert errors["late"] < 1.35 * errors["whole"]


def test_images_of_a_batch_begin_at_their_own_times() -> None:
    prior = prior_of()
    masks = torch.stack([hole(1), hole(7)])[:, None]
    x = stationary(SHAPE, 0.5).sample(2, torch.Generator().manual_seed(0))
    operator = Inpainting(SHAPE, masks)
    both = Problem.internal(operator.A(x), operator)
    result = Sampler(prior, "ddnm", (Start(),), 50, use_presets=False).run(both)
    small, large = (result.trace[i][0].t for i in (0, 1))
    assert small < large
    for row in (0, 1):
        alone = Sampler(prior, "ddnm", (Start(),), 50, use_presets=False).run(both.select(torch.tensor([row])), ids=[row])
        assert torch.equal(alone.images[0], result.images[row])


@pytest.mark.parametrize("name", OPERATORS)
def test_what_is_left_open_is_the_trace_of_dense_algebra(name: str) -> None:
    prior, problem = prior_of(), problem_of(OPERATORS[name])
    _, cov = prior.gaussian.posterior(problem.operator, problem.y[0], SIGMA)
    values = torch.linalg.eigvalsh(cov).clamp_min(0)
    found = left_open(prior.schedule, values, torch.ones_like(values))
    for t in (0, 50, 300, 999):
        abar = float(prior.schedule.abar(t))
        given_both = torch.linalg.inv(torch.linalg.inv(cov) + torch.eye(len(cov)) * abar / (1 - abar))
        assert float(found[t]) == pytest.approx(float(given_both.trace()), rel=1e-6)
    assert (found.diff() >= 0).all() and float(found[999]) <= float(values.sum())
    # one probe weighs the eigenvalues at random: V relative to its top is seen to some ten per cent
    seen = left_open(prior.schedule, *open_variances(prior, problem))
    assert torch.allclose(seen / seen[-1], found / found[-1], atol=0.1)


def test_times_spend_a_density_evenly() -> None:
    assert even_times(torch.ones(100), 5) == (100, 75, 50, 25, 0)
    early = torch.cat([torch.full((50,), 0.01), torch.ones(50)])  # the lower half has little to learn
    times = even_times(early, 6)
    assert times[0] == 100 and times[-1] == 0 and sum(t > 50 for t in times) >= 5
    crowded = even_times(torch.cat([torch.ones(2), torch.zeros(8)]), 11)
    assert crowded == tuple(range(10, -1, -1))
    assert even_times(torch.ones(7), 1) == (7,)


def test_pacing_keeps_the_first_time_and_the_calls_and_spends_v_evenly() -> None:
    prior, problem = prior_of(), problem_of(OPERATORS["sr"])
    grid = Pace().grid(quadratic_grid(12), prior, problem)
    assert grid.times[0] == 999 and grid.times[-2:] == (0, -1) and grid.visits == 12
    v = left_open(prior.schedule, *open_variances(prior, problem))
    drops = torch.tensor([float(v[now] - v[after]) for now, after in pairwise(grid.times[:-1])])
    uniform = uniform_grid(12).times
    plain = torch.tensor([float(v[now] - v[max(after, 0)]) for now, after in pairwise(uniform)])
    assert float(drops.std() / drops.mean()) < 0.1 < float(plain.std() / plain.mean())
    other = Pace(power=0.0).grid(quadratic_grid(12), prior, problem)
    noise = prior.schedule.log_noise[list(other.times[:6])].diff()
    assert torch.allclose(noise, noise.mean(), rtol=0.15)  # equal steps of log noise, up to whole times
    shared = set(zip(grid.times, grid.labels)) & set(zip(other.times, other.labels))
    assert {time for time, _ in shared} == set(grid.times) & set(other.times)  # draws belong to times, not positions


def test_the_variance_of_a_component_is_about_the_mean() -> None:
    grey, bright = (GaussianPrior(stationary(SHAPE, 0.5, mean=mean)) for mean in (0.0, 0.7))
    operator = BicubicSR(SHAPE, 2)
    assert torch.allclose(component_variances(bright, operator, SHAPE), component_variances(grey, operator, SHAPE))
    waves = component_variances(grey, Blur(SHAPE, torch.ones(1, 1)), SHAPE)  # 64 draws: a mean of 192 ratios to 1.3 %
    assert float((waves / grey.gaussian.variances).mean()) == pytest.approx(1, abs=0.1)


def noise_of(schedule: Schedule, t: int) -> float:
    """log s_t, from the betas."""
    abar = math.prod(1 - beta for beta in schedule.betas[: t + 1].tolist())
    return 0.5 * math.log((1 - abar) / abar)


def cosine_prior() -> GaussianPrior:
    return GaussianPrior(stationary(SHAPE, 0.5), Schedule.cosine(500))


def clocks(schedule: Schedule, times: tuple[int, ...]) -> list[int]:
    """The times of the linear schedule of 1000 steps that have the noise of these."""
    linear = [noise_of(Schedule.linear(), t) for t in range(1000)]
    found = []
    for time in times:
        distances = [abs(noise_of(schedule, time) - other) for other in linear]
        found.append(distances.index(min(distances)))
    return found


def test_times_are_those_of_the_standard_clock_on_every_schedule() -> None:
    prior, problem = cosine_prior(), problem_of(OPERATORS["sr"])
    distances = [abs(noise_of(prior.schedule, t) - noise_of(Schedule.linear(), 200)) for t in range(500)]
    assert Start(time=200).first(prior, problem) == distances.index(min(distances)) != 200
    assert Start(time=0).first(prior, problem) == 0
    spread = Start(time=200, spread=True).grid(uniform_grid(15), prior, problem)
    assert abs(spread.clock[0] - 200) <= 2 and spread.visits == 15
    assert clocks(prior.schedule, spread.times[:3]) == pytest.approx(spread.clock[:3], abs=2)
    paced = Pace().grid(Grid((300, 200, 100, 0, -1)), prior, problem)
    assert list(paced.clock[:-1]) == clocks(prior.schedule, paced.times[:-1]) and paced.clock[-1] == -1


def test_the_cost_of_a_step_is_that_of_the_call_it_starts_from() -> None:
    class Dear(GaussianPrior):
        def work(self, t: int, height: int, width: int) -> float:
            return 1000.0 if t == 5 else 1.0

    problem = problem_of(OPERATORS["sr"])
    times = Pace(power=0.0).grid(Grid((9, 6, 3, 0, -1)), Dear(stationary(SHAPE, 0.5)), problem).times
    # from 5 to 4 hardly anything may be spent: as if there were no such step, the sum of the others is cut into three
    plain = Schedule.linear().log_noise.diff()[:9].tolist()
    plain[4] /= 1000
    total = [sum(plain[:k]) for k in range(10)]
    wanted = [min(range(10), key=lambda k: abs(total[k] - total[9] * share)) for share in (2 / 3, 1 / 3)]
    assert times == (9, *wanted, 0, -1)


def test_a_drawn_start_is_that_of_dense_algebra_for_each_image() -> None:
    prior, operator = prior_of(), BicubicSR(SHAPE, 2)
    generator = torch.Generator().manual_seed(1)
    y = operator.A(prior.gaussian.sample(2, generator))
    problem = Problem.internal(y, operator, SIGMA)
    draws = {name: torch.randn(2, *SHAPE, generator=generator).double() for name in ("origin", "origin-noise")}
    found = Start(draw=True).origin(prior, problem, lambda name: draws[name])
    for row in range(2):
        free = prior.gaussian.scale(draws["origin"][row], prior.gaussian.variances.sqrt())
        noise = draws["origin-noise"][row].flatten()[: y[0].numel()].reshape(y[0].shape)
        target = y[row] - SIGMA * noise - operator.A(free[None])[0]
        moved = prior.gaussian.posterior(operator, target, SIGMA)[0]
        assert torch.allclose(found[row], free + moved, atol=5e-3)
    means = Start().origin(prior, problem, lambda name: draws[name])
    for row in range(2):
        assert torch.allclose(means[row], prior.gaussian.posterior(operator, y[row], SIGMA)[0], atol=2e-3)


def jpeg_problem(sigma: float = 0.1) -> tuple[Jpeg, Problem]:
    operator = Jpeg((1, 8, 8), torch.full((8, 8), 40.0), level=sigma / 2)
    x = torch.rand(1, 1, 8, 8, generator=torch.Generator().manual_seed(2), dtype=torch.float64) * 2 - 1
    return operator, Problem.internal(operator.A(x), operator, sigma)


def test_only_an_answer_without_any_data_step_is_held_in_the_inner_cell() -> None:
    operator, problem = jpeg_problem()
    x0 = torch.zeros(1, 1, 8, 8, dtype=torch.float64)
    moved = x0 + 0.3 * torch.rand(x0.shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    moved[0, 0, 4, 4] = 0
    plugin = Cells(inner=0.25)
    for answer, share in ((x0, 0.25), (moved, 1.0)):
        found = plugin.settle(x0, answer, CheapPrior(), problem)
        assert torch.allclose(found, operator.confine(answer, problem.y, share))
    assert not torch.allclose(operator.confine(moved, problem.y, 0.25), operator.confine(moved, problem.y, 1.0))


def test_a_jpeg_begins_from_what_it_decodes_to_and_visits_levels_with_equal_ratios() -> None:
    operator, problem = jpeg_problem()
    prior, plugin = CheapPrior(), Cells(begin=8.0, end=0.5)
    origin = plugin.origin(prior, problem, lambda name: torch.zeros(()))
    assert origin is not None and torch.equal(origin, operator.decoded(problem.y))
    grid = plugin.grid(uniform_grid(5), prior, problem)
    assert grid.times == (*(prior.schedule.nearest(level) for level in (0.8, 0.4, 0.2, 0.1, 0.05)), -1)
    assert grid.labels[0] == FIRST_LABEL + grid.times[0]
    assert plugin.grid(uniform_grid(1), prior, problem).times == (prior.schedule.nearest(0.8), -1)


def test_with_a_doubt_estimates_become_means_within_the_cells() -> None:
    operator, problem = jpeg_problem()
    x0 = torch.rand(1, 1, 8, 8, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    sigma = torch.full_like(x0, 0.03)
    info = StepInfo([0], [0], [0], torch.tensor([5]), [])
    found = Cells(doubt=2.0, enlarge_luma=0.5).modulate(x0, sigma, info, problem)
    larger = operator.enlarge_open(x0, 0.5, 0.0)
    assert torch.allclose(found, operator.expect(larger, problem.y, torch.full((1, 64), 0.12, dtype=torch.float64)))
    assert torch.equal(Cells().modulate(x0, sigma, info, problem), x0)


def test_draws_belong_to_the_times_of_the_schedule_not_to_the_clock() -> None:
    grid = by_time(Grid((5, 2, -1), clock=(50, 20, -1)))
    assert grid.labels == (FIRST_LABEL + 5, FIRST_LABEL + 2, FIRST_LABEL - 1) and grid.clock == (50, 20, -1)


def test_pacing_begins_from_the_second_time_too_and_refuses_every_travel() -> None:
    prior, problem = prior_of(), problem_of(OPERATORS["sr"])
    assert Pace().grid(Grid((1, 0, -1)), prior, problem).labels == (FIRST_LABEL + 1, FIRST_LABEL, FIRST_LABEL - 1)
    assert Pace().grid(Grid((0, -1)), prior, problem).labels == (0, 1)
    for times in ((200, 300, 100, -1), (300, 200, 250, -1)):
        with pytest.raises(LeaderError, match="only descend"):
            Pace().grid(Grid(times), prior, problem)


def test_a_variance_that_rounding_made_negative_counts_as_none() -> None:
    schedule, weights = Schedule.linear(), torch.ones(2)
    found = left_open(schedule, torch.tensor([-0.5, 1.0]), weights)
    assert torch.equal(found, left_open(schedule, torch.tensor([0.0, 1.0]), weights)) and float(found.min()) > 0


def test_the_wiener_factor_is_that_of_its_formula_for_every_prior_kernel_and_noise_level() -> None:
    """Nothing that is remembered of one is taken for another's; the change is weakened, not the picture."""
    x0, change = torch.full((2, *SHAPE), 0.3), torch.randn(2, *SHAPE, generator=torch.Generator().manual_seed(0))
    operators = [Blur(SHAPE, kernel) for kernel in (gaussian_kernel(0.6), gaussian_kernel(2.0), torch.ones(1, 5) / 5)]
    priors = [GaussianPrior(stationary(SHAPE, std)) for std in (0.05, 1.0)]
    for prior, operator in 2 * [(prior, operator) for prior in priors for operator in operators]:
        problem = Problem.internal(x0, operator, torch.tensor([0.1, 0.4]))
        found = Wiener(trust=3.0).settle(x0, x0 + change, prior, problem)
        power = 3.0 * operator.s**2 * component_variances(prior, operator, SHAPE)
        for row, sigma in enumerate((0.1, 0.4)):
            gain = (power / (power + sigma**2))[0].to(torch.complex64)
            assert torch.allclose(found[row], (x0[:1] + operator.back(gain * operator.to(change[row, None])))[0], atol=1e-5)


def test_the_wiener_factor_leaves_clean_data_and_operators_without_an_svd_alone() -> None:
    prior, x = prior_of(), torch.randn(1, *SHAPE, generator=torch.Generator().manual_seed(0))
    clean = Problem.internal(x, Blur(SHAPE, gaussian_kernel(3.0, 7)), 0.0)
    unknown = Problem.internal(x, FromFunctions(SHAPE, torch.clone, torch.clone), 0.3)
    for problem in (clean, unknown):
        assert Wiener().settle(torch.zeros_like(x), x, prior, problem) is x


def test_more_steps_than_there_are_times_below_the_start() -> None:
    prior, problem = prior_of(), problem_of(OPERATORS["sr"])
    spread = Start(time=9, spread=True).grid(uniform_grid(100), prior, problem)
    assert spread.times == (*range(9, -1, -1), -1)
    paced = Pace().grid(Grid((*range(9, -1, -1), -1)), prior, problem)
    assert paced.times == (*range(9, -1, -1), -1)


def test_a_measurement_larger_than_the_image_has_no_drawn_start() -> None:
    def twice(x: torch.Tensor) -> torch.Tensor:
        return torch.cat([x, x], 1)

    operator = FromFunctions(SHAPE, twice, lambda y: y[:, :3] + y[:, 3:])
    y = torch.zeros(2, 6, 8, 8)
    draws = torch.zeros(2, *SHAPE)
    with pytest.raises(LeaderError, match="no larger than the image"):
        Start(draw=True).origin(prior_of(), Problem.internal(y, operator, SIGMA), lambda _: draws)


def test_what_needs_a_spectrum_says_so() -> None:
    class Plain(Prior):
        name = "plain"

    plain, x = Plain(Schedule.linear()), torch.zeros(1, *SHAPE)
    problem = problem_of(OPERATORS["blur"])
    for ask in (lambda: Pace().grid(quadratic_grid(5), plain, problem), lambda: Wiener().settle(x, x, plain, problem)):
        with pytest.raises(LeaderError, match="'plain' has no spectrum"):
            ask()
