"""One data step of every method in a metric, against dense algebra written from the equations."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

from leader.methods import DDIM, DDNM, DDPG, DDRM, DPS, IDPG, PIRP, SITCOM, DiffPIR, Estimate, Method, ProjDiff, State
from leader.operators import (
    AveragePoolSR,
    BicubicSR,
    Blur,
    Inpainting,
    LinearOperator,
    WalshHadamard,
    gaussian_kernel,
    random_mask,
)
from leader.priors.base import Prediction
from leader.problem import Problem
from leader.uncertainty.metric import Calibrated
from tests.cheap_prior import CheapPrior
from tests.methods.contexts import context
from tests.operators.cases import dense
from tests.oracle import plugged, plugged_hosts
from tests.oracle.dense import Array, World
from tests.uncertainty.spectra import correlated

SHAPE = (1, 8, 16)
FLOOR = 1e-6
OPERATORS: dict[str, LinearOperator] = {
    "inpaint": Inpainting(SHAPE, random_mask(8, 16, 0.5, seed=3)),
    "sr": BicubicSR(SHAPE, 2),
    "average": AveragePoolSR(SHAPE, 4),
    "blur": Blur(SHAPE, gaussian_kernel(0.7, 5)),
    "cs": WalshHadamard(SHAPE, 0.3, seed=1),
}
NOW, NEXT = 500, 420


@cache
def scene(name: str, sigma: float) -> tuple[Problem, World, Array]:
    """A problem, its dense form, and an estimate x0 [N] that misses the data."""
    op, rng = OPERATORS[name], np.random.default_rng(4)
    truth, x0 = rng.uniform(-0.8, 0.8, (2, 128))
    clean = op.A(torch.from_numpy(truth).reshape(1, *SHAPE))
    y = clean + sigma * torch.from_numpy(rng.standard_normal(tuple(clean.shape))) * op.reached(clean)
    abar = np.append(CheapPrior().schedule.abar_table.numpy(), 1.0)
    world = World(dense(op).numpy(), y.flatten().numpy(), sigma, (), abar, SHAPE, rcond=1e-9)
    return Problem.internal(y, op, sigma), world, x0


def corrected(
    method: Method, name: str, sigma: float, trust: float = 1.0, u: int = NEXT, only_unmeasured: bool = False
) -> Array:
    """What the method makes of x0 with the metric of `correlated`."""
    problem, _, x0 = scene(name, sigma)
    S, full = correlated(SHAPE)
    metric = Calibrated(S, problem.operator, float(full.diagonal().mean()), trust, 3000, 1e-10, FLOOR, only_unmeasured)
    here = replace(context(CheapPrior(), problem), given_metric=metric)
    image = torch.from_numpy(x0).reshape(1, *SHAPE)
    state, estimate = State(image + 0.1), Estimate(image + 0.1, Prediction(image, image - 0.3, None))
    return method.correct(here, state, estimate, image, torch.tensor([NOW]), torch.tensor([u])).flatten().numpy()


def covariance() -> Array:
    return correlated(SHAPE)[1].numpy()


def gain(A: Array, S: Array, variance: float) -> Array:
    """S A^T (A S A^T + variance)^{-1}."""
    return S @ A.T @ np.linalg.inv(A @ S @ A.T + variance * np.eye(len(A)))


def projected(world: World, x0: Array) -> Array:
    """argmin (x - x0)^T S^{-1} (x - x0) under A x = y."""
    S = covariance()
    return x0 + S @ world.A.T @ np.linalg.pinv(world.A @ S @ world.A.T, rcond=1e-10) @ (world.y - world.A @ x0)


def weighted(world: World, x0: Array, eta: float) -> Array:
    """W A^T (A W A^T + eta)^{-1} (y - A x0) with W of mean 1."""
    W = covariance() / np.diag(covariance()).mean()
    return gain(world.A, W, eta) @ (world.y - world.A @ x0)


def expected(world: World, x0: Array, trust: float = 1.0) -> Array:
    """E[x0 | x_t, y], the noise's variance divided by the trust."""
    return x0 + gain(world.A, covariance(), world.sigma**2 / trust) @ (world.y - world.A @ x0)


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("method", [DDNM(), ProjDiff(step=1.3)], ids=lambda item: item.name)
def test_clean_data_are_projected_in_the_metric(method: Method, name: str) -> None:
    """First order in the floor, 1e-6: the last part of the projection is Euclidean."""
    _, world, x0 = scene(name, 0.0)
    found = corrected(method, name, 0.0)
    assert np.abs(found - projected(world, x0)).max() < 1e-3
    assert np.abs(world.A @ found - world.y).max() < 1e-9
    if name != "blur":  # which loses nothing: there is one x with A x = y
        assert np.abs(found - (x0 + world.pinv @ (world.y - world.A @ x0))).max() > 0.05, "Euclid's is another one"


@pytest.mark.parametrize("name", OPERATORS)
def test_plain_ddnm_takes_noisy_data_as_they_are(name: str) -> None:
    _, world, x0 = scene(name, 0.1)
    found = corrected(DDNM(form="plain"), name, 0.1)
    assert np.abs(found - projected(world, x0)).max() < 1e-2


@pytest.mark.parametrize("u", [NEXT, -1])
@pytest.mark.parametrize("sigma", [0.0, 0.1])
@pytest.mark.parametrize("name", OPERATORS)
def test_diffpir_s_proximal_map(name: str, sigma: float, u: int) -> None:
    """argmin |A x - y|^2 + rho (x - x0)^T W^{-1} (x - x0)."""
    _, world, x0 = scene(name, sigma)
    a = world.ab(NOW)
    rho = 5 * (max(sigma, 0.002) / 2) ** 2 * a / (1 - a)
    step = weighted(world, x0, rho) if u >= 0 else 0
    assert np.abs(corrected(DiffPIR(lam=5.0), name, sigma, u=u) - x0 - step).max() < 1e-3


@pytest.mark.parametrize("sigma", [0.0, 0.2])
@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("kind", [DDPG, IDPG, PIRP], ids=lambda item: item.name)
def test_preconditioned_guidance(kind: type[DDPG], name: str, sigma: float) -> None:
    """x0 - mu [(1 - delta) W A^T (A W A^T + eta)^{-1} r + delta A^T r], and PIRP's term."""
    _, world, x0 = scene(name, sigma)
    a, b = world.ab(NOW), world.ab(NEXT)
    delta = b**2 if sigma else 0.0
    mu = (1 - b) / (1 - a) if sigma and kind is not IDPG else 1.0
    least = world.A.T @ (world.y - world.A @ x0)
    answer = x0 + mu * ((1 - delta) * weighted(world, x0, max(1e-4, 0.7 * sigma**2)) + delta * least)
    if kind is PIRP:
        answer = answer + 0.3 * plugged.pirp_term(x0, SHAPE, 0.4)
    method = PIRP(gamma=2.0, lam=0.3, width=0.4) if kind is PIRP else kind(gamma=2.0)
    assert np.abs(corrected(method, name, sigma) - answer).max() < 2e-3


SPLIT: dict[str, tuple[Method, type[plugged.Host] | None, dict[str, Any]]] = {
    "ddnm+": (DDNM(eta=0.7), plugged_hosts.DDNM, {"eta": 0.7}),
    "ddrm": (DDRM(eta=0.6, eta_b=1.0), plugged_hosts.DDRM, {"eta": 0.6}),
    "projdiff": (ProjDiff(step=0.7), None, {}),
    "sitcom": (SITCOM(), None, {}),
}


@pytest.mark.parametrize("trust", [1.0, 0.3])
@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("host", SPLIT)
def test_methods_that_split_components_start_from_the_conditional_mean(host: str, name: str, trust: float) -> None:
    method, equations, settings = SPLIT[host]
    sigma = 0.9  # at NEXT some components of y are noisier than x_u, some cleaner
    _, world, x0 = scene(name, sigma)
    answer = expected(world, x0, trust)
    if equations is not None:
        answer = equations(world, **settings).correct(None, None, answer, NOW, NEXT)  # type: ignore[arg-type]
    assert np.abs(corrected(method, name, sigma, trust) - answer).max() < 1e-7


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("host", SPLIT)
def test_only_what_is_not_measured_is_handed_on_where_that_is_asked_for(host: str, name: str) -> None:
    """x0 + (1 - A^+ A) (E[x0 | x_t, y] - x0) where the method takes the rest from y; SITCOM, which does not, gets all of it."""
    method, equations, settings = SPLIT[host]
    _, world, x0 = scene(name, 0.9)
    answer, whole = x0.copy(), expected(world, x0) - x0
    answer += whole if host == "sitcom" else whole - world.pinv @ world.A @ whole
    if equations is not None:
        answer = equations(world, **settings).correct(None, None, answer, NOW, NEXT)  # type: ignore[arg-type]
    found = corrected(method, name, 0.9, only_unmeasured=True)
    assert np.abs(found - answer).max() < 1e-7
    if name == "blur" and host == "projdiff":  # all is measured: the method is by itself
        assert np.abs(found - x0).max() < 1e-7


def test_methods_without_components_get_the_whole_expectation() -> None:
    """DDNM's simple form and clean data know no components that would be taken twice."""
    for method, sigma in ((DDNM(form="simple"), 0.9), (DDNM(), 0.0)):
        plain, asked = (corrected(method, "inpaint", sigma, only_unmeasured=given) for given in (False, True))
        assert np.array_equal(plain, asked)


@pytest.mark.parametrize("name", ["inpaint", "average"])
def test_ddnm_s_simple_form_starts_from_the_conditional_mean(name: str) -> None:
    _, world, x0 = scene(name, 0.9)
    signal, noise = np.sqrt(world.ab(NEXT)), np.sqrt(1 - world.ab(NEXT))
    lam = min(1.0, noise / (signal * 0.9))
    start = expected(world, x0)
    answer = start - lam * world.pinv @ (world.A @ start - world.y)
    assert np.abs(corrected(DDNM(form="simple"), name, 0.9) - answer).max() < 1e-7


@pytest.mark.parametrize("method", [DDIM(), DPS()], ids=lambda item: item.name)
def test_methods_without_a_data_step_have_none_in_a_metric_either(method: Method) -> None:
    _, _, x0 = scene("sr", 0.1)
    assert np.array_equal(corrected(method, "sr", 0.1), x0)
