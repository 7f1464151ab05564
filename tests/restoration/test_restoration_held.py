"""A restoration by its numbers: units and axes of picture and map, noise levels, seeds, margins, masks, repeated runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from leader import Problem, Sampler, operators, presets
from leader.errors import UsageError
from leader.pictures import Picture, write_picture
from leader.priors.base import Prediction
from leader.restoration import memory
from leader.restoration.arguments import as_mask, as_picture, as_sigma
from leader.restoration.borders import _trimmed, extend, extended_blur
from leader.restoration.degrade import degrade
from leader.restoration.repeat import arguments_of
from leader.restoration.restore import prepare, restore
from tests.cheap_prior import CheapPrior, photograph


class Striped(CheapPrior):
    """Its variance differs between channels and rows."""

    def _predict(self, x: Tensor, t: Tensor) -> Prediction:
        answer = super()._predict(x, t)
        assert answer.variance is not None
        scale = torch.arange(1, x.shape[1] + 1).reshape(-1, 1, 1) / 4 * torch.linspace(0.2, 1, x.shape[2])[:, None]
        return Prediction(answer.x0, answer.eps, answer.variance * scale.to(x))


def unit(x: Tensor) -> Any:
    """[1, C, H, W] in [-1, 1] as pixels [H, W, C] in [0, 1]."""
    return np.moveaxis(x[0].numpy(), 0, 2) / 2 + 0.5


def test_picture_and_map_are_those_of_a_direct_run() -> None:
    """Square, so that a transposition shows; the map in units of [0, 1], channels joined by root mean square."""
    image = photograph(32, 32)
    restored = restore(image, "denoise", sigma=0.1, prior=Striped(), steps=4, seed=5)
    problem = Problem(image[None], operators.Denoising((3, 32, 32)), 0.1)
    direct = Sampler(Striped(), steps=4).run(problem, 5)
    assert np.allclose(restored.array, np.clip(unit(direct.images), 0, 1), atol=1e-6)
    assert restored.uncertainty is not None and direct.posterior_std is not None
    spread = direct.posterior_std[0].double().numpy() / 2
    after = spread**2 * 0.1**2 / (spread**2 + 0.1**2)  # every pixel is measured once more, with noise of 0.1
    assert np.allclose(restored.uncertainty, np.sqrt(after.mean(0)), rtol=1e-5)
    assert not np.allclose(restored.uncertainty, spread.mean(0), rtol=1e-2), "the channels must differ"


def test_seed_and_id_choose_the_draw() -> None:
    image = photograph(24, 24)
    options: dict[str, Any] = {"sigma": 0.3, "prior": CheapPrior(), "steps": 3}
    choices: tuple[dict[str, Any], ...] = ({}, {"seed": 1}, {"ids": 4})
    runs = [restore(image, "denoise", **options, **more).array for more in choices]
    again = restore(image, "denoise", **options, ids=[4]).array
    assert np.array_equal(runs[2], again)
    for i, j in ((0, 1), (0, 2), (1, 2)):
        assert np.abs(runs[i] - runs[j]).max() > 1e-3


def test_threads_hold_for_the_run_and_are_given_back() -> None:
    before = torch.get_num_threads()
    seen: list[int] = []
    restore(
        photograph(16, 16),
        "denoise",
        sigma=0.1,
        prior=CheapPrior(),
        steps=2,
        threads=before + 1,
        on_step=lambda _: seen.append(torch.get_num_threads()),
    )
    assert set(seen) == {before + 1} and torch.get_num_threads() == before


def test_a_blurred_picture_is_cropped_to_its_frame_with_its_map() -> None:
    kernel = np.ones((3, 7))
    ready = prepare(photograph(20, 28), "deblur", sigma=0.05, kernel=kernel, prior=CheapPrior(), steps=3)
    height, width = ready.problem.image_shape[1:]
    assert height >= 20 + 2 * 1 and width >= 28 + 2 * 3 and ready.posed.window is not None
    restored = ready.run()
    direct = ready.sampler.run(ready.problem, 0)
    assert torch.equal(restored.result.images, ready.posed.window.crop(direct.images))
    assert restored.uncertainty is not None and restored.uncertainty.shape == (20, 28) == restored.array.shape[:2]
    assert restored.result.posterior_std is not None and restored.result.posterior_std.shape[-2:] == (20, 28)


def test_a_wide_kernel_does_not_wrap_into_the_picture() -> None:
    kernel = torch.zeros(3, 21, dtype=torch.float64)
    kernel[1] = 1 / 21
    operator, window = extended_blur((1, 16, 30), kernel, "deblur")
    assert window.left >= 10 and operator.image_shape[2] - window.left - 30 >= 10
    assert window.top >= 1 and operator.image_shape[1] - window.top - 16 >= 1


def test_trimming_keeps_the_centre_of_a_lopsided_kernel() -> None:
    kernel = torch.zeros(7, 9)
    kernel[2, 1] = kernel[3, 4] = 1
    trimmed = _trimmed(kernel)
    assert trimmed.shape == (3, 7) and trimmed[0, 0] == 1 and trimmed[1, 3] == 1, "rows 2 to 4, columns 1 to 7"
    assert torch.equal(_trimmed(kernel.flip(0, 1)), trimmed.flip(0, 1)), "whichever side has fewer rows that are zero"


def test_a_picture_goes_on_beyond_its_frame() -> None:
    operator, window = extended_blur((1, 24, 24), operators.gaussian_kernel(2.0), "deblur")
    y = torch.full((1, 1, 24, 24), 0.8)
    extended = extend(y, operator, window)
    assert torch.allclose(extended, torch.full_like(extended, 0.8), atol=1e-3)
    slope = torch.linspace(0.2, 0.8, 24).expand(1, 1, 24, 24)
    around = extend(slope, operator, window)[0, 0, window.top + 12]
    assert float(around[window.left - 1]) == pytest.approx(0.2, abs=0.03)
    assert float(around[window.left + 24]) == pytest.approx(0.8, abs=0.03)


@pytest.mark.parametrize("exact", [False, True])
def test_degraded_noise_has_its_level_and_follows_its_seed(exact: bool) -> None:
    image = torch.full((3, 48, 48), 0.5)

    def noise(seed: int) -> Any:
        made = degrade(image, "denoise", sigma=0.05, seed=seed, exact=exact)
        return made.measurement.y.numpy() - 0.5 if exact else made.picture.pixels - 0.5

    assert noise(1).std() == pytest.approx(0.05, rel=0.05)
    assert np.array_equal(noise(1), noise(1)) and np.abs(noise(1) - noise(2)).max() > 0.05


@pytest.mark.parametrize("exact", [False, True])
def test_holes_of_a_degraded_picture_are_black_not_noisy(exact: bool) -> None:
    mask = np.ones((16, 16))
    mask[3:7, 4:9] = 0
    made = degrade(torch.full((3, 16, 16), 0.5), "inpaint", sigma=0.2, mask=mask, exact=exact)
    hole = made.measurement.y[0, :, 3:7, 4:9].numpy() if exact else made.picture.pixels[3:7, 4:9]
    assert np.abs(hole).max() == 0


def test_what_a_container_says_of_its_operator() -> None:
    image = photograph(16, 16)
    drawn = degrade(image, "deblur-motion", seed=3, exact=True).measurement
    assert torch.equal(drawn.options["kernel"], operators.motion_kernel(3))
    photographed = degrade(image, "deblur-motion", seed=3, exact=False)
    assert any("motion:3" in note for note in photographed.notes)
    assert degrade(image, "deblur-gaussian", kernel="gaussian:1.5", exact=True).measurement.options == {"std": 1.5}
    sets = [degrade(image, "cs", seed=seed, ratio=0.3, exact=True).measurement for seed in (0, 7)]
    assert [item.options["seed"] for item in sets] == [0, 7]
    assert not torch.equal(sets[0].operator().A(image[None]), sets[1].operator().A(image[None]))


def test_colourisation_measures_the_mean_of_the_channels() -> None:
    image = photograph(16, 24)
    ready = prepare(image, "colourise", sigma=0.05, prior=CheapPrior(), steps=2)
    assert torch.allclose(ready.problem.y, 2 * image.mean(0)[None, None] - 1, atol=1e-6)


def test_super_resolution_by_other_factors() -> None:
    for factor in (2, 5):
        assert restore(photograph(9, 12), "sr", factor=factor, sigma=0.1, prior=CheapPrior(), steps=2).array.shape == (
            9 * factor,
            12 * factor,
            3,
        )
    with pytest.raises(UsageError, match="1 to 16"):
        prepare(photograph(9, 12), "sr", factor=17, sigma=0.1, prior=CheapPrior())


@pytest.mark.parametrize("bits", [8, 16])
def test_an_estimate_is_at_least_the_noise_of_rounding(bits: int) -> None:
    flat = np.full((64, 64, 3), 100, np.uint8 if bits == 8 else np.uint16)
    assert as_picture(flat).bits == bits and as_picture(flat).pixels.flat[0] == pytest.approx(100 / (2**bits - 1))
    assert prepare(flat, "sr", factor=2, prior=CheapPrior()).sigma == pytest.approx(1 / (2**bits - 1) / np.sqrt(12))


def test_missing_pixels_do_not_count_as_noise_and_a_level_of_zero_is_given() -> None:
    image, mask = torch.full((3, 64, 64), 0.5), np.ones((64, 64))
    mask[::9] = 0
    noisy = image + 0.03 * torch.randn(image.shape, generator=torch.Generator().manual_seed(0))
    noisy[:, ::9] = torch.rand(3, 8, 64, generator=torch.Generator().manual_seed(1))
    ready = prepare(noisy, "inpaint", mask=mask, prior=CheapPrior())
    assert ready.sigma == pytest.approx(0.03, rel=0.2) and ready.sigma_from == "estimated"
    clean = prepare(noisy, "denoise", sigma=0.0, prior=CheapPrior())
    assert clean.sigma == 0 and clean.sigma_from == "given" and clean.problem.noise_free


def test_the_callers_noise_wins_over_the_containers(tmp_path: Path) -> None:
    degrade(photograph(16, 16), "denoise", sigma=0.05, exact=True).save(tmp_path / "m.npz")
    given = prepare(tmp_path / "m.npz", sigma=0.2, prior=CheapPrior())
    assert (given.sigma, given.sigma_from) == (0.2, "given") and float(given.problem.sigma[0]) == pytest.approx(0.4)
    assert prepare(tmp_path / "m.npz", prior=CheapPrior()).sigma == 0.05


def test_noise_levels_of_bytes_are_refused_with_a_hint() -> None:
    with pytest.raises(UsageError, match=r"25/255 = 0\.098"):
        as_sigma(25)
    assert as_sigma("1") == 1.0 and as_sigma(0) == 0.0


def test_tensors_are_read_as_channels_height_width() -> None:
    image = photograph(16, 16)
    assert np.array_equal(as_picture(image).pixels, image.permute(1, 2, 0).numpy())
    assert np.array_equal(as_picture(image[None]).pixels, image.permute(1, 2, 0).numpy())


def test_white_is_known_and_grey_goes_to_the_nearer_end(tmp_path: Path) -> None:
    table = np.array([[0, 100, 200, 255]] * 3)
    assert as_mask(table, (4, 3)).tolist() == [[0, 0, 1, 1]] * 3
    assert as_mask(table / 255, (4, 3)).tolist() == [[0, 0, 1, 1]] * 3
    colours = np.zeros((8, 8, 3), np.float32)
    colours[:4, :, 1:] = 1  # cyan is bright though it has no red
    write_picture(tmp_path / "mask.png", Picture(colours))
    assert as_mask(tmp_path / "mask.png", (8, 8))[:, 0].tolist() == [1] * 4 + [0] * 4


def test_a_random_mask_follows_its_share_and_seed() -> None:
    masks = [as_mask(f"random:0.25:{seed}", (20, 10)) for seed in (0, 3)]
    assert all(mask.shape == (10, 20) and int((mask == 0).sum()) == 50 for mask in masks)
    assert torch.equal(as_mask("random:0.25", (20, 10)), masks[0]) and not torch.equal(*masks)


def test_a_doubtful_mask_is_mentioned_and_a_good_one_is_not() -> None:
    image, mask = photograph(32, 32), np.ones((32, 32))
    mask[2:6, 2:6] = 0
    notes = [prepare(image, "inpaint", mask=item, sigma=0.1, prior=CheapPrior()).notes for item in (mask, 1 - mask)]
    assert not notes[0] and any("inverted" in note for note in notes[1])


def test_a_run_is_repeated_with_its_grid_presets_and_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    image, prior = photograph(16, 16), CheapPrior()
    options: dict[str, Any] = {"sigma": 0.2, "steps": 30, "ids": 4, "settings": {"satp": {"budget": 0.2, "eta": 3.0}}}
    first = restore(image, "denoise", prior=prior, **options)
    jumps = [visit.jump for visit in first.result.trace[4]]
    assert max(jumps) > 1, "the run must prune"
    monkeypatch.setattr(presets, "entries", lambda: ({"method": "any", "settings": {"eta": 0.1}},))
    again = restore(image, **arguments_of(first.summary(), prior))
    assert np.array_equal(again.array, first.array)
    assert [visit.jump for visit in again.result.trace[4]] == jumps


def test_memory_is_judged_by_size_and_by_the_limit_of_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    grey, colour = (memory.memory_needed((channels, 1000, 1000)) - memory.BYTES_ALWAYS for channels in (1, 3))
    assert colour == 1000 * 1000 * memory.BYTES_PER_PIXEL and grey == pytest.approx(0.6 * colour)
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(memory, "_LIMITS", (str(limit),))
    free = memory.memory_here()
    limit.write_text("12345678\n")
    assert memory.memory_here() == 12345678 != free
    limit.write_text("max\n")
    assert memory.memory_here() == free


def test_a_kept_run_asks_no_preset() -> None:
    prior = CheapPrior()
    ready = prepare(photograph(16, 16), "denoise", sigma=0.1, prior=prior, steps=3)
    again = arguments_of(ready.run(check=False).summary(), prior)
    assert again["settings"]["use_presets"] is False and again["settings"]["grid"].times == ready.plan.grid.times


def test_the_limit_of_a_container_counts_whichever_file_tells_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said, unlimited = tmp_path / "max", tmp_path / "limit"
    said.write_text("123456\n")
    unlimited.write_text("max\n")
    for files in ((tmp_path / "absent", said), (said, tmp_path / "absent"), (unlimited, said)):
        monkeypatch.setattr(memory, "_LIMITS", tuple(map(str, files)))
        assert memory.memory_here() == 123456
    monkeypatch.setattr(memory, "_LIMITS", (str(unlimited),))
    there = memory.memory_here()
    assert there is None or there > 123456
