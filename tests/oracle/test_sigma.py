"""Sigma_t: closed forms, the estimators against them on white, correlated and mixture priors, and what they cost in a run."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from leader import Grid, Result, Sampler, Step
from leader.errors import LeaderError
from leader.priors.ask import Ask
from leader.priors.base import Prediction
from leader.priors.gaussian import GaussianMixturePrior
from leader.priors.ledger import Ledger, recording
from leader.uncertainty.estimators import (
    Difference,
    Hutchinson,
    describe,
    exact,
    local_mean,
    make_estimator,
    noise_energy,
    predicted,
    present_name,
    read_estimator,
)
from tests.oracle.cases import gaussian, mixture, states
from tests.oracle.scenes import Scene, scene

SHAPE = (1, 4, 5)
PRIORS: dict[str, Callable[[], GaussianMixturePrior]] = {
    "white": lambda: gaussian("white", SHAPE),
    "correlated": lambda: gaussian("correlated", SHAPE),
    "four": lambda: gaussian("four", SHAPE),
    "mixture": lambda: mixture(SHAPE),
}


@pytest.mark.parametrize("name", PRIORS)
@pytest.mark.parametrize("t", [5, 200, 600])
def test_exact_estimator_equals_the_closed_form(name: str, t: int) -> None:
    prior = PRIORS[name]()
    times = torch.tensor([t, t])
    x = states(prior, t, 2)
    prediction = prior.predict(x, times)
    assert prediction.variance is not None
    sigma = exact(Ask(prior), x, times, prediction, [0, 1])
    assert torch.allclose(sigma, prediction.variance, rtol=1e-8, atol=1e-10)


SMALL = (1, 9, 11)


def window_mean(
    values: np.ndarray[tuple[int, ...], np.dtype[np.float64]], side: int
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """The mean over what lies inside the image, pixel by pixel."""
    height, width = values.shape
    out, half = np.empty_like(values), side // 2
    for i in range(height):
        for j in range(width):
            out[i, j] = values[max(0, i - half) : i + half + 1, max(0, j - half) : j + half + 1].mean()
    return out


def test_local_means_leave_out_what_lies_outside() -> None:
    values = torch.rand(1, *SMALL, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert np.allclose(local_mean(values)[0, 0].numpy(), window_mean(values[0, 0].numpy(), 7))
    assert torch.allclose(local_mean(torch.ones(1, 1, 9, 9)), torch.ones(1))


def test_noise_energy_is_the_square_of_s_times_what_the_noise_lacks() -> None:
    prior, t = gaussian("correlated", SMALL), torch.tensor([300])
    x = states(prior, 300, 1)
    prediction = prior.predict(x, t)
    abar = float(prior.schedule.abar(300))
    eps = prediction.eps[0, 0].numpy()
    expected = (1 - abar) / abar * (1 - window_mean(eps**2, 7))
    assert np.allclose(noise_energy(Ask(prior), x, t, prediction, [0])[0, 0].numpy(), expected, rtol=1e-6)


def test_difference_starts_at_one_and_remembers_half() -> None:
    prior, estimator = gaussian("white", SMALL), Difference()
    zero = torch.zeros(1, *SMALL)

    def visit(value: float, image: int = 0) -> float:
        x0 = torch.full((1, *SMALL), value)
        sigma = estimator(Ask(prior), zero, torch.tensor([5]), Prediction(x0, zero), [image])
        return float(sigma.mean())

    assert visit(0.0) == 1.0
    assert abs(visit(0.2) - (0.5 * 1.0 + 0.04)) < 1e-6
    assert abs(visit(0.5) - (0.5 * 0.54 + 0.09)) < 1e-6
    assert visit(0.5, image=1) == 1.0, "another image has a memory of its own"


def test_the_number_of_probes_is_that_of_jvps_and_they_are_averaged() -> None:
    prior, t = gaussian("white", SMALL), torch.tensor([300])
    x = states(prior, 300, 1)
    prediction = prior.predict(x, t)
    assert prediction.variance is not None
    with recording(Ledger()) as ledger:
        sigma = make_estimator("hutchinson", prior, probes=3)(Ask(prior), x, t, prediction, [0])
    assert ledger.total.jvps == 3 and ledger.total.calls == 0
    assert torch.allclose(sigma, prediction.variance.double(), rtol=1e-6), "exact where pixels are independent"
    assert torch.allclose(Hutchinson(1)(Ask(prior), x, t, prediction, [0]), sigma, rtol=1e-6)


class Linear(Ask):
    """x0 = J x with a fixed J that mixes every pixel, so that probes show in the answer."""

    def __init__(self) -> None:
        super().__init__(gaussian("white", SMALL))
        generator = torch.Generator().manual_seed(3)
        self.matrix = torch.randn(99, 99, generator=generator) / 10 + torch.eye(99)
        self.asked: list[torch.Tensor] = []

    def jvp(self, x: torch.Tensor, t: torch.Tensor, direction: torch.Tensor) -> torch.Tensor:
        self.asked.append(direction)
        return (direction.flatten(1) @ self.matrix.T).reshape(x.shape)


@pytest.mark.parametrize("window", [1, 3, 7])
def test_hutchinson_is_the_local_mean_of_probes_times_their_images(window: int) -> None:
    ask, x, t = Linear(), torch.zeros(2, *SMALL), torch.tensor([100, 400])
    found = Hutchinson(probes=2, window=window)(ask, x, t, Prediction(x, x), [3, 8])
    assert len(ask.asked) == 2 and all(bool((probe.abs() == 1).all()) for probe in ask.asked)
    for row, time in enumerate((100, 400)):
        abar = float(ask.prior.schedule.abar(time))
        product = sum(z[row].flatten() * (ask.matrix @ z[row].flatten()) for z in ask.asked) / 2
        assert isinstance(product, torch.Tensor)
        plain = ((1 - abar) / abar**0.5 * product).reshape(9, 11).double().numpy()
        assert np.allclose(found[row, 0].numpy(), window_mean(plain, window), rtol=1e-4, atol=1e-6)


def test_probes_by_reverse_mode_are_multiplied_by_the_transpose() -> None:
    matrix = Linear().matrix
    ask = Ask(gaussian("white", SMALL), lambda v, t: Prediction((v.flatten(1) @ matrix.T).reshape(v.shape), v))
    x, abar = torch.zeros(1, *SMALL), float(ask.prior.schedule.abar(100))
    forward = Linear()
    Hutchinson(1, window=1)(forward, x, torch.tensor([100]), Prediction(x, x), [4])
    signs = forward.asked[0].flatten()
    with torch.no_grad():
        found = Hutchinson(1, window=1, reverse=True)(ask, x, torch.tensor([100]), Prediction(x, x), [4])
    assert torch.allclose(found.flatten(), (1 - abar) / abar**0.5 * signs * (matrix.T @ signs), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("reverse", [False, True])
def test_what_is_kept_between_probes_is_exact_for_independent_pixels(reverse: bool) -> None:
    """A walk down and up again; probes at visits 0, 3 and 6, of two images whose times differ."""
    prior, estimator = gaussian("four", (1, 6, 6)), Hutchinson(1, window=1, every=3, memory=0.5, reverse=reverse)
    independent = gaussian("white", (1, 6, 6))
    for visit, time in enumerate((900, 700, 400, 350, 500, 60, 10)):
        t = torch.tensor([time, time - 7])
        x = states(independent, time, 2)
        with recording(Ledger()) as ledger:
            found = estimator(Ask(independent), x, t, independent.predict(x, t), [5, 9])
        prediction = independent.predict(x, t)
        assert prediction.variance is not None
        assert torch.allclose(found, prediction.variance.expand_as(found), rtol=1e-6), time
        taken = ledger.total.backwards if reverse else ledger.total.jvps
        assert taken == (2 if visit % 3 == 0 else 0)
    x = states(prior, 300, 1)
    alone = estimator(Ask(prior), x, torch.tensor([300]), Prediction(x, x), [1])
    assert torch.equal(
        alone, Hutchinson(1, window=1, reverse=reverse)(Ask(prior), x, torch.tensor([300]), Prediction(x, x), [1])
    )
    assert estimator.fresh() == estimator and not estimator.fresh()._last, "another image, or run, takes probes of its own"


def test_an_estimate_below_zero_is_kept_as_next_to_nothing() -> None:
    ask, x, estimator = Linear(), torch.zeros(1, *SMALL), Hutchinson(1, window=1, every=2)
    ask.matrix = -torch.eye(99)
    assert float(estimator(ask, x, torch.tensor([500]), Prediction(x, x), [0]).max()) < 0
    kept = estimator(ask, x, torch.tensor([400]), Prediction(x, x), [0])
    assert torch.allclose(kept, torch.tensor(1e-8), rtol=1e-3)
    ask.matrix = 1e6 * torch.eye(99)
    assert float(estimator(ask, x, torch.tensor([500]), Prediction(x, x), [0]).min()) > 1
    most = float(ask.prior.schedule.level(torch.tensor([400]), x).sigma.squeeze()) ** 2
    assert torch.allclose(estimator(ask, x, torch.tensor([400]), Prediction(x, x), [0]), torch.tensor(most), rtol=1e-4)


def test_memory_keeps_the_map_and_takes_the_new_mean() -> None:
    ask, x = Linear(), torch.zeros(2, *SMALL)
    plain, remembering = Hutchinson(1, window=3), Hutchinson(1, window=3, memory=0.75)
    times = (torch.tensor([500, 420]), torch.tensor([410, 300]))
    first, second = (plain(ask, x, t, Prediction(x, x), [3, 8]) for t in times)
    assert torch.equal(remembering(ask, x, times[0], Prediction(x, x), [3, 8]), first)
    found = remembering(ask, x, times[1], Prediction(x, x), [3, 8])
    for row in (0, 1):
        expected = 0.75 * first[row] * second[row].mean() / first[row].mean() + 0.25 * second[row]
        assert torch.allclose(found[row], expected, rtol=1e-5) and torch.allclose(
            found[row].mean(), second[row].mean(), rtol=1e-5
        )
    ask.matrix = -torch.eye(99)
    found, alone = (estimator(ask, x, times[1], Prediction(x, x), [3, 8]) for estimator in (remembering, plain))
    assert torch.equal(found, alone) and float(found.max()) < 0, "no mean to bring the old map to"


def test_probes_are_an_images_own_at_every_time() -> None:
    def probe(image: int = 0, time: int = 5, number: int = 0, seed: int = 0) -> torch.Tensor:
        ask, x = Linear(), torch.zeros(1, *SMALL)
        Hutchinson(number + 1, seed=seed)(ask, x, torch.tensor([time]), Prediction(x, x), [image])
        return ask.asked[number]

    first = probe()
    assert torch.equal(first, probe())
    for other in (probe(image=1), probe(time=6), probe(number=1), probe(seed=1)):
        assert not torch.equal(first, other)


def test_former_names_and_automatic_choices() -> None:
    assert present_name("fisher") == "noise-energy" and present_name("head") == "head" and present_name(None) is None
    prior = gaussian("white", SMALL)
    assert make_estimator("fisher", prior) is noise_energy and make_estimator("auto", prior) is predicted

    class Plain(type(prior)):  # type: ignore[misc]
        source = None

    bare = Plain(prior.gaussian)
    assert make_estimator("auto", bare) == Hutchinson(1) and make_estimator("hutchinson", bare, 5) == Hutchinson(5)
    remembering = Difference(0.25)
    fresh = make_estimator(remembering, prior)
    assert fresh is not remembering and fresh == remembering


def test_settings_that_no_estimator_can_have_are_refused_at_their_limits() -> None:
    assert Difference(0.0).memory == 0.0 and Hutchinson(window=1).window == 1
    for memory in (-0.1, 1.0):
        with pytest.raises(LeaderError, match=r"memory of the estimator 'difference' must lie in \[0, 1\)"):
            Difference(memory)
        with pytest.raises(LeaderError, match=r"memory of the estimator 'hutchinson' must lie in \[0, 1\)"):
            Hutchinson(memory=memory)
    for window in (2, 8):
        with pytest.raises(LeaderError, match="window must be odd"):
            Hutchinson(window=window)
    with pytest.raises(LeaderError, match="from 1 to 1000; found 0"):
        Hutchinson(every=0)


def test_an_estimator_is_told_by_its_settings_and_without_its_memory() -> None:
    assert describe(Difference(0.25)) == {"name": "difference", "memory": 0.25}
    table = {"name": "hutchinson", "probes": 4, "window": 7, "seed": 0, "every": 3, "memory": 0.5, "reverse": True}
    assert describe(Hutchinson(4, every=3, memory=0.5, reverse=True)) == table
    assert read_estimator(table) == Hutchinson(4, every=3, memory=0.5, reverse=True) != Hutchinson(4, every=3, reverse=True)
    assert read_estimator({"name": "difference", "memory": 0.25}) == Difference(0.25) and read_estimator("head") == "head"
    with pytest.raises(LeaderError, match="no setting 'often'; it has every, memory, probes, reverse, seed, window"):
        read_estimator({"name": "hutchinson", "often": 2})
    with pytest.raises(LeaderError, match="estimator 'oracle'"):
        read_estimator({"name": "oracle"})
    assert (describe(None), describe("head"), describe(noise_energy)) == (None, "head", "noise_energy")


ONE = Grid((250, -1))
CLEAN, NOISY = (0.0, 0.0), (0.05, 0.05)


def first(made: Scene, plugins: Any = ("ucpm",), method: str = "ddnm", **settings: Any) -> Step:
    """The only step of a run from time 250."""
    return next(Sampler(made.prior, method, plugins, grid=ONE, use_presets=False, **settings).iterate(made.problem, 3))


def run(made: Scene, plugins: Any, steps: int = 50, method: str = "ddnm", **settings: Any) -> Result:
    return Sampler(made.prior, method, plugins, steps, use_presets=False, **settings).run(made.problem, 3)


def sigma_of(made: Scene, plugins: Any = (), **settings: Any) -> torch.Tensor:
    sigma = first(made, plugins, **settings).sigma
    assert sigma is not None
    return sigma


def test_sigma_is_that_of_the_estimator() -> None:
    """Every estimator has its own Sigma, and no estimator means none, unless a plug-in needs it."""
    made = scene("cs", CLEAN)
    head = sigma_of(made, estimator="head")
    assert torch.equal(sigma_of(made, estimator="auto"), head)
    assert torch.equal(sigma_of(made, ("satp",), estimator=None), head)
    for name in ("noise-energy", "hutchinson", "difference"):
        assert float((sigma_of(made, estimator=name) - head).abs().max()) > 1e-3, name
    step = first(made, (), estimator=None)
    assert step.sigma is None and step.U is None
    result = run(made, (), 4, estimator=None)
    assert result.posterior_std is None and result.trace[0][0].U is None


@pytest.mark.parametrize("method", ["ddnm", "dps", "sitcom"])
def test_estimators_are_counted_apart(method: str) -> None:
    """Sigma costs derivatives, no calls and no backward passes, and changes no picture by itself."""
    made = scene("cs", NOISY)
    settings = {"inner": 4} if method == "sitcom" else {}
    plain = run(made, (), 5, method, estimator=None, **settings)
    for estimator, probes, jvps in (("hutchinson", 1, 1), ("hutchinson", 3, 3), ("noise-energy", 1, 0), ("head", 1, 0)):
        found = run(made, (), 5, method, estimator=estimator, probes=probes, **settings)
        assert found.ledger.rows == {k: replace(row, jvps=5 * jvps) for k, row in plain.ledger.rows.items()}
        assert torch.equal(plain.images, found.images)
