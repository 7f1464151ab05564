"""Blur against direct sums, the papers' Gaussian deblurring against published numbers, and the blurs of large frames."""

import numpy as np
import pytest
import torch
from scipy import ndimage

from leader.operators import Blur, SeparableBlur, WhitenedBlur, gaussian_kernel, paper_gaussian_taps
from leader.problem import Problem
from leader.sampler import Sampler
from tests.cheap_prior import CheapPrior
from tests.operators.cases import images, relative, symmetric_power


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


SIZES = [(3, 10, 12), (3, 9, 11), (1, 8, 7)]
KERNEL = torch.tensor([[0.1, 0.2, 0.0], [0.3, 0.5, 0.1], [0.0, 0.2, 0.1], [0.2, 0.0, 0.4]], dtype=torch.float64)
ROUNDING = 3e-6
"""Of single precision, in which the tables of large frames are kept, times what a product with A^+ amplifies at most here."""


def both(shape: tuple[int, int, int], kind: str, monkeypatch: pytest.MonkeyPatch) -> tuple[Blur, Blur]:
    """The blur of a small frame, and the same as if the frame were large."""

    def made() -> Blur:
        if kind == "blur":
            return Blur(shape, gaussian_kernel(0.6, 3))
        return WhitenedBlur(shape, KERNEL, symmetric_power(4, shape[0], *shape[1:]))

    whole = made()
    monkeypatch.setattr("leader.operators.blur.LARGE_FRAME", 10)
    half = made()
    assert half.halved and not whole.halved
    return whole, half


@pytest.mark.parametrize("kind", ["blur", "whitened"])
@pytest.mark.parametrize("shape", SIZES)
def test_it_is_the_same_operator(shape: tuple[int, int, int], kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, half = both(shape, kind, monkeypatch)
    x = images(whole, 2, 1, torch.float32)
    assert half.to(x).shape[-1] == shape[2] // 2 + 1 == half.s.shape[-1] and half.s.dtype == torch.float32
    assert torch.allclose(half.back(half.to(x)), x, atol=1e-6)
    for name in ("A", "AT", "pinv"):
        expected = getattr(whole, name)(x)
        assert torch.allclose(getattr(half, name)(x), expected, atol=ROUNDING * float(expected.abs().max())), name
    damped = whole.regularised_pinv(x, 0.03)
    assert torch.allclose(half.regularised_pinv(x, 0.03), damped, atol=ROUNDING * float(damped.abs().max()))
    mine, other = (one.back(one.data(one.measure(one.to(x)))) for one in (half, whole))
    assert torch.allclose(mine, other, atol=1e-5)
    for bound, same in zip(half.unit_range(), whole.unit_range(), strict=True):
        assert torch.allclose(bound, same, atol=1e-5)
    assert half.norm == pytest.approx(whole.norm, rel=1e-6)
    if isinstance(whole, WhitenedBlur) and isinstance(half, WhitenedBlur):
        assert half.reference == pytest.approx(whole.reference, rel=1e-6)
        assert torch.allclose(half.power, whole.power.float(), rtol=1e-5)
        assert torch.allclose(half.whiten(x), whole.whiten(x), atol=1e-5)


@pytest.mark.parametrize("method", ["ddrm", "projdiff", "diffpir"])
def test_runs_are_the_same(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every host that works in the basis of the blur, after ten steps with fresh noise in each."""
    whole, half = both((3, 10, 12), "whitened", monkeypatch)
    x = images(whole, 1, 5, torch.float32).sigmoid()
    y = whole.A(x)
    answers = [
        Sampler(CheapPrior(), method, (), 10).run(Problem(y, operator, 0.05, in_range=False)).images
        for operator in (whole, half)
    ]
    assert torch.allclose(answers[0], answers[1], atol=1e-4)
    assert float((answers[0] - (2 * x - 1)).abs().max()) > 1e-2  # noise came in


@pytest.mark.parametrize("strip", [1, 7, 40])
def test_a_table_made_in_strips_is_the_same_to_the_bit(strip: int, monkeypatch: pytest.MonkeyPatch) -> None:
    operator = WhitenedBlur((3, 10, 12), KERNEL, symmetric_power(4, 3, 10, 12))
    problem = Problem(operator.A(images(operator, 1, 5, torch.float32).sigmoid()), operator, 0.05, in_range=False)
    answers = []
    for components in (1 << 20, strip):
        monkeypatch.setattr("leader.methods.shared.STRIP", components)
        answers.append(Sampler(CheapPrior(), "ddrm", (), 5).run(problem).images)
    assert torch.equal(*answers)
