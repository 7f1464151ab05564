"""UCDC in whole runs: consistent in every metric, nothing changed by a flat one, each image by itself, ablations, no head."""

from typing import Any

import pytest
import torch
from torch import Tensor

from leader import Prior, Problem, Sampler, operators
from leader.methods import DDNM, Method, Posterior, ProjDiff
from leader.plugins import SATP, UCDC, Opposed, Plugin, StepInfo
from leader.plugins.base import map_sigma
from leader.plugins.ucdc import EARLY
from leader.priors.gaussian import Gaussian, GaussianMixturePrior
from leader.schedule import Grid
from leader.uncertainty.covariance import error_covariance
from leader.uncertainty.metric import Calibrated
from tests.cheap_prior import CheapPrior
from tests.oracle.scenes import IDS, DensePrior, ForeignNoise, scene
from tests.uncertainty.spectra import spectrum_for, uneven_spread

SHAPE = (1, 8, 16)
OPERATORS: dict[str, operators.LinearOperator] = {
    "inpaint": operators.Inpainting(SHAPE, operators.random_mask(8, 16, 0.4, seed=3)),
    "sr": operators.BicubicSR(SHAPE, 4),
    "average": operators.AveragePoolSR(SHAPE, 2),
    "blur": operators.Blur(SHAPE, operators.gaussian_kernel(1.2, 5)).truncated(),
    "cs": operators.WalshHadamard(SHAPE, 0.3, seed=1),
}


class Uneven(CheapPrior):
    """A network with a head whose variance differs from pixel to pixel, and a spectrum."""

    def __init__(self) -> None:
        super().__init__()
        self.spectrum = spectrum_for(1)

    def _predict(self, x: Tensor, t: Tensor) -> Any:
        made = super()._predict(x, t)
        assert made.variance is not None
        share = uneven_spread(SHAPE).to(x)
        return type(made)(made.x0, made.eps, made.variance * share / share.mean())


def picture() -> Tensor:
    return torch.rand(1, *SHAPE, generator=torch.Generator().manual_seed(2)) * 1.6 - 0.8


def clean_problem(name: str) -> Problem:
    return Problem.internal(OPERATORS[name].A(picture()), OPERATORS[name])


@pytest.mark.parametrize(
    "plugin",
    [
        UCDC(),
        UCDC(covariance="diagonal"),
        UCDC(power=1.5, iterations=2),
        UCDC("diagonal", power=0.4, map="shuffle"),
        UCDC(map="mean", floor=0.1),
        UCDC(scatter=1.0),
        UCDC(narrow=0.5),
    ],
    ids=str,
)
@pytest.mark.parametrize("method", [DDNM(), ProjDiff(), ProjDiff(step=1.4), Posterior()], ids=str)
@pytest.mark.parametrize("name", OPERATORS)
def test_clean_data_are_met_in_every_metric(name: str, method: Method, plugin: UCDC) -> None:
    """Float32, the default of a few iterations."""
    problem = clean_problem(name)
    found = Sampler(Uneven(), method, (plugin, "ucpm"), 6, use_presets=False).run(problem).images
    assert found.dtype == torch.float32
    assert float(problem.residual(found).abs().max()) <= 1e-5 * max(1.0, float(problem.y.abs().max()))


def info(ids: tuple[int, ...] = (4,), positions: tuple[int, ...] = (0,), t: tuple[int, ...] = (300,)) -> StepInfo:
    return StepInfo(ids, positions, positions, torch.tensor(t), [Grid((999, -1))] * len(ids))


def test_ablations_of_the_map() -> None:
    sigma = torch.cat([uneven_spread((3, 8, 12), seed) for seed in (1, 2)])
    where = info((4, 9), (3, 7), (300, 200))
    assert map_sigma(sigma, "local", where) is sigma
    mean = map_sigma(sigma, "mean", where)
    assert mean.shape == sigma.shape
    for row in range(2):
        assert torch.allclose(mean[row], sigma[row].mean()), "one number for all pixels and channels of an image"
    shuffled = map_sigma(sigma, "shuffle", where)
    for row in range(2):
        assert not torch.equal(shuffled[row], sigma[row])
        found, given = (values[row].flatten(1).T.tolist() for values in (shuffled, sigma))
        assert sorted(found) == sorted(given), "pixels change places, their channels stay together"
        assert found != given
    assert torch.equal(map_sigma(sigma, "shuffle", where), shuffled)
    assert not torch.equal(map_sigma(sigma, "shuffle", info((4, 9), (4, 7), (300, 200)))[0], shuffled[0])
    assert torch.equal(map_sigma(sigma[1:], "shuffle", info((9,), (7,), (200,)))[0], shuffled[1]), "each image by itself"


def one_metric(plugin: UCDC, prior: Prior, sigma: Tensor, problem: Problem, position: int = 0) -> Calibrated:
    found = plugin.metric(prior, sigma, info(positions=(position,)), problem)
    assert isinstance(found, Calibrated)
    return found


def test_the_metric_is_made_of_sigma_the_time_and_the_settings() -> None:
    prior, problem, sigma = Uneven(), clean_problem("sr"), uneven_spread(SHAPE)
    point = torch.randn(1, *SHAPE, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    full = one_metric(UCDC(trust=0.3, iterations=5, visible=0.1, floor=0.2), prior, sigma, problem)
    assert (full.trust, full.iterations, full.visible, full.floor) == (0.3, 5, 0.1, 0.2)
    assert full.operator is problem.operator and full.mean == pytest.approx(float(sigma.mean()))
    assert torch.allclose(full.covariance.product(point), error_covariance(prior, 300, sigma).product(point))
    assert not torch.allclose(full.covariance.product(point), error_covariance(prior, 900, sigma).product(point))
    alone = one_metric(UCDC("diagonal"), prior, sigma, problem)
    assert torch.allclose(alone.covariance.product(point), sigma * point)
    squared = one_metric(UCDC("diagonal", power=2.0), prior, sigma, problem)
    weights = sigma**2 * sigma.mean() / (sigma**2).mean()
    assert torch.allclose(squared.covariance.product(point), weights * point) and squared.mean == pytest.approx(alone.mean)
    certain = one_metric(UCDC("diagonal"), prior, torch.zeros_like(sigma), problem)
    assert float(certain.covariance.product(torch.ones_like(sigma)).min()) > 0, "no pixel is taken out of the data step"


@pytest.mark.parametrize(("time", "expected"), [(EARLY, 3), (EARLY - 1, 5)])
def test_early_solves_may_be_shorter(time: int, expected: int) -> None:
    prior, problem, sigma = Uneven(), clean_problem("sr"), uneven_spread(SHAPE)
    here = StepInfo((4,), (1,), (1,), torch.tensor([time]), [Grid((999, time, -1))])
    for plugin, found in ((UCDC(iterations=5, early=3), expected), (UCDC(iterations=5), 5), (UCDC(iterations=2, early=3), 2)):
        metric = plugin.metric(prior, sigma, here, problem)
        assert isinstance(metric, Calibrated) and metric.iterations == found


def test_records_from_before_a_setting_stay_valid() -> None:
    later = UCDC(scatter=0.5, opposed=250)
    told = [Sampler(Uneven(), DDNM(), (plugin,)).plan(clean_problem("sr")).settings["plugins"][0] for plugin in (UCDC(), later)]
    assert not {"scatter", "opposed"} & told[0].keys() and (told[1]["scatter"], told[1]["opposed"]) == (0.5, 250)


def test_its_own_opposed_noise_is_that_of_the_plug_in() -> None:
    """Asked for from a time within the grid: the draws before it stay as they are."""
    case = clean_problem("inpaint")

    def run(*plugins: Plugin) -> Tensor:
        return Sampler(Uneven(), DDNM(), plugins, 8, grid="quadratic", use_presets=False).run(case).images

    own = run(UCDC(opposed=400))
    assert torch.equal(own, run(UCDC(), Opposed(first=400)))
    for other in (run(UCDC()), run(UCDC(), Opposed()), run(UCDC(opposed=20))):
        assert float((own - other).abs().max()) > 1e-3


def test_seams_of_large_pictures_move_from_step_to_step(monkeypatch: pytest.MonkeyPatch) -> None:
    prior, problem, sigma = Uneven(), clean_problem("sr"), uneven_spread(SHAPE)
    asked: list[bool] = []
    passed: list[dict[str, float]] = []
    times: list[tuple[int, bool]] = []

    def noted(prior: Prior, t: int, spread: Tensor, shifted: bool = False, **others: Any) -> Any:
        asked.append(shifted)
        passed.append(others)
        times.append((t, shifted))
        return error_covariance(prior, t, spread, shifted, **others)

    monkeypatch.setattr("leader.plugins.ucdc.error_covariance", noted)
    for position in (2, 3, 4):
        one_metric(UCDC(share=0.6, narrow=0.7), prior, sigma, problem, position)
    assert asked == [False, True, False] and passed == 3 * [{"share": 0.6, "narrow": 0.7}]
    times.clear()
    both = Problem.internal(torch.cat([problem.y] * 2), problem.operator)
    info = StepInfo(ids=[0, 1], positions=[5, 8], visits=[5, 8], t=torch.tensor([700, 40]), grids=[])
    UCDC().metric(prior, torch.cat([sigma.reshape(1, *SHAPE)] * 2), info, both)
    assert times == [(700, True), (40, False)], "each image at its own time and place"


@pytest.mark.parametrize("method", [DDNM(), ProjDiff()], ids=lambda item: item.name)
def test_images_of_a_batch_are_those_alone(method: Method) -> None:
    """Masks, noises, times and Sigma differ by image; SATP lets them part."""
    for sigmas in ((0.0, 0.0), (0.03, 0.09)):
        case = scene("holes", sigmas)
        plugins = (SATP(budget=0.05), UCDC(map="shuffle", scatter=0.5))

        def run(prior: DensePrior, rows: list[int], case: Any = case, plugins: Any = plugins) -> Any:
            sampler = Sampler(prior, method, plugins, 12, grid="uniform", use_presets=False)
            problem = case.problem.select(torch.tensor(rows))
            return sampler.run(problem, ids=[IDS[row] for row in rows], noise=ForeignNoise())

        together = DensePrior(case.shape)
        together.one_by_one = False
        both = run(together, [0, 1])
        for row in range(2):
            alone = run(case.prior, [row])
            assert torch.allclose(both.images[row], alone.images[0], atol=1e-9)
            assert [visit.t for visit in both.trace[IDS[row]]] == [visit.t for visit in alone.trace[IDS[row]]]
        assert len(both.trace[IDS[0]]) != len(both.trace[IDS[1]]), "they stood at different times"


class Headless(GaussianMixturePrior):
    """Quiet on the left and lively on the right, at two brightnesses; neither a spectrum nor a head."""

    source = None  # type: ignore[assignment]

    def __init__(self, shape: tuple[int, int, int]) -> None:
        deviation = torch.full(shape, 0.03, dtype=torch.float64)
        deviation[..., shape[2] // 2 :] = 0.4
        super().__init__([Gaussian(torch.full(shape, level).double(), deviation**2) for level in (0.4, -0.3)], (0.6, 0.4))

    def _predict(self, x: Tensor, t: Tensor) -> Any:
        made = super()._predict(x, t)
        return type(made)(made.x0, made.eps, None)


def test_without_head_and_spectrum_one_smoothed_probe_serves() -> None:
    """Compressed sensing mixes all pixels: the misfit belongs to the lively half, and the network's derivative knows."""
    shape = (1, 16, 32)
    prior, operator = Headless(shape), operators.WalshHadamard(shape, 0.3, seed=2)
    truth = prior.sample(1, torch.Generator().manual_seed(3))
    problem = Problem.internal(operator.A(truth), operator)
    errors = {}
    for name, plugins in (("plain", ()), ("probed", ("ucdc",)), ("flat", (UCDC(map="mean"),))):
        sampler = Sampler(prior, "ddnm", plugins, 10, use_presets=False, estimator="hutchinson", eta=0.0)
        found = sampler.run(problem).images
        assert float(problem.residual(found).abs().max()) < 1e-9
        errors[name] = float((found - truth)[..., :16].square().mean())
    # Euclid's share of the misfit in the quiet half is that of the lively one; its own variance is 0.0009
    assert errors["probed"] < 0.3 * errors["plain"] and errors["probed"] < 0.3 * errors["flat"], errors
