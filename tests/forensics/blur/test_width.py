"""Whether a kernel is as wide as the blur: against fields whose blur is known, and kernels whose scaling is exact."""

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy import ndimage
from torch import Tensor

from leader.forensics.blur.width import find_better_width, judge_width, narrow_kernel
from leader.forensics.noise.estimate import NoiseEstimate
from leader.operators import disk_kernel, gaussian_kernel, line_kernel
from leader.pictures.jpeg_history import JpegHistory
from tests.forensics.blur.fields import estimate, field

NOISE = NoiseEstimate(0.01, 0.01, 1 / 255 / 12**0.5)


def moments(kernel: Tensor) -> tuple[Tensor, Tensor]:
    """Centre of mass and variance along rows and columns, in taps from the middle."""
    places = [torch.arange(size, dtype=torch.float64) - (size - 1) // 2 for size in kernel.shape]
    weights = [kernel.double().sum(1), kernel.double().sum(0)]
    mean = torch.stack([(w * p).sum() for w, p in zip(weights, places, strict=True)])
    return mean, torch.stack([(w * (p - m) ** 2).sum() for w, p, m in zip(weights, places, mean, strict=True)])


@pytest.mark.parametrize("factor", [0.6, 0.8, 1.0])
def test_a_narrowed_gaussian_is_the_narrower_gaussian(factor: float) -> None:
    found, exact = narrow_kernel(gaussian_kernel(3.0), factor), gaussian_kernel(3.0 * factor)
    outside = (found.shape[0] - exact.shape[0]) // 2
    inside = found[outside : outside + exact.shape[0], outside : outside + exact.shape[1]]
    assert float((inside - exact).abs().max()) < 2e-3 * float(exact.max())  # the wide one is cut off at a few deviations
    assert float(found.sum()) == pytest.approx(1, abs=1e-9) and float(found.min()) >= 0


def test_narrowing_keeps_the_centre_of_mass() -> None:
    """Also that of a kernel of even sides, which has no tap in its middle: else the picture would move."""
    taps = torch.outer(torch.tensor([0.1, 0.4, 0.4, 0.1]), torch.tensor([0.05, 0.25, 0.4, 0.25, 0.05, 0.0])).double()
    before, after = moments(taps), moments(narrow_kernel(taps, 0.8))
    assert torch.allclose(after[0], before[0], atol=0.02)
    assert bool((after[1] < before[1]).all())


def test_a_narrowed_line_is_shorter_along_itself() -> None:
    _, before = moments(line_kernel(15.0, 0.0))
    _, after = moments(narrow_kernel(line_kernel(15.0, 0.0), 0.7))
    assert float(after[1] / before[1]) == pytest.approx(0.49, abs=0.05)


@pytest.mark.parametrize(("kernel", "wide"), [(gaussian_kernel(2.0), gaussian_kernel(2.6)), (line_kernel(9.0, 30.0), None)])
def test_the_right_kernel_stands_and_a_wider_one_is_refuted(kernel: Tensor, wide: Tensor | None) -> None:
    luma = field(kernel)
    assert find_better_width(luma, kernel, estimate()) is None
    found = find_better_width(luma, line_kernel(11.7, 30.0) if wide is None else wide, estimate())
    assert found is not None and found.factor == pytest.approx(1 / 1.3, rel=0.06) and 0.03 <= found.error < 0.2


@pytest.mark.parametrize("kernel", [gaussian_kernel(2.0), line_kernel(9.0, 30.0)])
def test_a_sharp_picture_refutes_every_width_and_a_blur_of_half_of_it_does_not(kernel: Tensor) -> None:
    found = find_better_width(field(torch.ones(1, 1)), kernel, estimate())
    assert found is not None and found.sharp and found.factor < 0.5
    half = find_better_width(field(narrow_kernel(kernel, 0.49)), kernel, estimate())
    assert half is not None and not half.sharp, "hardly any blur would not explain it"
    less = find_better_width(field(narrow_kernel(kernel, 0.7)), kernel, estimate())
    assert less is not None and not less.sharp and less.factor > 0.6


def test_a_narrower_one_is_refuted_too() -> None:
    found = find_better_width(field(gaussian_kernel(2.0)), gaussian_kernel(1.5), estimate())
    assert found is not None and found.factor == pytest.approx(4 / 3, rel=0.08)


@pytest.mark.parametrize(
    ("kernel", "given", "factor"),
    [
        (line_kernel(9.0, 30.0), line_kernel(6.5, 30.0), 9 / 6.5),
        (line_kernel(9.0, 30.0), line_kernel(4.5, 30.0), 2),
        (disk_kernel(4.0), disk_kernel(2.0), 2),
        (disk_kernel(4.0), disk_kernel(2.8), 4 / 2.8),
    ],
)
def test_one_with_dark_bands_that_is_too_narrow_is_not_taken_for_too_wide(kernel: Tensor, given: Tensor, factor: float) -> None:
    """A still narrower one has fewer bands at the wrong places, so it explains more than the given one."""
    luma = field(kernel)
    found = find_better_width(luma, given, estimate())
    assert found is not None and found.factor == pytest.approx(factor, rel=0.09) and not found.sharp
    width = judge_width(luma, given, estimate())
    assert width is not None and width.odds is not None and max(width.odds, width.sharp) < -4


def test_a_motion_of_a_quarter_of_the_true_length_is_no_sharp_picture() -> None:
    """Twice of it explains no more than half of it: which is wrong is not to be told."""
    assert find_better_width(field(line_kernel(15.0, 75.0)), line_kernel(3.75, 75.0), estimate()) is None


def test_too_little_says_nothing() -> None:
    assert find_better_width(field(side=256)[:40, :40], gaussian_kernel(2.0), estimate()) is None
    assert find_better_width(np.full((128, 128), 0.5), gaussian_kernel(2.0), estimate()) is None


def scene(seed: int, side: int = 96) -> NDArray[np.float64]:
    """Power 1/f^2.3, standard deviation 0.2."""
    rng = np.random.default_rng(seed)
    f = np.hypot(np.fft.fftfreq(side)[:, None], np.fft.fftfreq(side)[None])
    f[0, 0] = np.inf
    picture = np.fft.ifft2(np.fft.fft2(rng.standard_normal((side, side))) * f**-1.15).real
    return np.asarray(0.5 + 0.2 * picture / picture.std())


def blurred(seed: int, std: float) -> NDArray[np.float64]:
    rng = np.random.default_rng(seed + 100)
    picture = scene(seed)
    return np.asarray(ndimage.gaussian_filter(picture, std, mode="wrap") + 0.01 * rng.standard_normal(picture.shape))


def odds(picture: NDArray[np.float64], width: float) -> float:
    found = judge_width(picture, gaussian_kernel(width), NOISE)
    assert found is not None and found.odds is not None
    return found.odds


@pytest.mark.parametrize("seed", range(3))
def test_a_kernel_half_as_wide_again_is_noticed_and_the_true_one_is_not(seed: int) -> None:
    luma = blurred(seed, 1.5)
    right, wrong, sharp = (odds(picture, width) for picture, width in ((luma, 1.5), (luma, 2.25), (scene(seed), 1.5)))
    assert right < 0 and wrong > 1 and sharp > 5
    assert odds(luma, 1.6) < 0.3, "a few per cent do not matter"
    assert odds(luma, 1.0) < 0, "too narrow a kernel is another fault"


@pytest.mark.parametrize("history", [None, JpegHistory((2,) * 64)])
def test_a_sharp_picture_has_no_blur_and_a_blurred_one_has(history: JpegHistory | None) -> None:
    noise = NoiseEstimate(0.01, 0.0, NOISE.rounding, history)
    sharp, soft = (judge_width(picture, gaussian_kernel(1.5), noise) for picture in (scene(1), blurred(1, 1.5)))
    assert sharp is not None and soft is not None and sharp.sharp > 5 and soft.sharp < -5
    plain = judge_width(scene(1), gaussian_kernel(1.5), NOISE)
    assert plain is not None and plain.odds is not None and plain.odds >= plain.sharp, "no blur is one of the narrower ones"
    half = judge_width(blurred(1, 1.25), gaussian_kernel(2.5), NOISE)
    assert half is not None and half.odds is not None and half.odds > half.sharp + 1, "a blur of half the width is a blur"


def test_nothing_is_said_where_nothing_can_be_seen() -> None:
    kernel = gaussian_kernel(1.5)
    assert judge_width(np.full((96, 96), 0.5), kernel, NOISE) is None
    assert judge_width(scene(0)[:40], kernel, NOISE) is None
    squeezed = NoiseEstimate(0.01, 0.01, 0.001, JpegHistory((16,) * 64))
    behind = judge_width(scene(0), kernel, squeezed)
    assert behind is not None and behind.odds is None, "what JPEG leaves of a spectrum suits many a kernel"
    found = judge_width(scene(0), torch.ones(1, 1), NOISE)
    assert found is not None and found.odds == found.sharp == pytest.approx(0.0, abs=1e-6), "no kernel is narrower than none"
