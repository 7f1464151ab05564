"""Compressed sensing against the explicit Hadamard matrix."""

import pytest
import torch
from scipy.linalg import hadamard

from leader.operators import WalshHadamard
from leader.operators.hadamard import measured_indices, sequency, walsh_hadamard
from tests.operators.cases import relative


@pytest.mark.parametrize("bits", range(10))
def test_transform_equals_the_matrix(bits: int) -> None:
    length = 1 << bits
    matrix = torch.from_numpy(hadamard(length)).double() / length**0.5
    x = torch.randn(2, 3, length, dtype=torch.float64)
    assert relative(walsh_hadamard(x), x @ matrix) <= 1e-13


def test_operator_equals_rows_of_the_matrix() -> None:
    operator = WalshHadamard((3, 4, 8), ratio=0.25, seed=3)
    matrix = torch.from_numpy(hadamard(32)).double()[operator.indices] / 32**0.5
    x = torch.randn(2, 3, 4, 8, dtype=torch.float64)
    assert operator.measurement_shape == (3, 8)
    assert relative(operator.A(x), x.flatten(2) @ matrix.mT) <= 1e-13
    assert relative(operator.pinv(operator.A(x)), operator.AT(operator.A(x))) == 0


def test_sequency_counts_sign_changes() -> None:
    for length in (1, 2, 16, 64):
        signs = torch.from_numpy(hadamard(length))
        assert torch.equal(sequency(length), (signs[:, 1:] != signs[:, :-1]).sum(1))


def test_random_sets() -> None:
    for seed in range(20):
        kept = measured_indices(16, 16, 0.25, seed)
        assert kept[0] == 0 and len(set(kept.tolist())) == 64
    assert measured_indices(16, 16, 0.25, 7).tolist() == measured_indices(16, 16, 0.25, 7).tolist()
    assert measured_indices(16, 16, 0.25, 7).tolist() != measured_indices(16, 16, 0.25, 8).tolist()
    with_constant = sum(0 in measured_indices(16, 16, 0.25, seed, "published") for seed in range(200))
    assert 25 <= with_constant <= 75  # a quarter, within four standard deviations
    free = measured_indices(16, 16, 0.25, 3, "random", keep_constant=False)
    assert torch.equal(free, measured_indices(16, 16, 0.25, 3, "published"))


def test_drawn_sets_do_not_change_between_releases() -> None:
    assert measured_indices(4, 4, 0.5, 0).tolist() == [0, 1, 3, 4, 5, 13, 14, 15]
    assert measured_indices(4, 4, 0.5, 0, "published").tolist() == [5, 6, 8, 9, 10, 11, 12, 13]


def test_given_indices_are_used() -> None:
    first = WalshHadamard((1, 8, 8), ratio=0.5, seed=9)
    again = WalshHadamard((1, 8, 8), indices=first.indices)
    assert torch.equal(first.s, again.s)


def test_sequency_takes_the_coarsest_patterns_of_both_axes_first() -> None:
    chosen = measured_indices(8, 8, 6 / 64, order="sequency")
    rows, columns = sequency(8)[chosen // 8], sequency(8)[chosen % 8]
    assert sorted((rows + columns).tolist()) == [0, 1, 1, 2, 2, 2]
    tall = measured_indices(16, 4, 3 / 64, order="sequency")  # relative to the side: a change in 16 rows counts a quarter
    assert sorted(zip(sequency(16)[tall // 4].tolist(), sequency(4)[tall % 4].tolist())) == [(0, 0), (1, 0), (2, 0)]
