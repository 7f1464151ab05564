"""The searches for blocks leave out only what cannot be found: beside the same searches without shortcuts."""

import numpy as np
import pytest

from leader.forensics.jpeg import block_grid, quantised_noise, standard_grid
from leader.forensics.jpeg.blocks import Array, Flags, compute_luma, transform_all_offsets, transform_blocks
from tests.forensics.jpegs import jpeg, photograph, unit


def given_planes() -> list[tuple[Array, Flags]]:
    """(luma, clear) of two photographs and of JPEGs of both, their blocks moved, a part of them black."""
    found = []
    for index in (5, 6):
        plain = photograph(index, side=128)
        for image in (plain, jpeg(plain, 40), jpeg(plain, 85, 0)):
            pixels = unit(image)[3:, 5:]
            pixels[20:50, 30:70] = 0
            found.append((compute_luma(pixels), block_grid._unclipped(pixels)))
    return found


def test_all_offsets_are_transformed_as_one_is() -> None:
    plane, clear = given_planes()[0]
    found = dict(transform_all_offsets(plane, clear))
    assert len(found) == 64
    for offset, blocks in found.items():
        alone = transform_blocks(plane, offset, clear)
        assert np.array_equal(blocks.known, alone.known)
        np.testing.assert_allclose(blocks.coefficients, alone.coefficients, atol=5e-4)


def test_no_score_of_a_table_exceeds_its_bound() -> None:
    reached = 0.0
    for plane, clear in given_planes():
        for blocks in list(dict(standard_grid.take_blocks(plane, clear)).values())[3::8]:
            seen = standard_grid._values(blocks)
            bounds, (quality, score) = standard_grid._bounds(seen), standard_grid._best(seen, -10.0)
            assert score <= bounds[quality - standard_grid.QUALITIES[0]] + 1e-6
            if score >= 0.15:
                assert standard_grid._best(seen, 0.15) == (quality, score)
            reached = max(reached, score)
    assert reached > 0.45, "some of them are JPEGs"


def test_bands_without_hope_have_no_step() -> None:
    rows, columns = np.array(block_grid.SEARCHED).T
    hopeful = with_step = bands = 0
    for plane, clear in given_planes():
        for _, blocks in standard_grid.take_blocks(plane, clear):
            values = blocks.coefficients[..., rows, columns][blocks.known]
            steps = np.array([block_grid._best_step(values[:, band], 40, 24)[0] for band in range(len(rows))])
            hope = block_grid._may_have_steps(values, 40, 24)
            assert hope[steps > 0].all()
            hopeful, with_step, bands = hopeful + int(hope.sum()), with_step + int((steps > 0).sum()), bands + len(rows)
    assert 0 < with_step <= hopeful < bands / 4


@pytest.mark.parametrize("factor", [1.0, 1 + 2.0**-52, 1 - 2.0**-53, 1.37])
def test_tails_are_those_of_the_table(factor: float) -> None:
    places = np.concatenate([quantised_noise._DEVIATES, np.geomspace(1e-4, 1e6, 1001)]) * factor
    expected = np.interp(places, quantised_noise._DEVIATES, quantised_noise._TAILS)
    np.testing.assert_allclose(quantised_noise._tail(places), expected, rtol=1e-12, atol=1e-16)
