"""The numbers behind a verdict, on pictures whose numbers are known."""

import io
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.nn import functional as F

from leader.operators import AveragePoolSR, Denoising, Inpainting
from leader.problem import Problem
from leader.trust import RunFacts, limits, measure, plausibility, residual
from leader.trust.evidence import CHANNELS
from leader.trust.referee import Referee
from tests.cheap_prior import CheapPrior, photograph


def white(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def everywhere(x: torch.Tensor) -> torch.Tensor:
    return torch.ones_like(x, dtype=torch.bool)


def checkerboard(side: int = 16) -> torch.Tensor:
    rows = torch.arange(side)
    return (1.0 - 2.0 * ((rows[:, None] + rows) % 2))[None]


def test_level_counts_what_is_reached_alone() -> None:
    left = torch.tensor([[3.0, 4.0, 100.0]])
    assert residual.measure_level(left, torch.tensor([[True, True, False]])) == pytest.approx(math.sqrt(12.5))
    assert residual.measure_level(left, torch.zeros(1, 3, dtype=torch.bool)) == 0


def test_correlation_of_white_smooth_and_alternating_residuals() -> None:
    noise = white(3, 96, 96)
    assert abs(residual.correlate_neighbours(noise, everywhere(noise)) or 1) < 0.02
    smooth = F.avg_pool2d(noise[None], 3, stride=1)[0]  # neighbours share 6 of 9 draws
    assert residual.correlate_neighbours(smooth, everywhere(smooth)) == pytest.approx(2 / 3, abs=0.03)
    board = checkerboard()
    assert residual.correlate_neighbours(board, everywhere(board)) == pytest.approx(-1)


def test_correlation_looks_at_neighbours_that_are_both_known() -> None:
    noise = white(1, 64, 64)
    known = (torch.arange(64) % 4 < 2)[None, None, :].expand(1, 64, 64)
    twins = noise.clone()
    twins[..., 1::4] = twins[..., 0::4]  # known columns come in equal pairs; rows are independent
    twins[..., 2::4] = twins[..., 3::4] = 50.0
    pairs_across, pairs_down = 64 * 16, 63 * 32
    expected = pairs_across / (pairs_across + pairs_down)
    assert residual.correlate_neighbours(twins, known) == pytest.approx(expected, abs=0.05)
    lonely = torch.zeros(1, 64, 64, dtype=torch.bool)
    lonely[:, ::2, ::2] = True
    assert residual.correlate_neighbours(noise, lonely) is None
    assert residual.correlate_neighbours(0 * noise, everywhere(noise)) is None


@pytest.mark.parametrize("shift", [0, 3])
def test_blocks_are_seen_wherever_they_begin(shift: int) -> None:
    x = photograph(72, 72) + 0.03 * white(3, 72, 72)
    image = Image.fromarray((255 * x.clamp(0, 1)).permute(1, 2, 0).numpy().astype(np.uint8))
    buffer = io.BytesIO()
    image.save(buffer, format="JPEG", quality=25)
    blocky = torch.from_numpy(np.asarray(Image.open(buffer)).transpose(2, 0, 1) / 255)
    part = (slice(None), slice(shift, shift + 64), slice(shift, shift + 64))
    assert residual.measure_blockiness(x[part]) < 1.2
    assert residual.measure_blockiness(blocky[part]) > 1.4
    assert residual.measure_blockiness(torch.zeros(3, 64, 64)) == 1 and residual.measure_blockiness(blocky[:, :16, :16]) == 1


def test_invented_is_what_lies_far_from_everything_known() -> None:
    known = torch.zeros(3, 20, 30, dtype=torch.bool)
    known[:, 10, 10] = True
    assert residual.measure_far_share(known) == pytest.approx(1 - 49 / 600)
    scattered = torch.rand(1, 200, 200, generator=torch.Generator().manual_seed(1)) > 0.92
    assert residual.measure_far_share(scattered) < 0.05
    assert residual.measure_far_share(~known) == 0
    far = residual.find_far_pixels(known, 2)
    assert not far[8:13, 8:13].any() and int((~far).sum()) == 25, "rows and columns alike"


def test_detail_of_a_ramp_and_of_known_pixels() -> None:
    ramp = (0.01 * torch.arange(32.0))[None, None, :].expand(3, 32, 32)
    assert plausibility.measure_detail(ramp) == pytest.approx(0.01 / math.sqrt(2))
    spoilt = ramp.clone()
    spoilt[:, 5, 5] = 9.0
    known = torch.ones(32, 32, dtype=torch.bool)
    known[5, 5] = False
    assert plausibility.measure_detail(spoilt, known) == pytest.approx(0.01 / math.sqrt(2), rel=1e-3)
    assert plausibility.measure_detail(spoilt, torch.zeros(32, 32, dtype=torch.bool)) == 0


def test_the_look_is_one_pass_at_the_clock_with_known_answers() -> None:
    prior = CheapPrior()
    x, noise = 2 * photograph(16, 16)[None] - 1, white(1, 3, 16, 16)
    change = plausibility.find_change(prior, x, noise)
    abar = float(prior.schedule.abar(limits.CLOCK))
    state = math.sqrt(abar) * x + math.sqrt(1 - abar) * noise
    gain = 0.25 * math.sqrt(abar) / (0.25 * abar + 1 - abar)
    torch.testing.assert_close(change, (x - gain * state) / 2, atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize(("level", "looks"), [(0.99, [(4, 3, 66, 72)]), (1.01, [(4, 3, 66, 72), (1, 3, 264, 288)])])
def test_a_quarter_of_a_picture_is_enough_unless_it_is_suspect(
    level: float, looks: list[tuple[int, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    x, seen = 2 * photograph(264, 288)[None] - 1, list[tuple[int, ...]]()
    quarter = plausibility.cut_quarter(x)
    assert torch.equal(quarter[1], x[0, :, 33:99, 180:252]) and torch.equal(quarter[2], x[0, :, 165:231, 36:108])

    def look(prior: object, part: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
        seen.append(tuple(part.shape))
        return torch.full_like(noise, level * limits.SUSPECT)

    monkeypatch.setattr(plausibility, "find_change", look)
    operator = AveragePoolSR((3, 264, 288), 4)
    facts = RunFacts(Problem.internal(operator.A(x), operator, 0.04), x, CheapPrior(), photograph(66, 72), look=True)
    assert measure(facts)["change"] == pytest.approx(level * limits.SUSPECT) and seen == looks
    seen.clear()
    operator, low = AveragePoolSR((3, 200, 288), 4), x[..., :200, :]
    measure(RunFacts(Problem.internal(operator.A(low), operator, 0.04), low, CheapPrior(), photograph(50, 72), look=True))
    assert seen == [(1, 3, 200, 288)], "quarters of 50 pixels a side are looked at as a whole"


def test_what_a_camera_takes_is_judged_by_its_picture_enlarged_smoothly() -> None:
    operator = AveragePoolSR((1, 16, 24), 2)
    rows, columns = (torch.fft.fftfreq(side, dtype=torch.float64) for side in (16, 24))
    radius = (rows[:, None] ** 2 + columns**2).sqrt()
    radius[0, 0] = torch.inf
    noise = torch.randn(16, 24, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    scene = torch.fft.ifft2(torch.fft.fft2(noise) / radius).real
    scene = (scene / scene.std() / 4).float()[None, None]
    shown = F.interpolate(operator.A(scene), size=(16, 24), mode="bicubic")
    expected = plausibility.measure_detail(scene[0]) / plausibility.measure_detail(shown[0])
    assert plausibility.find_removed_detail(operator, (1, 16, 24)) == pytest.approx(expected, rel=1e-5)


def test_rounding_to_8_bits_has_the_standard_deviation_that_is_held_against() -> None:
    values = np.random.default_rng(0).uniform(0, 1, 400_000)
    assert pytest.approx(np.std(values - np.round(255 * values) / 255), rel=0.01) == residual.ROUNDING


def test_an_enlarged_picture_stays_in_the_range_of_pictures() -> None:
    step = torch.zeros(1, 8, 8)
    step[..., 4:] = 1
    larger = plausibility.enlarge_bicubically(step, (32, 32))
    assert larger.shape == (1, 32, 32) and float(larger.min()) == 0 and float(larger.max()) == 1
    assert plausibility.enlarge_bicubically(step, (8, 8)) is step


def test_what_leaves_the_range_is_excess_and_is_not_shown() -> None:
    """An answer of 1.4 everywhere in [-1, 1] units: 0.2 of the range too much, shown as white, half a range from grey."""
    problem = Problem.internal(torch.zeros(1, 1, 16, 16), Denoising((1, 16, 16)), 0.2)
    numbers = measure(RunFacts(problem, torch.full((1, 1, 16, 16), 1.4), CheapPrior(), torch.full((1, 16, 16), 0.5)))
    assert numbers["excess"] == pytest.approx(0.2) and numbers["residual"] == pytest.approx(0.5)


@pytest.mark.parametrize("holes", [False, True])
def test_blocks_are_looked_for_where_nothing_is_missing(holes: bool) -> None:
    blocks = torch.rand(1, 8, 8, generator=torch.Generator().manual_seed(0)).repeat_interleave(8, 1).repeat_interleave(8, 2)
    mask = torch.ones(64, 64)
    mask[10:30, 20:40] = float(not holes)
    operator = Inpainting((1, 64, 64), mask)
    problem = Problem.internal((2 * blocks - 1)[None] * mask, operator, 0.1)
    numbers = measure(RunFacts(problem, torch.zeros(1, 1, 64, 64), CheapPrior(), blocks))
    assert numbers["blockiness"] is not None and (numbers["blockiness"] > 2) != holes
    assert not holes or numbers["blockiness"] == 1.0


@pytest.mark.parametrize(("said", "told"), [(-50.0, 2.5e-4), (3.0, 1.0), (50.0, 2.0)])
def test_a_referee_says_no_less_than_an_eighth_of_a_grey_level_and_no_more_than_the_range(said: float, told: float) -> None:
    referee = Referee().requires_grad_(False)
    assert referee.out.bias is not None
    referee.out.bias.fill_(said)
    seen: Any = SimpleNamespace(features=lambda: torch.zeros(CHANNELS, 8, 8))
    assert torch.allclose(referee._std(seen), torch.tensor(told))


def test_a_pixel_of_which_one_channel_is_known_is_not_invented() -> None:
    reached = torch.zeros(3, 20, 20, dtype=torch.bool)
    assert residual.measure_far_share(reached) == 1.0
    reached[1] = True
    assert residual.measure_far_share(reached) == 0.0


@pytest.mark.parametrize("shape", [(31, 200), (200, 31)])
def test_a_strip_is_too_narrow_to_show_blocks(shape: tuple[int, int]) -> None:
    rows, columns = (torch.arange(side) // 8 for side in shape)
    blocks = ((7 * rows[:, None] + 5 * columns) % 11).double()[None]
    assert residual.measure_blockiness(blocks) == 1.0 and residual.measure_blockiness(blocks.repeat(1, 2, 2)) > 1.0


@pytest.mark.parametrize("wave", [(0.2, 0.0), (0.0, 0.2), (0.14, 0.14), (0.4, 0.1)])
def test_a_wave_is_found_in_the_band_of_its_frequency_whatever_its_direction(wave: tuple[float, float]) -> None:
    rows, columns = torch.arange(60)[:, None], torch.arange(100)[None, :]
    picture = (0.5 + 0.3 * torch.sin(2 * math.pi * (wave[0] * rows + wave[1] * columns))).expand(3, -1, -1)
    found = plausibility.measure_bands(picture)
    assert found.index(max(found)) == sum(edge <= math.hypot(*wave) for edge in limits.BANDS) - 1
