"""The data pipeline: cache, crops, and their dependence on (seed, step) alone."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from leader.priors.pyramid_net import PyramidConfig, PyramidNet, halve
from leader.train import data
from leader.train.data import crop_centre, draw_crop, draw_level_crop, halved, open_photographs
from leader.train.objective import Task, draw_examples, spread
from tests.sentences import refusal
from tests.train.pictures import open_pictures, write_pictures

TASK = Task(6, 16, 0.9 * 37.5 / 255, 150 / 255, 70 / 255, (0.5, 0.5))


def test_cache_holds_the_pictures_and_is_made_once(tmp_path: Path) -> None:
    folder = write_pictures(tmp_path / "pictures")
    photos = open_photographs(folder, tmp_path / "cache")
    with Image.open(folder / "2.png") as picture:
        assert np.array_equal(photos["full"][2], np.asarray(picture))
    assert photos["half"][2].shape == (100, 80, 3)
    made = (tmp_path / "cache" / "full.npy").stat().st_mtime_ns
    open_photographs(folder, tmp_path / "cache")
    assert (tmp_path / "cache" / "full.npy").stat().st_mtime_ns == made
    write_pictures(folder, count=5, seed=1)
    assert len(open_photographs(folder, tmp_path / "cache")["full"]) == 5, "a changed folder is decoded again"
    for value in (10, 200):  # also one of as many bytes: a bitmap of the same size
        Image.new("RGB", (40, 30), (value, 0, 0)).save(folder / "a.bmp")
        assert int(open_photographs(folder, tmp_path / "cache")["full"][5][0, 0, 0]) == value


def test_flat_crops_are_mostly_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pixels = np.full((200, 400, 3), 128, np.uint8)
    pixels[:, 200:] = np.random.default_rng(0).integers(0, 255, (200, 200, 3))
    (tmp_path / "p").mkdir()
    Image.fromarray(pixels).save(tmp_path / "p" / "half_flat.png")
    photos = open_photographs(tmp_path / "p", tmp_path / "cache")

    def flat_share() -> float:
        rng = np.random.default_rng(0)
        return float(np.mean([float(draw_crop(rng, photos, 16).std()) < 0.03 for _ in range(300)]))

    found = flat_share()
    monkeypatch.setattr(data, "FLAT_KEPT", 1.0)
    everything = flat_share()
    assert 0.35 < everything < 0.6
    # kept with probability q, a flat share f becomes q f/(q f + 1 - f): 0.13 for q = 0.15 and f = 0.5
    expected = 0.15 * everything / (0.15 * everything + 1 - everything)
    assert abs(found - expected) < 4 * (expected * (1 - expected) / 300) ** 0.5


def test_level_crops_are_block_averages(tmp_path: Path) -> None:
    photos = open_pictures(tmp_path)
    full, level = draw_level_crop(np.random.default_rng(0), photos, 8, 3)
    assert full.shape == (3, 64, 64) and level.shape == (3, 8, 8)
    torch.testing.assert_close(halve(full[None], 3)[0], level)
    assert float(full.min()) >= 0 and float(full.max()) <= 1


def test_too_small_pictures_are_refused(tmp_path: Path) -> None:
    photos = open_pictures(tmp_path, size=(40, 30))
    assert "64 pixels" in refusal(draw_crop, np.random.default_rng(0), photos, 64)
    (tmp_path / "empty").mkdir()
    assert "No pictures" in refusal(open_photographs, tmp_path / "empty", tmp_path / "other")


def test_noise_levels_are_stratified_in_a_step_and_even_over_steps() -> None:
    rng = np.random.default_rng(0)
    steps = [spread(step, 8, rng) for step in range(200)]
    for values in steps:
        assert sorted(int(8 * value) for value in values) == list(range(8))
    ordered = np.sort(np.concatenate(steps))
    # golden-ratio shifts leave a discrepancy of order log(n)/n; random numbers one of 1/sqrt(n) = 0.025
    assert np.abs(ordered - (np.arange(1600) + 0.5) / 1600).max() < 0.002


def test_a_batch_depends_on_seed_and_step_alone(tmp_path: Path) -> None:
    photos = open_pictures(tmp_path)
    net = PyramidNet(PyramidConfig(width=4, depth=1, head_width=4))
    first, again = draw_examples(net, photos, TASK, 3, 7, False), draw_examples(net, photos, TASK, 3, 7, False)
    other = draw_examples(net, photos, TASK, 3, 8, False)
    assert all(torch.equal(a.noisy, b.noisy) for a, b in zip(first, again, strict=True))
    assert not torch.equal(first[0].noisy, other[0].noisy) and not torch.equal(first[0].clean, other[0].clean)
    fourth = draw_examples(net, photos, TASK, 4, 7, False)
    assert not torch.equal(first[0].clean, fourth[0].clean)
    small = torch.cat([part.sigma for part in draw_examples(net, photos, replace(TASK, sigma_power=4.0), 3, 7, False)])
    assert float(small.mean()) < float(torch.cat([part.sigma for part in first]).mean()), "little noise is drawn more often"


def test_crops_come_from_both_sizes_and_lie_every_way(tmp_path: Path) -> None:
    """A picture that is dark at the top: turned, that side is anywhere; and half of the size is as steep again."""
    ramp = np.linspace(0, 255, 128)[:, None, None].repeat(128, 1).repeat(3, 2)
    (tmp_path / "p").mkdir()
    Image.fromarray(ramp.astype(np.uint8)).save(tmp_path / "p" / "a.png")
    photos = open_photographs(tmp_path / "p", tmp_path / "cache")
    crops = [draw_crop(np.random.default_rng(seed), photos, 32)[0] for seed in range(40)]
    slopes = [(round(float(127 * c.diff(dim=0).mean())), round(float(127 * c.diff(dim=1).mean()))) for c in crops]
    assert set(slopes) == {(steep * a, steep * b) for steep in (1, 2) for a, b in ((1, 0), (-1, 0), (0, 1), (0, -1))}


def test_examples_have_the_noise_and_the_guides_they_claim(tmp_path: Path) -> None:
    photos = open_pictures(tmp_path)
    net = PyramidNet(PyramidConfig(width=4, depth=1, head_width=4))
    for examples in draw_examples(net, photos, TASK, 0, 0, False):
        measured = (examples.noisy - examples.clean).flatten(1).std(1)
        # 768 numbers each: the standard deviation is known to 2.6 %; five of those
        assert bool(((measured / examples.sigma - 1).abs() < 0.13).all())
        low = torch.where(examples.level > 0, TASK.coarse_sigma_low, TASK.sigma_low)
        assert bool((examples.sigma >= low).all()) and bool((examples.sigma <= TASK.sigma_high).all())
        assert bool((examples.sigma / 2**examples.guides <= net.config.expert_max).all())
    little = draw_examples(net, photos, replace(TASK, sigma_high=TASK.sigma_low), 0, 0, False)
    assert 1 in {examples.guides for examples in little} and 0 not in {examples.guides for examples in little}


def test_one_large_picture_among_many_small_ones_is_found(tmp_path: Path) -> None:
    write_pictures(tmp_path / "p", count=40, size=(24, 30))
    Image.effect_noise((80, 90), 60).convert("RGB").save(tmp_path / "p" / "large.png")
    Image.effect_noise((140, 70), 60).convert("RGB").save(tmp_path / "p" / "wide.png")  # large enough at full size alone
    photos = open_photographs(tmp_path / "p", tmp_path / "cache")
    crops = [draw_crop(np.random.default_rng(seed), photos, 64) for seed in range(20)]
    assert all(piece.shape == (3, 64, 64) for piece in crops) and not torch.equal(crops[0], crops[1])


def test_half_size_is_the_mean_of_four_and_the_centre_in_the_middle_of_both_sides() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (20, 30, 3)).astype(np.uint8)
    found = np.asarray(halved(Image.fromarray(pixels))).astype(float)
    expected = pixels.reshape(10, 2, 15, 2, 3).mean(axis=(1, 3))
    assert np.abs(found - expected).max() <= 1.0  # rounded after rows and after columns
    crop = crop_centre(Image.fromarray(pixels), 12)
    assert crop is not None
    np.testing.assert_allclose(255 * crop.permute(1, 2, 0).numpy(), pixels[4:16, 9:21], atol=1e-3)
    assert crop_centre(Image.fromarray(pixels), 21) is None
