"""Inpainting with coloured noise against dense matrices, and what it is worth beside white noise of the same level."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from leader.errors import LeaderError
from leader.operators import ColouredInpainting, Inpainting
from leader.operators import coloured_inpainting as room
from tests.operators.cases import images, symmetric_power
from tests.operators.test_whitened import covariance_root

SHAPE = (3, 5, 6)
MASK = (torch.arange(30).reshape(5, 6) % 7 > 1).float()


@pytest.mark.parametrize("axes", [1, 3])
@pytest.mark.parametrize("eta", [0.02, 0.5])
def test_the_inverse_is_that_of_the_covariance_between_known_pixels(
    axes: int, eta: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "TOLERANCE", 1e-12)
    monkeypatch.setattr(room, "ITERATIONS", 300)
    power = symmetric_power(3, axes, *SHAPE[1:])
    operator = ColouredInpainting(SHAPE, MASK, power)
    assert operator.reference == pytest.approx(float(power.mean().sqrt()))
    r = images(operator, 1, 2, torch.float64)
    known = np.tile(MASK.numpy().reshape(-1) > 0, 3)
    covariance = np.eye(len(known)) + eta * covariance_root(power, 1.0) / operator.reference**2
    expected = np.zeros(len(known))
    expected[known] = np.linalg.solve(covariance[np.ix_(known, known)], r.numpy().reshape(-1)[known])
    assert np.abs(operator.regularised_pinv(r, eta).numpy().reshape(-1) - expected).max() <= 1e-10
    assert operator.residual < 1e-11
    each = operator.regularised_pinv(r.expand(2, -1, -1, -1), torch.tensor([eta, 2 * eta], dtype=torch.float64))
    assert torch.allclose(each[:1], operator.regularised_pinv(r, eta)) and not torch.allclose(each[0], each[1])


def test_white_noise_is_inpainting_as_ever() -> None:
    operator = ColouredInpainting(SHAPE, MASK, torch.full((1, 5, 6), 0.01, dtype=torch.float64))
    plain = Inpainting(SHAPE, MASK)
    x = images(operator, 2, 2, torch.float32)
    assert operator.reference == pytest.approx(0.1) and operator.select(torch.tensor([0])) is operator
    for name in ("A", "AT", "pinv", "whiten"):
        assert torch.equal(getattr(operator, name)(x), getattr(plain, "A" if name != "whiten" else "to")(x))
    assert torch.allclose(operator.regularised_pinv(x, 0.3), plain.regularised_pinv(x, 0.3), atol=1e-6)


def test_one_mask_for_all() -> None:
    with pytest.raises(LeaderError, match="one mask for all images; found 2"):
        ColouredInpainting(SHAPE, MASK.expand(2, 1, 5, 6), symmetric_power(3, 1, 5, 6))
