"""Several pictures in one pass, each as it becomes alone; several runs of one, and their mean."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import leader
from leader.errors import LeaderError, UsageError
from leader.operators import Denoising, build_task
from leader.problem import Problem
from leader.restoration import together
from leader.restoration.repeat import arguments_of
from leader.restoration.restore import Preparation, prepare, restore
from leader.restoration.restored import Restoration
from leader.sampler import Sampler
from leader.trust.referee import Referee, attach
from tests.cheap_prior import CheapPrior, photograph


class WidePrior(CheapPrior):
    """Takes a batch at once, as priors on a GPU do, and counts its passes."""

    def __init__(self) -> None:
        super().__init__()
        self.one_by_one = False
        self.sizes: list[int] = []

    def _predict(self, x: torch.Tensor, t: torch.Tensor) -> Any:
        self.sizes.append(len(x))
        return super()._predict(x, t)


def picture(number: int, height: int = 32, width: int = 24) -> Any:
    noise = np.random.default_rng(number).normal(0, 0.03 + 0.02 * number, (height, width, 3))
    return (photograph(height, width).permute(1, 2, 0).numpy() + noise).clip(0, 1).astype(np.float32)


def prepared(prior: CheapPrior, number: int = 0, height: int = 32, **choices: Any) -> Preparation:
    return prepare(picture(number, height), **{"task": "denoise", "quality": "draft", "seed": 4, **choices}, prior=prior)


CASES: dict[str, dict[str, Any]] = {
    "noise as found": {},
    "small": {"task": "sr", "factor": 2, "down": "lanczos", "sigma": 0.02, "quality": "standard"},
    "blurred": {"task": "deblur", "kernel": "gaussian:1.5", "sigma": 0.03, "quality": "standard", "kernel_doubt": 0.0},
    "torn": {"task": "inpaint", "mask": np.tile([1, 1, 0, 1], (32, 6)).astype(np.float32), "sigma": 0.0},
    "grey": {"task": "colourise", "sigma": 0.01},
    "a method with pruning": {"quality": None, "method": "diffpir", "plugins": ("leader",), "steps": 12},
    "another id": {"ids": 7, "quality": None, "method": "ddrm", "plugins": (), "steps": 6},
}


@pytest.mark.parametrize("case", CASES)
def test_together_gives_what_alone_gives(case: str) -> None:
    prior = WidePrior()
    ready = [prepared(prior, number, **CASES[case]) for number in range(3)]
    if case == "noise as found":
        assert len({one.sigma for one in ready}) == 3, "noise levels may differ within a pass"
    assert together.passes(ready) == [[0, 1, 2]]
    prior.sizes.clear()
    found = together.run_all(ready)
    assert max(prior.sizes) == 3
    for one, made in zip(ready, found):
        alone = one.run()
        assert isinstance(made, Restoration)
        np.testing.assert_allclose(made.array, alone.array, atol=2e-5)
        assert made.uncertainty is not None and alone.uncertainty is not None
        np.testing.assert_allclose(made.uncertainty, alone.uncertainty, atol=2e-5)
        told, expected = made.summary(), alone.summary()
        for key in ("network", "settings", "sigma", "seed", "size", "input", "options", "notes"):
            assert told[key] == expected[key], key
        assert [(visit["t"], visit["u"]) for visit in told["trace"]] == [(v["t"], v["u"]) for v in expected["trace"]]
        assert made.verdict is not None and alone.verdict is not None and made.verdict.level == alone.verdict.level
        assert made.given is one.given and made.seconds > 0
    assert together.run_all(ready, check=False)[0].verdict is None  # type: ignore[union-attr]


def test_each_walks_its_own_times() -> None:
    words: dict[str, Any] = {"quality": None, "method": "ddnm", "plugins": (), "steps": 6}
    prior = WidePrior()
    ready = [prepared(prior, 0, settings={"grid": grid}, **words) for grid in ("uniform", "quadratic")]
    assert together.passes(ready) == [[0, 1]]
    for one, made in zip(ready, together.run_all(ready)):
        alone = one.run()
        assert isinstance(made, Restoration) and made.summary()["settings"] == alone.summary()["settings"]
        assert [visit["t"] for visit in made.summary()["trace"]] == [visit["t"] for visit in alone.summary()["trace"]]
        np.testing.assert_allclose(made.array, alone.array, atol=2e-5)


def test_results_come_in_the_order_of_the_pictures() -> None:
    prior = WidePrior()
    found = together.run_all([prepared(prior, height=height, sigma=0.1) for height in (32, 36, 32)], check=False)
    assert [made.picture.size[1] for made in found if isinstance(made, Restoration)] == [32, 36, 32]


def test_each_has_its_own_map(tmp_path: Path) -> None:
    prior, judge = WidePrior(), Referee()
    torch.nn.init.normal_(judge.out.weight, std=0.05, generator=torch.Generator().manual_seed(0))
    judge.save(tmp_path / "w.referee")
    attach(prior, tmp_path / "w.referee")
    ready = [prepared(prior, number, quality=None, method="ddnm", plugins=(), steps=4) for number in (0, 2)]
    for one, made in zip(ready, together.run_all(ready, check=False)):
        alone = one.run(check=False)
        assert isinstance(made, Restoration) and made.trust is not None and alone.trust is not None
        torch.testing.assert_close(made.trust.std, alone.trust.std, rtol=1e-3, atol=1e-5)
        np.testing.assert_allclose(made.uncertainty, alone.uncertainty, rtol=1e-3, atol=1e-5)  # type: ignore[arg-type]


def test_on_a_processor_each_runs_alone() -> None:
    ready = [prepared(CheapPrior(), number) for number in range(2)]
    assert together.passes(ready) == [[0], [1]]
    for one, made in zip(ready, together.run_all(ready)):
        assert isinstance(made, Restoration) and np.array_equal(made.array, one.run().array)


def test_only_alike_pictures_share_a_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    prior = WidePrior()
    first = prepared(prior)
    others = {
        "size": prepared(prior, height=36),
        "task": prepared(prior, task="colourise"),
        "seed": prepared(prior, seed=5),
        "id": prepared(prior, ids=3),
        "quality": prepared(prior, quality="standard"),
        "several runs": prepared(prior, average=2),
        "its own draws": prepared(prior, settings={"estimator": "hutchinson"}),
        "threads": prepared(prior, threads=1),
        "prior": prepared(WidePrior()),
    }
    ready = [first, *others.values(), prepared(prior, 1)]
    assert together.passes(ready)[0] == [0, len(others) + 1]
    assert sorted(len(rows) for rows in together.passes(ready)) == [1] * len(others) + [2]
    words: dict[str, Any] = {"quality": None, "method": "ddnm", "plugins": ()}
    clean_or_noisy = [prepared(prior, sigma=sigma, **words) for sigma in (0.1, 0.0, 0.2, 0.0)]
    assert together.passes(clean_or_noisy) == [[0, 2], [1, 3]]
    masks = [np.roll(np.tile([1, 1, 0, 1], (32, 6)), shift).astype(np.float32) for shift in (0, 1)]
    torn = [prepared(prior, task="inpaint", mask=mask, sigma=0.0) for mask in masks]
    assert together.passes(torn) == [[0], [1]]
    six = [replace(first) for _ in range(6)]
    monkeypatch.setattr(together, "MOST_TOGETHER", 4)
    assert together.passes(six) == [[0, 1, 2, 3], [4, 5]]
    monkeypatch.setattr(together, "MOST_PIXELS", 2 * 32 * 24 + 1)
    assert together.passes(six) == [[0, 1], [2, 3], [4, 5]]
    monkeypatch.setattr(together, "MOST_PIXELS", 10)
    assert together.passes(six[:2]) == [[0], [1]]


def test_one_that_cannot_be_done_costs_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    prior = WidePrior()
    ready = [prepared(prior, number, sigma=0.05) for number in range(3)]
    bad, real = ready[1].problem.y.clone(), WidePrior._predict

    def fails(self: WidePrior, x: torch.Tensor, t: torch.Tensor) -> Any:
        if len(x) > 1:
            raise RuntimeError("CUDA out of memory")
        return real(self, x, t)

    monkeypatch.setattr(WidePrior, "_predict", fails)
    monkeypatch.setattr(Preparation, "_verdict", lambda self, images: _raise() if torch.equal(self.problem.y, bad) else None)
    found = together.run_all(ready)
    assert isinstance(found[0], Restoration) and isinstance(found[2], Restoration)
    assert isinstance(found[1], LeaderError) and "spoiled" in str(found[1])


def _raise() -> None:
    raise LeaderError("The second one is spoiled.")


def test_pictures_of_one_pass_share_its_time() -> None:
    prior = WidePrior()
    ready = [prepared(prior, number) for number in range(4)]
    begin = time.perf_counter()
    made = together.run_together(ready, check=False)
    assert sum(one.seconds for one in made) < 2 * (time.perf_counter() - begin)


def problem(batch: int = 2, sigma: float = 0.05) -> Problem:
    x = torch.stack([photograph(16, 24), 1 - photograph(16, 24)])[:batch]
    return Problem.simulate(x, build_task("sr", (3, 16, 24), factor=2), sigma)


def test_runs_are_those_of_their_ids_and_mean_and_spread_are_theirs() -> None:
    sampler = Sampler(CheapPrior(), "ddnm", (), 6)
    found = leader.ensemble(problem(), 3, sampler=sampler, seed=4)
    assert found.mean.shape == (2, 3, 16, 24) and found.count == 3 and found.error_std is None
    alone = [
        sampler.run(problem().select(torch.tensor([row])), 4, ids=[3 * row + k]).images[0] for row in range(2) for k in range(3)
    ]
    assert torch.equal(found.runs.images, torch.stack(alone))
    torch.testing.assert_close(found.mean[1], torch.stack(alone[3:]).mean(0))
    torch.testing.assert_close(found.spread[1], torch.stack(alone[3:]).std(0))
    assert float(found.spread.mean()) > 0.01
    with pytest.raises(LeaderError, match="number of runs"):
        leader.ensemble(problem(), 0, sampler=sampler)


def test_the_error_of_the_mean_loses_what_the_runs_do_not_share(tmp_path: Path) -> None:
    prior = CheapPrior()
    attach(prior, tmp_path / "w.referee")
    referee = Referee()
    assert referee.out.bias is not None
    referee.out.bias.data.fill_(2.0)
    referee.save(tmp_path / "w.referee")
    found = leader.ensemble(problem(1), 4, sampler=Sampler(prior, "ddnm", (), 6))
    assert found.error_std is not None
    single = np.exp(-1.0) ** 2
    expected = np.maximum(single - 0.75 * found.spread.numpy() ** 2, np.minimum(single, found.spread.numpy() ** 2) / 4)
    np.testing.assert_allclose(found.error_std.numpy() ** 2, expected, rtol=2e-3)
    assert float(found.error_std.mean()) < np.exp(-1.0)
    assert referee.out.weight is not None
    torch.nn.init.normal_(referee.out.weight, std=0.05, generator=torch.Generator().manual_seed(0))
    referee.save(tmp_path / "other.referee")
    attach(prior, tmp_path / "other.referee")
    sampler, ids = Sampler(prior, "ddnm", (), 6), (7, 3, 9, 4)
    both = leader.ensemble(problem(), 2, sampler=sampler, ids=ids)
    assert both.runs.settings["ids"] == list(ids) and len(both.trust) == 2 and both.error_std is not None
    for row in range(2):
        alone = leader.ensemble(problem().select(torch.tensor([row])), 2, sampler=sampler, ids=ids[2 * row : 2 * row + 2])
        torch.testing.assert_close(both.trust[row].std, alone.trust[0].std)
        torch.testing.assert_close(both.error_std[row], alone.error_std[0])  # type: ignore[index]
        assert torch.equal(both.mean[row], alone.mean[0])
    shown = found.as_result()
    assert shown.error_std is found.error_std and shown.images is found.mean and shown.posterior_std is found.spread


def test_an_averaged_restoration_is_the_mean_and_can_be_repeated() -> None:
    choices: dict[str, Any] = {"factor": 2, "prior": CheapPrior(), "steps": 5, "plugins": (), "sigma": 0.05}
    picture = photograph(12, 16)
    mean = restore(picture, "sr", average=3, **choices)
    each = [restore(picture, "sr", ids=k, **choices).result.images for k in range(3)]
    torch.testing.assert_close(mean.result.images, torch.cat(each).mean(0, keepdim=True))
    torch.testing.assert_close(mean.result.posterior_std, torch.cat(each).std(0, keepdim=True))
    assert mean.result.ledger.total.calls == 15 and mean.summary()["settings"]["ids"] == [0, 1, 2]
    odd = restore(picture, "sr", average=2, ids=(2, 0), **choices).result.images
    torch.testing.assert_close(odd, torch.cat([each[2], each[0]]).mean(0, keepdim=True))
    arguments = arguments_of(mean.summary(), choices["prior"])
    assert arguments["average"] == 3
    assert torch.equal(prepare(picture, **arguments).run().result.images, mean.result.images)
    with pytest.raises(UsageError, match="one id"):
        prepare(picture, "sr", ids=(1, 2), **choices)
    with pytest.raises(LeaderError, match="to average"):
        prepare(picture, "sr", average=0, **choices)


def test_runs_of_an_ensemble_walk_the_times_of_their_own_image() -> None:
    problem = Problem.internal(torch.zeros(2, 1, 8, 8), Denoising((1, 8, 8)), torch.tensor([0.05, 0.4]))
    sampler = Sampler(CheapPrior(), "ddnm", "direct", 20, use_presets=False)
    runs = leader.ensemble(problem, 2, sampler=sampler).runs
    firsts = [visits[0].t for visits in runs.trace.values()]
    grids = sampler.plan(problem).grids
    assert firsts == [grids[0].times[0]] * 2 + [grids[1].times[0]] * 2
    assert [len(visits) for visits in runs.trace.values()] == [grids[0].visits] * 2 + [grids[1].visits] * 2


def test_an_ensemble_takes_the_path_of_a_restoration(monkeypatch: pytest.MonkeyPatch) -> None:
    """One step where the measurement is the picture, and the steps of the quality elsewhere."""
    picture = photograph(16, 24)
    for sigma, quality in ((0.0, "standard"), (0.3, "draft")):
        ready = prepare(picture, "denoise", sigma=sigma, quality=quality, prior=CheapPrior())
        found = leader.ensemble(ready.problem, 1, prior=CheapPrior(), quality=quality)
        assert found.runs.settings["grid"] == ready.plan.settings["grid"]
        assert torch.equal(found.mean, ready.run(check=False).result.images)
        assert (found.runs.settings["steps"] == 1) == (sigma == 0)
    monkeypatch.setattr(CheapPrior, "name", "embedded")
    for look, method in (("natural", "projdiff"), ("faithful", "ddnm")):
        ready = prepare(picture, "deblur-gaussian", sigma=0.05, quality="draft", look=look, prior=CheapPrior())
        found = leader.ensemble(ready.problem, 1, prior=CheapPrior(), quality="draft", look=look)
        assert (
            found.runs.settings["method"] == ready.plan.settings["method"] and found.runs.settings["method"]["name"] == method
        )
