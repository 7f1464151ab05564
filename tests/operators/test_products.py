"""Products by oneDNN are those of torch, in every precision and order of the axes, and leave derivatives to torch."""

import pytest
import torch

from leader.operators import products
from leader.operators.products import multiply_last, multiply_last_to_front


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(30,), (4, 30), (2, 3, 40, 30)])
def test_they_are_those_of_torch(shape: tuple[int, ...], dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = torch.Generator().manual_seed(0)
    x, matrix = (torch.randn(size, generator=draw, dtype=dtype) for size in (shape, (7, 30)))
    expected = torch.einsum("...n,mn->...m", x, matrix)
    for which in (products._ONEDNN, None):
        monkeypatch.setattr(products, "_ONEDNN", which)
        torch.testing.assert_close(multiply_last(x, matrix), expected)
        torch.testing.assert_close(multiply_last_to_front(x, matrix), expected.movedim(-1, 0))
        if len(shape) > 1:
            turned = torch.einsum("n...,mn->...m", x.transpose(0, -1).contiguous(), matrix)
            torch.testing.assert_close(multiply_last(x.transpose(0, -1).contiguous().movedim(0, -1), matrix), turned)


def test_derivatives_pass_through() -> None:
    x, matrix = torch.randn(5, 4, requires_grad=True), torch.randn(3, 4)
    (slope,) = torch.autograd.grad(multiply_last_to_front(x, matrix)[1].sum(), x)
    torch.testing.assert_close(slope, matrix[1].expand(5, 4))
    with torch.no_grad():
        along = torch.func.jvp(lambda v: multiply_last(v, matrix), (x.detach(),), (torch.ones(5, 4),))[1]
    torch.testing.assert_close(along, matrix.sum(1).expand(5, 3))
