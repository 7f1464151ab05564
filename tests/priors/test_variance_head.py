"""The variance head: what it is told, what it says, and where it ends."""

import math

import pytest
import torch
from torch import Tensor

from leader.priors.variance_head import LARGEST, HeadShape, VarianceHead, node_weights, noise_share


def test_what_a_variance_head_sees_and_says_is_bounded() -> None:
    head = VarianceHead(HeadShape(1, 4, 1))
    first, last = head.convs[0], head.out.bias
    assert isinstance(first, torch.nn.Conv2d) and last is not None
    x0, abar = torch.zeros(1, 1, 5, 5), torch.tensor([0.5])
    with torch.no_grad():
        for item in head.parameters():
            item.fill_(0)
        first.weight[:, 2, 1, 1] = 1.0  # of x_t, x0, eps and the two constants: eps alone
        head.out.weight.fill_(1e-3)
        at_bound, beyond, inside = (
            head.log_factor(torch.full((1, 1, 5, 5), value * math.sqrt(0.5)), x0, abar) for value in (5.0, 50.0, 4.0)
        )
        assert torch.allclose(at_bound, beyond) and not torch.allclose(at_bound, inside)
        last.fill_(1e3)
        assert float(head.log_factor(x0, x0, abar).max()) == pytest.approx(LARGEST) and LARGEST == 6.0
        last.fill_(3.0)
        head.out.weight.fill_(0.0)
        assert float(head.log_factor(x0, x0, abar).max()) == pytest.approx(6 * math.tanh(0.5))


def test_a_variance_head_stays_constant_beyond_its_noise_levels() -> None:
    """Nodes lie at log s^2 of -10, -8, ... 20: half of each of two at -9, and the last one beyond either end."""
    levels = torch.tensor([-30.0, -10.0, -9.0, 20.0, 25.0], dtype=torch.float64)
    weights = node_weights(1 / (1 + levels.exp()))
    count = weights.shape[1]
    assert count == 16
    for row, expected in enumerate(({0: 1.0}, {0: 1.0}, {0: 0.5, 1: 0.5}, {count - 1: 1.0}, {count - 1: 1.0})):
        wanted = torch.zeros(count, dtype=torch.float64)
        for place, value in expected.items():
            wanted[place] = value
        torch.testing.assert_close(weights[row], wanted, atol=1e-3, rtol=0)


def test_what_a_variance_head_is_told() -> None:
    head = VarianceHead(HeadShape(channels=1, width=2, depth=1))
    told: list[Tensor] = []
    head.convs[0].register_forward_pre_hook(lambda _, inputs: told.append(inputs[0]))
    x_t, x0 = torch.full((1, 1, 2, 2), 0.5), torch.full((1, 1, 2, 2), 3.0)
    head(x_t, x0, torch.tensor([0.2]))
    noise = (0.5 - math.sqrt(0.2) * 3.0) / math.sqrt(0.8)
    assert told[0][0, :, 1, 1].tolist() == pytest.approx([0.5, 1.5, noise, 0.25 * math.log(4.0), 0.2], rel=1e-5)
    head(x_t, x0, torch.tensor([0.9999]))
    assert float(told[1][0, 2, 0, 0]) == -5.0, "the noise it implies is bounded"


def test_the_usual_error_of_a_clean_image_is_a_millionth() -> None:
    assert noise_share(torch.tensor([0.3, 0.99999, 1.0])).flatten().tolist() == pytest.approx([0.7, 1e-5, 1e-6], rel=2e-2)
