"""What a wrong kernel costs, against dense algebra on the same field."""

import numpy as np
import pytest
from numpy.typing import NDArray

from leader.forensics.size.kernel_risk import PERIOD, SEEN, squared_differences, squared_errors
from leader.operators.pillow_resize import PILLOW_DOWNSAMPLING, pillow_matrix

LAW, NOISE = (-7.0, 2.3), 0.02
MADE = ("nearest", "bicubic", "opencv-bilinear")
ASSUMED = ("soft-nearest", "lanczos", "box:30+bilinear:70")
Array = NDArray[np.float64]


def dense(factor: float, kernel: str) -> Array:
    """[SEEN^2, side^2]: the pixels of the thumbnail that are seen."""
    name = PILLOW_DOWNSAMPLING[kernel].kernel if kernel in PILLOW_DOWNSAMPLING else kernel
    first = PERIOD // 2 + 1 - SEEN // 2
    rows = pillow_matrix(round(PERIOD * factor), PERIOD, name).numpy()[first : first + SEEN]
    return np.kron(rows, rows)


def covariance(factor: float) -> Array:
    """[side^2, side^2] of a field on a torus whose thumbnail would have the power law, were nothing lost."""
    side = round(PERIOD * factor)
    places = np.fft.fftfreq(side) * factor
    power = np.exp(LAW[0]) * np.hypot(places[:, None], places[None]).clip(1 / PERIOD) ** -LAW[1] * factor**2
    table = np.fft.ifft2(power).real
    row, column = np.divmod(np.arange(side**2), side)
    return np.asarray(table[(row[:, None] - row) % side, (column[:, None] - column) % side])


@pytest.mark.parametrize("factor", [2, 1.5, 3])
def test_errors_equal_dense_algebra(factor: float) -> None:
    field, side = covariance(factor), round(PERIOD * factor)
    first = round(PERIOD // 2 * factor)
    cells = np.arange(first, first + int(np.ceil(2 * factor)))
    middle = (cells[:, None] * side + cells).ravel()
    found = squared_errors(LAW, factor, NOISE, MADE, ASSUMED)
    for row, kernel in zip(found, MADE):
        for value, down in zip(row, ASSUMED):
            a, b = dense(factor, down), dense(factor, kernel)
            eye = NOISE**2 * np.eye(SEEN**2)
            weights = field[middle] @ a.T @ np.linalg.inv(a @ field @ a.T + eye)
            left = np.eye(side**2)[middle] - weights @ b
            expected = np.trace(left @ field @ left.T + NOISE**2 * weights @ weights.T) / len(middle)
            assert value == pytest.approx(expected, rel=1e-8), (kernel, down)


@pytest.mark.parametrize("factor", [2, 2.5])
def test_differences_equal_dense_algebra(factor: float) -> None:
    field = covariance(factor)
    for kernel, value in zip(MADE, squared_differences(LAW, factor, MADE, ASSUMED[2])):
        off = dense(factor, kernel) - dense(factor, ASSUMED[2])
        assert value == pytest.approx(np.trace(off @ field @ off.T) / SEEN**2, rel=1e-8)


@pytest.mark.parametrize("factor", [2, 3, 4])
def test_the_right_kernel_costs_least_and_too_soft_a_one_more_than_too_sharp_a_one(factor: float) -> None:
    kernels = ("nearest", "box", "bilinear", "bicubic", "lanczos")
    lost = squared_errors(LAW, factor, NOISE, kernels, kernels)
    assert lost.argmin(1).tolist() == list(range(len(kernels)))
    lost = 10 * np.log10(lost / lost.min(1, keepdims=True))
    softest, aliasing = kernels.index("bilinear"), kernels.index("nearest")
    assert lost[aliasing, softest] > max(1.0, 2 * lost[kernels.index("box"), softest])
    assert lost[kernels.index("lanczos"), softest] > lost[softest, kernels.index("lanczos")]


def test_beyond_a_factor_nothing_changes() -> None:
    """Odd factors and others keep apart: nearest neighbour takes the middle of an odd cell."""
    for factor, like in ((7, 5), (8, 6), (6.5, 6)):
        assert np.array_equal(
            squared_errors(LAW, factor, NOISE, MADE, ASSUMED), squared_errors(LAW, like, NOISE, MADE, ASSUMED)
        )
    apart = [squared_differences(LAW, factor, ["nearest"], "opencv-bilinear")[0] for factor in (5, 6)]
    assert apart[0] == pytest.approx(0, abs=1e-12) and apart[1] > 1e-6
