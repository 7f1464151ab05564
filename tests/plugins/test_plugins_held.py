"""UCPM inside and outside the loop: its closed form in NumPy, the place where it acts, its maps and its pirp term."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from leader import Problem, Sampler, operators
from leader.methods.pirp import PIRP, gradient_term
from leader.plugins import UCPM, EquSPlus
from leader.plugins.base import StepInfo
from leader.plugins.image_priors import adjoint, differences
from leader.plugins.maps import map_sigma
from leader.schedule import Grid, uniform_grid
from tests.oracle.cases import mixture

SHAPE = (3, 8, 8)


def draw(seed: int, scale: float = 1.0, count: int = 1) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return scale * torch.randn(count, *SHAPE, generator=generator, dtype=torch.float64)


def moment(ids: list[int], positions: list[int]) -> StepInfo:
    return StepInfo(ids, positions, [0] * len(ids), torch.zeros(len(ids), dtype=torch.long), [uniform_grid(20)] * len(ids))


def closed_form(x: NDArray[np.float64], sigma: NDArray[np.float64], lam: float, smoothing: float | None) -> NDArray[np.float64]:
    """-Sigma / (1 + lam M Sigma) lam grad Phi of one channel, pixel by pixel; smoothing None: Tikhonov."""
    height, width = x.shape
    gradient, touching = np.zeros_like(x), np.zeros_like(x)
    for i in range(height):
        for j in range(width):
            down = x[i + 1, j] - x[i, j] if i + 1 < height else 0.0
            right = x[i, j + 1] - x[i, j] if j + 1 < width else 0.0
            weight = 1.0 if smoothing is None else 1 / np.sqrt(down**2 + right**2 + smoothing**2)
            for step, (k, m) in ((down, (i + 1, j)), (right, (i, j + 1))):
                if k < height and m < width:
                    gradient[i, j] -= weight * step
                    gradient[k, m] += weight * step
                    touching[i, j] += weight
                    touching[k, m] += weight
    return -sigma / (1 + lam * 2 * touching * sigma) * lam * gradient


@pytest.mark.parametrize(("phi", "smoothing"), [("tv", 0.05), ("tikhonov", None)])
def test_the_change_is_the_closed_form(phi: str, smoothing: float | None) -> None:
    x0, sigma = draw(0), draw(1).abs()
    change = UCPM(phi=phi, lam=0.3).change(x0, sigma)
    for channel in range(3):
        expected = closed_form(x0[0, channel].numpy(), sigma[0, channel].numpy(), 0.3, smoothing)
        assert np.allclose(change[0, channel].numpy(), expected, atol=1e-12)


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_with_noise_all_of_the_change_is_kept_and_without_it_the_null_space_part(noise: float) -> None:
    operator = operators.AveragePoolSR(SHAPE, 2)
    x0, sigma, plugin = draw(0), draw(1).abs(), UCPM(lam=0.4)
    problem = Problem.internal(operator.A(draw(2)), operator, noise)
    change = plugin.change(x0, sigma)
    seen = operator.A(change)
    assert float(seen.abs().max()) > 1e-3
    moved = plugin.modulate(x0, sigma, moment([0], [0]), problem) - x0
    assert torch.allclose(moved, change if noise else change - operator.pinv(seen), atol=1e-12)
    assert noise or float(operator.A(moved).abs().max()) < 1e-12


def test_in_the_loop_ucpm_acts_before_the_data_step() -> None:
    """Far from the end DDNM+ replaces all that was measured: whatever UCPM did, A x0_hat = y."""
    operator, prior = operators.AveragePoolSR(SHAPE, 2), mixture(SHAPE)
    y = operator.A(prior.sample(1, torch.Generator().manual_seed(0)).float())
    problem = Problem.internal(y, operator, 0.05)
    host = next(iter(Sampler(prior, "ddnm", (), steps=5).iterate(problem)))
    plugged = next(iter(Sampler(prior, "ddnm", ("ucpm",), steps=5, ucpm={"lam": 0.5}).iterate(problem)))
    assert float((plugged.x0 - host.x0).abs().max()) > 1e-3, "UCPM changed nothing"
    assert float(problem.residual(plugged.x0).abs().max()) > 1e-3
    assert float(problem.residual(plugged.x0_hat).abs().max()) < 1e-5


def test_the_mean_map_is_one_number_an_image() -> None:
    sigma = draw(3, count=2).abs()
    x0 = draw(4, count=2)
    problem = Problem.internal(x0, operators.Denoising(SHAPE), 0.1)
    moved = UCPM(lam=0.3, map="mean").modulate(x0, sigma, moment([0, 1], [0, 0]), problem)
    flat = sigma.mean((1, 2, 3), keepdim=True).expand_as(sigma)
    assert torch.allclose(moved, UCPM(lam=0.3).modulate(x0, flat, moment([0, 1], [0, 0]), problem))


def test_the_shuffled_map_differs_by_image_and_position_and_keeps_channels_together() -> None:
    sigma = draw(5).abs().expand(2, -1, -1, -1).contiguous()
    first, second = map_sigma(sigma, "shuffle", moment([0, 1], [4, 4]))
    later = map_sigma(sigma, "shuffle", moment([0, 1], [5, 4]))[0]
    assert torch.equal(first, map_sigma(sigma[:1], "shuffle", moment([0], [4]))[0]), (
        "the same image and position, the same order"
    )
    assert not torch.equal(first, second) and not torch.equal(first, later)
    pixels = {tuple(pixel) for pixel in sigma[0].flatten(1).T.tolist()}
    assert {tuple(pixel) for pixel in first.flatten(1).T.tolist()} == pixels


@pytest.mark.parametrize("lam", [0.3, -0.2])
@pytest.mark.parametrize("width", [0.01, 0.4])
def test_pirp_is_damped_only_where_it_smooths(lam: float, width: float) -> None:
    x0, sigma = draw(6, 0.2), draw(7).abs()
    term = gradient_term(x0, width)
    expected = lam * sigma * term if lam > 0 else lam * sigma / (1 + 8 * 0.2 * sigma) * term
    assert torch.allclose(UCPM(phi="pirp", lam=lam, width=width).change(x0, sigma), expected, atol=1e-12)


def test_sharpening_is_bounded_and_strongest_where_sigma_is_small() -> None:
    x0 = draw(8)
    sigma = torch.linspace(0.0, 1.0, x0.numel(), dtype=torch.float64).reshape(x0.shape)
    laplacian = UCPM(lam=0.0, sharpen=1e-6).change(x0, sigma) / (1e-6 * 0.5 * torch.exp(-sigma / 0.5))
    strong = UCPM(lam=0.0, sharpen=100.0).change(x0, sigma)
    used = laplacian.abs() > 1e-6
    assert torch.allclose((strong / laplacian)[used], torch.tensor(1 / 32, dtype=torch.float64))


@pytest.mark.parametrize(("phi", "kept"), [("pirp", 0.0), ("tv", 0.15)])
def test_ucpm_takes_over_pirps_own_term_and_no_other(phi: str, kept: float) -> None:
    problem = Problem.internal(torch.zeros(1, *SHAPE), operators.Denoising(SHAPE), 0.1)
    settings: dict[str, Any] = {"lam": 0.15, "ucpm": {"phi": phi, "lam": 0.1}}
    plan = Sampler(mixture(SHAPE), "pirp", ("ucpm",), steps=3, **settings).plan(problem)
    assert isinstance(plan.method, PIRP) and plan.method.lam == kept


def test_equs_plus_makes_as_many_steps_as_its_host() -> None:
    prior = mixture(SHAPE)
    problem = Problem.internal(torch.zeros(1, *SHAPE), operators.Denoising(SHAPE))
    for times in ("decreasing", "published"):
        assert EquSPlus(times=times).grid(uniform_grid(20), prior, problem).visits == 20
    assert EquSPlus().grid(Grid((900, 5, -1)), prior, problem).visits == 2


@pytest.mark.parametrize("sharpen", [0.4, -0.4])
def test_sharpening_of_either_sign_is_the_negative_laplacian_where_sigma_is_small(sharpen: float) -> None:
    x0, sigma = draw(8), 0.02 * draw(9).abs()
    mean = sigma.mean((1, 2, 3), keepdim=True)
    weight = (sharpen * mean * (-sigma / mean).exp()).clamp_max(1 / 32)
    expected = weight * adjoint(differences(x0))
    assert torch.allclose(UCPM(lam=0.0, sharpen=sharpen).change(x0, sigma), expected, atol=1e-12)
