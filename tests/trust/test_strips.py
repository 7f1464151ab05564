"""Large pictures in strips of rows: every number of the verdict is that of the whole picture."""

import pytest
import torch

from leader.trust import plausibility, residual
from leader.trust.strips import strips
from tests.cheap_prior import photograph


@pytest.mark.parametrize("height", [1, 7, 8, 9, 40])
@pytest.mark.parametrize("more", [0, 1, 3])
def test_strips_cover_every_row(height: int, more: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(strips(height, 10, more)) == [slice(0, height)]
    monkeypatch.setattr("leader.trust.strips.LARGE", 10 * height - 1)
    monkeypatch.setattr("leader.trust.strips.STRIP", 45)
    found = list(strips(height, 10, more))
    assert [item.start for item in found] == list(range(0, height, 4))
    assert [item.stop for item in found] == [min(height, first + 4 + more) for first in range(0, height, 4)]


@pytest.mark.parametrize("rows", [1, 3, 5, 8])
@pytest.mark.parametrize("height", [32, 33, 41])
def test_the_numbers_of_a_picture_do_not_depend_on_strips(rows: int, height: int, monkeypatch: pytest.MonkeyPatch) -> None:
    width = 37
    draw = torch.Generator().manual_seed(height)
    picture = (photograph(height, width) + 0.1 * torch.randn(3, height, width, generator=draw)).clamp(0, 1)
    picture[..., ::8] += 0.2
    reached = torch.rand(3, height, width, generator=draw) > 0.2
    known = reached[0]

    def numbers() -> list[float]:
        correlation = residual.correlate_neighbours(picture - 0.5, reached)
        assert correlation is not None
        return [
            residual.measure_level(picture[None], reached[None]),
            correlation,
            residual.measure_blockiness(picture),
            plausibility.measure_detail(picture),
            plausibility.measure_detail(picture, known),
        ]

    whole = numbers()
    turned = residual.correlate_neighbours((picture - 0.5).mT, reached.mT)
    assert turned == pytest.approx(whole[1]), "of every row, in tall pictures as in wide ones"
    monkeypatch.setattr("leader.trust.strips.LARGE", 1)
    monkeypatch.setattr("leader.trust.strips.STRIP", rows * width)
    assert numbers() == pytest.approx(whole, rel=1e-12)
