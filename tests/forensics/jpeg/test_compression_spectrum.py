"""The error of JPEG by frequency and colour against the error itself."""

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import ImageFilter

from leader.forensics.jpeg.blocks import DCT
from leader.forensics.jpeg.compression_spectrum import compression_spectrum
from leader.pictures.jpeg_history import JpegHistory, read_history
from leader.transforms import OPPONENT
from tests.forensics.jpegs import jpeg, photograph, unit


def by_ring(power: np.ndarray[tuple[int, ...], np.dtype[np.float64]], low: float, high: float) -> list[float]:
    """Means of [K, H, W] over a ring of frequencies, cycles a pixel."""
    frequency = np.hypot(np.fft.fftfreq(power.shape[1])[:, None], np.fft.fftfreq(power.shape[2]))
    return [float(axis[(frequency >= low) & (frequency < high)].mean()) for axis in power]


@pytest.mark.parametrize("subsampling", [0, 2])
def test_powers_are_those_of_the_error(subsampling: int) -> None:
    """Blurred photographs behind quality 75, three of them: medians over and under the truth by less than 3, most by 2."""
    ratios = []
    for index in (1, 6, 12):
        clean = photograph(index).filter(ImageFilter.GaussianBlur(1.5))
        file = jpeg(clean, 75, subsampling)
        history = read_history(file)
        assert history is not None
        error = np.moveaxis((unit(file) - unit(clean)) @ OPPONENT.T, 2, 0)
        true = np.abs(np.fft.fft2(error, norm="ortho")) ** 2
        found = compression_spectrum(unit(file), history, None).on(*error.shape[1:])
        rows = [(by_ring(found, *ring), by_ring(true, *ring)) for ring in ((0.02, 0.06), (0.06, 0.12), (0.12, 0.2))]
        ratios.append([np.divide(*row) for row in rows])
    medians: NDArray[np.float64] = np.median(np.array(ratios), axis=0)
    assert medians.min() > 1 / 3 and medians.max() < 3.5, medians


def test_a_grey_file_of_known_coefficients() -> None:
    """All coefficients far from zero: the error of every band is step^2 / 12, and that of rounding is added."""
    steps = tuple(range(1, 65))
    draw = np.random.default_rng(0).choice([-1, 1], (30, 30, 8, 8)) * np.arange(1, 65).reshape(8, 8) * 0.6
    tiles = np.einsum("ki,rckl,lj->rcij", DCT, draw, DCT)
    pixels = (tiles.swapaxes(1, 2).reshape(240, 240, 1) + 128) / 255
    table = compression_spectrum(pixels, JpegHistory(steps), None).table
    ratio = table[0, 1:8, 1:8] * 255**2 / (np.array(steps).reshape(8, 8)[1:, 1:] ** 2 / 12 + 1 / 12)
    assert table.shape == (1, 9, 9) and ratio.min() > 0.99 and ratio.max() < 1.11
    assert table[0, 8, 8] == table[0, 7, 7] and table[0, 0, 0] == pytest.approx((1 / 12 + 1 / 12) / 255**2)
