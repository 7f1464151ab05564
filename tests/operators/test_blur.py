"""Blur against direct sums, and the papers' Gaussian deblurring against published numbers."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import ndimage

from leader import LeaderError
from leader.operators import Blur, SeparableBlur, gaussian_kernel, paper_gaussian_taps
from leader.operators.base import SpectralOperator, TruncatedOperator
from tests.operators.cases import images, relative


def random_kernel(height: int, width: int, seed: int = 0) -> torch.Tensor:
    kernel = torch.rand(height, width, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return kernel / kernel.sum()


@pytest.mark.parametrize("size", [(1, 1), (3, 3), (5, 3), (4, 4), (2, 5), (6, 7), (9, 14)])
def test_circular_blur_is_a_centred_convolution(size: tuple[int, int]) -> None:
    """Also for even kernels and kernels larger than the image: the sum over taps written out."""
    kernel = random_kernel(*size)
    x = torch.randn(1, 2, 6, 7, dtype=torch.float64)
    expected = torch.zeros_like(x)
    for i in range(size[0]):
        for j in range(size[1]):
            shift = (i - (size[0] - 1) // 2, j - (size[1] - 1) // 2)
            expected += kernel[i, j] * torch.roll(x, shift, dims=(2, 3))
    assert relative(Blur((2, 6, 7), kernel).A(x), expected) <= 1e-13


def test_exact_zeros_of_a_box_are_not_measured() -> None:
    operator = Blur((1, 8, 8), torch.ones(2, 2))
    assert int((operator.spectrum == 0).sum()) == 15
    y = images(operator, 1)
    assert bool(torch.isfinite(operator.pinv(y)).all())
    assert bool(torch.isfinite(operator.regularised_pinv(y, 1e-11)).all())


def test_wrong_kernel_shape_is_refused() -> None:
    with pytest.raises(LeaderError, match="A blur kernel has shape"):
        Blur((3, 8, 8), torch.ones(2, 3, 5, 5))


@pytest.mark.parametrize(("boundary", "mode"), [("zero", "constant"), ("symmetric", "reflect")])
@pytest.mark.parametrize("lengths", [(5, 5), (3, 7), (9, 1)])
def test_separable_blur_against_scipy(boundary: str, mode: str, lengths: tuple[int, int]) -> None:
    rows, columns = (random_kernel(1, n, n)[0] for n in lengths)
    x = np.random.default_rng(0).standard_normal((11, 6))
    expected = ndimage.convolve1d(x, rows.numpy(), axis=0, mode=mode)
    expected = ndimage.convolve1d(expected, columns.numpy(), axis=1, mode=mode)
    found = SeparableBlur((1, 11, 6), rows, columns, boundary).A(torch.from_numpy(x)[None, None])
    assert np.abs(found[0, 0].numpy() - expected).max() <= 1e-13


def test_papers_gaussian_deblurring() -> None:
    """All five taps: 16 of 256 values cut, from 0.99985 to 2.64e-3; 12.1 % of the 2-D spectrum."""
    operator = SeparableBlur((1, 256, 256), paper_gaussian_taps())
    values = operator.vertical.singular
    assert int((operator.vertical.kept == 0).sum()) == 16
    assert float(values[0]) == pytest.approx(0.99985, abs=1e-5)
    assert float(values[-1]) == pytest.approx(2.64e-3, abs=1e-5)
    assert float((operator.s == 0).double().mean()) == pytest.approx(0.121, abs=5e-4)
    assert float(operator.vertical.matrix.constant[128].sum()) == pytest.approx(1, abs=1e-14)


@pytest.mark.parametrize("taps", [[], [0.0, 0.0], [float("nan"), 1.0]])
def test_wrong_taps_are_refused(taps: list[float]) -> None:
    with pytest.raises(LeaderError, match="finite numbers, not all zero"):
        SeparableBlur((1, 8, 8), taps)


def test_unknown_boundary_is_refused() -> None:
    with pytest.raises(LeaderError, match="did you mean 'symmetric'"):
        SeparableBlur((1, 8, 8), [1.0], boundary="symetric")


def test_frequencies_are_cut_by_the_largest_of_their_kernel() -> None:
    """2 - cos(2 pi f) goes from 1 to 3: at half of the largest, frequencies below 1.5 are left out, the mean among them."""
    operator = Blur((1, 4, 8), torch.tensor([[-0.5, 2.0, -0.5]]), rcond=0.5)
    expected = 2 - torch.cos(2 * torch.pi * torch.fft.fftfreq(8, dtype=torch.float64))
    assert torch.allclose(operator.spectrum[0, 0, 0], expected)
    assert torch.allclose(operator.s[0, 0, 0], torch.where(expected > 1.5, expected, 0.0))
    both = Blur((1, 4, 8), torch.tensor([[[[-0.5, 2.0, -0.5]]], [[[0.0, 1.0, 0.0]]]]), rcond=0.5)
    assert float(both.s[0, 0, 0, 0]) == 0 and torch.allclose(both.s[1], torch.ones(1).double())


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


def test_some_images_of_a_truncated_operator_stay_truncated() -> None:
    kernels = torch.stack([gaussian_kernel(1.0, 5), gaussian_kernel(2.0, 5)])[:, None]
    whole = Blur((1, 8, 8), kernels, rcond=0.2)
    chosen = whole.truncated().select(torch.tensor([1]))
    assert isinstance(chosen, TruncatedOperator) and torch.equal(chosen.spectrum, whole.s[1:])
    alone = Blur((1, 8, 8), gaussian_kernel(2.0, 5), rcond=0.2).truncated()
    assert isinstance(alone, SpectralOperator)
    x = torch.rand(1, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(chosen.A(x), alone.A(x), atol=1e-6) and not torch.allclose(
        chosen.A(x), whole.select(torch.tensor([1])).A(x)
    )
