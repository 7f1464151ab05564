"""Denoising, inpainting, colourisation, masks, and the shapes operators refuse."""

from __future__ import annotations

import pytest
import torch

from leader.errors import LeaderError
from leader.operators import Colourisation, Denoising, Inpainting, LinearOperator, box_mask, random_mask


def test_inpainting_keeps_the_shape_and_zeroes_the_unknown() -> None:
    mask = random_mask(5, 7, 0.5, 1)
    operator = Inpainting((3, 5, 7), mask)
    x = torch.randn(2, 3, 5, 7)
    assert torch.equal(operator.A(x), x * mask)
    assert torch.equal(operator.pinv(torch.ones_like(x)), mask.expand_as(x))
    assert torch.equal(operator.null(x), x * (1 - mask))


def test_wrong_masks_are_refused() -> None:
    with pytest.raises(LeaderError, match=r"The mask has shape \[4, 4\]; expected \[5, 7\]"):
        Inpainting((3, 5, 7), torch.ones(4, 4))
    with pytest.raises(LeaderError, match="only 0"):
        Inpainting((3, 5, 7), torch.full((5, 7), 0.5))
    with pytest.raises(LeaderError, match="only 0"):
        Inpainting((3, 5, 7), torch.full((5, 7), float("nan")))
    for empty in (torch.zeros(5, 7), torch.stack([torch.ones(1, 5, 7), torch.zeros(1, 5, 7)])):
        with pytest.raises(LeaderError, match="no pixel observed"):
            Inpainting((3, 5, 7), empty)


def test_drawn_masks() -> None:
    mask = random_mask(20, 30, 0.25, 4)
    assert int((mask == 0).sum()) == 150
    assert torch.equal(mask, random_mask(20, 30, 0.25, 4))
    box = box_mask(10, 12, 2, 3, 4, 5)
    assert int((box == 0).sum()) == 20 and float(box[2:6, 3:8].sum()) == 0
    assert int(box_mask(10, 12, 0, 0, 10, 1).sum()) == 110, "up to the borders"
    for place in ((8, 3, 4, 5), (2, 9, 4, 5), (-1, 3, 4, 5), (2, -1, 4, 5), (2, 3, 0, 5), (2, 3, 4, 0)):
        with pytest.raises(LeaderError, match="does not lie inside"):
            box_mask(10, 12, *place)
    assert float(random_mask(4, 5, 0.0).min()) == 1
    for missing in (1.0, -0.1):
        with pytest.raises(LeaderError, match="missing fraction"):
            random_mask(4, 5, missing)


def test_colourisation() -> None:
    operator = Colourisation((3, 4, 5))
    x = torch.randn(2, 3, 4, 5, dtype=torch.float64)
    y = operator.A(x)
    assert y.shape == (2, 1, 4, 5) and torch.allclose(y, x.mean(1, keepdim=True))
    assert torch.allclose(operator.pinv(y), y.expand(2, 3, 4, 5))
    assert operator.norm == pytest.approx(3**-0.5)
    with pytest.raises(LeaderError, match="3 channels"):
        Colourisation((1, 4, 5))


def test_wrong_shapes_are_refused() -> None:
    operator: LinearOperator = Denoising((3, 5, 7))
    with pytest.raises(LeaderError, match=r"built for images \[3, 5, 7\]; found \[3, 7, 5\]"):
        operator.A(torch.zeros(1, 3, 7, 5))
    with pytest.raises(LeaderError, match="yields measurements"):
        operator.check_measurement(torch.zeros(1, 3, 7, 5))
    operator.check_measurement(torch.zeros(2, 3, 5, 7))
    with pytest.raises(LeaderError, match="each positive"):
        Denoising((3, 0, 7))
