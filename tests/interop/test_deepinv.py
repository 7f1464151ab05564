"""deepinv both ways; skipped where it is not installed."""

import importlib
import os
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from leader import Problem, Sampler, operators
from leader.errors import LeaderError
from leader.interop.deepinv import PhysicsOperator, Reconstructor, as_operator, as_prior
from leader.result import to_unit_range
from tests.cheap_prior import CheapPrior, photograph

SHAPE = (3, 24, 16)
SCRIPT = Path(__file__).parents[2] / "examples" / "deepinv_script.py"


def import_deepinv() -> Any:
    """deepinv, or a skip (never in `make test-company`, which has it)."""
    if "LEADER_COMPANY" in os.environ:
        return importlib.import_module("deepinv")
    return pytest.importorskip("deepinv", reason="deepinv is not installed: pip install deepinv==0.5.0", exc_type=ImportError)


def physics_of(operator: operators.LinearOperator, sigma: float) -> Any:
    """What deepinv documents of a linear physics, made of an operator of here."""
    return SimpleNamespace(A=operator.A, A_adjoint=operator.AT, noise_model=SimpleNamespace(sigma=torch.tensor([sigma])))


def test_a_reconstructor_is_the_method_itself_with_the_noise_of_the_physics() -> None:
    operator = operators.AveragePoolSR(SHAPE, 4)
    x = torch.stack([photograph(*SHAPE[1:]), 1 - photograph(*SHAPE[1:])])
    problem = Problem.simulate(x, operator, 0.07)
    y = (problem.y + operator.A(torch.ones_like(x))) / 2
    model = Reconstructor("diffpir", prior=CheapPrior(), steps=5, plugins=(), seed=3)
    found = model(y, physics_of(operator, 0.07))
    here = Problem(y, as_operator(physics_of(operator, 0.0), SHAPE), 0.07)
    expected = to_unit_range(Sampler(CheapPrior(), "diffpir", (), 5).run(here, 3).images)
    assert torch.equal(found, expected) and found.shape == x.shape and isinstance(model, nn.Module)
    assert not torch.equal(model(y, physics_of(operator, 0.2)), found), "the noise of the physics counts"
    assert torch.equal(
        Reconstructor("diffpir", prior=CheapPrior(), steps=5, plugins=(), sigma=0.07, seed=3)(y, physics_of(operator, 0.2)),
        found,
    )


def test_a_physics_that_is_an_operator_of_here_becomes_it() -> None:
    taps = torch.tensor([[0.1, 0.2, 0.0], [0.05, 0.3, 0.35]])
    mask = (torch.rand(SHAPE[1:], generator=torch.Generator().manual_seed(2)) < 0.6).float()
    for operator, about in (
        (operators.Blur(SHAPE, taps), {"filter": taps[None, None].repeat(1, 3, 1, 1)}),
        (operators.Inpainting(SHAPE, mask), {"mask": mask.expand(1, 3, -1, -1)}),
        (operators.Denoising(SHAPE), {}),
    ):
        found = as_operator(SimpleNamespace(A=operator.A, A_adjoint=operator.AT, **about), SHAPE)
        x = torch.rand(2, *SHAPE)
        assert type(found) is type(operator) and torch.allclose(found.A(x), operator.A(x), atol=1e-6)
    other = operators.Blur(SHAPE, taps)
    wrong = SimpleNamespace(A=other.A, A_adjoint=other.AT, filter=taps.flip(0)[None, None])
    assert type(as_operator(wrong, SHAPE)) is PhysicsOperator, "a filter that is another than A's is not believed"


def test_parameters_of_a_physics_and_a_level_for_every_image() -> None:
    def weigh(x: Tensor, weight: float) -> Tensor:
        return weight * x[..., ::2]

    def weigh_back(y: Tensor, weight: float) -> Tensor:
        return weight * torch.stack([y, torch.zeros_like(y)], -1).flatten(-2)

    levels = torch.tensor([0.0625, 0.25])
    physics = SimpleNamespace(A=weigh, A_adjoint=weigh_back, noise_model=SimpleNamespace(sigma=levels))
    operator = as_operator(physics, SHAPE, weight=0.5)
    assert operator.measurement_shape == (3, 24, 8)
    y = weigh(torch.stack([photograph(*SHAPE[1:]), 1 - photograph(*SHAPE[1:])]), 0.5)

    def restore(problem: Problem) -> Tensor:
        return to_unit_range(Sampler(CheapPrior(), "ddnm", (), 4).run(problem, 0).images)

    model = Reconstructor("ddnm", prior=CheapPrior(), steps=4, plugins=())
    assert torch.equal(model(y, physics, weight=0.5), restore(Problem(y, operator, levels.double())))
    physics.noise_model.sigma = torch.tensor([0.0625, 0.25, 0.125])
    assert torch.equal(model(y, physics, weight=0.5), restore(Problem(y, operator, 0.25))), "the largest for all"
    for quiet in (None, type("ZeroNoise", (), {})()):
        physics.noise_model = quiet
        assert torch.equal(model(y, physics, weight=0.5), restore(Problem(y, operator, 0.0)))


def test_what_is_no_linear_physics_is_refused() -> None:
    wrong = SimpleNamespace(A=lambda x: 2 * x, A_adjoint=lambda y: y)
    with pytest.raises(LeaderError, match="not the adjoint"):
        as_operator(wrong, SHAPE)
    with pytest.raises(LeaderError, match="A_adjoint"):
        as_operator(SimpleNamespace(A=lambda x: x), SHAPE)
    odd = SimpleNamespace(A=lambda x: x, A_adjoint=lambda y: y, noise_model=SimpleNamespace(gain=2.0))
    with pytest.raises(LeaderError, match="not Gaussian"):
        Reconstructor("ddnm", prior=CheapPrior(), steps=2, plugins=())(torch.rand(1, *SHAPE), odd)


def test_a_denoiser_is_told_levels_of_unit_images() -> None:
    told: list[tuple[float, float]] = []

    class Clean(nn.Module):
        def forward(self, x: Tensor, sigma: Tensor) -> Tensor:
            told.append((float(sigma), float(x.mean())))
            return torch.full_like(x, 0.75)

    prior = as_prior(Clean())
    t = torch.tensor([400])
    level = prior.schedule.level(t, torch.zeros(1))
    answer = prior.predict(torch.zeros(1, *SHAPE), t)
    assert torch.allclose(answer.x0, torch.tensor(0.5)), "0.75 of [0, 1] is 0.5 of [-1, 1]"
    assert told[0] == pytest.approx((float(level.sigma) / 2, 0.5))


def test_a_script_of_deepinv_with_one_changed_line(capsys: pytest.CaptureFixture[str]) -> None:
    import_deepinv()
    script = SCRIPT.read_text()
    (before,) = [line for line in script.splitlines() if line.startswith("# model")]
    (after,) = [line for line in script.splitlines() if line.startswith("model")]
    exec(compile(script, SCRIPT.name, "exec"), {})
    exec(compile(script.replace(after, before.removeprefix("# ")), SCRIPT.name, "exec"), {})
    ours, measured, theirs, _ = [float(word) for word in re.findall(r"[\d.]+(?= dB)", capsys.readouterr().out)]
    assert ours > max(theirs, measured) + 1


def test_physics_and_denoisers_of_deepinv_itself() -> None:
    deepinv = import_deepinv()
    noise = deepinv.physics.GaussianNoise(sigma=0.05)
    taps = deepinv.physics.functional.blur.gaussian_blur(sigma=(1.0, 1.5))
    x = photograph(*SHAPE[1:])[None]
    for physics in (
        deepinv.physics.Inpainting(SHAPE, mask=0.6, noise_model=noise, rng=torch.Generator().manual_seed(1)),
        deepinv.physics.BlurFFT(SHAPE, filter=taps, noise_model=noise),
        deepinv.physics.Downsampling(img_size=SHAPE, factor=2, filter="bicubic", noise_model=noise),
    ):
        operator = as_operator(physics, SHAPE)
        assert torch.allclose(operator(x), physics.A(x)) and operator.measurement_shape == tuple(physics.A(x).shape[1:])
        y = physics(x)
        model = Reconstructor("ddnm", steps=4, plugins=(), prior=CheapPrior())
        assert isinstance(model, deepinv.models.Reconstructor)
        found = model(y, physics)
        assert found.shape == x.shape and float(found.min()) >= 0 and float(found.max()) <= 1
        named = Reconstructor("ddnm", steps=4, plugins=(), prior=CheapPrior(), sigma=0.05)(y, physics)
        assert torch.allclose(found, named, atol=1e-4), "the noise model's level is found"
    noisy = x + 0.1 * torch.randn(x.shape, generator=torch.Generator().manual_seed(0))
    model = Reconstructor("ddim", prior=deepinv.models.MedianFilter(), steps=3, plugins=())
    assert model(noisy, deepinv.physics.Denoising(noise)).shape == x.shape
