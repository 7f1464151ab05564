"""Every setting of every method reaches the picture, and Sigma is that of the estimator asked for, counted apart."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest
import torch

from leader import Grid, Result, Sampler, Step
from leader.methods import METHODS
from tests.oracle.scenes import Scene, scene

ONE = Grid((250, -1))
CLEAN, NOISY = (0.0, 0.0), (0.05, 0.05)


def first(made: Scene, plugins: Any = ("ucpm",), method: str = "ddnm", **settings: Any) -> Step:
    """The only step of a run from time 250."""
    return next(Sampler(made.prior, method, plugins, grid=ONE, use_presets=False, **settings).iterate(made.problem, 3))


def run(made: Scene, plugins: Any, steps: int = 50, method: str = "ddnm", **settings: Any) -> Result:
    return Sampler(made.prior, method, plugins, steps, use_presets=False, **settings).run(made.problem, 3)


SETTINGS: dict[str, dict[str, Any]] = {
    "ddim": {"eta": 0.5},
    "posterior": {"eta": 0.5},
    "ddnm": {"eta": 0.3, "travel_length": 2, "travel_repeats": 2, "form": "simple", "noise": "published"},
    "ddrm": {"eta": 0.3, "eta_b": 0.5, "travel_length": 2, "travel_repeats": 2},
    "dps": {"scale": 0.9, "guidance": "annealed", "clamp": False, "variance": "predicted"},
    "diffpir": {"lam": 70.0, "zeta": 0.9, "eta": 0.7, "clamp": False, "published_units": False, "return_noisy": True},
    "ddpg": {"gamma": 1.0, "zeta": 0.9, "eta_tilde": 3.0, "eta_floor": 0.5, "mode": 0, "ls_scale": 0.3, "inject": False},
    "idpg": {"gamma": 1.0, "zeta": None, "eta_tilde": 3.0, "eta_floor": 0.5, "mode": 1, "ls_scale": 0.3, "inject": True},
    "projdiff": {"step": 0.4, "early_step": 1.4, "form": "simple"},
    "sitcom": {"inner": 2, "rate": 0.2, "lam": 3.0, "margin": 1.0, "clamp": False, "overwrite": None},
    "pirp": {"lam": 0.8, "width": 0.5, "variant": "b", "argument": "gradient", "gamma": 1.0, "zeta": 0.9, "eta_tilde": 3.0}
    | {"eta_floor": 0.5, "mode": 0, "ls_scale": 0.3, "inject": False},
    "pigdm": {"eta": 0.3, "variance": 0.2, "weights": "score"},
    "daps": {"flow": 3, "inner": 4, "rate": 1e-5, "fall": 0.5, "tau": 0.1, "end": 9.0},
    "red-diff": {"lam": 1.0, "power": 0.5, "rate": 0.02},
    "repaint": {"travel_length": 2, "travel_repeats": 2, "clamp": False, "damping": 0.0},
    "mcg": {"scale": 0.3, "guidance": "annealed", "clamp": False, "variance": "predicted", "damping": 0.5},
    "dcdp": {"flow": 2, "inner": 3, "rate": 0.3, "lam": 0.2, "first": 300},
}
"""A value for every setting; None where it has nothing to act on: IDPG injects no noise to renew, SITCOM overwrites
known pixels, and compressed sensing has none.
"""


@pytest.mark.parametrize("method", METHODS)
def test_every_setting_of_a_method_reaches_the_picture(method: str) -> None:
    assert set(SETTINGS[method]) == {item.name for item in fields(METHODS[method])}  # type: ignore[arg-type]
    made = scene("cs", NOISY)
    quick = {"sitcom": {"inner": 4}, "repaint": {"travel_length": 3}}.get(method, {})
    usual = run(made, (), 8, method=method, **quick).images
    for name, value in SETTINGS[method].items():
        if value is None or name == "travel_length":
            continue
        given = {**quick, name: value}
        changed = run(made, (), 8, method=method, **given)
        assert changed.images.shape == usual.shape and not torch.equal(changed.images, usual), name
    if method in ("ddnm", "ddrm"):
        lengths = [
            run(made, (), 8, method=method, travel_repeats=2, travel_length=length).ledger.total.calls for length in (1, 2)
        ]
        assert lengths == [2 * 15, 2 * 14]


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
