"""The network of the embedded prior: where it answers, how far it looks, which sizes it takes."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from leader.priors.pyramid_net import (
    Body,
    LevelPlan,
    PyramidConfig,
    PyramidNet,
    enlarge,
    expand,
    guide_levels,
    halve,
    pad_to_multiple,
    plan,
    receptive_radius,
)

SMALL = PyramidConfig(width=8, depth=2, head_width=4)


def small_net(config: PyramidConfig = SMALL) -> PyramidNet:
    torch.manual_seed(0)
    return PyramidNet(config).eval().requires_grad_(False)


def run(net: PyramidNet, image: Tensor, where: LevelPlan) -> tuple[Tensor, Tensor]:
    estimate, variance = net(image, torch.full((len(image),), where.sigma * 2**where.level), where)
    return estimate, variance


@given(sigma=st.floats(1e-3, 100), height=st.integers(1, 600), width=st.integers(1, 600))
def test_plan_is_the_first_level_that_fits(sigma: float, height: int, width: int) -> None:
    where = plan(sigma, height, width, SMALL)
    assert where.sigma * 2**where.level == pytest.approx(sigma)
    assert where.fits == (where.sigma <= SMALL.sigma_max)
    if where.level:
        assert where.sigma * 2 > SMALL.sigma_max, "a finer level would have done"
        assert min(height, width) / 2**where.level >= SMALL.min_level_size
    if where.fits:
        assert where.sigma / 2**where.guides <= SMALL.expert_max
        assert where.guides <= 2


@pytest.mark.parametrize(("level", "guides"), [(0, 0), (0, 1), (0, 2), (1, 2)])
def test_influence_is_zero_beyond_the_receptive_field(level: int, guides: int) -> None:
    """Exactly zero: the same bits come out whatever happens farther away; and nearer pixels do matter."""
    net = small_net()
    where = LevelPlan(level, 0.1, guides, True)
    radius = receptive_radius(SMALL, level, guides)
    size, row, column = 2 * radius + 64, radius + 33, 7
    size = -(-size // where.multiple) * where.multiple
    image = torch.rand(1, 3, size, 64)
    before = torch.cat(run(net, image, where))
    touched = image.clone()
    touched[0, :, row, column] += 1.0
    changed = (torch.cat(run(net, touched, where)) != before).any(1).any(0).any(1).nonzero().flatten()
    farthest = int((changed - row).abs().max())
    assert 0 < farthest <= radius
    # the bound is not idle: the estimate of the deepest guide really comes from that far away
    assert farthest > radius // 2


@given(height=st.integers(1, 40), width=st.integers(1, 40), sigma=st.sampled_from([0.01, 0.2, 0.5]))
@settings(max_examples=25, deadline=None)
def test_any_size(height: int, width: int, sigma: float) -> None:
    net = small_net()
    image = torch.rand(2, 3, height, width)
    estimate, variance = run(net, image, plan(sigma, height, width, SMALL))
    assert estimate.shape == variance.shape == image.shape
    assert bool((variance > 0).all()) and bool(torch.isfinite(estimate).all())


def test_padding_reflects_and_falls_back_to_the_edge() -> None:
    row = torch.arange(3.0).view(1, 1, 1, 3)
    assert pad_to_multiple(row, 4).flatten().tolist() == [0, 1, 2, 1] * 4
    assert pad_to_multiple(row, 8)[0, 0, 0].tolist() == [0, 1, 2, 2, 2, 2, 2, 2]


def test_expanding_nearly_undoes_averaging() -> None:
    image = halve(torch.rand(1, 3, 64, 64, generator=torch.Generator().manual_seed(0)), 1)
    for times in (1, 2):
        plain = (halve(enlarge(image, times), times) - image).square().mean()
        better = (halve(expand(image, times), times) - image).square().mean()
        assert float(better) < 0.2 * float(plain)
    assert torch.equal(expand(image, 0), image)


def test_work_counts_every_level() -> None:
    net = small_net()
    assert net.work(LevelPlan(0, 0.1, 0, True), 64, 64) == 64 * 64
    assert net.work(LevelPlan(0, 0.5, 2, True), 64, 64) == 64 * 64 * (1 + 1 / 4 + 1 / 16)
    assert net.work(LevelPlan(1, 0.5, 2, True), 60, 64) == 64 * 64 * (1 + 1 / 4 + 1 / 16) / 4


def test_coarser_levels_hear_half_of_the_noise() -> None:
    """Averages of four pixels have half the noise; the estimate is moved towards theirs by the share a + b sigma."""
    net = small_net()
    assert net.share is not None
    noisy, sigma = torch.rand(1, 3, 16, 16), torch.tensor([0.3])
    with torch.no_grad():
        fine, _ = net.main(noisy, sigma)
        coarse = net.body(0)(halve(noisy), sigma / 2)[0]
        share = float(net.share[0] + net.share[1] * 0.3)
        gap = torch.nn.functional.interpolate(coarse - halve(fine), scale_factor=2.0, mode="bicubic", align_corners=False)
        assert torch.allclose(net.features(noisy, sigma, 1)[0], fine + share * gap, atol=1e-6)


def test_the_expert_answers_alone_up_to_its_own_limit() -> None:
    config = PyramidConfig()
    assert [guide_levels(share * config.expert_max, config) for share in (0.5, 1.0, 1.001, 2.0, 2.001)] == [0, 0, 1, 1, 2]
    assert guide_levels(1.0, PyramidConfig(cascade=False)) == 0


def test_the_head_is_told_ten_times_the_noise_and_a_quarter_of_the_level() -> None:
    body = Body(4, 1, 2).requires_grad_(False)
    for channel, expected in ((4, 10 * 0.03), (5, 3 / 4)):
        for parameter in (*body.h1.parameters(), *body.h2.parameters()):
            parameter.zero_()
        body.h1.weight[0, channel, 1, 1] = 1
        body.h2.weight[:, 0, 1, 1] = 1
        found = body.log_variance(torch.zeros(1, 4, 3, 5), torch.tensor([0.03]), torch.tensor([3.0]))
        assert found.shape == (1, 3, 6, 10) and torch.allclose(found, torch.tensor(expected))
