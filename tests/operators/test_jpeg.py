"""JPEG's operator against the dense matrix that its definition gives, built by loops over pixels."""

import math

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from leader.operators import Jpeg
from leader.operators.jpeg import ROUNDED, SLACK
from tests.operators.cases import dense, images, measurements, relative

Matrix = NDArray[np.float64]

COLOURS = np.array([[0.299, 0.587, 0.114], [-0.168736, -0.331264, 0.5], [0.5, -0.418688, -0.081312]])
LUMA = torch.arange(64, dtype=torch.float64).reshape(8, 8) + 3
CHROMA = 2 * LUMA.T + 1
CASES = [((3, 16, 8), (1, 1)), ((3, 8, 16), (1, 2)), ((3, 16, 8), (2, 1)), ((3, 16, 16), (2, 2)), ((1, 16, 8), (1, 1))]


def wave(k: int, n: int) -> float:
    return math.sqrt((1 if k == 0 else 2) / 8) * math.cos(math.pi * k * (2 * n + 1) / 16)


def by_definition(shape: tuple[int, int, int], sampling: tuple[int, int]) -> Matrix:
    """G, one row for each coefficient, one column for each value of an image."""
    channels, height, width = shape
    rows = []
    for plane in range(channels):
        colours = COLOURS[plane] if channels == 3 else np.ones(1)
        tall, wide = sampling if plane else (1, 1)
        for top in range(0, height, 8 * tall):
            for left in range(0, width, 8 * wide):
                for k in range(8):
                    for m in range(8):
                        row = np.zeros(shape)
                        for i in range(8 * tall):
                            for j in range(8 * wide):
                                value = wave(k, i // tall) * wave(m, j // wide) / (tall * wide)
                                row[:, top + i, left + j] = colours * value
                        rows.append(row.reshape(-1))
    return np.array(rows)


def steps_of(shape: tuple[int, int, int], sampling: tuple[int, int]) -> Matrix:
    blocks = shape[1] * shape[2] // 64
    parts = [np.tile(LUMA.reshape(-1), blocks)]
    if shape[0] == 3:
        parts += 2 * [np.tile(CHROMA.reshape(-1), blocks // (sampling[0] * sampling[1]))]
    return np.concatenate(parts)


def made(shape: tuple[int, int, int], sampling: tuple[int, int], level: float = 0.03, seed: int = 0) -> tuple[Jpeg, Matrix]:
    """The operator with two thirds of its rows unmeasured, and the matrix it should have."""
    full = by_definition(shape, sampling)
    measured = np.random.default_rng(seed).random(len(full)) < 1 / 3
    scale = measured * level / (np.sqrt(steps_of(shape, sampling) ** 2 / 12 + ROUNDED) / 255)
    chroma = CHROMA if shape[0] == 3 else None
    return Jpeg(shape, LUMA, chroma, sampling, level, torch.from_numpy(measured)), scale[:, None] * full


@pytest.mark.parametrize(("shape", "sampling"), CASES)
def test_it_is_the_matrix_of_its_definition(shape: tuple[int, int, int], sampling: tuple[int, int]) -> None:
    """To the rounding of its weights, which are kept in float32: A, its adjoint, its bounds and its inverses."""
    operator, matrix = made(shape, sampling)
    table, known = torch.from_numpy(matrix), (matrix != 0).any(1)
    y = measurements(operator, dtype=torch.float64)
    assert relative(dense(operator), table) <= 1e-6 and relative(operator.AT(y).flatten(1), y @ table) <= 1e-6
    for bound, expected in zip(operator.unit_range(), (table.clamp_max(0), table.clamp_min(0))):
        assert torch.allclose(bound, expected.sum(1), atol=1e-6)
    assert torch.equal(operator.reached(y), torch.from_numpy(known))
    gram = matrix @ matrix.T
    for eta in (1e-4, 0.02, 5.0):
        expected = torch.from_numpy(np.linalg.solve(gram + eta * np.eye(len(gram)), y.numpy().T).T @ matrix)
        assert relative(operator.regularised_pinv(y, eta).flatten(1), expected) <= 1e-5
    part = matrix[known]  # its rows are independent, so that A^+ = A^T (A A^T)^-1
    expected = torch.from_numpy(np.linalg.solve(part @ part.T, y.numpy()[:, known].T).T @ part)
    assert relative(operator.pinv(y).flatten(1), expected) <= 1e-5 and operator.residual <= 1e-6
    unit = torch.rand(2, shape[0], shape[1] // (8 * sampling[0]), shape[2] // (8 * sampling[1]), dtype=torch.float64)
    variance = unit.repeat_interleave(8 * sampling[0], 2).repeat_interleave(8 * sampling[1], 3)
    expected = variance.flatten(1) @ torch.from_numpy(by_definition(shape, sampling) ** 2).T
    assert relative(operator.variances(variance), expected) <= 1e-6, "of independent pixels"


def test_every_coefficient_is_taken_into_its_cell_and_no_other_is_touched() -> None:
    shape, sampling = (3, 16, 16), (2, 2)
    operator, matrix = made(shape, sampling)
    steps, full = steps_of(shape, sampling), by_definition(shape, sampling)
    truth = images(operator, batch=1, dtype=torch.float64)
    y = operator.A(truth)
    measured = torch.from_numpy((matrix != 0).any(1))
    middle = torch.where(measured, torch.from_numpy(full) @ truth.flatten(), 0.0).numpy()
    reach = (steps / 2 + SLACK) * 2 / 255
    x = truth + 0.5 * images(operator, batch=1, seed=5, dtype=torch.float64)
    before, after = (full @ image.flatten().numpy() for image in (x, operator.confine(x, y)))
    assert 0.2 < float((np.abs(before - middle) > reach).mean()) < 0.95
    np.testing.assert_allclose(after, before.clip(middle - reach, middle + reach), atol=1e-6)
    inside = operator.confine(x, y)
    assert relative(operator.confine(inside, y), inside) <= 1e-7
    half = full @ operator.confine(x, y, 0.5).flatten().numpy()
    np.testing.assert_allclose(half, before.clip(middle - reach / 2, middle + reach / 2), atol=1e-6)


@pytest.mark.parametrize(("shape", "sampling"), CASES)
def test_every_coefficient_is_taken_to_its_mean_within_its_cell(shape: tuple[int, int, int], sampling: tuple[int, int]) -> None:
    """Against sums over the cell; luma and chroma are corrected apart, so that each coefficient is what it should be."""
    operator, matrix = made(shape, sampling)
    steps, full = steps_of(shape, sampling), by_definition(shape, sampling)
    truth = images(operator, batch=1, dtype=torch.float64)
    y, x = operator.A(truth), truth + 0.3 * images(operator, batch=1, seed=5, dtype=torch.float64)
    variance = 0.02 + 0.2 * torch.rand(1, len(full), generator=torch.Generator().manual_seed(6), dtype=torch.float64)
    middle = np.where((matrix != 0).any(1), full @ truth.flatten().numpy(), 0.0)
    reach, before = (steps / 2 + SLACK) * 2 / 255, full @ x.flatten().numpy()
    points = middle + reach * (np.arange(4001)[:, None] + 0.5 - 2000.5) / 2000.5
    exponent = -((points - before) ** 2) / 2 / variance[0].numpy()
    weights = np.exp(exponent - exponent.max(0))
    expected = (weights * points).sum(0) / weights.sum(0)
    np.testing.assert_allclose(full @ operator.expect(x, y, variance).flatten().numpy(), expected, atol=1e-4)
    sure = operator.expect(x, y, torch.zeros_like(variance))
    torch.testing.assert_close(sure, operator.confine(x, y), atol=1e-3, rtol=0)
    assert float(np.abs(expected - before.clip(middle - reach, middle + reach)).max()) > 0.02


def test_only_what_was_rounded_to_zero_is_enlarged() -> None:
    shape, sampling = (3, 16, 16), (2, 2)
    operator, matrix = made(shape, sampling)
    full, x = by_definition(shape, sampling), images(operator, batch=1, dtype=torch.float64)
    place = np.arange(8)
    share = np.minimum((place[:, None] + place) / 8, 1).reshape(-1)
    gains = 1 + np.concatenate([np.tile(0.1 * share, 4), np.tile(0.3 * share, 2)])
    before = full @ x.flatten().numpy()
    after = full @ operator.enlarge_open(x, 0.1, 0.3).flatten().numpy()
    np.testing.assert_allclose(after, np.where((matrix != 0).any(1), 1, gains) * before, atol=1e-6)


def test_doubt_widens_a_cell() -> None:
    doubt = torch.zeros(64)
    doubt[5] = 20.0
    operator = Jpeg((1, 8, 8), LUMA, doubt=doubt)
    zero = torch.zeros(1, 64)
    far = operator.coefficients(operator.confine(operator.lift(torch.full((1, 64), 3.0)), zero))[0]
    expected = (LUMA.reshape(-1) / 2 + SLACK + doubt) * 2 / 255
    assert relative(far, expected) <= 1e-5


def test_the_decoded_picture_holds_the_measured_coefficients() -> None:
    operator, _ = made((3, 16, 16), (2, 2))
    x = images(operator, dtype=torch.float64)
    shown = operator.decoded(operator.A(x))
    assert relative(operator.A(shown), operator.A(x)) <= 1e-12
    unmeasured = ~operator.reached(operator.A(x))
    assert float((operator.coefficients(shown) * unmeasured).abs().max()) <= 1e-12
    blue = torch.einsum("c,bchw->bhw", torch.from_numpy(COLOURS[1]), shown)
    assert torch.allclose(blue[:, ::2, ::2], blue[:, 1::2, 1::2])  # chroma is repeated


def test_the_level_is_the_error_of_rounding_every_coefficient() -> None:
    """Uniform errors of all coefficients, made pixels by a plain decoder, have the level that the operator names itself."""
    fine = torch.ones(8, 8, dtype=torch.float64)
    for shape, chroma in (((3, 64, 64), CHROMA), ((3, 64, 64), fine), ((1, 64, 64), None)):
        operator = Jpeg(shape, LUMA, chroma)
        spread = torch.from_numpy(steps_of(shape, (1, 1)))
        if chroma is fine:
            spread[64 * 64 :] = 1
        error = (torch.rand(64, len(spread), generator=torch.Generator().manual_seed(0), dtype=torch.float64) - 0.5) * spread
        found = float(operator.lift(error / 255).square().mean().sqrt())
        # 786,432 uniform numbers: their mean square is known to 0.1 %.
        assert math.isclose(math.hypot(found, 1 / 255 / math.sqrt(12)), operator.level, rel_tol=0.002)
        if chroma is not fine:  # whose steps are no larger than the rounding of pixels, which the weights hold too
            assert math.isclose(float(operator.weighted(error / 255).std()), operator.level, rel_tol=0.01)


def test_the_rounding_of_pixels_is_part_of_the_level_and_of_every_weight() -> None:
    """Steps of one: the level is that of two roundings; a coefficient has its own, that of its planes and that of pixels."""
    operator = Jpeg((1, 8, 8), torch.ones(8, 8))
    assert operator.level == pytest.approx(math.sqrt(2 / 12) / 255)
    mean = float(operator.A(torch.ones(1, 1, 8, 8, dtype=torch.float64))[0, 0])
    assert mean == pytest.approx(8 * operator.level * 255 / math.sqrt(3 / 12))
