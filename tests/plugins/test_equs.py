"""EquS and EquS+: what they leave alone, when they act, and their lists of times."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor

from leader.errors import LeaderError
from leader.methods import DDNM, DPS, METHODS, SITCOM, make_method
from leader.plugins import Plugin, StepInfo
from leader.plugins.equs import TRANSFORMS, EquS, EquSPlus, published_times
from leader.priors.base import Prediction, from_x0
from leader.priors.gaussian import Gaussian, GaussianPrior, white
from leader.sampler import Sampler
from leader.schedule import Grid, travel_grid, uniform_grid
from tests.methods.contexts import measured, operators

SHAPE = (1, 16, 16)
SIGMA = 0.1


def lopsided() -> GaussianPrior:
    """A prior that knows left from right."""
    generator = torch.Generator().manual_seed(0)
    variances = 0.05 + torch.rand(SHAPE, generator=generator, dtype=torch.float64)
    return GaussianPrior(Gaussian(torch.randn(SHAPE, generator=generator, dtype=torch.float64) / 4, variances))


def info(*visits: int) -> StepInfo:
    count = len(visits)
    return StepInfo(list(range(count)), list(visits), list(visits), torch.full((count,), 100), [uniform_grid(100)] * count)


def images(count: int) -> Tensor:
    return torch.randn(count, *SHAPE, generator=torch.Generator().manual_seed(3), dtype=torch.float64)


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("name", METHODS)
def test_aligned_changes_nothing_for_an_equivariant_network(name: str, transform: str) -> None:
    prior = GaussianPrior(white(SHAPE, 0.4, 0.1))
    problem = measured(operators(SHAPE)["sr-bicubic"], prior.sample(1, torch.Generator().manual_seed(1)), SIGMA)
    method = make_method(name, {"inner": 3} if name == "sitcom" else {})
    plain = Sampler(prior, method, (), 6, estimator=None).run(problem, seed=2).images
    turned = Sampler(prior, method, (EquS(transform=transform),), 6, estimator=None).run(problem, seed=2).images
    assert torch.allclose(plain, turned, atol=1e-12)


def test_raw_leaves_the_noise_turned() -> None:
    """With the equivariant prior, raw differs from aligned in hosts that use eps and in no other."""
    prior = GaussianPrior(white(SHAPE, 0.4))
    problem = measured(operators(SHAPE)["inpaint"], prior.sample(1, torch.Generator().manual_seed(1)), SIGMA)
    for name, same in (("ddnm", False), ("ddrm", False), ("ddpg", True), ("projdiff", True), ("dps", True)):
        plain, raw = (
            Sampler(prior, name, plugins, 6, estimator=None).run(problem, seed=2).images
            for plugins in ((), (EquS(mode="raw"),))
        )
        assert torch.allclose(plain, raw, atol=1e-12) == same


def test_everything_is_taken_back() -> None:
    """On turned steps x0, eps and variance are G^-1 of the network's answer at G x; raw leaves eps; others
    are untouched.
    """
    prior = lopsided()
    x, t = images(2), torch.tensor([500, 500])
    for name, (forth, back) in TRANSFORMS.items():
        plain, turned = prior.predict(x, t), prior.predict(forth(x), t)
        assert torch.equal(back(forth(x)), x)
        for mode in ("aligned", "raw"):
            # Visit 98 of 100 is step 1 (plain), visit 99 is step 0 (turned).
            answer = EquS(name, mode).wrap(prior.predict, info(98, 99))(x, t)
            assert answer.variance is not None and turned.variance is not None
            assert torch.equal(answer.x0[0], plain.x0[0]) and torch.equal(answer.eps[0], plain.eps[0])
            assert torch.equal(answer.x0[1], back(turned.x0)[1])
            assert torch.equal(answer.variance[1], back(turned.variance)[1])
            assert torch.equal(answer.eps[1], (turned.eps if mode == "raw" else back(turned.eps))[1])
            if mode == "aligned":  # x0 and eps still belong together
                consistent = from_x0(x, t, answer.x0, prior.schedule)
                assert torch.allclose(answer.eps, consistent.eps, atol=1e-10)


@dataclass(frozen=True)
class Spy(Plugin):
    """Notes what the network is shown."""

    name: ClassVar[str] = "spy"
    summary: ClassVar[str] = "notes"

    seen: list[Tensor]

    def wrap(self, predict: Callable[[Tensor, Tensor], Prediction], info: StepInfo) -> Callable[[Tensor, Tensor], Prediction]:
        def noted(x: Tensor, t: Tensor) -> Prediction:
            self.seen.append(x)
            return predict(x, t)

        return noted


@dataclass(frozen=True)
class Jumper(Plugin):
    """Visits every third time."""

    name: ClassVar[str] = "jumper"
    summary: ClassVar[str] = "jumps"

    def pace(self, grid: Grid, position: int, uncertainty: float) -> int:
        return min(position + 3, max(grid.run_ends[position], position + 1))


@pytest.mark.parametrize("jump", [False, True])
def test_every_second_visited_step_is_turned(jump: bool) -> None:
    """The first of 10 steps is plain (k = 9), then they alternate, also when a pacer skips."""
    prior, seen, outer = lopsided(), list[Tensor](), list[Tensor]()
    problem = measured(operators(SHAPE)["inpaint"], prior.sample(1, torch.Generator().manual_seed(1)), SIGMA)
    plugins = (Spy(seen), EquS(), Spy(outer), *((Jumper(),) if jump else ()))
    Sampler(prior, DDNM(), plugins, 10, estimator="auto" if jump else None).run(problem)
    assert len(seen) == len(outer) == (4 if jump else 10)
    for k, (inner, asked) in enumerate(zip(seen, outer)):
        assert torch.equal(inner, asked.flip(-1) if k % 2 == 1 else asked)


@pytest.mark.parametrize("method", [DPS(), SITCOM(inner=4)])
def test_gradients_pass_through(method: DPS | SITCOM) -> None:
    """With a flipped problem and prior the guided step is the flipped one: the transform is differentiated
    too.
    """
    prior, t = lopsided(), torch.tensor([300])
    wrapped = EquS().wrap(prior.predict, info(99))
    x = images(1).requires_grad_()
    (found,) = torch.autograd.grad(wrapped(x, t).x0.square().sum(), x)
    y = images(1).flip(-1).requires_grad_()
    (expected,) = torch.autograd.grad(prior.predict(y, t).x0.square().sum(), y)
    assert torch.allclose(found, expected.flip(-1), atol=1e-12)
    problem = measured(operators(SHAPE)["blur"], prior.sample(1, torch.Generator().manual_seed(1)), SIGMA)
    plain, turned = (Sampler(prior, method, plugins, 5, estimator=None).run(problem).images for plugins in ((), (EquS(),)))
    assert not torch.allclose(plain, turned, atol=1e-6)


def test_published_times_are_those_of_the_released_list() -> None:
    hundred = published_times(100).times
    assert hundred[:7] == (998, 978, 959, 939, 919, 900, 881)
    assert hundred[-14:] == (17, 14, 12, 10, 8, 6, 4, 3, 2, 1, 0, 0, 0, 0, -1)[-14:]
    assert (hundred[33], hundred[66]) == (443, 110)
    for count in (10, 20, 50, 100, 250):
        assert published_times(count).times[:-1] == tuple(int(v) for v in np.linspace(np.sqrt(999), 0, count) ** 2)
    assert published_times(1).times == (999, -1)


def test_equs_plus_brings_its_times() -> None:
    prior = lopsided()
    problem = measured(operators(SHAPE)["blur"], prior.sample(1, torch.Generator().manual_seed(1)), SIGMA)
    strict = EquSPlus().grid(uniform_grid(100), prior, problem).times
    assert len(strict) == 101 and all(a > b for a, b in pairwise(strict)) and strict[0] == 999
    assert EquSPlus(times="published").grid(uniform_grid(100), prior, problem) == published_times(100)
    assert EquS().grid(uniform_grid(100), prior, problem) == uniform_grid(100)
    with pytest.raises(LeaderError, match="time travel"):
        EquSPlus().grid(travel_grid(100, 10, 2), prior, problem)


@pytest.mark.parametrize("times", ["decreasing", "published"])
@pytest.mark.parametrize("name", METHODS)
def test_equs_plus_runs_on_every_host(name: str, times: str) -> None:
    """Also with repeated times, whose steps go nowhere in noise."""
    prior = lopsided()
    problem = measured(operators(SHAPE)["cs"], prior.sample(1, torch.Generator().manual_seed(1)), SIGMA)
    method = make_method(name, {"sitcom": {"inner": 3}, "repaint": {"travel_repeats": 1}}.get(name, {}))
    result = Sampler(prior, method, (EquSPlus(times=times),), 30, estimator=None).run(problem)
    assert float(result.images.abs().max()) < 20
    assert len(result.trace[0]) == 30


def test_wrong_words_are_refused() -> None:
    with pytest.raises(LeaderError, match="rotate180"):
        EquS(transform="rotat180")
    with pytest.raises(LeaderError, match="aligned or raw"):
        EquS(mode="flipped")
    with pytest.raises(LeaderError, match="decreasing or published"):
        EquSPlus(times="all")


def test_images_of_a_batch_are_turned_each_by_its_own_visits() -> None:
    """Of two visits the last is turned: an image at its first visit is not, beside one at its last."""
    seen: list[Tensor] = []

    def predict(x: Tensor, t: Tensor) -> Prediction:
        seen.append(x)
        return Prediction(x + 1, x + 2, x + 3)

    info = StepInfo([0, 1], [5, 0], [0, 1], torch.tensor([7, 3]), [Grid((7, 3, -1))] * 2)
    x = torch.arange(2 * 3 * 4 * 6.0).reshape(2, 3, 4, 6)
    turns: dict[str, Callable[[Tensor], Tensor]] = {
        "flip": lambda v: v.flip(-1),
        "rotate180": lambda v: v.flip(-1).flip(-2),
        "shift": lambda v: v.roll(1, -2).roll(1, -1),
    }
    for transform, turn in turns.items():
        answer = EquS(transform=transform).wrap(predict, info)(x, info.t)
        assert torch.equal(seen[-1][0], x[0]) and torch.equal(seen[-1][1], turn(x[1]))
        assert torch.equal(answer.x0, x + 1) and torch.equal(answer.eps, x + 2)
        assert answer.variance is not None and torch.equal(answer.variance, x + 3)
    tall = torch.arange(8 * 12.0).reshape(1, 1, 8, 12)
    one = StepInfo([0], [0], [0], torch.tensor([0]), [Grid((0, -1))])
    EquS(transform="shift").wrap(predict, one)(tall, one.t)
    assert torch.equal(seen[-1], tall.roll(2, -2).roll(3, -1)), "a quarter of each side"
