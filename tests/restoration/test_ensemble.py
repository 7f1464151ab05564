"""Several runs and their mean."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import leader
from leader.errors import LeaderError, UsageError
from leader.operators import Denoising, build_task
from leader.problem import Problem
from leader.restoration.repeat import arguments_of
from leader.restoration.restore import prepare, restore
from leader.sampler import Sampler
from leader.trust.referee import Referee, attach
from tests.cheap_prior import CheapPrior, photograph


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


def test_an_ensemble_takes_the_path_of_a_restoration() -> None:
    """One step where the measurement is the picture, and the steps of the quality elsewhere."""
    picture = photograph(16, 24)
    for sigma, quality in ((0.0, "standard"), (0.3, "draft")):
        ready = prepare(picture, "denoise", sigma=sigma, quality=quality, prior=CheapPrior())
        found = leader.ensemble(ready.problem, 1, prior=CheapPrior(), quality=quality)
        assert found.runs.settings["grid"] == ready.plan.settings["grid"]
        assert torch.equal(found.mean, ready.run(check=False).result.images)
        assert (found.runs.settings["steps"] == 1) == (sigma == 0)
