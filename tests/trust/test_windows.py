"""Windows around pixels against their definition, also where they are larger than the picture."""

import pytest
import torch

from leader.trust.windows import average_windows, sum_windows


@pytest.mark.parametrize(("shape", "side"), [((2, 7, 12), 5), ((1, 3, 4, 3), 9), ((6, 5), 3), ((4, 9), 1)])
def test_sums_and_means_are_those_of_the_pixels_inside(shape: tuple[int, ...], side: int) -> None:
    maps = torch.rand(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    before, half = maps.clone(), side // 2
    for row in range(shape[-2]):
        for column in range(shape[-1]):
            top, left = max(0, row - half), max(0, column - half)
            window = maps[..., top : row + half + 1, left : column + half + 1]
            torch.testing.assert_close(sum_windows(maps, side)[..., row, column], window.sum((-2, -1)))
            torch.testing.assert_close(average_windows(maps, side)[..., row, column], window.mean((-2, -1)))
    assert torch.equal(maps, before)
