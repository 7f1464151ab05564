"""Priors with exact answers, white and correlated: on a white prior a row sum passes for a diagonal."""

import numpy as np
import torch
from torch import Tensor

from leader.priors.gaussian import Gaussian, GaussianMixturePrior, GaussianPrior, stationary, white
from leader.problem import Problem
from leader.schedule import Schedule
from tests.operators.cases import dense
from tests.oracle.dense import Part, World


def four_variances(shape: tuple[int, int, int]) -> Gaussian:
    """Independent pixels with four distinct variances and a non-zero mean."""
    size = shape[0] * shape[1] * shape[2]
    variances = torch.tensor([0.01, 0.09, 0.25, 0.64], dtype=torch.float64).repeat(size // 4 + 1)[:size]
    mean = torch.linspace(-0.5, 0.5, size, dtype=torch.float64)
    return Gaussian(mean.reshape(shape), variances.reshape(shape))


def gaussian(kind: str, shape: tuple[int, int, int], schedule: Schedule | None = None) -> GaussianPrior:
    """A Gaussian prior by kind."""
    makers = {
        "white": lambda: white(shape, 0.5, mean=0.1),
        "correlated": lambda: stationary(shape, 0.5, mean=-0.1),
        "four": lambda: four_variances(shape),
    }
    return GaussianPrior(makers[kind](), schedule)


def mixture(shape: tuple[int, int, int]) -> GaussianMixturePrior:
    """Three components: two flat images of opposite brightness with correlated texture, and a white one."""
    parts = (stationary(shape, 0.2, mean=0.6), stationary(shape, 0.15, slope=1.5, mean=-0.5), white(shape, 0.3))
    return GaussianMixturePrior(parts, (0.5, 0.3, 0.2))


def states(prior: GaussianMixturePrior, t: int, count: int, seed: int = 0) -> Tensor:
    """Draws of x_t, float64."""
    generator = torch.Generator().manual_seed(seed)
    clean = prior.sample(count, generator)
    abar = prior.schedule.abar(t)
    noise = torch.randn(clean.shape, generator=generator, dtype=torch.float64)
    return abar.sqrt() * clean + (1 - abar).sqrt() * noise


def world_of(prior: GaussianPrior, problem: Problem, *, column: bool = False, rcond: float = 1e-3) -> World:
    """A problem of one image as NumPy sees it; `column`: as columns, see `World`."""
    like, law = (-1, 1) if column else (-1,), prior.gaussian
    return World(
        A=dense(problem.operator).numpy(),
        y=problem.y.reshape(like).numpy(),
        sigma=float(problem.sigma[0]),
        parts=(Part(1.0, law.mean.reshape(like).numpy(), law.covariance().numpy()),),
        abar=np.append(prior.schedule.abar_table.numpy(), 1.0),
        rcond=rcond,
    )
