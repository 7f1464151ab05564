"""Correlations of large pictures in tiles, the cosine transform, and what is kept between steps."""

import math
from collections.abc import Callable, Hashable
from dataclasses import replace

import numpy as np
import pytest
import scipy.fft
import torch
from torch import Tensor

from leader.operators import AveragePoolSR, Blur, Inpainting, LinearOperator, random_mask
from leader.uncertainty import covariance
from leader.uncertainty.covariance import error_covariance, share_out, tile_covariance
from leader.uncertainty.dct import SHORT, dct2, from_waves, idct2, low_dct2, low_idct2, to_waves
from leader.uncertainty.metric import Calibrated
from leader.uncertainty.tables import TableCache
from tests.cheap_prior import CheapPrior
from tests.operators.cases import dense, relative
from tests.uncertainty.spectra import dense_covariance, spectrum_for, toy_spectrum, uneven_spread


def network(channels: int = 3) -> CheapPrior:
    prior = CheapPrior()
    prior.spectrum = spectrum_for(channels)
    return prior


def draw(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("shifted", [False, True])
@pytest.mark.parametrize(("height", "width", "largest"), [(37, 70, 16), (9, 40, 16), (37, 20, 19), (5, 7, 3)])
def test_tiles_cover_the_picture_and_their_roots_are_adjoint(height: int, width: int, largest: int, shifted: bool) -> None:
    spread = uneven_spread((3, height, width))
    S = error_covariance(network(), 400, spread, shifted, largest)
    v = draw(1, 3, height, width)
    white = S.transposed(v)
    w = draw(*white.shape, seed=1)
    assert S.root(w).shape == v.shape
    assert float((S.root(w) * v).sum()) == pytest.approx(float((w * white).sum()), rel=1e-12)
    assert bool((S.root(w) != 0).all()), "no pixel is left out"


def test_a_share_keeps_low_frequencies_as_they_are_and_drops_the_others() -> None:
    """The toy spectrum has less than 0.6 of its variance in half of the frequencies of a side, and more than 0.4."""
    ones = torch.ones(1, 3, 24, 32, dtype=torch.float64)
    whole, part, most = (error_covariance(network(), 400, ones, share=share) for share in (1.0, 0.4, 0.6))
    for row, column, kept in ((2, 3, True), (11, 15, True), (12, 3, False), (2, 16, False)):
        wave = torch.zeros_like(ones)
        wave[:, 1, row, column] = 1.0
        v = idct2(wave)
        assert torch.allclose(part.product(v), whole.product(v) if kept else torch.zeros_like(v)), (row, column)
        assert torch.allclose(most.product(v), whole.product(v))


@pytest.mark.parametrize("shift", [(0, 0), (2, 3)])
def test_a_tiled_covariance_is_that_of_its_tiles(shift: tuple[int, int]) -> None:
    """Blocks of 4 x 6 on 7 x 11 pixels: inside a tile that of the tile, across a seam nothing."""
    size, side, channels = (7, 11), (4, 6), 3
    table = spectrum_for(channels).at(0.3, *side)
    ones = torch.ones(1, channels, *side, dtype=torch.float64)
    one = dense_covariance(table, ones).reshape(channels, *side, channels, *side)
    tile = covariance.stationary(table, ones)
    S = tile_covariance(tile, size, side, shift)
    basis = torch.eye(channels * 77, dtype=torch.float64).reshape(-1, 1, channels, *size)
    found = torch.cat([S.product(row) for row in basis]).reshape(channels, *size, channels, *size)
    expected = torch.zeros_like(found)
    rows, columns = np.meshgrid(*(np.arange(n) + s for n, s in zip(size, shift)), indexing="ij")
    for i in range(size[0]):
        for j in range(size[1]):
            same = (rows // side[0] == (i + shift[0]) // side[0]) & (columns // side[1] == (j + shift[1]) // side[1])
            for k, m in zip(*np.nonzero(same)):
                there = (slice(None), rows[k, m] % side[0], columns[k, m] % side[1])
                here = one[:, (i + shift[0]) % side[0], (j + shift[1]) % side[1]]
                expected[:, i, j, :, k, m] = here[(slice(None), *there)]
    assert torch.allclose(found, expected, atol=1e-12)


def test_seams_lie_elsewhere_where_shifted() -> None:
    spread = torch.ones(1, 3, 32, 48, dtype=torch.float64)
    point = torch.zeros_like(spread)
    point[0, 0, 15, 15] = 1  # beside a seam of tiles of 16
    plain, shifted = (error_covariance(network(), 400, spread, way, 16).product(point)[0, 0] for way in (False, True))
    assert float(plain[16:].abs().max()) == 0 and float(shifted[16, 15].abs()) > 0.05
    assert float(shifted[:8].abs().max()) == 0


OPERATORS: dict[str, LinearOperator] = {
    "blur": Blur((3, 10, 14), torch.ones(3, 5)),
    "average": AveragePoolSR((3, 10, 14), 4),
}


@pytest.mark.parametrize("shifted", [False, True])
@pytest.mark.parametrize("name", OPERATORS)
def test_a_camera_joins_tiles(name: str, shifted: bool) -> None:
    """Blurs and blocks reach across seams: the tiles are one system, and its solution that of dense algebra."""
    op = OPERATORS[name]
    spread = uneven_spread(op.image_shape)
    S = error_covariance(network(), 400, spread, shifted, largest=7)
    rows = torch.eye(420, dtype=torch.float64).reshape(420, 1, *op.image_shape)
    full = torch.cat([S.product(row) for row in rows]).flatten(1)
    A, r = dense(op), op.A(draw(1, *op.image_shape))
    expected = torch.linalg.solve(A @ full @ A.mT + 0.01 * torch.eye(len(A)).double(), A @ full).mT @ r.flatten()
    found = Calibrated(S, op, 0.1, 1.0, 400, 1e-9, 1e-9).expect(r, torch.tensor([0.1], dtype=torch.float64))
    assert relative(found.flatten(), expected) < 1e-6


@pytest.mark.parametrize("share", [0.5, 1.0])
@pytest.mark.parametrize("shape", [(3, 7, SHORT + 2), (3, 6, 9)])
def test_a_mask_in_the_order_of_the_transform_is_the_same_camera(shape: tuple[int, int, int], share: float) -> None:
    """Solves for masks reorder the pixels and take the deviation for a part of the mask: the same steps."""
    op = Inpainting(shape, random_mask(*shape[1:], 0.6, 1))
    S = error_covariance(network(), 400, uneven_spread(shape), share=share)
    r = op.A(draw(1, *shape, seed=2))
    expected = share_out(replace(S, parts=None), op, 0.01, r, 5, 0.0)
    assert relative(share_out(S, op, 0.01, r, 5, 0.0), expected) < 1e-10


def test_a_narrow_correlation_is_that_of_an_earlier_time() -> None:
    spread, x = uneven_spread((3, 6, 9)), draw(1, 3, 6, 9)
    narrow, earlier, now = (
        error_covariance(network(), t, spread, narrow=share).product(x) for t, share in ((600, 0.5), (300, 1.0), (600, 1.0))
    )
    assert torch.equal(narrow, earlier) and relative(narrow, now) > 0.01


def test_no_table_is_larger_than_a_tile(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = TableCache(2**30)
    monkeypatch.setattr(covariance, "_TABLES", kept)
    spread = torch.ones(1, 3, 300, 200)
    error_covariance(network(), 400, spread, largest=64).product(spread)
    assert kept.size == 6 * 60 * 50 * spread.element_size()


@pytest.mark.parametrize("height", [1, 5, 8, SHORT, SHORT + 1, SHORT + 2])
@pytest.mark.parametrize("width", [3, SHORT + 30, SHORT + 31])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_transform_is_its_definition_on_short_and_long_axes(height: int, width: int, dtype: torch.dtype) -> None:
    x = draw(2, 3, height, width).to(dtype)
    expected = scipy.fft.dctn(x.double().numpy(), axes=(-2, -1), norm="ortho")
    limit = 2e-5 if dtype == torch.float32 else 1e-12
    assert dct2(x).dtype == dtype and idct2(x).dtype == dtype
    np.testing.assert_allclose(dct2(x).numpy(), expected, atol=limit)
    back = scipy.fft.idctn(x.double().numpy(), axes=(-2, -1), norm="ortho")
    np.testing.assert_allclose(idct2(x).numpy(), back, atol=limit)
    np.testing.assert_allclose(idct2(dct2(x)).numpy(), x.numpy(), atol=limit)


@pytest.mark.parametrize("shape", [(SHORT + 2, 9), (7, SHORT + 1), (12, SHORT + 4)])
def test_waves_keep_inner_products_and_come_back(shape: tuple[int, int]) -> None:
    x, y = draw(2, 3, *shape), draw(2, 3, *shape) + 1
    there = to_waves(x)
    assert float((there * to_waves(y)).sum()) == pytest.approx(float((x * y).sum()), rel=1e-12)
    assert float(there[..., 0, 1].abs().max()) < 1e-12, "the first column has no partner"
    np.testing.assert_allclose(from_waves(there, shape[1]).numpy(), x.numpy(), atol=1e-12)


@pytest.mark.parametrize("part", [8, 4, 2])
@pytest.mark.parametrize("shape", [(SHORT + 2, SHORT + 5), (9, SHORT + 4), (14, 11)])
def test_low_frequencies_alone_are_those_of_the_transform(part: int, shape: tuple[int, int]) -> None:
    x, (rows, columns) = draw(1, 2, *shape), (-(-n // part) for n in shape)
    low = low_dct2(x, rows, columns)
    np.testing.assert_allclose(low.numpy(), dct2(x)[..., :rows, :columns].numpy(), atol=1e-12)
    whole = torch.zeros_like(x)
    whole[..., :rows, :columns] = low
    np.testing.assert_allclose(low_idct2(low, *shape).numpy(), idct2(whole).numpy(), atol=1e-12)


def test_what_is_kept_is_asked_for_by_all_that_it_depends_on() -> None:
    """The same prior, then another time, size, precision and spectrum; and the first once more."""

    def product(prior: CheapPrior, t: int, height: int, width: int, channels: int = 3) -> Tensor:
        point = torch.zeros(1, channels, height, width, dtype=torch.float64)
        point[0, 0, 1, 2] = 1
        found = error_covariance(prior, t, torch.ones_like(point)).product(point)
        table = covariance.fitted(prior, point)
        assert table is not None
        full = dense_covariance(table.at(float(prior.schedule.abar(t)), height, width), torch.ones_like(point))
        assert relative(found.flatten(), full @ point.flatten()) < 1e-10
        return found

    first = network()
    other = network()
    assert other.spectrum is not None
    other.spectrum = replace(other.spectrum, power=other.spectrum.power.flip(0))
    begun = product(first, 400, 6, 9)
    assert not torch.allclose(product(first, 700, 6, 9), begun)
    assert product(first, 400, 9, 6).shape != begun.shape
    assert not torch.allclose(product(other, 400, 6, 9), begun)
    assert torch.equal(product(first, 400, 6, 9), begun)
    assert product(first, 400, 6, 9, channels=1).shape == (1, 1, 6, 9)
    single = error_covariance(first, 400, torch.ones(1, 3, 6, 9)).product(torch.ones(1, 3, 6, 9))
    assert single.dtype == torch.float32


def test_tables_are_made_once_also_for_grey_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    kept, made = TableCache(2**20), 0
    find = kept.find

    def counted(key: Hashable, make: Callable[[], Tensor]) -> Tensor:
        def count() -> Tensor:
            nonlocal made
            made += 1
            return make()

        return find(key, count)

    monkeypatch.setattr(kept, "find", counted)
    monkeypatch.setattr(covariance, "_TABLES", kept)
    prior = CheapPrior()
    prior.spectrum = toy_spectrum()
    for _ in range(3):
        error_covariance(prior, 300, torch.ones(1, 1, 6, 8))
    assert made == 1
    error_covariance(prior, 300, torch.ones(1, 3, 6, 8))
    assert made == 2


def test_a_cache_keeps_what_was_used_last_within_its_limit() -> None:
    cache, made = TableCache(3 * 80), []

    def find(key: str, length: int = 10) -> Tensor:
        def make() -> Tensor:
            made.append(key)
            return torch.full((length,), float(len(made)), dtype=torch.float64)

        return cache.find(key, make)

    first = find("a")
    find("b"), find("c")
    assert find("a") is first and made == ["a", "b", "c"]
    find("d")
    assert cache.size == 240
    find("b")
    assert made == ["a", "b", "c", "d", "b"], "the one not used for longest had to go"
    assert find("a") is first
    assert len(find("large", 1000)) == 1000 and cache.size <= 240, "what exceeds the limit is answered and not kept"
    assert math.isclose(float(first[0]), 1)


@pytest.mark.parametrize(("share", "largest"), [(1.0, 16), (0.4, 16), (1.0, 9), (0.4, 9)])
def test_draws_have_the_covariance_that_products_have(share: float, largest: int) -> None:
    """Every pixel its variance; every pair its covariance where no tile reaches out of the picture."""
    spread = uneven_spread((1, 11, 13))
    S = error_covariance(network(1), 400, spread, shifted=True, largest=largest, share=share)
    each = torch.eye(143, dtype=torch.float64).reshape(143, 1, 11, 13)
    drawn = torch.cat([S.draw(one[None]).reshape(1, -1) for one in each])
    product = torch.cat([S.product(one[None]).reshape(1, -1) for one in each])
    gap = drawn.mT @ drawn - product
    assert float(gap.diagonal().abs().max()) < 1e-12
    assert float(gap.abs().max()) < 1e-12 or largest == 9
