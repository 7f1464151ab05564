"""Large pictures in pieces: the answer of the whole, at every noise level, for every remainder; the memory of a piece."""

import pytest
import torch
from torch import Tensor

from leader.priors import load_prior
from leader.priors.mixed import MixedPrior, round_to_half
from leader.priors.pieces import MOST_WHOLE, PiecewisePrior, cut_into_pieces, cut_side
from leader.priors.pyramid import PyramidPrior
from leader.priors.pyramid_net import PyramidConfig, PyramidNet
from tests.cheap_prior import CheapPrior


@pytest.fixture(scope="module")
def pyramid() -> PyramidPrior:
    """A small network with the ranges of the real one."""
    torch.manual_seed(0)
    whole = load_prior("embedded")
    assert isinstance(whole, PyramidPrior)
    config = PyramidConfig(width=6, depth=3, head_width=4)
    return PyramidPrior(PyramidNet(config).eval().requires_grad_(False), whole.coarse, whole.schedule, whole.scale)


def state(channels: int, height: int, width: int) -> Tensor:
    return torch.randn(1, channels, height, width, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("length", [1, 16, 100, 101, 640, 1023])
@pytest.mark.parametrize(("longest", "margin", "multiple"), [(64, 16, 8), (64, 24, 8), (200, 32, 16), (40, 32, 16)])
def test_every_pixel_is_kept_once(length: int, longest: int, margin: int, multiple: int) -> None:
    found = cut_side(length, longest, margin, multiple)
    assert [pixel for cut in found for pixel in range(cut.first, cut.last)] == list(range(length))
    for cut in found:
        assert cut.begin % multiple == 0 and cut.begin <= cut.first < cut.last <= cut.end <= length
        assert cut.first - cut.begin == min(margin, cut.first) and cut.end - cut.last == min(margin, length - cut.last)
        assert cut.end - cut.begin <= max(longest, longest // 2 + 2 * margin) + multiple


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(("height", "width"), [(150, 203), (97, 260), (300, 64)])
@pytest.mark.parametrize("t", [0, 20, 100, 250, 420, 600, 999])
def test_pieces_say_what_the_whole_says(pyramid: PyramidPrior, t: int, height: int, width: int, channels: int) -> None:
    """To 2e-5 everywhere, seams and borders included: convolutions may add in another order."""
    x, when = state(channels, height, width), torch.tensor([t])
    cut = PiecewisePrior(pyramid, pyramid, piece=90 * 90)
    whole, pieces = pyramid.predict(x, when), cut.predict(x, when)
    for name in ("x0", "eps", "variance"):
        torch.testing.assert_close(getattr(pieces, name), getattr(whole, name), rtol=2e-5, atol=2e-5)


def test_small_pictures_and_gradients_stay_whole(pyramid: PyramidPrior) -> None:
    cut = PiecewisePrior(pyramid, pyramid, piece=64 * 64)
    small = state(3, 64, 64)
    when = torch.tensor([20])
    assert torch.equal(cut.predict(small, when).x0, pyramid.predict(small, when).x0)
    large = state(3, 120, 90).requires_grad_(True)
    (slope,) = torch.autograd.grad(cut.predict(large, when).x0.square().sum(), large)
    (expected,) = torch.autograd.grad(pyramid.predict(large, when).x0.square().sum(), large)
    assert torch.equal(slope, expected)
    times = torch.tensor([20, 300])
    both = state(3, 120, 90).expand(2, -1, -1, -1).contiguous()
    torch.testing.assert_close(cut.predict(both, times).x0, pyramid.predict(both, times).x0, rtol=2e-5, atol=2e-5)


def test_which_priors_are_cut(pyramid: PyramidPrior) -> None:
    side = 2000
    assert side * side == MOST_WHOLE
    assert cut_into_pieces(pyramid, side, side) is pyramid
    large = cut_into_pieces(pyramid, side, side + 1)
    assert isinstance(large, PiecewisePrior) and large.base is pyramid and large.name == pyramid.name
    assert sum(p.numel() for p in large.parameters()) == sum(p.numel() for p in pyramid.parameters())
    half = round_to_half(pyramid, torch.bfloat16)
    for rounded in (half, MixedPrior(pyramid, [(50, "half", half)])):
        assert isinstance(cut_into_pieces(rounded, side, side + 1), PiecewisePrior)
    other = CheapPrior()
    assert cut_into_pieces(other, side, side + 1) is other
