"""Operators: cuts, damping, masks and seeds, each against a count or a dense matrix."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from leader.operators import Blur, FromFunctions, Inpainting, SeparableBlur, build_task, random_mask
from leader.operators.base import SpectralOperator
from leader.operators.kernels.motion import motion_kernel
from leader.operators.separable import Factor

SHAPE = (1, 4, 6)


class Scaled(SpectralOperator):
    """Multiplies pixels by given numbers."""

    def to(self, x: Tensor) -> Tensor:
        return x

    def back(self, c: Tensor) -> Tensor:
        return c

    def data(self, y: Tensor) -> Tensor:
        return y

    def measure(self, w: Tensor) -> Tensor:
        return w


def test_the_cut_is_relative_to_the_largest_value() -> None:
    values = torch.tensor([1e-5, 1e-6, 1e-9, 0.0], dtype=torch.float64).repeat(6).reshape(1, *SHAPE)
    operator = Scaled(SHAPE, values)
    assert operator.norm == pytest.approx(1e-5)
    assert torch.equal(operator.s > 0, values >= 1e-6)
    x = torch.randn(1, *SHAPE, dtype=torch.float64)
    assert torch.allclose(operator.pinv(operator.A(x)), torch.where(values >= 1e-6, x, 0.0))


def test_each_kernel_of_a_batch_has_its_own_cut() -> None:
    """The second kernel sharpens by 2.6: what counts as small for it must not decide for the first."""
    blur = torch.zeros(3, 3, dtype=torch.float64)
    blur[1] = torch.tensor([0.4, 0.2, 0.4])
    sharp = torch.zeros(3, 3, dtype=torch.float64)
    sharp[1] = torch.tensor([-0.8, 2.6, -0.8])
    both = Blur((1, 8, 8), torch.stack([blur, sharp])[:, None], rcond=0.1)
    for i, kernel in enumerate((blur, sharp)):
        alone = Blur((1, 8, 8), kernel, rcond=0.1)
        assert torch.equal(both.s[i] > 0, alone.s[0] > 0)
    assert not torch.equal(both.s[0] > 0, both.spectrum[0] > 0.1 * both.spectrum.max()), "the kernels must disagree"


def test_the_norm_is_the_largest_singular_value() -> None:
    weights = torch.linspace(0.1, 3.0, 24).reshape(1, *SHAPE)

    def scaled(x: Tensor) -> Tensor:
        return weights.to(x) * x

    assert FromFunctions(SHAPE, scaled, scaled).norm == pytest.approx(3.0, rel=0.02)


@pytest.mark.parametrize("missing", [0.0, 0.25, 0.9])
def test_a_random_mask_loses_its_share_and_follows_its_seed(missing: float) -> None:
    mask = random_mask(10, 20, missing, seed=1)
    assert int((mask == 0).sum()) == round(200 * missing) and set(mask.flatten().tolist()) <= {0.0, 1.0}
    if missing:
        assert not torch.equal(mask, random_mask(10, 20, missing, seed=2))


def test_a_factor_cuts_what_is_below_its_share_of_the_largest() -> None:
    factor = Factor(torch.diag(torch.tensor([2.0, 1.0, 1e-3, 0.0], dtype=torch.float64)), rcond=1e-2)
    assert factor.kept.tolist() == [2.0, 1.0, 0.0, 0.0]
    assert torch.allclose(factor.inverse.constant, torch.diag(torch.tensor([0.5, 1.0, 0.0, 0.0], dtype=torch.float64)))


def test_rows_and_columns_of_a_separable_blur_have_their_own_taps_and_convolve() -> None:
    operator = SeparableBlur((1, 5, 7), [1.0, 2.0, 4.0], [1.0, 0.0, 0.0])
    x = torch.zeros(1, 1, 5, 7, dtype=torch.float64)
    x[0, 0, 2, 3] = 1
    y = operator.A(x)[0, 0]
    assert y[1:4, 2].tolist() == [1.0, 2.0, 4.0], "a point spreads as the taps do, not mirrored"
    assert float(y.sum()) == 7.0


def test_a_drawn_motion_kernel_follows_its_seed() -> None:
    one, other = motion_kernel(100), motion_kernel(101)
    assert torch.equal(one, motion_kernel(100)) and float((one - other).abs().sum()) > 0.1


def test_options_of_value_zero_are_options() -> None:
    shape = (1, 16, 16)
    zero, one = (build_task("deblur-motion", shape, seed=seed, size=9) for seed in (0, 1))
    default = build_task("deblur-motion", shape, size=9)
    assert isinstance(zero, Blur) and isinstance(one, Blur) and isinstance(default, Blur)
    assert torch.equal(zero.kernel, default.kernel) and not torch.equal(zero.kernel, one.kernel)
    straight, shaken = (build_task("deblur-motion", shape, seed=20, size=9, intensity=value) for value in (0.0, 0.5))
    assert isinstance(straight, Blur) and isinstance(shaken, Blur)
    assert not torch.equal(straight.kernel, shaken.kernel)


def test_the_way_of_downsampling_is_an_option() -> None:
    assert build_task("sr", (1, 8, 8), factor=2, down="average").task == "sr-average"
    assert build_task("sr", (1, 8, 8), factor=2).task == "sr-bicubic"


def test_every_image_keeps_its_own_mask() -> None:
    masks = torch.stack([random_mask(4, 6, 0.5, seed) for seed in (0, 1, 2)])[:, None]
    chosen = Inpainting(SHAPE, masks).select(torch.tensor([2, 0]))
    assert torch.equal(chosen.A(torch.ones(2, *SHAPE)), masks[[2, 0]])


@pytest.mark.parametrize("eta", [0.0, 1e-4, 0.3])
def test_damped_least_squares_solve_the_damped_equations(eta: float) -> None:
    """Batch of two of very different size, an operator without an SVD, against a dense solve."""
    generator = torch.Generator().manual_seed(0)
    matrix = torch.randn(10, 24, generator=generator, dtype=torch.float64)

    def forward(x: Tensor) -> Tensor:
        return x.flatten(1) @ matrix.T.to(x)

    def adjoint(y: Tensor) -> Tensor:
        return (y @ matrix.to(y)).reshape(-1, *SHAPE)

    operator = FromFunctions(SHAPE, forward, adjoint)
    y = torch.randn(2, 10, generator=generator, dtype=torch.float64) * torch.tensor([[1.0], [1e-3]], dtype=torch.float64)
    damped = matrix.T @ torch.linalg.solve(matrix @ matrix.T + eta * torch.eye(10, dtype=torch.float64), y.T)
    found = operator.regularised_pinv(y, torch.tensor([eta, eta], dtype=torch.float64)).flatten(1)
    assert torch.allclose(found, damped.T, rtol=1e-5, atol=1e-9)
