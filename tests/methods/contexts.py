"""A method's context without the loop, and operators of every kind for small images."""

import torch
from torch import Tensor

from leader.methods import Context
from leader.noise import SeededNoise
from leader.operators import (
    AveragePoolSR,
    BicubicSR,
    Blur,
    Colourisation,
    Denoising,
    FromFunctions,
    Inpainting,
    LinearOperator,
    SeparableBlur,
    WalshHadamard,
    gaussian_kernel,
    paper_gaussian_taps,
    random_mask,
)
from leader.priors.ask import Ask
from leader.priors.base import Prior
from leader.problem import Problem


def context(prior: Prior, problem: Problem, seed: int = 0, position: int = 0) -> Context:
    """The context of a step at a grid position, with seeded draws."""
    source, ids = SeededNoise(seed), list(range(problem.batch))

    def noise(name: str) -> Tensor:
        return source(ids, [position] * problem.batch, name, problem.image_shape).to(problem.y)

    return Context(Ask(prior), problem, prior.schedule, noise)


def operators(shape: tuple[int, int, int]) -> dict[str, LinearOperator]:
    """One of every kind; "functions" has no SVD."""
    mask = random_mask(shape[1], shape[2], 0.5, seed=3)
    weights = mask.float()

    def masked(x: Tensor) -> Tensor:
        return weights.to(x) * x

    made: dict[str, LinearOperator] = {
        "denoise": Denoising(shape),
        "inpaint": Inpainting(shape, mask),
        "sr-bicubic": BicubicSR(shape, 4),
        "sr-average": AveragePoolSR(shape, 4),
        "blur": Blur(shape, gaussian_kernel(1.2, 7)),
        "separable": SeparableBlur(shape, paper_gaussian_taps()),
        "cs": WalshHadamard(shape, 0.25),
        "functions": FromFunctions(shape, masked, masked),
    }
    if shape[0] == 3:
        made["colourise"] = Colourisation(shape)
    return made


def measured(operator: LinearOperator, truth: Tensor, sigma: float, seed: int = 0) -> Problem:
    """y = A x + sigma z, in [-1, 1] units; entries A never reaches stay zero."""
    y = operator.A(truth)
    noise = torch.randn(y.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return Problem.internal(y + sigma * noise.to(y) * (y != 0), operator, sigma)
