"""SITCOM's inner loop in a batch: images stop for themselves, and all that is answered belongs together."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from leader.methods import SITCOM, State
from leader.operators import Blur, gaussian_kernel
from leader.priors.gaussian import GaussianPrior, stationary
from leader.priors.ledger import Ledger, recording
from tests.methods.contexts import context, measured
from tests.oracle.cases import mixture

SHAPE = (1, 8, 8)
SIGMA = 0.1
TIME = 100
"""A time at which the prior leaves enough freedom to fit the data."""


def draw(count: int, seed: int = 0) -> Tensor:
    return mixture(SHAPE).sample(count, torch.Generator().manual_seed(seed))


def state(count: int, seed: int = 9) -> Tensor:
    return torch.randn(count, *SHAPE, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_sitcom_images_stop_for_themselves() -> None:
    """A batch whose images need different numbers of iterations equals its images alone."""
    prior = GaussianPrior(stationary(SHAPE, 0.5, mean=0.3))
    prior.one_by_one = False
    both = measured(Blur(SHAPE, gaussian_kernel(1.0, 5)), draw(2) * torch.tensor([0.2, 0.8]).reshape(2, 1, 1, 1), SIGMA)
    x, t, method = state(2), torch.tensor([TIME, TIME - 30]), SITCOM(inner=80, rate=0.1)
    together = method.estimate(context(prior, both), State(x), t)
    passes = []
    for i in range(2):
        keep, ledger = torch.tensor([i]), Ledger()
        with recording(ledger):
            alone = method.estimate(context(prior, both.select(keep)), State(x[keep]), t[keep])
        passes.append(ledger.total.calls)
        assert torch.allclose(together.prediction.x0[keep], alone.prediction.x0, atol=1e-10)
        assert torch.allclose(together.x[keep], alone.x, atol=1e-10)
    assert passes[0] != passes[1]


def test_all_that_sitcom_answers_belongs_to_the_input_it_ended_with() -> None:
    """x0, noise and variance of every image are the prior's at its last input, also where the others went on."""
    prior, method, t = mixture(SHAPE), SITCOM(inner=40, rate=0.1, clamp=False), torch.tensor([TIME, TIME - 30])
    prior.one_by_one = False
    both = measured(Blur(SHAPE, gaussian_kernel(1.0, 5)), draw(2) * torch.tensor([0.2, 0.8]).reshape(2, 1, 1, 1), SIGMA)
    for count in (1, 40):
        estimate = replace(method, inner=count).estimate(context(prior, both), State(state(2)), t)
        expected, found = prior.predict(estimate.x, t), estimate.prediction
        assert expected.variance is not None and found.variance is not None
        for one, other in ((found.x0, expected.x0), (found.eps, expected.eps), (found.variance, expected.variance)):
            assert torch.allclose(one, other, atol=1e-12)
    assert not torch.allclose(estimate.x[0] - state(2)[0], torch.zeros(()).double(), atol=1e-3)
