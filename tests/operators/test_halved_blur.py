"""Blurs of large frames, which hold half of the frequencies, against the same blurs of small ones."""

from __future__ import annotations

import pytest
import torch

from leader.methods import METHODS
from leader.operators import Blur, WhitenedBlur, gaussian_kernel
from leader.problem import Problem
from leader.sampler import Sampler
from tests.cheap_prior import CheapPrior
from tests.operators.cases import images, symmetric_power

SIZES = [(3, 10, 12), (3, 9, 11), (1, 8, 7)]
KERNEL = torch.tensor([[0.1, 0.2, 0.0], [0.3, 0.5, 0.1], [0.0, 0.2, 0.1], [0.2, 0.0, 0.4]], dtype=torch.float64)
ROUNDING = 3e-6
"""Of single precision, in which the tables of large frames are kept, times what a product with A^+ amplifies at most here."""


def both(shape: tuple[int, int, int], kind: str, monkeypatch: pytest.MonkeyPatch) -> tuple[Blur, Blur]:
    """The blur of a small frame, and the same as if the frame were large."""

    def made() -> Blur:
        if kind == "blur":
            return Blur(shape, gaussian_kernel(0.6, 3))
        return WhitenedBlur(shape, KERNEL, symmetric_power(4, shape[0], *shape[1:]))

    whole = made()
    monkeypatch.setattr("leader.operators.blur.LARGE_FRAME", 10)
    half = made()
    assert half.halved and not whole.halved
    return whole, half


@pytest.mark.parametrize("kind", ["blur", "whitened"])
@pytest.mark.parametrize("shape", SIZES)
def test_it_is_the_same_operator(shape: tuple[int, int, int], kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, half = both(shape, kind, monkeypatch)
    x = images(whole, 2, 1, torch.float32)
    assert half.to(x).shape[-1] == shape[2] // 2 + 1 == half.s.shape[-1] and half.s.dtype == torch.float32
    assert torch.allclose(half.back(half.to(x)), x, atol=1e-6)
    for name in ("A", "AT", "pinv"):
        expected = getattr(whole, name)(x)
        assert torch.allclose(getattr(half, name)(x), expected, atol=ROUNDING * float(expected.abs().max())), name
    damped = whole.regularised_pinv(x, 0.03)
    assert torch.allclose(half.regularised_pinv(x, 0.03), damped, atol=ROUNDING * float(damped.abs().max()))
    mine, other = (one.back(one.data(one.measure(one.to(x)))) for one in (half, whole))
    assert torch.allclose(mine, other, atol=1e-5)
    for bound, same in zip(half.unit_range(), whole.unit_range(), strict=True):
        assert torch.allclose(bound, same, atol=1e-5)
    assert half.norm == pytest.approx(whole.norm, rel=1e-6)
    if isinstance(whole, WhitenedBlur) and isinstance(half, WhitenedBlur):
        assert half.reference == pytest.approx(whole.reference, rel=1e-6)
        assert torch.allclose(half.power, whole.power.float(), rtol=1e-5)
        assert torch.allclose(half.whiten(x), whole.whiten(x), atol=1e-5)


@pytest.mark.parametrize("method", ["ddnm", "ddrm", "projdiff", "diffpir", "ddpg"])
def test_runs_are_the_same(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every host that works in the basis of the blur, after ten steps with fresh noise in each."""
    assert method in METHODS
    whole, half = both((3, 10, 12), "whitened", monkeypatch)
    x = images(whole, 1, 5, torch.float32).sigmoid()
    y = whole.A(x)
    answers = [
        Sampler(CheapPrior(), method, (), 10).run(Problem(y, operator, 0.05, in_range=False)).images
        for operator in (whole, half)
    ]
    assert torch.allclose(answers[0], answers[1], atol=1e-4)
    assert float((answers[0] - (2 * x - 1)).abs().max()) > 1e-2  # noise came in


@pytest.mark.parametrize("strip", [1, 7, 40])
def test_a_table_made_in_strips_is_the_same_to_the_bit(strip: int, monkeypatch: pytest.MonkeyPatch) -> None:
    operator = WhitenedBlur((3, 10, 12), KERNEL, symmetric_power(4, 3, 10, 12))
    problem = Problem(operator.A(images(operator, 1, 5, torch.float32).sigmoid()), operator, 0.05, in_range=False)
    answers = []
    for components in (1 << 20, strip):
        monkeypatch.setattr("leader.methods.shared.STRIP", components)
        answers.append(Sampler(CheapPrior(), "ddrm", (), 5).run(problem).images)
    assert torch.equal(*answers)
