"""Weak noise is left where the network expects no better picture without it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from leader.forensics.noise.estimate import NoiseEstimate
from leader.operators import AveragePoolSR, Blur, Denoising
from leader.presets.paths import find_path
from leader.priors.base import Prediction
from leader.problem import Problem
from leader.restoration.restore import Preparation, prepare
from leader.restoration.worth import GAINED, WEAK, expected_error, leaves_nothing_open
from tests.cheap_prior import CheapPrior


class Modest(CheapPrior):
    """Expects errors of this size, for [0, 1] images, whatever it is asked; None: has no opinion."""

    def __init__(self, error: float | None) -> None:
        super().__init__()
        self.error, self.seen = error, list[Tensor]()

    def _predict(self, x: Tensor, t: Tensor) -> Prediction:
        self.seen.append(x)
        variance = None if self.error is None else torch.full_like(x, (2 * self.error) ** 2)
        return replace(super()._predict(x, t), variance=variance)


def noisy(sigma: float) -> NDArray[np.float32]:
    drawn = 0.5 + sigma * np.random.default_rng(0).standard_normal((64, 64, 3))
    return (np.round(255 * drawn) / 255).astype(np.float32)


@pytest.mark.parametrize("sigma", [0.008, 0.02])
def test_the_error_is_that_of_the_posterior_at_the_noise_of_the_picture(sigma: float) -> None:
    """x0 ~ N(0, 0.25), noise of s: p s^2 / (p + s^2), at the time whose noise is nearest, a few per cent beside it."""
    prior = CheapPrior()
    problem = Problem(torch.from_numpy(noisy(sigma)).permute(2, 0, 1)[None], Denoising((3, 64, 64)), sigma)
    s = float(prior.schedule.log_noise[prior.schedule.nearest(2 * sigma)]) / 2
    exact = (0.25 / (0.25 * np.exp(-2 * s) + 1)) ** 0.5 / 2
    assert expected_error(prior, problem) == pytest.approx(exact, rel=1e-5)
    assert exact == pytest.approx(sigma, rel=0.15)
    assert expected_error(Modest(None), problem) is None


def test_the_picture_is_asked_about_as_a_state_of_that_time() -> None:
    prior, picture = Modest(0.1), torch.from_numpy(noisy(0.02)).permute(2, 0, 1)[None]
    expected_error(prior, Problem(picture, Denoising((3, 64, 64)), 0.02))
    abar = float(prior.schedule.abar(torch.tensor([prior.schedule.nearest(0.04)])))
    torch.testing.assert_close(prior.seen[0], (2 * picture - 1) * abar**0.5)


@pytest.mark.parametrize(("share", "left"), [(0.95, False), (1.05, True)])
def test_weak_noise_is_left_where_the_answer_would_be_as_far_off(share: float, left: bool) -> None:
    found = prepare(noisy(0.01), "denoise", prior=Modest(0.001), steps=4).sigma
    ready = prepare(noisy(0.01), "denoise", prior=Modest(share * GAINED * found), steps=4)
    assert found == pytest.approx(0.01, rel=0.1) and ready.sigma == (0 if left else found)
    assert float(ready.problem.sigma) == pytest.approx(2 * ready.sigma) and ready.sigma_from == "estimated"
    assert any("left as it is" in note for note in ready.notes) is left
    if left:
        restored = ready.run()
        assert np.abs(restored.array - noisy(0.01)).max() < 1e-6


def test_nobody_asks_where_noise_shows_or_was_given_or_there_is_no_opinion() -> None:
    strong, loud = prepare(noisy(WEAK * 1.2), "denoise", prior=Modest(1.0), steps=4), noisy(0.01)
    assert strong.sigma == pytest.approx(1.2 * WEAK, rel=0.1)
    assert prepare(loud, "denoise", sigma=0.01, prior=Modest(1.0), steps=4).sigma == 0.01
    assert prepare(loud, "denoise", prior=Modest(None), steps=4).sigma == pytest.approx(0.01, rel=0.1)
    assert prepare(loud, "sr", factor=2, prior=Modest(1.0), steps=4).sigma > 0.009


def test_a_picture_that_nothing_happened_to_leaves_nothing_open() -> None:
    picture, shape = torch.rand(1, 3, 16, 16), (3, 16, 16)
    one, three = torch.ones(1, 1), torch.ones(3, 3)
    for operator in (Denoising(shape), Blur(shape, one)):
        assert leaves_nothing_open(Problem(picture, operator, 0.0)) and not leaves_nothing_open(
            Problem(picture, operator, 1e-3)
        )
    assert not leaves_nothing_open(Problem(picture, Blur(shape, three), 0.0))
    assert not leaves_nothing_open(Problem(picture, AveragePoolSR((3, 32, 32), 2), 0.0))
    two = picture.expand(2, -1, -1, -1)
    assert leaves_nothing_open(Problem(two, Blur(shape, one.expand(2, 1, 1, 1)), 0.0))


@pytest.mark.parametrize(("quality", "look"), [(None, None), ("best", "faithful")])
def test_it_costs_one_call(quality: str | None, look: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leader.restoration.choice.find_path", lambda *asked: replace(find_path(*asked), average=3))

    def ready(**more: Any) -> Preparation:
        return prepare(noisy(0.01), "denoise", prior=CheapPrior(), quality=quality, look=look, **more)

    known = ready(sigma=0)
    assert len(known.work()) == 1 and known.average == 1
    restored = known.run()
    assert repr(restored).endswith("sigma 0, 1 network call>")
    assert restored.result.ledger.total.calls == 1 and np.abs(restored.array - noisy(0.01)).max() < 1e-6
    assert ready(sigma=0.02).average == 3 and len(ready(sigma=0.02).work()) > 1
    assert len(ready(sigma=0, steps=4).work()) == 4
    assert len(prepare(noisy(0.01), "denoise", sigma=0, method="ddrm", prior=CheapPrior()).work()) == 100


def test_the_verdict_knows_the_white_noise_of_a_picture_whose_noise_somebody_gave(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def measured(pixels: Any, *others: Any) -> NoiseEstimate:
        asked.append((pixels.shape, *others))
        return NoiseEstimate(white=0.012, compression=0.5, rounding=0.001)

    given, estimated = (prepare(noisy(0.02), "denoise", sigma=sigma, prior=CheapPrior(), steps=2) for sigma in (0.02, None))
    monkeypatch.setattr("leader.forensics.examination.noise_behind", measured)
    assert given._noise() == given._noise() == 0.012
    assert asked == [(given.given.pixels.shape, None, given.given.bits, None)], "once"
    assert estimated._noise() is None and len(asked) == 1
