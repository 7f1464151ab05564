"""operator(x), operator + operator, operator @ operator, and A^T by autograd."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from leader import Problem, Sampler
from leader.errors import LeaderError
from leader.operators import (
    AveragePoolSR,
    Blur,
    Colourisation,
    FromFunctions,
    Inpainting,
    LinearOperator,
    box_mask,
    gaussian_kernel,
)
from tests.cheap_prior import CheapPrior, photograph

SHAPE = (3, 12, 16)
X = photograph(*SHAPE[1:])[None]


class Shear(LinearOperator):
    """Only A, and not its own adjoint."""

    def A(self, x: Tensor) -> Tensor:
        return 0.5 * x[..., 1:] + 2 * x[..., :-1].roll(1, -2)


def mismatch(operator: LinearOperator) -> float:
    x = torch.randn(2, *operator.image_shape, dtype=torch.float64)
    image = operator.A(x)
    y = torch.randn_like(image)
    return float((image * y).sum() - (x * operator.AT(y)).sum())


def test_at_by_autograd_is_the_adjoint() -> None:
    operator = Shear(SHAPE)
    assert abs(mismatch(operator)) < 1e-9 and abs(mismatch(FromFunctions(SHAPE, lambda x: x.flip(-1)[:, :1] * 3))) < 1e-9
    with torch.no_grad():
        assert abs(mismatch(operator)) < 1e-9, "inside a run too"
    y = torch.randn(1, 3, 12, 15, requires_grad=True)
    (back,) = torch.autograd.grad((operator.AT(y) ** 2).sum(), y)
    assert torch.allclose(back, 2 * operator.A(operator.AT(y.detach())), atol=1e-4), "methods differentiate through it"
    assert Sampler(CheapPrior(), "ddnm", (), 4).run(Problem.simulate(X, operator, 0.05)).images.shape == X.shape
    with pytest.raises(LeaderError, match="not the adjoint"):
        FromFunctions(SHAPE, lambda x: x**3 + 1)


def test_operators_compose_and_stack() -> None:
    blur, small = Blur(SHAPE, gaussian_kernel(1.0)), AveragePoolSR(SHAPE, 2)
    assert torch.equal((small @ blur)(X), small.A(blur.A(X))) and not torch.allclose((small @ blur)(X), small(X))
    known = Inpainting(SHAPE, box_mask(12, 16, 2, 3, 4, 5))
    both = known + small
    first, second = both.split(both(X))  # type: ignore[attr-defined]
    assert torch.equal(first, known(X)) and torch.equal(second, small(X)) and abs(mismatch(both)) < 1e-9
    problem = Problem.simulate(X, both, 0.02)
    holes = known.reached(first).expand_as(first).flatten(1).logical_not()
    assert float(problem.y[:, : first[0].numel()][holes].abs().max()) == 0, "what no pixel reaches says nothing"
    with pytest.raises(LeaderError, match="values from"):
        Problem(both(X) * 200, both)
    assert torch.allclose(both.pinv(both(X)) - X, torch.zeros(()), atol=0.3) and repr(both) == "Stacked('stacked', [3, 12, 16])"
    masks = torch.stack([box_mask(12, 16, 2, 3, 4, width) for width in (5, 7)])[:, None]
    for each in (Inpainting(SHAPE, masks) + small, small + Inpainting(SHAPE, masks)):
        pair = torch.cat([X, 1 - X])
        assert torch.equal(each.select(torch.tensor([1]))(pair[1:]), each(pair)[1:])
    assert both.select(torch.tensor([0])) is both
    with pytest.raises(LeaderError, match="Operators to add"):
        known + Colourisation((3, 8, 8))
    with pytest.raises(LeaderError, match="built for images"):
        small(X[..., :8])
