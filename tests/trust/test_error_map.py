"""The error map: what the referee says is scaled, what is known is known, and what is not calibrated is said."""

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from leader.errors import LeaderError
from leader.operators import Denoising, Jpeg, build_task
from leader.operators.base import LinearOperator
from leader.operators.pointwise import box_mask
from leader.problem import Problem
from leader.restoration.ensemble import ensemble
from leader.restoration.restore import restore
from leader.result import drain
from leader.sampler import Sampler
from leader.schedule import uniform_grid
from leader.trust import calibration
from leader.trust.calibration import LEVELS, Calibration, Node, calibration_of, find_family, fit_factors, quantiles
from leader.trust.error_map import ErrorMap, add_errors, is_in_metric, raise_invented
from leader.trust.evidence import CHANNELS, CLOCKS, LATE, MOVES, WAYS, Told, Watch, gather
from leader.trust.limits import FAR
from leader.trust.maps import LAST, reach
from leader.trust.referee import Referee, attach, beside, referee_of
from leader.trust.remaining import measure_remaining
from tests.cheap_prior import CheapPrior, photograph

SIZE = 24


def prior_with(folder: Path, bias: float = 0.5, families: Mapping[str, tuple[Node, ...]] | None = None) -> CheapPrior:
    """A prior whose referee says exp(bias - 3) everywhere."""
    prior = CheapPrior()
    file = beside(folder / "weights.safetensors")
    attach(prior, file)
    referee = Referee()
    assert referee.out.bias is not None
    referee.out.bias.data.fill_(bias)
    referee.save(file)
    if families is not None:
        Calibration(families).save(calibration.beside(file))
    return prior


def run(problem: Problem, prior: CheapPrior, steps: int = 12) -> Any:
    watch = Watch(prior.schedule)
    result = Sampler(prior, "ddnm", (), steps).run(problem, on_step=watch)
    return result, watch


def masked(sigma: float = 0.0) -> tuple[Problem, torch.Tensor]:
    mask = torch.ones(SIZE, SIZE)
    mask[5:11, 8:14] = 0
    x = photograph(SIZE, SIZE)[None]
    return Problem.simulate(x, build_task("inpaint", (3, SIZE, SIZE), mask=mask), sigma), mask > 0


def test_evidence_of_a_mask_knows_what_it_hands_over() -> None:
    problem, known = masked()
    result, watch = run(problem, CheapPrior())
    evidence = gather(CheapPrior(), problem, result.images, watch)
    assert evidence is not None and evidence.known is not None and torch.equal(evidence.known, known)
    assert float(evidence.seen[:, known].min()) > 0.95 and float(evidence.seen[:, ~known].max()) == 0
    assert evidence.features().shape == (CHANNELS, SIZE, SIZE) and bool(torch.isfinite(evidence.features()).all())
    assert float(evidence.misfit[~known].max()) == 0 and torch.equal(evidence.open, ~known)
    assert evidence.residual == pytest.approx(
        float(problem.residual(result.images.clamp(-1, 1)).square().mean().sqrt()), abs=1e-6
    )
    assert evidence.moved.shape == (len(MOVES), SIZE, SIZE)
    plain = evidence.restored[:, ~known].square().mean(0).sqrt()
    torch.testing.assert_close(evidence.added[~known], plain, atol=1e-4, rtol=1e-3)
    part = evidence.cropped(2, 3, 10, 12)
    assert torch.equal(part.sigma, evidence.sigma[:, 2:12, 3:15]) and part.noise == evidence.noise


def test_features_are_of_order_one_and_each_says_what_it_should() -> None:
    problem, _ = masked(0.1)
    result, watch = run(problem, CheapPrior())
    evidence = gather(CheapPrior(), problem, result.images, watch)
    assert evidence is not None and bool(evidence.open.all()), "noisy pixels are a question"
    features = evidence.features()
    assert float(features.abs().max()) < 12
    torch.testing.assert_close(features[:3], evidence.restored)
    x = evidence.restored.double().numpy()
    window = x[:, 8:13, 10:15]
    assert float(features[4, 10, 12]) == pytest.approx(np.log(np.sqrt(window.var((1, 2)).mean())) + 3, abs=1e-3)
    near = x.mean(0, keepdims=True)[:, 9:12, 11:14]
    assert float(features[3, 10, 12]) == pytest.approx(np.log(np.sqrt(near.var((1, 2)).mean())) + 3, abs=1e-3)
    place = 5
    for maps in (evidence.sigma.sqrt(), evidence.moved, evidence.walked, evidence.pulled):
        torch.testing.assert_close(features[place : place + len(maps)], maps.clamp_min(2.5e-4).log() + 3)
        place += len(maps)
    assert place == 5 + len(CLOCKS) + len(MOVES) + 2 * len(WAYS)
    assert float(features[-2 - LATE, 0, 0]) == pytest.approx(np.log(0.2) + 3, abs=1e-5)
    assert float(features[-1 - LATE, 0, 0]) == pytest.approx(np.log(evidence.residual / 0.2), abs=1e-4)


def test_a_referee_takes_any_size_and_sees_far() -> None:
    torch.manual_seed(0)
    referee = Referee()
    torch.nn.init.normal_(referee.out.weight, std=0.3)
    features = torch.randn(1, CHANNELS, 37, 90)
    before = referee(features)
    assert before.shape == (1, 37, 90)
    features[..., 60:] += 1
    changed = (referee(features) - before).abs()[0]
    assert float(changed[:, 40:55].max()) > 1e-6, "what lies twenty pixels away counts"
    assert sum(parameter.numel() for parameter in referee.parameters()) * 2 < 300_000


def test_the_watch_keeps_sigma_at_the_times_nearest_to_its_clocks() -> None:
    problem, _ = masked(0.1)
    prior = CheapPrior()
    result, watch = run(problem, prior, 40)
    visited = np.array([visit.t for visit in result.trace[0]])
    kept = watch.find_way(0)
    assert kept is not None
    for place, clock in enumerate(CLOCKS):
        t = int(visited[np.abs(np.log1p(visited) - np.log1p(clock)).argmin()])
        abar = float(prior.schedule.abar(t))
        expected = 0.25 * (1 - abar) / (0.25 * abar + 1 - abar)
        assert float(kept.sigma[place].mean()) == pytest.approx(expected, rel=1e-5)


def test_known_pixels_have_no_error_without_noise_and_the_true_one_where_they_were_changed(tmp_path: Path) -> None:
    problem, known = masked()
    prior = prior_with(tmp_path)
    result, watch = run(problem, prior)
    found, maps = add_errors(prior, problem, result, watch)
    assert found.error_std is not None and found.posterior_std is not None and maps[0].source == "uncalibrated"
    assert float(found.error_std[0, :, known].max()) == 0 and float(found.posterior_std[0, :, known].max()) == 0
    np.testing.assert_allclose(found.error_std[0, :, ~known], np.exp(-2.5), rtol=1e-3)
    assert result.posterior_std is not None
    assert torch.equal(found.posterior_std[0, :, ~known], result.posterior_std[0, :, ~known])
    result.images[0, 1, 0, 0] += 0.25
    again, _ = add_errors(prior, problem, result, watch)
    assert again.error_std is not None and float(again.error_std[0, 0, 0, 0]) == pytest.approx(0.25, abs=1e-5)


def test_noisy_known_pixels_get_the_scalar_update() -> None:
    problem, known = masked(0.1)
    result, watch = run(problem, CheapPrior())
    found, maps = add_errors(CheapPrior(), problem, result, watch)
    assert maps == [] and found.error_std is None and found.posterior_std is not None and result.posterior_std is not None
    p, noise = result.posterior_std[0].square(), 0.2**2
    expected = torch.where(known, p * noise / (p + noise), p).sqrt()
    torch.testing.assert_close(found.posterior_std[0], expected)


def test_factors_scale_the_map_and_an_unknown_task_gets_the_widest_and_says_so(tmp_path: Path) -> None:
    factors = {
        "inpaint": (Node(0.0, (1.0, 2.0, 3.2898, 4.0), 8),),
        "hole": (Node(0.0, (1.0, 2.0, 3.2898, 4.0), 8),),
        "sr": (Node(0.0, (0.5, 1.0, 4.9347, 9.0), 8),),
    }
    prior = prior_with(tmp_path, families=factors)
    problem, known = masked()
    found, (one,) = add_errors(prior, problem, *run(problem, prior, 50))
    assert found.error_std is not None and one.source == "calibrated" and one.note is None
    np.testing.assert_allclose(found.error_std[0, 0][~known], 2 * np.exp(-2.5), rtol=1e-3)
    assert one.level == pytest.approx({0.5: 0.5, 0.8: 1.0, 0.9: 1.6449, 0.95: 2.0}, rel=1e-3)

    class Own(LinearOperator):
        def A(self, x: torch.Tensor) -> torch.Tensor:
            return (x + x.flip(-1)) / 2

        def AT(self, y: torch.Tensor) -> torch.Tensor:
            return self.A(y)

    own = Problem.simulate(photograph(SIZE, SIZE)[None], Own((3, SIZE, SIZE)))
    _, (other,) = add_errors(prior, own, *run(own, prior, 50))
    assert other.source == "other tasks" and other.note is not None and other.note.code == "trust map: other tasks"
    np.testing.assert_allclose(other.std, 3 * np.exp(-2.5), rtol=1e-3)


@pytest.mark.parametrize(
    ("steps", "source"), [(50, "calibrated"), (25, "calibrated"), (22, "other paths"), (10, "other paths")]
)
def test_a_path_with_few_late_steps_is_said_not_to_be_a_calibrated_one(tmp_path: Path, steps: int, source: str) -> None:
    """Uniform steps of so many times: the nearest to 20 of the clock is 40 with 25 of them, 45 with 22, 100 with 10."""
    prior = prior_with(tmp_path, families={"inpaint": (Node(0.0, (1.0, 2.0, 3.0, 4.0), 8),)})
    problem, _ = masked()
    result, watch = run(problem, prior, steps)
    nearest = min(abs(np.log1p(t) - np.log(21)) for t in range(0, 1000, 1000 // steps))
    assert watch.apart(0) == pytest.approx(nearest, abs=1e-6) and watch.apart(1) == 0.0
    _, (one,) = add_errors(prior, problem, result, watch)
    assert one.source == source and (one.note is None) == (source == "calibrated")


def test_every_image_of_a_batch_is_judged_as_it_would_be_alone(tmp_path: Path) -> None:
    """Two pictures with noise, times, and paths of their own, of which the second is not like those that were calibrated."""
    nodes = tuple(Node(noise, (0.5, 1.0, factor, 9.0), 8) for noise, factor in ((0.02, 2.0), (0.1, 5.0)))
    prior = prior_with(tmp_path, families={"inpaint": nodes})
    judge, file = referee_of(prior), beside(tmp_path / "weights.safetensors")
    assert judge is not None
    torch.nn.init.normal_(judge.out.weight, std=0.05, generator=torch.Generator().manual_seed(0))
    judge.save(file)
    mask = torch.from_numpy(np.random.default_rng(0).random((16, SIZE)) < 0.7).float()
    operator = build_task("inpaint", (3, 16, SIZE), mask=mask)
    x = torch.stack([photograph(16, SIZE), 1 - photograph(16, SIZE)])
    problem = Problem.internal(operator.A(2 * x - 1), operator, torch.tensor([0.04, 0.2]))
    sampler = Sampler(prior, "ddnm", (), 40, use_presets=False)
    grids = (uniform_grid(40), uniform_grid(8))

    def judged(rows: list[int], ids: list[int]) -> tuple[Any, list[ErrorMap], Watch]:
        part = problem.select(torch.tensor(rows))
        watch, plan = Watch(prior.schedule), replace(sampler.plan(part), grids=tuple(grids[row] for row in rows))
        return *add_errors(prior, part, drain(sampler.iterate(part, 3, ids=ids, plan=plan), watch), watch), watch

    both, maps, watch = judged([0, 1], [5, 2])
    for row, name in ((0, 5), (1, 2)):
        alone, (one,), own = judged([row], [name])
        ways = watch.find_way(name), own.find_way(name)
        assert ways[0] is not None and ways[1] is not None and ways[0].times == ways[1].times
        torch.testing.assert_close(both.error_std[row], alone.error_std[0])
        torch.testing.assert_close(both.posterior_std[row], alone.posterior_std[0])
        torch.testing.assert_close(maps[row].std, one.std)
        assert maps[row].source == one.source == ("calibrated", "other paths")[row] and maps[row].level == one.level
    assert maps[0].level != maps[1].level


def test_what_a_measurement_tells_is_read_once_for_all_runs_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, _ = masked(0.1)
    other = replace(problem, y=problem.y + 0.01)
    read = Told.read
    asked: list[Problem] = []

    def note(one: Problem, like: torch.Tensor) -> Told:
        asked.append(one)
        return read(one, like)

    solved: list[torch.Tensor] = []

    def solve_and_note(covariance: Any, spread: torch.Tensor, *more: Any) -> torch.Tensor:
        solved.append(spread)
        return measure_remaining(covariance, spread, *more)

    monkeypatch.setattr(Told, "read", note)
    monkeypatch.setattr("leader.trust.evidence.measure_remaining", solve_and_note)
    for rows, expected in (((problem, problem, problem), 1), ((problem, other), 2), ((problem,), 1)):
        asked.clear()
        solved.clear()
        batch = Problem.internal(torch.cat([one.y for one in rows]), problem.operator, 0.2)
        result, watch = run(batch, CheapPrior())
        add_errors(CheapPrior(), batch, result, watch)
        assert len(asked) == expected and len(solved) == expected, "all late times are one here"
    assert not read(problem, problem.y).holds_for(replace(problem, sigma=2 * problem.sigma)), "nor of as much noise"


def test_a_run_that_changes_nothing_is_not_warned_of(tmp_path: Path) -> None:
    """One step is no path that was calibrated, but where every pixel is handed over without noise there is no error to know."""
    prior = prior_with(tmp_path, families={"denoise": (Node(0.0, (1.0, 1.0, 1.0, 1.0), 8),)})
    for sigma, source in ((0.0, "calibrated"), (0.05, "other paths")):
        problem = Problem(photograph(12, 20)[None], Denoising((3, 12, 20)), sigma)
        _, (one,) = add_errors(prior, problem, *run(problem, prior, 1))
        assert one.source == source


def test_runs_in_the_metric_have_factors_of_their_own_where_there_are_any(tmp_path: Path) -> None:
    plain, inside = ((Node(0.0, (factor,) * 4, 8),) for factor in (1.6449, 2 * 1.6449))
    table = Calibration({"inpaint": plain, "inpaint, metric": inside, "sr": plain, "cs, metric": inside})
    for family, factor in (("inpaint", 1), ("inpaint, metric", 2), ("sr, metric", 1), ("cs", 2)):
        factors, known = table.find_factors(family, 0.02)
        assert known and factors == pytest.approx((factor * 1.6449,) * 4)
    assert not table.find_factors("deblur, metric", 0.02)[1]
    prior = prior_with(tmp_path, families=table.families)
    problem, known_pixels = masked()
    for plugins, factor in (((), 1), (("ucdc",), 2)):
        watch = Watch(prior.schedule)
        result = Sampler(prior, "ddnm", plugins, 50).run(problem, on_step=watch)
        assert is_in_metric(result) == (factor == 2)
        _, (found,) = add_errors(prior, problem, result, watch)
        np.testing.assert_allclose(found.std[~known_pixels], factor * np.exp(-2.5), rtol=1e-3)


def test_factors_are_those_of_the_noise_quoted_for_0_to_1(tmp_path: Path) -> None:
    nodes = tuple(Node(noise, (factor,) * 4, 8) for noise, factor in ((0.05, 1.6449), (0.1, 3 * 1.6449)))
    prior = prior_with(tmp_path, families={"inpaint": nodes, "hole": nodes})
    for sigma, factor in ((0.05, 1), (0.1, 3)):
        problem, _ = masked(sigma)
        _, (found,) = add_errors(prior, problem, *run(problem, prior))
        np.testing.assert_allclose(found.std, factor * np.exp(-2.5), rtol=1e-3)


def test_factors_of_jpeg_are_those_of_its_strength_whatever_its_noise(tmp_path: Path) -> None:
    """Steps four times as large are four times as strong: sqrt(12) 25.5 counts as noise of 0.1."""
    nodes = tuple(Node(strength, (factor,) * 4, 8) for strength, factor in ((0.025, 1.6449), (0.1, 3 * 1.6449)))
    prior = prior_with(tmp_path, families={"jpeg": nodes})
    for share, factor in ((0.25, 1), (0.5, 3**0.5), (1.0, 3)):
        operator = Jpeg((1, 16, 16), torch.full((8, 8), share * 12**0.5 * 25.5), level=0.05)
        problem = Problem.simulate(photograph(16, 16)[None, :1], operator, 0.05)
        _, (found,) = add_errors(prior, problem, *run(problem, prior))
        np.testing.assert_allclose(found.std, factor * np.exp(-2.5), rtol=1e-3)


def test_between_noise_levels_factors_are_log_linear_and_beyond_them_constant() -> None:
    nodes = (Node(0.01, (1.0, 1.0, 1.0, 1.0), 1), Node(0.1, (4.0, 4.0, 4.0, 4.0), 1))
    table = Calibration({"sr": nodes})
    for noise, factor in ((0.0, 1), (0.01, 1), (10**-1.5, 2), (0.1, 4), (0.5, 4)):
        factors, known = table.find_factors("sr", noise)
        assert known and factors == pytest.approx((factor,) * 4)


def test_weak_noise_has_factors_of_its_own_where_there_are_any() -> None:
    none, weak, some = (Node(noise, (factor,) * 4, 8) for noise, factor in ((0.0, 1.0), (calibration.WEAK, 4.0), (0.02, 2.0)))
    table = Calibration({"sr": (none, weak, some), "cs": (none, some), "hole": (none,)})
    for family, noise, factor in (
        *(("sr", 0.0, 1.0), ("sr", 1e-4, 4.0), ("sr", 0.005, 4.0), ("sr", 0.01, 8**0.5), ("sr", 0.02, 2.0)),
        *(("cs", 0.0, 1.0), ("cs", 1e-4, 1.0), ("cs", 0.01, 2**0.5), ("hole", 0.01, 1.0)),
    ):
        assert table.find_factors(family, noise)[0] == pytest.approx((factor,) * 4), (family, noise)


def test_a_level_that_was_found_counts_to_the_nearest_of_those_calibrated() -> None:
    levels = (0.0, 1e-5, 0.009, 0.011, 0.03, 0.033, 0.069, 0.072, 0.14, 0.15, 0.5)
    found = [calibration.nearest_level(noise) for noise in levels]
    assert found == [0.0, 0.005, 0.005, 0.02, 0.02, 0.05, 0.05, 0.1, 0.1, 0.2, 0.2]


def test_conformal_factors_cover_what_they_say_and_count_runs_not_pixels() -> None:
    generator = torch.Generator().manual_seed(0)
    tails = [torch.randn(3, 3000, generator=generator).abs() ** 1.5 for _ in range(6)]
    table = fit_factors([("cs", 0.05, part) for part in tails])
    factors, known = table.find_factors("cs", 0.05)
    assert known and list(factors) == sorted(factors)
    fresh = torch.randn(60_000, generator=generator).abs() ** 1.5
    for level, factor in zip(calibration.LEVELS, factors):
        assert float((fresh <= factor).double().mean()) == pytest.approx(level, abs=0.01)
    small, large = torch.full((10,), 1.0), torch.full((10_000,), 2.0)
    assert quantiles([small, small, large], (0.5,)) == (1.0,)
    assert quantiles([3 * small, 3 * small, large], (0.3, 0.5)) == (2.0, 3.0)


def test_a_family_with_few_runs_leans_on_all_at_its_noise_level() -> None:
    """One run of factor 1 beside nine of factor 4: it counts one of 33, in logarithms; another noise level changes nothing."""
    alone, others = ("sr", 0.0, torch.full((6,), 1.0)), [("cs", 0.0, torch.full((6,), 4.0))] * 9
    table = fit_factors([alone, *others, ("sr", 0.1, torch.full((6,), 9.0))])
    low, high = table.families["sr"]
    assert low.factors == pytest.approx((4 ** (32 / 33),) * 4) and low.runs == 1 and low.noise == 0
    assert high.factors == pytest.approx((9.0,) * 4) and high.runs == 1 and high.noise == 0.1
    assert table.families["cs"][0].factors == pytest.approx((4.0,) * 4)
    colours = [("colourise", noise, torch.full((6,), 2.0)) for noise in (0.0, 0.1)]
    table = fit_factors([*colours, *others])
    low, high = table.families["colourise"]
    assert table.families["cs"][0].factors == pytest.approx((4.0,) * 4), "and nothing leans on them"
    assert low.factors == high.factors == pytest.approx((2.0,) * 4), "invented colours lean on themselves alone"
    weak, strong = [("jpeg", 0.02, torch.full((6,), 1.0))] * 2, [("jpeg", 0.2, torch.full((6,), 4.0))] * 4
    low, high = fit_factors([*weak, *strong, *others]).families["jpeg"]
    assert low.factors == pytest.approx((2.0,) * 4), "two runs of 1 beside two of all strengths, most of which are of 4"
    assert high.factors == pytest.approx((4.0,) * 4)


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[]",
        "{}",
        '{"levels": [0.5, 0.8, 0.9, 0.95], "families": {}}',
        '{"levels": [0.5, 0.8, 0.9], "families": {"sr": []}}',
        '{"levels": [0.5, 0.8, 0.9, 0.95], "families": {"sr": [{"noise": 0, "factors": [4, 3, 2, 1], "runs": 1}]}}',
        '{"levels": [0.5, 0.8, 0.9, 0.95], "families": {"sr": [{"noise": "a", "factors": [1, 2, 3, 4], "runs": 1}]}}',
    ],
)
def test_a_damaged_table_is_refused_in_a_sentence(tmp_path: Path, content: str) -> None:
    (tmp_path / "f.json").write_text(content)
    with pytest.raises(LeaderError):
        Calibration.load(tmp_path / "f.json")


def test_a_table_and_a_referee_are_read_as_they_were_written(tmp_path: Path) -> None:
    table = Calibration({"sr": (Node(0.0, (0.5, 1.0, 1.5, 2.5), 3), Node(0.05, (0.25, 1.0, 1.5, 2.5), 4))})
    table.save(tmp_path / "f.json")
    assert Calibration.load(tmp_path / "f.json") == table == calibration_of(tmp_path / "f")
    Calibration({"cs": table.families["sr"]}).save(tmp_path / "f.json")
    assert calibration_of(tmp_path / "f") != table, "made again: read again"
    referee, prior = Referee(), CheapPrior()
    referee.save(tmp_path / "r.referee")
    attach(prior, tmp_path / "r.referee")
    before = referee_of(prior)
    os.utime(tmp_path / "r.referee", (7, 7))
    assert before is not None and referee_of(prior) is not before and referee_of(prior) is referee_of(prior)
    other = Referee.load(tmp_path / "r.referee")
    given = torch.randn(1, CHANNELS, 8, 8)
    torch.testing.assert_close(referee(given), other(given), atol=1e-2, rtol=1e-2)
    assert (tmp_path / "r.referee").stat().st_size < 300_000
    (tmp_path / "r.referee").write_bytes(b"no")
    with pytest.raises(LeaderError, match="cannot be read"):
        Referee.load(tmp_path / "r.referee")


def test_families() -> None:
    dots = torch.ones(32, 32, dtype=torch.bool)
    dots[::2, ::2] = False
    hole = dots.clone()
    hole[4:20, 4:20] = False
    assert [find_family("inpaint", mask) for mask in (dots, hole)] == ["inpaint", "hole"]
    assert [find_family(task, None) for task in ("sr-nearest", "deblur", "deblur-gaussian", "cs", "separable")] == [
        "sr",
        "deblur-motion",
        "deblur-gaussian",
        "cs",
        "separable",
    ]
    assert [find_family(task, None, metric=True) for task in ("deblur", "own")] == ["deblur-motion, metric", "own, metric"]


def test_a_restoration_shows_the_error_where_there_is_a_referee(tmp_path: Path) -> None:
    prior = prior_with(tmp_path)
    restored = restore(photograph(SIZE, SIZE), "sr", factor=2, prior=prior, steps=4, plugins=(), sigma=0.05)
    assert restored.uncertainty is not None and restored.uncertainty.shape == (2 * SIZE, 2 * SIZE)
    np.testing.assert_allclose(restored.uncertainty, np.exp(-2.5) / 2, rtol=1e-3)
    assert restored.summary()["trust"]["source"] == "uncalibrated" and "trust map: uncalibrated" in [
        getattr(note, "code", "") for note in restored.notes
    ]
    framed = restore(photograph(SIZE, 40), "deblur", kernel="gaussian:1", prior=prior, steps=2, plugins=(), sigma=0.05)
    assert framed.uncertainty is not None and framed.uncertainty.shape == (SIZE, 40), "its frame is larger"
    plain = restore(photograph(SIZE, SIZE), "sr", factor=2, prior=CheapPrior(), steps=4, plugins=(), sigma=0.05)
    assert np.array_equal(plain.array, restored.array) and plain.trust is None and plain.uncertainty is not None


@pytest.mark.parametrize("task", ["inpaint", "sr", "deblur"])
def test_large_pictures_are_judged_in_pieces_and_probe_by_probe(task: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the referee of a small picture says does not change where the picture counts as large."""
    from leader.operators import gaussian_kernel

    every: dict[str, dict[str, Any]] = {
        "inpaint": {"mask": (torch.arange(320 * 24).reshape(320, 24) % 7 > 0).float()},
        "sr": {"factor": 4},
        "deblur": {"kernel": gaussian_kernel(1.5)},
    }
    problem = Problem.simulate(photograph(320, 24)[None], build_task(task, (3, 320, 24), **every[task]), 0.05)
    result, watch = run(problem, CheapPrior())
    torch.manual_seed(0)
    judge = Referee()
    torch.nn.init.normal_(judge.out.weight, std=0.05)  # within what it can say
    whole = gather(CheapPrior(), problem, result.images, watch)
    assert whole is not None
    expected = judge.std(whole)
    monkeypatch.setattr("leader.trust.evidence.LARGE", 319 * 24)
    monkeypatch.setattr("leader.trust.referee.LARGE", 319 * 24)
    monkeypatch.setattr("leader.trust.referee.PIECE", 40)
    parts = gather(CheapPrior(), problem, result.images, watch)
    assert parts is not None and (parts.known is None) == (whole.known is None)
    torch.testing.assert_close(parts.seen, whole.seen, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(parts.left, whole.left, rtol=0.1, atol=1e-6)  # closed form beside four iterations
    torch.testing.assert_close(judge.std(replace(parts, left=whole.left)), expected, rtol=1e-4, atol=1e-6)
    assert float(expected.std()) > 0


@pytest.mark.parametrize("noises", [[0.0, 0.0], [0.1, 0.05]])
def test_noise_levels_of_a_calibration_rise(tmp_path: Path, noises: list[float]) -> None:
    nodes = [{"noise": noise, "factors": [1.0, 2.0, 3.0, 4.0], "runs": 3} for noise in noises]
    (tmp_path / "a.json").write_text(json.dumps({"levels": list(LEVELS), "families": {"sr": nodes}}))
    with pytest.raises(LeaderError, match="must stand in the order of their noise levels"):
        Calibration.load(tmp_path / "a.json")


def test_the_map_is_red_where_nothing_known_is_near() -> None:
    known = box_mask(40, 60, 5, 7, 2 * FAR + 2, 2 * FAR + 9) > 0
    std = torch.full((3, 40, 60), 0.01)
    std[:, 5 + FAR, 7 + FAR] = 0.9
    raised = raise_invented(std, known)
    red = reach((raised[1] / 2).numpy()) >= LAST - 1e-3
    inside = np.zeros((40, 60), bool)
    inside[5 + FAR : 7 + FAR, 7 + FAR : 16 + FAR] = True
    assert (red == inside).all() and float(raised[0, 5 + FAR, 7 + FAR]) == pytest.approx(0.9)
    assert raise_invented(std, None) is std
    problem = Problem(photograph(40, 60)[None] * known, build_task("inpaint", (3, 40, 60), mask=known.float()), 0.0)
    error = ensemble(problem, 3, sampler=Sampler("embedded", "ddnm", (), 3)).error_std
    assert error is not None and (reach((error[0, 0] / 2).numpy()) >= LAST - 1e-3)[inside].all(), "nor do runs that agree"
