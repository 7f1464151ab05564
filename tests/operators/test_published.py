"""Operators as others released them, against constructions written from the descriptions, in dense NumPy."""

import numpy as np
import pytest
import torch

from leader.operators import (
    Colourisation,
    ReflectedBlur,
    ReleasedBlur,
    ReleasedColourisation,
    SeparableBlur,
    build_task,
    paper_gaussian_taps,
)
from leader.operators.published import released_blur_matrix
from tests.operators.cases import dense, images, measurements, relative


def test_a_tap_is_dropped() -> None:
    """Row i of the released loop: columns i - 2 .. i + 1 with taps 0 .. 3, nothing outside."""
    taps = [0.1, 0.2, 0.3, 0.25, 0.15]
    matrix = released_blur_matrix(7, taps).numpy()
    for i in range(7):
        row = np.zeros(7)
        for j in range(i - 2, i + 2):
            if 0 <= j < 7:
                row[j] = taps[j - i + 2]
        assert np.array_equal(matrix[i], row)
    whole = released_blur_matrix(64, paper_gaussian_taps().tolist())
    assert float(whole[32].sum()) == pytest.approx(0.802, abs=1e-3)
    assert released_blur_matrix(7, taps, every_tap=True).numpy()[3].tolist() == [0, *taps, 0], "DDPG's"


@pytest.mark.parametrize("form", ["published", "published-ddpg"])
def test_singular_values_at_the_wrong_places(form: str) -> None:
    """Entry (n, c) of the sorted components, channels innermost, meets value 3 n + c of three copies one after the other."""
    shape, taps = (3, 6, 5), paper_gaussian_taps()
    operator = build_task("deblur-gaussian", shape, form=form)
    matrices = [released_blur_matrix(n, taps.tolist(), form == "published-ddpg").numpy() for n in shape[1:]]
    down, across = (np.linalg.svd(matrix) for matrix in matrices)
    cut = [np.where(one[1] < 3e-2, 0, one[1]) for one in (down, across)]
    components = [(cut[0][i] * cut[1][j], i, j) for i in range(6) for j in range(5)]
    components.sort(key=lambda item: -item[0])  # stable, as ours is
    copies = [item[0] for item in components] * 3
    expected = np.zeros((90, 90))
    for n, (_, i, j) in enumerate(components):
        left, right = np.outer(down[0][:, i], across[0][:, j]), np.outer(down[2][i], across[2][j])
        for c in range(3):
            u, v = (np.zeros(shape) for _ in range(2))
            u[c], v[c] = left, right
            expected += copies[3 * n + c] * np.outer(u.ravel(), v.ravel())
    found = dense(operator).numpy()
    assert np.abs(found - expected).max() < 1e-10
    pinv = np.stack([operator.pinv(torch.from_numpy(row).reshape(1, *shape)).numpy().ravel() for row in np.eye(90)], 1)
    assert np.abs(pinv - np.linalg.pinv(expected, rcond=1e-9)).max() < 1e-8
    intended = dense(SeparableBlur(shape, taps)).numpy()
    assert np.linalg.norm(found - intended) > 0.3 * np.linalg.norm(intended), "it is no blur"


@pytest.mark.parametrize(("shape", "sides"), [((3, 9, 12), (5, 7)), ((1, 8, 7), (4, 1)), ((1, 6, 6), (9, 11))])
def test_reflected_blur_is_a_correlation_of_the_mirrored_image(shape: tuple[int, int, int], sides: tuple[int, int]) -> None:
    rng = np.random.default_rng(1)
    kernel = rng.random(sides)
    operator = ReflectedBlur(shape, torch.from_numpy(kernel))
    x = rng.standard_normal((2, *shape))
    pads = [((side - 1) // 2, side // 2) for side in sides]
    wide = np.pad(x, ((0, 0), (0, 0), *pads), mode="reflect")
    expected = np.zeros_like(x)
    for a in range(sides[0]):
        for b in range(sides[1]):
            expected += kernel[a, b] / kernel.sum() * wide[..., a : a + shape[1], b : b + shape[2]]
    assert np.abs(operator.A(torch.from_numpy(x)).numpy() - expected).max() < 1e-12
    y = torch.from_numpy(rng.standard_normal((2, *shape)))
    left, right = (operator.A(torch.from_numpy(x)) * y).sum(), (torch.from_numpy(x) * operator.AT(y)).sum()
    assert float(left) == pytest.approx(float(right), rel=1e-12)


def test_the_released_grey_row() -> None:
    operator = ReleasedColourisation((3, 4, 5))
    x, y = images(operator, dtype=torch.float64), measurements(operator, dtype=torch.float64)
    row = torch.tensor([0.3333, 0.3334, 0.3333], dtype=torch.float64)
    assert torch.allclose(operator.A(x), (x * row.reshape(1, 3, 1, 1)).sum(1, keepdim=True), atol=1e-14)
    assert torch.allclose(operator.AT(y), row.reshape(1, 3, 1, 1) * y, atol=1e-14)
    assert torch.allclose(operator.pinv(y), row.reshape(1, 3, 1, 1) * y / row.square().sum(), atol=1e-14)
    assert 0 < relative(operator.A(x), Colourisation((3, 4, 5)).A(x)) < 1e-3
    assert torch.allclose(operator.back(operator.to(x)), x)


def test_the_published_cut_is_not_relative_to_the_largest_value() -> None:
    """Two taps of 0.02: singular values from 0.04 down, of which those below 0.03 are left out along rows and columns."""
    values = torch.linalg.svdvals(released_blur_matrix(8, [0.02, 0.02, 0.02]))
    kept = values[values >= 0.03]
    assert 0 < len(kept) < 8 and float(values[0]) == pytest.approx(0.04, rel=0.02)
    operator = ReleasedBlur((1, 8, 8), [0.02, 0.02, 0.02])
    found = operator.spectrum.flatten()
    assert torch.allclose(found[found > 0].sort().values, torch.outer(kept, kept).flatten().sort().values)
