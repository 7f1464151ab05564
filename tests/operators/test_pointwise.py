"""Inpainting, colourisation and masks."""

import pytest
import torch

from leader.operators import Colourisation, Inpainting, box_mask, random_mask


def test_inpainting_keeps_the_shape_and_zeroes_the_unknown() -> None:
    mask = random_mask(5, 7, 0.5, 1)
    operator = Inpainting((3, 5, 7), mask)
    x = torch.randn(2, 3, 5, 7)
    assert torch.equal(operator.A(x), x * mask)
    assert torch.equal(operator.pinv(torch.ones_like(x)), mask.expand_as(x))
    assert torch.equal(operator.null(x), x * (1 - mask))


def test_drawn_masks() -> None:
    mask = random_mask(20, 30, 0.25, 4)
    assert int((mask == 0).sum()) == 150
    assert torch.equal(mask, random_mask(20, 30, 0.25, 4))
    box = box_mask(10, 12, 2, 3, 4, 5)
    assert int((box == 0).sum()) == 20 and float(box[2:6, 3:8].sum()) == 0
    assert int(box_mask(10, 12, 0, 0, 10, 1).sum()) == 110, "up to the borders"
    assert float(random_mask(4, 5, 0.0).min()) == 1


def test_colourisation() -> None:
    operator = Colourisation((3, 4, 5))
    x = torch.randn(2, 3, 4, 5, dtype=torch.float64)
    y = operator.A(x)
    assert y.shape == (2, 1, 4, 5) and torch.allclose(y, x.mean(1, keepdim=True))
    assert torch.allclose(operator.pinv(y), y.expand(2, 3, 4, 5))
    assert operator.norm == pytest.approx(3**-0.5)
