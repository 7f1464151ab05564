"""Every option of every plug-in changes a run in the direction it says."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest
import torch

from leader import Grid, Result, Sampler, Step
from leader.methods import METHODS
from leader.plugins import UCPM, StepInfo
from tests.oracle.dense import Array
from tests.oracle.plugged import difference_matrices
from tests.oracle.scenes import Scene, scene

ONE = Grid((250, -1))
CLEAN, NOISY = (0.0, 0.0), (0.05, 0.05)


def first(made: Scene, plugins: Any = ("ucpm",), method: str = "ddnm", **settings: Any) -> Step:
    """The only step of a run from time 250."""
    return next(Sampler(made.prior, method, plugins, grid=ONE, use_presets=False, **settings).iterate(made.problem, 3))


def run(made: Scene, plugins: Any, steps: int = 50, method: str = "ddnm", **settings: Any) -> Result:
    return Sampler(made.prior, method, plugins, steps, use_presets=False, **settings).run(made.problem, 3)


def flat(step: Step) -> Array:
    return step.x0[0].reshape(-1).numpy()


def used_map(made: Scene, step: Step, bare: Step, lam: float) -> Array:
    """The Sigma that UCPM must have used, from its change: d = -S g / (1 + M S), tikhonov."""
    x0 = flat(bare)
    H = lam * sum(D.T @ D for D in difference_matrices(made.shape))
    change = flat(step) - x0
    return -change / (H @ x0 + 2 * np.diag(H) * change)


def test_maps() -> None:
    """local: Sigma; mean: U everywhere; shuffle: the same values elsewhere, in one order for all channels and every run."""
    made, lam = scene("cs", NOISY), 0.4
    bare = first(made, ucpm={"lam": 0.0})
    assert bare.sigma is not None
    sigma = bare.sigma[0].reshape(-1).numpy()
    maps = {
        name: used_map(made, first(made, ucpm={"phi": "tikhonov", "lam": lam, "map": name}), bare, lam)
        for name in ("local", "mean", "shuffle")
    }
    assert np.abs(maps["local"] - sigma).max() < 1e-9
    assert np.abs(maps["mean"] - sigma.mean()).max() < 1e-9
    shuffled, whole = maps["shuffle"].reshape(3, -1), sigma.reshape(3, -1)
    assert np.abs(maps["shuffle"] - sigma).max() > 0.05
    orders = [np.abs(whole[c][:, None] - shuffled[c]).argmin(0) for c in range(3)]
    assert all(sorted(order) == list(range(16)) for order in orders)
    assert all(np.array_equal(order, orders[0]) for order in orders)
    assert np.abs(np.sort(shuffled, 1) - np.sort(whole, 1)).max() < 1e-9
    settings = {"phi": "tikhonov", "lam": lam, "map": "shuffle"}
    again = first(made, ucpm=settings)
    assert np.array_equal(flat(again), flat(first(made, ucpm=settings)))


def test_the_last_time_is_visited_whatever_the_budget() -> None:
    made = scene("cs", CLEAN)
    for grid in (None, "quadratic", Grid((900, 500, 120, 30, -1))):
        result = run(made, ("satp",), grid=grid, satp={"budget": 1e9})
        last = 30 if isinstance(grid, Grid) else 0
        assert [visit.t for visit in result.trace[0]][1:] == [last]
        assert result.trace[0][-1].u == -1 and result.ledger.rows[0].calls == 2


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


def test_shuffles_belong_to_the_image_and_the_place() -> None:
    made = scene("cs", NOISY)
    twins = made.problem.select(torch.tensor([0, 0]))
    sampler = Sampler(made.prior, "ddnm", ("ucpm",), grid=ONE, use_presets=False, ucpm={"map": "shuffle"})
    start = torch.ones(2, *made.shape, dtype=torch.float64)
    step = next(sampler.iterate(twins, ids=[4, 9], x_T=start))
    swapped = next(sampler.iterate(twins, ids=[9, 4], x_T=start))
    assert not torch.equal(step.x0[0], step.x0[1])
    assert torch.equal(step.x0, swapped.x0.flip(0))
    x0, sigma = step.x0[:1], torch.linspace(0.1, 1, step.x0[0].numel()).reshape(step.x0[:1].shape).to(step.x0)
    places = [StepInfo([4], [place], [0], torch.tensor([250]), [ONE]) for place in (0, 1)]
    there, elsewhere = (UCPM(map="shuffle").modulate(x0, sigma, place, twins.select(torch.tensor([0]))) for place in places)
    assert not torch.equal(there, elsewhere), "another order at every place of the grid"
