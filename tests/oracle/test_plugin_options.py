"""Every option of every plug-in changes a run in the direction it says."""

from __future__ import annotations

from dataclasses import fields
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch

from leader import Grid, Result, Sampler, Step
from leader.methods import METHODS
from leader.plugins import UCPM
from tests.oracle.cases import gaussian
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


def slopes(x: Array, shape: tuple[int, int, int]) -> tuple[Array, Array]:
    down, right = difference_matrices(shape)
    return down @ x, right @ x


def variation(x: Array, shape: tuple[int, int, int]) -> float:
    return float(np.sqrt(sum(s**2 for s in slopes(x, shape)) + 0.05**2).sum())


def roughness(x: Array, shape: tuple[int, int, int]) -> float:
    return float(sum((s**2).sum() for s in slopes(x, shape)) / 2)


@pytest.mark.parametrize("sigmas", [CLEAN, NOISY])
@pytest.mark.parametrize(("phi", "energy"), [("tv", variation), ("tikhonov", roughness)])
def test_lam_smooths(phi: str, energy: Any, sigmas: tuple[float, float]) -> None:
    made = scene("cs", sigmas)
    found = [energy(flat(first(made, ucpm={"phi": phi, "lam": lam})), made.shape) for lam in (0.0, 0.01, 0.03, 0.1, 0.3)]
    assert all(a > b for a, b in pairwise(found)), found


@pytest.mark.parametrize("options", [{"lam": 0.3}, {"lam": 0.0, "sharpen": 1.0}, {"phi": "pirp", "lam": 0.3, "width": 0.2}])
@pytest.mark.parametrize("name", ["cs", "holes"])
def test_clean_data_see_no_change(name: str, options: dict[str, Any]) -> None:
    """Without noise the change stays in the null space of A, of whatever host; with noise it does not."""
    for sigmas, kept in ((CLEAN, True), (NOISY, False)):
        made = scene(name, sigmas)
        for method in ("ddnm", "diffpir", "dps"):
            x0, bare = (
                first(made, plugins, method=method, **given).x0 for plugins, given in ((("ucpm",), {"ucpm": options}), ((), {}))
            )
            assert float((x0 - bare).abs().max()) > 1e-3
            seen = float((made.problem.operator.A(x0) - made.problem.operator.A(bare)).abs().max())
            assert seen < 1e-12 if kept else seen > 1e-3


def test_sharpen_sharpens_until_its_bound() -> None:
    made = scene("blur", NOISY)
    found = [
        roughness(flat(first(made, ucpm={"lam": 0.0, "sharpen": value})), made.shape)
        for value in (0.0, 0.05, 0.2, 1.0, 1e6, 1e7)
    ]
    assert all(a < b for a, b in pairwise(found[:5])), found
    assert found[4] == found[5], "a step raises no frequency by more than a quarter"
    assert found[5] < 1.25**2 * found[0] + 1e-12


def test_the_solver_goes_further_down() -> None:
    """The conjugate-gradient solution minimises J for tikhonov; the closed form only lowers it."""
    made, lam = scene("blur", NOISY), 0.5
    start = first(made, ucpm={"lam": 0.0})
    assert start.sigma is not None
    sigma, x0 = start.sigma[0].reshape(-1).numpy(), flat(start)

    def J(x: Array) -> float:
        return float(((x - x0) ** 2 / sigma).sum() / 2 + lam * roughness(x, made.shape))

    ways = [flat(first(made, ucpm={"phi": "tikhonov", "lam": lam, "solve": way})) for way in ("diagonal", "cg")]
    assert J(ways[1]) < J(ways[0]) < J(x0)
    H = lam * sum(D.T @ D for D in difference_matrices(made.shape))
    best = np.linalg.solve(np.diag(1 / sigma) + H, x0 / sigma)
    assert np.abs(ways[1] - best).max() < 1e-5


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


def test_shuffles_belong_to_the_image_and_the_place() -> None:
    made = scene("cs", NOISY)
    twins = made.problem.select(torch.tensor([0, 0]))
    sampler = Sampler(made.prior, "ddnm", ("ucpm",), grid=ONE, use_presets=False, ucpm={"map": "shuffle"})
    start = torch.ones(2, *made.shape, dtype=torch.float64)
    step = next(sampler.iterate(twins, ids=[4, 9], x_T=start))
    swapped = next(sampler.iterate(twins, ids=[9, 4], x_T=start))
    assert not torch.equal(step.x0[0], step.x0[1])
    assert torch.equal(step.x0, swapped.x0.flip(0))


def test_the_width_lets_more_edges_through() -> None:
    made = scene("blur", NOISY)
    bare = flat(first(made, ucpm={"lam": 0.0}))
    sizes = [
        np.abs(flat(first(made, ucpm={"phi": "pirp", "lam": 0.3, "width": width})) - bare).sum() for width in (0.01, 0.1, 1.0)
    ]
    assert sizes[0] < sizes[1] < sizes[2]
    signs = [
        roughness(flat(first(made, ucpm={"phi": "pirp", "lam": lam, "width": 10.0})), made.shape) for lam in (-0.1, 0.0, 0.1)
    ]
    assert signs[0] < signs[1] < signs[2], "negative smooths, positive sharpens"


def test_ucpm_acts_where_sigma_is_large() -> None:
    """The change per unit of slope grows with Sigma: the left of these images is certain, the right is not."""
    made = scene("blur", NOISY)
    step, bare = first(made, ucpm={"phi": "tikhonov", "lam": 0.3}), first(made, ucpm={"lam": 0.0})
    assert bare.sigma is not None
    H = sum(D.T @ D for D in difference_matrices(made.shape))
    weight = ((flat(bare) - flat(step)) / (H @ flat(bare))).reshape(8, 8)
    sigma = bare.sigma[0, 0].numpy()
    assert sigma[:, :3].mean() < 0.5 * sigma[:, 5:].mean()
    assert weight[:, :3].mean() < 0.5 * weight[:, 5:].mean()


@pytest.mark.parametrize("grid", [None, "quadratic"])
@pytest.mark.parametrize("option", ["budget", "eta"])
def test_satp_saves_calls(option: str, grid: str | None) -> None:
    made = scene("cs", CLEAN)
    values = {"budget": (0.0, 0.03, 0.1, 0.5), "eta": (1.0, 4.0, 12.0, 40.0)}[option]
    fixed = {"budget": {"eta": 3.0}, "eta": {"budget": 0.03}}[option]
    calls = [run(made, ("satp",), 30, grid=grid, satp={option: value, **fixed}).ledger.total.calls for value in values]
    if option == "budget":
        assert calls[0] == 2 * 30, "nothing allowed, nothing skipped"
    assert all(a > b for a, b in pairwise(calls)), calls


def test_rho_flattens_the_jumps() -> None:
    """(B/U)^(1/rho): where U is below B a larger rho jumps less far, where it is above, farther."""
    made = scene("cs", CLEAN)

    def jumps(budget: float, eta: float) -> list[int]:
        """The first jumps, all from the same U of 0.37."""
        found = []
        for rho in (0.5, 1.0, 2.0):
            sampler = Sampler(
                made.prior, "ddnm", ("satp",), 50, use_presets=False, satp={"budget": budget, "eta": eta, "rho": rho}
            )
            found.append(int(next(sampler.iterate(made.problem, 3)).jump[0]))
        return found

    small, large = jumps(1.0, 2.0), jumps(0.1, 8.0)
    assert small[0] > small[1] > small[2] > 1, small
    assert large[0] < large[1] < large[2], large


def test_the_last_time_is_visited_whatever_the_budget() -> None:
    made = scene("cs", CLEAN)
    for grid in (None, "quadratic", Grid((900, 500, 120, 30, -1))):
        result = run(made, ("satp",), grid=grid, satp={"budget": 1e9})
        last = 30 if isinstance(grid, Grid) else 0
        assert [visit.t for visit in result.trace[0]][1:] == [last]
        assert result.trace[0][-1].u == -1 and result.ledger.rows[0].calls == 2


def test_transforms_of_equs() -> None:
    """Each transform gives a picture of its own, on even steps counted down alone."""
    made = scene("cs", CLEAN)
    pictures = [run(made, (), 6).images]
    pictures += [run(made, ("equs",), 6, equs={"transform": name}).images for name in ("flip", "rotate180", "shift")]
    for i, one in enumerate(pictures):
        assert all(float((one - other).abs().max()) > 1e-3 for other in pictures[:i])
    assert torch.equal(run(made, ("equs",), 6).images, pictures[1]), "flip is the default"
    two, plain = (
        Sampler(made.prior, "ddnm", plugins, 2, use_presets=False).iterate(made.problem, 3) for plugins in (("equs",), ())
    )
    assert torch.equal(next(two).x0, next(plain).x0), "the first of two steps is odd: left alone"
    assert not torch.equal(next(two).x0, next(plain).x0), "the last is even"


@pytest.mark.parametrize(("method", "same"), [("ddnm", False), ("ddrm", False), ("ddpg", True), ("diffpir", True)])
def test_modes_of_equs(method: str, same: bool) -> None:
    """raw and aligned differ by the noise alone, so in hosts that use the predicted noise."""
    made = scene("cs", NOISY)
    raw, aligned = (run(made, ("equs",), 6, method=method, equs={"mode": mode}).images for mode in ("raw", "aligned"))
    assert torch.allclose(raw, aligned, atol=1e-12) == same


def test_times_of_equs_plus() -> None:
    made = scene("cs", CLEAN)

    def times(name: str) -> list[int]:
        settings: dict[str, Any] = {"equs+": {"times": name}}
        return [visit.t for visit in run(made, ("equs+",), 10, **settings).trace[0]]

    assert times("decreasing") == [round(999 * (1 - j / 9) ** 2) for j in range(10)]
    assert times("published") == [int(v) for v in np.linspace(np.sqrt(999), 0, 10) ** 2]


def test_order_of_plugins() -> None:
    """Modulations compose in the order of the list."""
    made = scene("blur", NOISY)
    smooth, sharp = UCPM(lam=0.5), UCPM(lam=0.0, sharpen=1.0)
    there, back = (first(made, plugins).x0 for plugins in ((smooth, sharp), (sharp, smooth)))
    assert float((there - back).abs().max()) > 1e-4


SETTINGS: dict[str, dict[str, Any]] = {
    "ddim": {"eta": 0.5},
    "ddnm": {"eta": 0.3, "travel_length": 2, "travel_repeats": 2, "form": "simple", "noise": "published"},
    "ddrm": {"eta": 0.3, "eta_b": 0.5},
    "dps": {"scale": 0.9, "clamp": False, "variance": "predicted"},
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
    "mcg": {"scale": 0.3, "clamp": False, "variance": "predicted", "damping": 0.5},
    "dcdp": {"flow": 2, "inner": 3, "rate": 0.3, "lam": 0.2, "first": 300},
    "posterior": {"eta": 0.5},
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
    if method == "ddnm":
        lengths = [run(made, (), 8, travel_repeats=2, travel_length=length).ledger.total.calls for length in (1, 2)]
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


def test_constant_sigma_makes_the_maps_equal() -> None:
    """Under a stationary prior Sigma is flat: local, mean and shuffle are one."""
    made = scene("blur", NOISY)
    prior = gaussian("correlated", made.shape)
    pictures = [
        Sampler(prior, "ddnm", ("ucpm",), 5, use_presets=False, ucpm={"map": name}).run(made.problem).images
        for name in ("local", "mean", "shuffle")
    ]
    assert torch.allclose(pictures[0], pictures[1], atol=1e-10) and torch.allclose(pictures[0], pictures[2], atol=1e-10)


def test_trust_time_chooses_the_map() -> None:
    """The first visited time at or below it; the last one where none is."""
    made = scene("cs", CLEAN)
    sampler = Sampler(made.prior, "ddnm", ("satp",), grid=Grid((900, 300, 200, 120, 60, -1)), use_presets=False)
    sigmas = {int(step.t[0]): step.sigma for step in sampler.iterate(made.problem)}
    for trust, time in ((1000, 900), (300, 300), (299, 200), (119, 60), (60, 60), (10, 60)):
        result = Sampler(
            made.prior, "ddnm", ("satp",), grid=Grid((900, 300, 200, 120, 60, -1)), trust_time=trust, use_presets=False
        ).run(made.problem)
        wanted = sigmas[time]
        assert wanted is not None and result.posterior_std is not None
        assert torch.equal(result.posterior_std, wanted.sqrt()), (trust, time)
