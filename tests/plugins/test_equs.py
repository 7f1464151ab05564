"""EquS and EquS+: what they leave alone, when they act, and their lists of times."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from leader import Problem, Sampler
from leader.methods import DPS, SITCOM
from leader.operators import Denoising
from leader.plugins import EquSPlus, StepInfo
from leader.plugins.equs import EquS, published_times
from leader.priors.base import Prediction
from leader.priors.gaussian import Gaussian, GaussianPrior
from leader.schedule import Grid, uniform_grid
from tests.methods.contexts import measured, operators
from tests.oracle.cases import mixture

SHAPE = (1, 8, 16)
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


def test_images_of_a_batch_are_turned_each_by_its_own_visits() -> None:
    """Of two visits the last is turned: an image at its first visit is not, beside one at its last."""
    seen: list[Tensor] = []

    def predict(x: Tensor, t: Tensor) -> Prediction:
        seen.append(x)
        return Prediction(x + 1, x + 2, x + 3)

    info = StepInfo([0, 1], [5, 0], [0, 1], torch.tensor([7, 3]), [Grid((7, 3, -1))] * 2)
    x = torch.arange(2 * 3 * 4 * 6.0).reshape(2, 3, 4, 6)
    turns: dict[Any, Callable[[Tensor], Tensor]] = {
        "flip": lambda v: v.flip(-1),
        "rotate180": lambda v: v.flip(-1).flip(-2),
        "shift": lambda v: v.roll(1, -2).roll(1, -1),
    }
    for transform, turn in turns.items():
        for mode in ("aligned", "raw"):
            answer = EquS(transform, mode).wrap(predict, info)(x, info.t)
            assert torch.equal(seen[-1][0], x[0]) and torch.equal(seen[-1][1], turn(x[1]))
            assert torch.equal(answer.x0, x + 1) and torch.equal(answer.eps[0], x[0] + 2)
            assert torch.equal(answer.eps[1], (x[1] if mode == "aligned" else turn(x[1])) + 2), "raw leaves the noise turned"
            assert answer.variance is not None and torch.equal(answer.variance, x + 3)
    tall = torch.arange(8 * 12.0).reshape(1, 1, 8, 12)
    one = StepInfo([0], [0], [0], torch.tensor([0]), [Grid((0, -1))])
    EquS(transform="shift").wrap(predict, one)(tall, one.t)
    assert torch.equal(seen[-1], tall.roll(2, -2).roll(3, -1)), "a quarter of each side"


COLOUR = (3, 8, 8)


def test_equs_plus_makes_as_many_steps_as_its_host() -> None:
    prior = mixture(COLOUR)
    problem = Problem.internal(torch.zeros(1, *COLOUR), Denoising(COLOUR))
    for times in ("decreasing", "published"):
        assert EquSPlus(times=times).grid(uniform_grid(20), prior, problem).visits == 20
    assert EquSPlus().grid(Grid((900, 5, -1)), prior, problem).visits == 2
