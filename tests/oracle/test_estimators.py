"""Sigma is that of the estimator asked for, and its cost is counted apart."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from leader import Grid, Result, Sampler, Step
from tests.oracle.scenes import Scene, scene

ONE = Grid((250, -1))
CLEAN, NOISY = (0.0, 0.0), (0.05, 0.05)


def first(made: Scene, plugins: Any = ("ucpm",), method: str = "ddnm", **settings: Any) -> Step:
    """The only step of a run from time 250."""
    return next(Sampler(made.prior, method, plugins, grid=ONE, use_presets=False, **settings).iterate(made.problem, 3))


def run(made: Scene, plugins: Any, steps: int = 50, method: str = "ddnm", **settings: Any) -> Result:
    return Sampler(made.prior, method, plugins, steps, use_presets=False, **settings).run(made.problem, 3)


def sigma_of(made: Scene, plugins: Any = (), **settings: Any) -> torch.Tensor:
    sigma = first(made, plugins, **settings).sigma
    assert sigma is not None
    return sigma


def test_sigma_is_that_of_the_estimator() -> None:
    """Every estimator has its own Sigma, and no estimator means none, unless a plug-in needs it."""
    made = scene("cs", CLEAN)
    head = sigma_of(made, estimator="head")
    assert torch.equal(sigma_of(made, estimator="auto"), head)
    assert torch.equal(sigma_of(made, ("satp",), estimator=None), head)
    for name in ("noise-energy", "hutchinson", "difference"):
        assert float((sigma_of(made, estimator=name) - head).abs().max()) > 1e-3, name
    step = first(made, (), estimator=None)
    assert step.sigma is None and step.U is None
    result = run(made, (), 4, estimator=None)
    assert result.posterior_std is None and result.trace[0][0].U is None


@pytest.mark.parametrize("method", ["ddnm", "dps", "sitcom"])
def test_estimators_are_counted_apart(method: str) -> None:
    """Sigma costs derivatives, no calls and no backward passes, and changes no picture by itself."""
    made = scene("cs", NOISY)
    settings = {"inner": 4} if method == "sitcom" else {}
    plain = run(made, (), 5, method, estimator=None, **settings)
    for estimator, probes, jvps in (("hutchinson", 1, 1), ("hutchinson", 3, 3), ("noise-energy", 1, 0), ("head", 1, 0)):
        found = run(made, (), 5, method, estimator=estimator, probes=probes, **settings)
        assert found.ledger.rows == {k: replace(row, jvps=5 * jvps) for k, row in plain.ledger.rows.items()}
        assert torch.equal(plain.images, found.images)
