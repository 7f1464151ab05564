"""A table of noise powers, read at the frequencies of any frame."""

import numpy as np
import pytest

from leader.errors import LeaderError
from leader.forensics.noise.spectrum import NoiseSpectrum


def test_nodes_are_hit_and_logarithms_are_interpolated() -> None:
    table = np.random.default_rng(0).uniform(0.1, 10, (3, 5, 5))
    power = NoiseSpectrum(table).on(8, 16)
    assert power.shape == (3, 8, 16)
    # node i lies at i / 8 cycles a pixel: row i of 8, column 2 i of 16; negative frequencies mirror them
    np.testing.assert_allclose(power[:, :5, :9:2], table, rtol=1e-12)
    np.testing.assert_allclose(power[:, 5:, :9:2], table[:, 3:0:-1], rtol=1e-12)
    np.testing.assert_allclose(power[:, 0, 15], np.sqrt(table[:, 0, 0] * table[:, 0, 1]), rtol=1e-12)


def test_white_noise_and_the_level() -> None:
    white = NoiseSpectrum.white(0.05)
    np.testing.assert_allclose(white.on(6, 5), np.full((1, 6, 5), 0.0025))
    assert white.level == pytest.approx(0.05)
    two = NoiseSpectrum(np.array([np.full((2, 2), value) for value in (1.0, 4.0, 7.0)]))
    assert two.level == pytest.approx(2.0)


@pytest.mark.parametrize("table", [np.ones((2, 3, 3)), np.ones((1, 3, 2)), np.ones((3, 3)), np.ones((1, 99, 99))])
def test_wrong_shapes_are_refused(table: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> None:
    with pytest.raises(LeaderError, match="A noise spectrum is a table"):
        NoiseSpectrum(table)


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf])
def test_wrong_powers_are_refused(value: float) -> None:
    with pytest.raises(LeaderError, match="above 0"):
        NoiseSpectrum(np.array([[[1.0, value], [1.0, 1.0]]]))
