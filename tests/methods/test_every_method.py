"""What holds for all methods: every operator they can serve, batches, per-image kernels and noise, plug-ins switched off."""

from typing import Any

import pytest
import torch
from torch import Tensor

from leader.errors import LeaderError
from leader.methods import DPS, METHODS, Method, make_method, shared
from leader.operators import Blur, Inpainting, LinearOperator, SpectralOperator, gaussian_kernel, random_mask
from leader.plugins import SATP
from leader.priors.base import Prediction, Prior
from leader.priors.gaussian import GaussianPrior, stationary
from leader.problem import Problem
from leader.sampler import Sampler
from leader.schedule import Schedule
from tests.methods.contexts import context, measured, operators
from tests.oracle.cases import mixture

SHAPE = (3, 16, 16)
SIGMA = 0.1
STEPS = 6


def method(name: str) -> Method:
    return make_method(name, {"inner": 3} if name == "sitcom" else {})


def prior(one_by_one: bool = False) -> GaussianPrior:
    made = GaussianPrior(stationary(SHAPE, 0.3))
    made.one_by_one = one_by_one
    return made


def truth(count: int = 1) -> Tensor:
    return prior().sample(count, torch.Generator().manual_seed(7))


@pytest.mark.parametrize("name", METHODS)
def test_batch_equals_its_images(name: str) -> None:
    """Two images with their own kernels, noise and, through SATP, times: together and alone the same to rounding."""
    kernels = torch.stack([gaussian_kernel(1.2, 7), gaussian_kernel(0.7, 7)])[:, None]
    masks = torch.stack([random_mask(16, 16, 0.5, seed=seed) for seed in (1, 2)]).reshape(2, 1, 16, 16)
    cases: list[LinearOperator] = [Blur(SHAPE, kernels), Inpainting(SHAPE, masks)]
    world = mixture(SHAPE)  # its spread depends on the image, so that the two images pace differently
    world.one_by_one = False
    generator = torch.Generator().manual_seed(7)
    pictures = torch.cat([world.components[k].sample(1, generator) for k in (0, 2)])
    for operator in cases:
        y = measured(operator, pictures, SIGMA).y
        problem = Problem.internal(y, operator, torch.tensor([SIGMA, 0.05], dtype=torch.float64))
        sampler = Sampler(world, method(name), (SATP(budget=0.1, eta=2.0),), 20)
        together = sampler.run(problem, seed=3)
        for i in range(2):
            alone = sampler.run(problem.select(torch.tensor([i])), seed=3, ids=[i])
            assert [v.t for v in together.trace[i]] == [v.t for v in alone.trace[i]]
            assert torch.allclose(together.images[i], alone.images[0], atol=1e-8)
            assert together.ledger.rows[i] == alone.ledger.rows[i]
        walks = [[v.t for v in together.trace[i]] for i in range(2)]
        assert name == "ddim" or walks[0] != walks[1]  # ddim does not look at the data that tell the images apart


@pytest.mark.parametrize(
    ("name", "settings", "task", "message"),
    [
        ("ddrm", {}, "functions", "singular value decomposition"),
        ("projdiff", {}, "functions", "singular value decomposition"),
        ("projdiff", {"form": "simple"}, "sr-bicubic", "single non-zero singular value"),
        ("ddnm", {"form": "spectral"}, "functions", "no known SVD; use form 'simple' or 'auto'"),
        ("ddnm", {"noise": "published"}, "blur", "complex"),
        ("sitcom", {"overwrite": True}, "blur", "in inpainting"),
        ("dps", {"variance": "predicted"}, "inpaint", "predicts no variance"),
        ("dps", {"variance": "respaced"}, "inpaint", "learned no range"),
    ],
)
def test_what_a_method_cannot_serve_is_refused_before_the_first_call(
    name: str, settings: dict[str, Any], task: str, message: str
) -> None:
    class Silent(Prior):
        def _predict(self, x: Tensor, t: Tensor) -> Prediction:
            raise AssertionError("refused before the first call")

    problem = measured(operators(SHAPE)[task], truth().float(), SIGMA)
    sampler = Sampler(Silent(Schedule.linear()), name, (), STEPS, estimator=None, use_presets=False, **settings)
    with pytest.raises(LeaderError, match=message):
        sampler.run(problem)


def test_a_split_belongs_to_its_times() -> None:
    problem = measured(operators(SHAPE)["sr-bicubic"], truth().float(), SIGMA)
    here = context(prior(), problem)
    operator = problem.operator
    assert isinstance(operator, SpectralOperator)
    first = shared.spectral_split(here, operator, torch.tensor([500]), 0.85)
    assert shared.spectral_split(here, operator, torch.tensor([500]), 0.85) is first
    for u, eta, eta_b in ((400, 0.85, 1.0), (500, 0.5, 1.0), (500, 0.85, 0.5)):
        other = shared.spectral_split(here, operator, torch.tensor([u]), eta, eta_b)
        assert not (torch.equal(other.fresh, first.fresh) and torch.equal(other.elsewhere[0], first.elsewhere[0]))
    assert shared.spectral_split(here, operator, torch.tensor([500]), 0.85, whole=True) is not first, "a table of its own"


@pytest.mark.parametrize(("task", "scale"), [("sr-bicubic", 0.3), ("inpaint", 0.5), ("blur", 0.3)])
def test_published_scales_of_dps_serve_where_nothing_else_does(task: str, scale: float) -> None:
    """By the presets of any prior, without presets, and as an object."""
    problem = measured(operators(SHAPE)[task], truth().float(), SIGMA)
    expected = Sampler(prior(), DPS(scale=scale), (), STEPS, estimator=None).run(problem).images
    other = Sampler(prior(), DPS(scale=2 * scale), (), STEPS, estimator=None).run(problem).images
    assert not torch.equal(expected, other)
    for sampler in (
        Sampler(prior(), "dps", (), STEPS, estimator=None),
        Sampler(prior(), "dps", (), STEPS, estimator=None, use_presets=False),
        Sampler(prior(), DPS(), (), STEPS, estimator=None),
    ):
        assert torch.equal(sampler.run(problem).images, expected)
