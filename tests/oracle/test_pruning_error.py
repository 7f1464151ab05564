"""Proposition 4.2, as far as it is true.

As the paper states it the bound cannot fail (its constant is about 4e8) and its limit B -> 0 leaves the floor of the grid. What
holds on the probability flow of a Gaussian prior, whose exact solution is known: the discrete Gronwall inequality with measured
terms, first-order convergence in the number of steps, and an error that falls with B on a fine grid.
"""

from itertools import pairwise

import pytest
from experiments.pruning_error import make_prior, measure


@pytest.mark.parametrize("budget", [0.0, 0.001, 0.01, 0.05])
def test_discrete_gronwall_holds_and_is_tight(budget: float) -> None:
    _, error, bound, _ = measure(make_prior(1000), 100, budget)
    assert error <= bound * (1 + 1e-9)
    assert bound <= 2 * error


@pytest.mark.parametrize(
    "counts", [(50, 500), pytest.param((100, 1000, 10_000), marks=pytest.mark.slow)], ids=["short", "long"]
)
def test_error_is_first_order_in_the_step(counts: tuple[int, ...]) -> None:
    prior = make_prior(10_000)
    errors = [measure(prior, steps, 0.0)[1] for steps in counts]
    for coarse, fine in pairwise(errors):
        assert 7.5 <= coarse / fine <= 12.5


@pytest.mark.parametrize("count", [1000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_error_falls_with_the_budget_on_a_fine_grid(count: int) -> None:
    prior = make_prior(10_000)
    errors = [measure(prior, count, budget)[1] for budget in (0.1, 0.03, 0.01, 0.003, 0.0)]
    assert all(more > less for more, less in pairwise(errors))


def test_a_floor_remains_on_a_fixed_grid() -> None:
    prior = make_prior(1000)
    floor = measure(prior, 100, 0.0)[1]
    assert measure(prior, 100, 1e-6)[1] == floor > 1e-3
