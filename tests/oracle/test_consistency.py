"""Proposition 4.1: without noise the restored image reproduces the measurement, whatever the plug-ins do."""

from __future__ import annotations

import pytest
import torch

from leader import Problem, Sampler, operators
from leader.operators.base import LinearOperator
from tests.oracle.cases import gaussian

SHAPE = (1, 16, 16)


def make_operator(name: str) -> LinearOperator:
    mask = torch.rand(16, 16, generator=torch.Generator().manual_seed(5)) > 0.5
    makers: dict[str, LinearOperator] = {
        "inpaint": operators.Inpainting(SHAPE, mask),
        "sr": operators.BicubicSR(SHAPE, 4),
        "pool": operators.AveragePoolSR(SHAPE, 2),
        "denoise": operators.Denoising(SHAPE),
    }
    return makers[name].truncated()


@pytest.mark.parametrize("kind", ["white", "correlated"])
@pytest.mark.parametrize("name", ["inpaint", "sr", "pool", "denoise"])
@pytest.mark.parametrize(("lam", "budget", "seed"), [(0.0, 0.0, 0), (0.5, 0.05, 1), (20.0, 1.0, 2)])
def test_ddnm_reproduces_the_data(kind: str, name: str, lam: float, budget: float, seed: int) -> None:
    prior, operator = gaussian(kind, SHAPE), make_operator(name)
    x = prior.gaussian.sample(1, torch.Generator().manual_seed(seed)).float()
    problem = Problem.internal(operator.A(x), operator)
    sampler = Sampler(prior, "ddnm", ("ucdc", "ucpm", "satp"), steps=20, ucpm={"lam": lam}, satp={"budget": budget})
    restored = sampler.run(problem, seed=seed).images
    residual = (operator.A(restored) - problem.y).abs().max()
    assert float(residual) <= 1e-5 * max(1.0, float(problem.y.abs().max()))


def test_ucpm_moves_only_the_null_space_without_noise() -> None:
    prior, operator = gaussian("correlated", SHAPE), make_operator("sr")
    x = prior.gaussian.sample(1, torch.Generator().manual_seed(0)).float()
    problem = Problem.internal(operator.A(x), operator)
    plain = Sampler(prior, "ddnm", (), steps=10).run(problem).images
    moved = Sampler(prior, "ddnm", ("ucpm",), steps=10, ucpm={"lam": 1.0}).run(problem).images
    assert float((plain - moved).abs().max()) > 1e-3
    assert float(operator.A(plain - moved).abs().max()) < 1e-6
